"""Plans: where a search reads never changes what it finds.

Any filter made of a few terms is held against every run of a store, tested one by one. Only what
the search says that it leaves out by default may be missing.
"""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from dynsched.domain.filters import RUNS, Filter, FilterError, parse
from dynsched.domain.masking import PLAIN
from dynsched.domain.run import Run, RunState
from dynsched.services.run_facts import RunFacts
from dynsched.services.run_plan import RunPlan, plan_runs
from dynsched.testing import memory_store
from tests.unit.many_runs import DISK, NET, SESSIONS, START, ManyRuns, pages

TIMES = (
    ">-1h",
    "<-1h",
    ">=-90m",
    "<-5h",
    ">-10h",
    "2026-03-01",
    ">2026-02-28T20:00Z",
    "<=now",
    ">now",
)
TERMS = [
    *(f"state:{state.value}" for state in RunState),
    "state:dead,failed,done",
    "state:ready,leased",
    "tenant:acme",
    "tenant:acme,acme-eu",
    "queue:slow",
    "prio:high,bulk",
    "worker:alive",
    "worker:host-lapsed,shut",
    "kind:scheduled",
    "job:nightly",
    "job:report,mail",
    f"group:{DISK}",
    f"group:{DISK},{NET},0000000000000000",
    "err:disk",
    "nightly",
    "attempt:>1",
    "replays:0,1",
    "tag:team=ops",
    "payload.order.id:<4",
    "reason:x",
    *(f"is:{flag}" for flag in RUNS.find("is").choices),  # type: ignore[union-attr]
    "is:discarded,retried",
    "is:stuck,overdue,late",
    *(f"@{name}" for name in RUNS.named),
    *(f"{name}:{time}" for name in ("sched", "due", "started", "ended", "dead") for time in TIMES),
    f"ended:{TIMES[0]},{TIMES[3]}",
]


@pytest.fixture(scope="module")
def many() -> ManyRuns:
    """Return a store with runs in every state and place."""
    return ManyRuns(memory_store(), 11, 250)


def admitted(run: Run, found: Filter, plan: RunPlan) -> bool:
    """Return whether what a search leaves out by default lets a run through."""
    asked = {word for term in found.asking("is") for word in term.words}
    if run.hidden and "discarded" not in asked:
        return False
    if found.asking("group") and not found.asking("state") and run.state is not RunState.DEAD:
        return False
    return not plan.notes or run.ended_at is None or run.ended_at >= plan.ended.low


def by_hand(many: ManyRuns, text: str) -> list[str]:
    """Return what a filter finds, by testing every run."""
    found = parse(text, RUNS)
    plan = plan_runs(found, START)
    facts = RunFacts(
        many.store,
        found,
        START,
        jobs={
            job.name: frozenset(one.job_id for one in many.jobs if one.name == job.name)
            for job in many.jobs
        },
        workers={
            word: frozenset(name for name in SESSIONS if word in (name, f"host-{name}"))
            for word in ("alive", "host-lapsed", "shut")
        },
        masker=PLAIN,
    )
    fits = zip(many.runs, facts.fitting(many.runs), strict=True)
    kept = [run for run, fit in fits if fit and admitted(run, found, plan)]

    def place(run: Run) -> tuple[datetime, str]:
        at = run.scheduled_for if plan.by_schedule else run.ended_at or run.available_at
        return at, run.run_id

    return [run.run_id for run in sorted(kept, key=place, reverse=True)]


@settings(max_examples=120)
@given(
    terms=st.lists(
        st.tuples(st.sampled_from(["", "", "-"]), st.sampled_from(TERMS)), min_size=1, max_size=4
    ),
    limit=st.sampled_from([13, 400]),
)
@example(terms=[("", "is:discarded,retried"), ("", "state:dead")], limit=400)
@example(terms=[("", "is:stuck")], limit=400)
def test_where_a_search_reads_never_changes_what_it_finds(
    many: ManyRuns, terms: list[tuple[str, str]], limit: int
) -> None:
    """On one page or on several."""
    text = " ".join(sign + term for sign, term in terms)
    try:
        found = pages(many, text, limit=limit)
    except FilterError:  # a tenant without such a job
        reject()
    assert found == by_hand(many, text)
