"""A history read as what it means: the runs' moves, the jobs' versions, the starts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias, TypeVar

from dynsched.domain.job import Generation, Job, Span
from dynsched.domain.moves import Event
from dynsched.domain.run import Run
from dynsched.errors import DynschedError
from dynsched.storage.codec import decode_generation, decode_job, decode_run, decode_span
from dynsched.storage.engine import Key, Row, Table
from dynsched.storage.placement import JOB_SORT, TENANTS, attempts_partition
from dynsched.testing.history import Change, History, Start
from dynsched.testing.moves import event_of

ATTEMPTS = attempts_partition("")

Item = TypeVar("Item", Span, Generation)
_ByInstant: TypeAlias = dict[str, dict[datetime, Item]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A run's row before and after a write.

    Attributes:
        change: the write.
        before: None for a new run.
        after: None for one that was deleted.
        event: the lifecycle's move; None if no move allows it, and for a new or a deleted row.
    """

    change: Change
    before: Run | None
    after: Run | None
    event: Event | None

    @property
    def place(self) -> int:
        """Return the place in the store's order."""
        return self.change.place

    @property
    def run(self) -> Run:
        """Return the run, as it is or was last."""
        run = self.after or self.before
        assert run is not None
        return run


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVersion:
    """A job as it was from one place in the order on, with all that was archived until then.

    Attributes:
        job: None once its row is gone.
        generations: all so far, oldest first.
        spans: all so far, oldest first.
        lost: instants at which generations or spans begin that are neither in the row nor apart.
    """

    place: int
    job: Job | None
    generations: tuple[Generation, ...]
    spans: tuple[Span, ...]
    lost: tuple[datetime, ...] = ()


@dataclass(slots=True)
class Trail:
    """What a history means.

    Attributes:
        changes: all changes of runs, in order.
        runs: the changes of each run, by run id.
        jobs: the versions of each job, by job id.
        starts: all starts, in order.
        caps: the caps that each tenant has had, by tenant.
    """

    changes: list[RunChange] = field(default_factory=list)
    runs: dict[str, list[RunChange]] = field(default_factory=dict)
    jobs: dict[str, list[JobVersion]] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    caps: dict[str, list[int | None]] = field(default_factory=dict)

    def versions(self, job_id: str, first: int, last: int) -> list[JobVersion]:
        """Return the versions that a job had between two places in the order."""
        versions = self.jobs.get(job_id, [])
        places = [version.place for version in versions]
        begin = max(bisect_right(places, first) - 1, 0)
        return versions[begin : bisect_right(places, last)]

    def at(self, run_id: str, place: int) -> Run | None:
        """Return a run as it was at a place in the order."""
        changes = self.runs.get(run_id, [])
        index = bisect_right([change.place for change in changes], place)
        return changes[index - 1].after if index else None

    def claim_of(self, start: Start) -> RunChange | None:
        """Return the claim whose lease a start names."""
        for change in self.runs.get(start.run_id, []):
            run = change.after
            if change.event is Event.CLAIM and run is not None and run.fence == start.fence:
                return change
        return None


def read_trail(history: History) -> Trail:
    """Read a history; it must not grow meanwhile."""
    return _Reading(history).trail


class _Reading:
    """One pass over a history."""

    def __init__(self, history: History) -> None:
        self.trail = Trail(starts=list(history.starts))
        self._spans: _ByInstant[Span] = {}
        self._generations: _ByInstant[Generation] = {}
        self._apart: dict[str, set[datetime]] = {}
        self._runs: dict[Key, Run] = {}
        for change in history.changes:
            self._take(change)

    def _take(self, change: Change) -> None:
        key, row = change.key, change.after
        if key.table is Table.RUNS and not key.pk.startswith(ATTEMPTS):
            self._take_run(change)
        elif key.table is Table.JOBS and key.sk == JOB_SORT:
            self._take_job(change)
        elif key.table is Table.JOBS and key.sk.startswith("span#") and row is not None:
            self._note(self._spans, key.pk, [decode_span(row.body)])
            self._apart.setdefault(key.pk, set()).add(decode_span(row.body).first)
        elif key.table is Table.JOBS and key.sk.startswith("gen#") and row is not None:
            generation = decode_generation(row.body)
            self._note(self._generations, key.pk, [generation])
            self._apart.setdefault(key.pk, set()).add(generation.effective_from)
        elif key.table is Table.CONTROL and key.pk == TENANTS and row is not None:
            cap = row.body.get("mr")
            self.trail.caps.setdefault(key.sk, []).append(cap if isinstance(cap, int) else None)

    def _take_run(self, change: Change) -> None:
        before = self._runs.pop(change.key, None)
        if before is None and change.before is not None:
            before = decode_run(change.before)
        after = None if change.after is None else decode_run(change.after)
        if after is not None:
            self._runs[change.key] = after
        event = None if before is None or after is None else event_of(before, after)
        found = RunChange(change=change, before=before, after=after, event=event)
        self.trail.changes.append(found)
        self.trail.runs.setdefault(found.run.run_id, []).append(found)

    def _take_job(self, change: Change) -> None:
        job_id = change.key.pk
        job = None if change.after is None else _readable(change.after)
        if job is not None:
            self._note(self._spans, job_id, job.spans)
            self._note(self._generations, job_id, job.generations)
        spans = _in_order(self._spans, job_id)
        generations = _in_order(self._generations, job_id)
        kept = set(self._apart.get(job_id, ()))
        if job is not None:
            kept |= {*map(_begin, job.spans), *map(_begin, job.generations)}
        begun = [*map(_begin, spans), *map(_begin, generations)]
        version = JobVersion(
            place=change.place,
            job=job,
            generations=generations,
            spans=spans,
            lost=() if job is None else tuple(at for at in begun if at not in kept),
        )
        self.trail.jobs.setdefault(job_id, []).append(version)

    def _note(self, known: _ByInstant[Item], job_id: str, items: Sequence[Item]) -> None:
        of_job = known.setdefault(job_id, {})
        for item in items:
            of_job[_begin(item)] = item


def _begin(item: Span | Generation) -> datetime:
    return item.first if isinstance(item, Span) else item.effective_from


def _in_order(known: _ByInstant[Item], job_id: str) -> tuple[Item, ...]:
    return tuple(item for _, item in sorted(known.get(job_id, {}).items()))


def _readable(row: Row) -> Job | None:
    """Return a job, None for one whose row cannot be read: it is parked, and starts nothing."""
    try:
        return decode_job(row)
    except (DynschedError, KeyError, TypeError, ValueError):
        return None
