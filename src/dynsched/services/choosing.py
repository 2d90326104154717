"""Choosing: which dead runs a replay batch shall hold, counted and judged page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from dynsched.domain.batch import Batch
from dynsched.domain.batch_entry import (
    SKIPS,
    Entry,
    Mark,
    entry_of,
    judge,
)
from dynsched.domain.filters import RUNS, Filter, parse
from dynsched.domain.health import Level
from dynsched.domain.instants import to_text
from dynsched.domain.job import Job
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.errors import FilterError
from dynsched.services.capacity import Capacity, alive_sessions
from dynsched.services.search import Found, RunSearch
from dynsched.storage.runs import Damaged
from dynsched.storage.store import Store

TOP = 20  # jobs, tenants and groups that a batch counts one by one
OTHERS = "(others)"
NO_GROUP = "-"
PAGE = 500
PAGE_RUNS = 2_000
PAGE_EXAMINED = 20_000
EXAMINED_FOR_ONE = 10  # runs that are looked at for one that a batch may hold
LEASED_AGAIN = "not dead any more: it is {state}"
NEWER = "died after the cut-off"
DAMAGED = "its row or its job's row is damaged"


class Chosen(NamedTuple):
    """A dead run that is to be an entry, and what it is counted by; ordered as it is moved."""

    scheduled_for: datetime
    run_id: str
    entry: Entry
    job_id: str
    tenant: str
    group: str
    queue: str
    needs: str


@dataclass(slots=True)
class Choice:
    """What a preview has chosen so far.

    Attributes:
        chosen: the runs that are to be entries.
        skipped: runs that were found and are no entries, by why.
        matched: runs that the filter found.
    """

    chosen: list[Chosen] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    matched: int = 0

    def keep(self, limit: int | None) -> int:
        """Order by the intended instant and keep the first of them; return how many are left out.

        So that work that builds on earlier work finds it done, as far as slots allow.
        """
        self.chosen.sort()
        left_out = 0 if limit is None else max(len(self.chosen) - limit, 0)
        del self.chosen[len(self.chosen) - left_out :]
        return left_out

    def counts(self) -> dict[str, Mapping[str, int]]:
        """Return the entries by job, tenant and group, the largest of each."""
        return {
            "job": largest(Counter(one.job_id for one in self.chosen)),
            "tenant": largest(Counter(one.tenant for one in self.chosen)),
            "group": largest(Counter(one.group for one in self.chosen)),
        }

    @property
    def tenants(self) -> int:
        """Return how many tenants the entries have."""
        return len({one.tenant for one in self.chosen})


class Chooser:
    """Judges dead runs for one batch.

    Args:
        store: where they lie.
        batch_id: the batch.
        cut_off: what died later is left out.
        tenant: what is another's is not seen; None sees all.
    """

    def __init__(
        self, store: Store, *, batch_id: str, cut_off: datetime, tenant: str | None = None
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._batch_id = batch_id
        self._cut_off = cut_off
        self._jobs: dict[str, Job | None] = {}
        self._damaged: set[str] = set()
        self.choice = Choice()

    def consider(self, runs: Sequence[Run]) -> None:
        """Judge a page of runs. Cost: 1 read unit for each job not met before."""
        runs = [run for run in runs if self._tenant in (None, run.tenant)]
        self._read_jobs(runs)
        for run in runs:
            self.choice.matched += 1
            why = self._why_not(run, entry_of(run) if run.ended_at else None)
            if why:
                self.choice.skipped[why] += 1
            else:
                self._take(run)

    def consider_again(self, entries: Sequence[Entry]) -> None:
        """Judge entries of another batch: only those that are dead as they were then are chosen.

        Cost: 1 read unit for each, and for each job not met before.
        """
        found = self._store.runs.look_up([parse_run_id(entry.run_id) for entry in entries])
        self._read_jobs([run for run in found if isinstance(run, Run)])
        for entry, run in zip(entries, found, strict=True):
            self.choice.matched += 1
            why = DAMAGED if isinstance(run, Damaged) else self._why_not(run, entry)
            if why or not isinstance(run, Run):
                self.choice.skipped[why] += 1
            else:
                self._take(run)

    def _read_jobs(self, runs: Iterable[Run]) -> None:
        unknown = list(dict.fromkeys(run.job_id for run in runs if run.job_id not in self._jobs))
        for start in range(0, len(unknown), PAGE):
            for job_id, job in self._store.jobs.read_many(unknown[start : start + PAGE]).items():
                self._jobs[job_id] = job if isinstance(job, Job) else None
                if job is not None and not isinstance(job, Job):
                    self._damaged.add(job_id)

    def _why_not(self, run: Run | None, entry: Entry | None) -> str:
        """Return why a run is no entry; empty if it is one."""
        if run is not None and (entry is None or run.ended_at is None):
            return LEASED_AGAIN.format(state=run.state.value)
        assert entry is not None
        if run is not None and run.job_id in self._damaged:
            return DAMAGED
        job = None if run is None else self._jobs[run.job_id]
        mark = judge(entry, run, job, batch_id=self._batch_id)
        if run is not None and mark is Mark.REPLAYED:
            return LEASED_AGAIN.format(state=run.state.value)
        if mark is not Mark.LEFT:
            return SKIPS[mark]
        return NEWER if entry.died_at > self._cut_off else ""

    def _take(self, run: Run) -> None:
        self.choice.chosen.append(
            Chosen(
                run.scheduled_for,
                run.run_id,
                entry_of(run),
                run.job_id,
                run.tenant,
                run.signature or NO_GROUP,
                run.queue,
                run.needs,
            )
        )

    def warnings(self, now: datetime) -> dict[str, int]:
        """Return entries that may not start soon, by why. Cost: one query of the sessions."""
        alive = alive_sessions(self._store.control.sessions(), now)
        capacity = Capacity(alive, self._store.topology.message_queues)
        warned: Counter[str] = Counter()
        kinds = Counter((one.queue, one.needs) for one in self.choice.chosen)
        for (queue, needs), count in kinds.items():
            lack = capacity.lack(queue, needs)
            if lack:
                warned[lack] += count
        return largest(warned)


def largest(counter: Counter[str]) -> dict[str, int]:
    """Return the largest counts, and the sum of the others under a name of its own."""
    found = dict(counter.most_common(TOP))
    others = counter.total() - sum(found.values())
    return {**found, OTHERS: others} if others else found


def dead_only(text: str) -> Filter:
    """Return the filter of a batch: of dead runs, unless it names runs or states itself.

    What is named and not dead is told in the preview, which may be what somebody wants to know.

    Raises:
        FilterError: it cannot be read.
    """
    found = parse(text, RUNS)
    if found.asking("id") or found.asking("state"):
        return found
    return parse(f"state:{RunState.DEAD.value} {found.text}".strip(), RUNS)


def pages(search: RunSearch, found: Filter, *, most: int) -> Iterator[Found[Run]]:
    """Read the runs that a filter chooses, newest first, page by page.

    Args:
        search: finds them.
        found: which.
        most: stop when so many have fitted, or many times as many were looked at.
    """
    cursor: str | None = None
    matched = examined = 0
    while matched < most and examined < most * EXAMINED_FOR_ONE:
        page = search.find_runs(
            found, limit=min(PAGE_RUNS, most - matched), cursor=cursor, examine=PAGE_EXAMINED
        )
        yield page
        matched, examined, cursor = matched + page.matched, examined + page.examined, page.cursor
        if cursor is None:
            return


def newer_than(search: RunSearch, batch: Batch, *, most: int) -> Level:
    """Return how many dead runs a batch's filter chooses that died after its cut-off.

    Those that it moved itself and that are dead again are not among them. A filter that finds
    nothing any more, as its job was deleted since, chooses none.

    Cost: what one page of a search for them costs.
    """
    try:
        found = dead_only(batch.filter)
        later = parse(f"dead:>{to_text(batch.cut_off)}", RUNS)
        # Joined as terms: as one text they might be more than a text may hold.
        page = search.find_runs(replace(found, terms=(*later.terms, *found.terms)), limit=most)
    except FilterError:
        return Level(0)
    count = sum(run.state is RunState.DEAD and run.batch != batch.batch_id for run in page.items)
    return Level(count, page.cursor is not None)
