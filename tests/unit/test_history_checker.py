"""The checker of histories finds what it is for: one broken promise in each test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import cast

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap, SkipReason, Span
from dynsched.domain.lifecycle import Transition
from dynsched.domain.moves import Event
from dynsched.domain.run import Run, RunKind, RunState
from dynsched.storage.control import Tenant
from dynsched.storage.engine import Delete, Replace, Table
from dynsched.storage.placement import MapEntry, Topology
from dynsched.storage.runs import RunApplied, run_table_key
from dynsched.storage.sqlite import SqliteEngine
from dynsched.storage.store import Store
from dynsched.testing.checker import check_history, check_rest, check_rows
from dynsched.testing.clock import SettableClock
from dynsched.testing.history import RecordingEngine
from dynsched.testing.trail import read_trail
from tests.unit.builders import NOW, job_of, run_of

MINUTE = timedelta(minutes=1)
MAP = Topology((MapEntry(0, 1, 1, 1),))


@dataclass(frozen=True)
class Try:
    """What a handler would tell of itself."""

    run_id: str
    fence: int
    attempt: int


class Past:
    """A store with a history that the test makes up, move by move."""

    def __init__(self) -> None:
        self.engine = SqliteEngine(None)
        self.engine.init()
        self.recorder = RecordingEngine(self.engine)
        self.store = Store(self.recorder, rng=Random(1))
        self.store.init(MAP, SettableClock(NOW))
        begin = NOW - MINUTE
        generation = replace(job_of().generations[0], effective_from=begin)
        self.job = job_of(generations=(generation,), next_at=NOW, created_at=begin, version=1)

    def with_job(self, **fields: object) -> Past:
        """Store the job, with some fields of its own."""
        self.job = replace(self.job, **fields)  # type: ignore[arg-type]
        self.store.jobs.create(self.job, [])
        return self

    def change_job(self, **fields: object) -> None:
        """Write the job's next version."""
        after = replace(self.job, version=self.job.version + 1, **fields)  # type: ignore[arg-type]
        self.store.jobs.replace(after, self.job.version)
        self.job = after

    def run(self, minutes: int = -1) -> Run:
        """Make a fresh run of a minute."""
        run = run_of(at=NOW + minutes * MINUTE, fence=0, attempt=0, spent=0, version=1)
        self.store.runs.create_many([run])
        return run

    def apply(self, move: Transition) -> Run:
        """Write a move."""
        outcome = self.store.runs.apply(move)
        assert isinstance(outcome, RunApplied)
        return outcome.run

    def force(self, run: Run, **fields: object) -> Run:
        """Write a row that no move leads to."""
        after = replace(run, version=run.version + 1, **fields)  # type: ignore[arg-type]
        return self.apply(Transition(Event.CLAIM, run, after))

    def claim(self, run: Run, session: str = "s") -> Run:
        """Claim a run."""
        return self.apply(lifecycle.claim(run, session=session))

    def start(self, run: Run) -> None:
        """Call the handler of a claimed run."""
        self.recorder.history.started(Try(run.run_id, run.fence, run.attempt + 1))

    def succeed(self, run: Run) -> Run:
        """End a started run."""
        return self.apply(lifecycle.succeed(run, started_at=NOW, now=NOW))

    def found(self) -> list[str]:
        """Return the numbers of the invariants that are broken."""
        sentences = check_history(self.recorder.history, topology=MAP)
        return sorted({sentence.partition(":")[0] for sentence in sentences})


@pytest.fixture
def past() -> Past:
    """Return a store with a minutely job that has begun a minute ago."""
    return Past().with_job()


def test_a_run_that_fails_and_succeeds_breaks_nothing(past: Past) -> None:
    """Claim, start, retry, claim, start, succeed: a history as it should be."""
    first = past.claim(past.run())
    past.start(first)
    failed = past.apply(
        lifecycle.retry(
            first,
            started_at=NOW,
            now=NOW,
            at=NOW,
            look_ahead=MINUTE,
            error="e",
            signature="s",
        )
    )
    second = past.claim(failed)
    past.start(second)
    past.succeed(second)
    assert past.found() == []
    assert check_rest(read_trail(past.recorder.history), NOW) == []
    assert check_rows(past.recorder.history, past.engine) == []


