"""Jobs: the durable definition of work, its generations and its policies.

A job keeps its generations: (effective_from, enabled, schedule). The schedule in force at an
instant is the one of the last generation whose `effective_from` is at or before it, so every past
and coming instant can be judged, whatever was edited since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.recurrence import Schedule
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.target import Target


class JobState(StrEnum):
    """Where a job stands."""

    ACTIVE = "active"  # has a next occurrence, or waits for manual runs
    PAUSED = "paused"  # keeps its pointer; by operations, until resumed
    FINISHED = "finished"  # its schedule has ended; by the dispatcher
    PARKED = "parked"  # cannot be evaluated; by the dispatcher, until edited
    DELETED = "deleted"  # a tombstone until its runs are gone


class Priority(StrEnum):
    """How much of the workers' attention a run gets while there is more work than slots."""

    HIGH = "high"
    DEFAULT = "default"
    BULK = "bulk"


class CatchUp(StrEnum):
    """What becomes of occurrences that were missed by more than the grace."""

    LATEST = "latest"  # one run for any number missed
    ALL = "all"  # a run for each, bounded by count and window, paced, at bulk priority
    SKIP = "skip"  # none; they are counted


class Overlap(StrEnum):
    """What happens when an occurrence is due while an earlier run of the job is leased."""

    SKIP = "skip"  # the later cron run is skipped
    QUEUE_ONE = "queue_one"  # the first waiter is kept, later ones are skipped
    ALLOW = "allow"  # they run side by side
    CANCEL_RUNNING = "cancel_running"  # the running one is asked to stop, the newest waits


class SkipReason(StrEnum):
    """Why an instant has no start."""

    OVERLAP = "overlap"
    DEADLINE = "missed deadline"
    CATCH_UP = "catch-up"
    PAUSED = "paused"
    EDITED = "edited"
    DELETED = "deleted"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One period of a job's life, from `effective_from` up to the next generation's."""

    effective_from: datetime
    enabled: bool
    schedule: Schedule | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Occurrences that were counted as skipped instead of getting rows.

    Attributes:
        first: the earliest of them.
        last: the latest of them.
        count: how many the schedule names in [first, last].
        reason: why.
    """

    first: datetime
    last: datetime
    count: int
    reason: SkipReason

    def covers(self, instant: datetime) -> bool:
        """Return whether the instant lies inside."""
        return self.first <= instant <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The job's choices; every default is the one that the documentation states.

    Attributes:
        catch_up_max: with `catch_up=all`, at most this many runs for one outage, the newest.
        catch_up_window: with `catch_up=all`, only occurrences this recent get runs.
        start_deadline: a cron run that would start later than this after its instant is skipped.
        flex: runs are spread over this window after their instant, `scheduled_for` unchanged.
        timeout: hard limit of one attempt; None is no limit.
        soft_timeout: when the handler is asked to stop; None is nine tenths of `timeout`.
        retention: how long ended runs are kept, at least two days.
        share_by_job: the tenant's jobs take turns among themselves too.
        hold: paused with `--hold`: earlier, manual and replayed runs wait too.
    """

    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max: int = 100
    catch_up_window: timedelta = timedelta(days=1)
    overlap: Overlap = Overlap.SKIP
    start_deadline: timedelta | None = None
    flex: timedelta = timedelta(0)
    timeout: timedelta | None = timedelta(hours=1)
    soft_timeout: timedelta | None = None
    retention: timedelta = timedelta(days=14)
    share_by_job: bool = False
    hold: bool = False
    retry: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job's row.

    Attributes:
        needs: what a worker must have to run it: `handler:NAME`, `http` or `command`.
        target: what a run does; None when it is large and lies apart under `target_ref`.
        next_at: the first occurrence that has no row yet; kept while paused.
        generations: the last few, oldest first; never empty.
        older_generations: older ones lie in rows of their own.
        spans: the last few skipped spans, oldest first.
        older_spans: older ones lie in rows of their own.
        skipped: occurrences counted in all spans so far.
        payload: JSON text, or None when it lies apart under `payload_ref`.
        version: the stored version, 0 for a job not stored yet.
    """

    job_id: str
    tenant: str
    name: str
    needs: str
    target: Target | None
    queue: str = "main"
    priority: Priority = Priority.DEFAULT
    policies: Policies = field(default_factory=Policies)
    state: JobState = JobState.ACTIVE
    reason: str = ""
    next_at: datetime | None = None
    generations: tuple[Generation, ...]
    older_generations: bool = False
    spans: tuple[Span, ...] = ()
    older_spans: bool = False
    skipped: int = 0
    payload: str | None = None
    payload_ref: str | None = None
    target_ref: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime
    version: int = 0

    @property
    def schedule(self) -> Schedule | None:
        """Return the newest generation's schedule; None for a job with manual runs only."""
        return self.generations[-1].schedule

    @property
    def due(self) -> bool:
        """Return whether a dispatcher has to look at the job."""
        return self.state is JobState.ACTIVE and self.next_at is not None


def in_force(generations: Sequence[Generation], instant: datetime) -> Generation | None:
    """Return the generation in force at an instant, None before the first."""
    for generation in reversed(generations):
        if generation.effective_from <= instant:
            return generation
    return None


def names_instant(generations: Sequence[Generation], instant: datetime) -> bool:
    """Return whether the generation in force at an instant names it."""
    generation = in_force(generations, instant)
    return (
        generation is not None
        and generation.enabled
        and generation.schedule is not None
        and generation.schedule.names(instant)
    )
