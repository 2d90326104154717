"""Choosing: which dead runs a replay batch shall hold, counted and judged page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from dynsched.domain.job import Job
from dynsched.domain.run import Run, parse_run_id
from dynsched.errors import InvalidInput
from dynsched.services.capacity import Capacity, alive_sessions
from dynsched.services.store_views import Level
from dynsched.storage.runs import Damaged
from dynsched.storage.store import Store

TOP = 20  # jobs, tenants and groups that a batch counts one by one
OTHERS = "(others)"
NO_GROUP = "-"
PAGE = 500
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
        capacity = Capacity(alive_sessions(self._store.control.sessions(), now))
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


def dead_pages(store: Store, text: str, *, most: int) -> Iterator[list[Run]]:
    """Read the dead runs that a filter chooses, page by page.

    Raises:
        InvalidInput: the filter has a term that is not known.
    """
    wanted = _terms(text)
    page: list[Run] = []
    for run in store.runs.dead_each(most=most):
        if all(value in values for value, values in _values(run, wanted)):
            page.append(run)
        if len(page) == PAGE:
            yield page
            page = []
    yield page


def newer_than(store: Store, batch: Batch, now: datetime, *, most: int) -> Level:
    """Return how many dead runs a batch's filter chooses that died after its cut-off.

    Those that it moved itself and that are dead again are not among them.
    """
    store.refresh_by(now)
    count = 0
    for page in dead_pages(store, batch.filter, most=most):
        count += sum(_newer(run, batch) for run in page)
    return Level(count)


def _newer(run: Run, batch: Batch) -> bool:
    late = run.ended_at is not None and run.ended_at > batch.cut_off
    return late and run.batch != batch.batch_id


def _terms(text: str) -> dict[str, set[str]]:
    wanted: dict[str, set[str]] = {}
    for term in text.split():
        name, colon, values = term.partition(":")
        if not colon or name not in ("state", "job", "tenant", "group", "id"):
            raise InvalidInput("filter", f"{term!r} is no term", "job: tenant: group: id:")
        wanted[name] = set(values.split(","))
    return wanted


def _values(run: Run, wanted: Mapping[str, set[str]]) -> Iterator[tuple[str, set[str]]]:
    has = {
        "state": run.state.value,
        "job": run.job_id,
        "tenant": run.tenant,
        "group": run.signature,
        "id": run.run_id,
    }
    for name, values in wanted.items():
        yield has[name], values