def test_a_fence_that_jumps_is_no_move(past: Past) -> None:
    """Two claims at once would look so."""
    run = past.run()
    past.force(run, state=RunState.LEASED, session="s", fence=2)
    assert past.found() == ["5"]


@pytest.mark.parametrize(
    "fields",
    [
        {"state": RunState.READY, "attempt": 9},
        {"state": RunState.DONE, "spent": 9},
        {"state": RunState.DEAD, "reason": "attempts spent", "attempt": 1, "reported": True},
        {"state": RunState.DEAD, "reason": "poison", "attempt": 1, "losses": 1},
        {"state": RunState.READY, "tenant": "another"},
    ],
    ids=["attempt", "spent", "dead too early", "poison too early", "another tenant"],
)
def test_a_row_that_no_move_leads_to_is_found(past: Past, fields: dict[str, object]) -> None:
    """Counts that jump, ends that come too early, fields that never change."""
    past.force(past.claim(past.run()), session=None, **fields)
    assert "5" in past.found()


def test_a_run_that_leaves_its_end_is_found(past: Past) -> None:
    """Only the dead come back."""
    done = past.succeed(past.claim(past.run()))
    past.force(done, state=RunState.READY, ended_at=None, expires_at_s=None)
    assert past.found() == ["5"]


def test_a_run_that_was_asked_to_stop_and_goes_on_is_found(past: Past) -> None:
    """Every way out of a lease obeys the flag."""
    asked = past.apply(lifecycle.ask_cancel(past.claim(past.run())))
    past.force(asked, state=RunState.READY, session=None)
    assert past.found() == ["5"]


def test_a_start_without_a_lease_is_found(past: Past) -> None:
    """Nobody claimed it, or somebody else has it by now."""
    run = past.run()
    past.start(replace(run, fence=1))
    assert past.found() == ["4"]


def test_a_start_under_a_lease_that_is_over_is_found(past: Past) -> None:
    """The reaper had taken the run before the handler was called."""
    leased = past.claim(past.run())
    past.apply(lifecycle.reclaim(leased, now=NOW, signature="s"))
    past.start(leased)
    assert past.found() == ["4"]


def test_one_lease_with_two_starts_is_found(past: Past) -> None:
    """Two slots of a process took the same claim for theirs."""
    leased = past.claim(past.run())
    past.start(leased)
    past.start(leased)
    assert past.found() == ["12"]


def test_a_try_that_is_not_counted_is_found(past: Past) -> None:
    """A run that had started was stepped back from, and starts as the same attempt again."""
    leased = past.claim(past.run())
    past.start(leased)
    back = past.apply(lifecycle.step_back(leased, available_at=NOW, now=NOW))
    past.start(past.claim(back))
    assert past.found() == ["12", "6"]


def test_a_start_that_the_schedule_does_not_name_is_found(past: Past) -> None:
    """The job had been paused before the claim."""
    run = past.run()
    generation = replace(past.job.generations[-1], effective_from=NOW - MINUTE, enabled=False)
    past.change_job(generations=(generation,))
    past.start(past.claim(run))
    assert past.found() == ["1"]


def test_a_start_that_was_counted_as_skipped_is_found(past: Past) -> None:
    """The span was in the row before the claim."""
    run = past.run()
    span = Span(first=NOW - MINUTE, last=NOW - MINUTE, count=1, reason=SkipReason.CATCH_UP)
    past.change_job(spans=(span,), skipped=1)
    past.start(past.claim(run))
    assert past.found() == ["1"]


def test_runs_side_by_side_are_found_where_they_are_forbidden() -> None:
    """Both have started and hold their lease; where they are allowed, nothing is wrong."""
    for overlap, found in ((Overlap.SKIP, ["7"]), (Overlap.ALLOW, [])):
        past = Past().with_job(policies=replace(job_of().policies, overlap=overlap))
        for minutes in (-1, 0):
            past.start(past.claim(past.run(minutes)))
        past.change_job(next_at=NOW + MINUTE)
        assert past.found() == found


def test_a_run_beyond_its_tenants_cap_is_found() -> None:
    """Counted are those that have started and hold their lease."""
    past = Past().with_job(policies=replace(job_of().policies, overlap=Overlap.ALLOW))
    past.store.control.write_tenant(Tenant(name="t", max_running=1, version=0))
    first = past.claim(past.run(-1))
    past.start(first)
    past.succeed(first)
    past.start(past.claim(past.run(0)))
    past.change_job(next_at=NOW + MINUTE)
    assert past.found() == []
    past.start(past.claim(past.run(1)))
    assert past.found() == ["7"]


def test_an_instant_without_a_row_or_a_count_is_found(past: Past) -> None:
    """The pointer passed it, and nothing tells why."""
    past.change_job(next_at=NOW + MINUTE)
    assert past.found() == ["2"]


def test_a_span_that_counts_wrongly_is_found(past: Past) -> None:
    """Its schedule names another number of instants."""
    past.run()
    span = Span(first=NOW, last=NOW + MINUTE, count=3, reason=SkipReason.CATCH_UP)
    past.change_job(next_at=NOW + 2 * MINUTE, spans=(span,), skipped=3)
    assert past.found() == ["2"]


def test_a_total_that_forgets_a_span_is_found(past: Past) -> None:
    """People are shown the total."""
    past.run()
    span = Span(first=NOW, last=NOW, count=1, reason=SkipReason.CATCH_UP)
    past.change_job(next_at=NOW + MINUTE, spans=(span,), skipped=0)
    assert past.found() == ["2"]


def test_a_span_that_leaves_the_row_for_nowhere_is_found(past: Past) -> None:
    """The look could not know any more that its instants are not to run."""
    past.run()
    span = Span(first=NOW, last=NOW, count=1, reason=SkipReason.CATCH_UP)
    past.change_job(next_at=NOW + MINUTE, spans=(span,), skipped=1)
    assert past.found() == []
    past.change_job(spans=(), older_spans=True)
    assert past.found() == ["2"]


def test_a_run_that_is_skipped_although_it_is_named_is_found(past: Past) -> None:
    """Nothing was edited at its instant."""
    past.apply(lifecycle.skip(past.run(), now=NOW, reason=SkipReason.EDITED.value))
    assert past.found() == ["2"]


def test_a_run_that_lies_where_nobody_looks_is_found(past: Past) -> None:
    """Ready, but under a lane that readers do not count up to."""
    run = past.run()
    row = past.recorder.get(run_table_key(run.key))
    assert row is not None
    astray = replace(row, index=("ready#main#default#7", "t#x"))
    past.recorder.write(Replace(astray, row.version))
    assert past.found() == ["8"]


def test_a_run_that_was_deleted_too_early_is_found(past: Past) -> None:
    """Only the expiry of its retention takes a row away."""
    run = past.run()
    past.recorder.write(Delete(run_table_key(run.key), run.version))
    assert "3" in past.found()


def test_a_row_that_the_store_lost_is_found(past: Past) -> None:
    """It was acknowledged, and is not there."""
    run = past.run()
    past.engine.write(Delete(run_table_key(run.key), run.version))
    (sentence,) = check_rows(past.recorder.history, past.engine)
    assert sentence.startswith("3:")
    assert past.store.runs.get(run.key) is None
    assert past.found() == ["3"]


@pytest.mark.parametrize("leased", [True, False])
def test_a_run_that_does_not_end_is_found_at_rest(past: Past, leased: bool) -> None:
    """Due, or leased, long after everything else was done."""
    run = past.run()
    if leased:
        past.claim(run)
    (sentence,) = check_rest(read_trail(past.recorder.history), NOW)
    assert sentence.startswith("10:")


def test_a_row_under_another_runs_key_is_found(past: Past) -> None:
    """A manual run that takes an occurrence's key would take its place."""
    run = past.run()
    row = past.recorder.get(run_table_key(run.key))
    assert row is not None
    body = {**cast("dict[str, object]", row.body), "k": RunKind.MANUAL.value, "no": "0-x"}
    wrong = replace(row, body=body)  # type: ignore[arg-type]
    past.recorder.write(Replace(wrong, row.version))
    assert "1" in past.found()


def test_a_history_begins_with_what_is_stored() -> None:
    """A recorder around a store that is in use knows its rows."""
    past = Past().with_job()
    run = past.run()
    later = RecordingEngine(past.engine)
    assert later.history.rows.keys() == past.recorder.history.rows.keys()
    assert later.get(run_table_key(run.key)) is not None
    assert later.history.misread == []
    assert any(key.table is Table.RUNS for key in later.history.rows)
