"""Catch-up: which occurrences of a job get rows now, and which are counted as skipped.

The plan is computed in bounded time, however long the outage was, and is a pure function of the
job and two instants; every replica computes the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain.instants import MILLISECOND
from dynsched.domain.job import (
    CatchUp,
    Job,
    JobState,
    Policies,
    Priority,
    SkipReason,
    Span,
    in_force,
)
from dynsched.domain.names import bucket_of
from dynsched.domain.recurrence import Once, Schedule

MISSED_GRACE = timedelta(seconds=60)
# Rows of one serve, caught-up ones not counted: those are bounded by the job's own choice. If they
# shortened the rest, the advance would land in a past minute, where a cursor may have been.
SERVED_MAX = 1_000
SPANS_IN_ROW = 2
GENERATIONS_IN_ROW = 3


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One instant that gets a row.

    Attributes:
        scheduled_for: the instant that the schedule names.
        available_at: when it may start; later than the instant when it is paced or flexible.
        priority: the job's, or bulk for caught-up ones.
        generation: `effective_from` of the generation that names it.
    """

    scheduled_for: datetime
    available_at: datetime
    priority: Priority
    generation: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    """What serving a job up to an instant means.

    Attributes:
        occurrences: rows to make, in order; already there is success.
        after: the job as the one guarded advance shall leave it.
        apart: spans that leave the job's row; they are written before the advance.
    """

    occurrences: tuple[Occurrence, ...]
    after: Job
    apart: tuple[Span, ...] = ()


def plan_service(job: Job, *, now: datetime, before: datetime, pace: timedelta) -> Plan:
    """Plan all occurrences of a due job from its pointer up to `before` (exclusive).

    Args:
        job: a job that is due; its pointer is `next_at`.
        now: what missed is judged by: older than `MISSED_GRACE`.
        before: now + look-ahead, or an edit's `effective_from`.
        pace: caught-up runs become available this far apart.
    """
    schedule, first = job.schedule, job.next_at
    if schedule is None or first is None or first >= before:
        return Plan((), job)
    late_end = min(max(first, now - MISSED_GRACE), before)
    late, span = _missed(job, schedule, first, late_end)
    fresh = list(schedule.instants(late_end, before, SERVED_MAX + 1))
    if len(fresh) > SERVED_MAX:
        before, fresh = fresh[SERVED_MAX], fresh[:SERVED_MAX]
    occurrences = [_paced(job, at, now, number * pace) for number, at in enumerate(late)]
    occurrences += [_fresh(job, at) for at in fresh]
    next_at = schedule.next_after(before - MILLISECOND)
    spans = job.spans if span is None else (*job.spans, span)
    kept = spans[-SPANS_IN_ROW:]
    after = replace(
        job,
        next_at=next_at,
        spans=kept,
        older_spans=job.older_spans or len(kept) < len(spans),
        skipped=job.skipped + (0 if span is None else span.count),
        state=JobState.FINISHED if next_at is None else job.state,
    )
    return Plan(tuple(occurrences), after, spans[:-SPANS_IN_ROW])


def _missed(
    job: Job, schedule: Schedule, first: datetime, end: datetime
) -> tuple[list[datetime], Span | None]:
    """Return the missed instants in [first, end) that get rows, and the span of the others."""
    last = schedule.last_before(end) if end > first else None
    if last is None or last < first:
        return [], None
    policies = job.policies
    kept: list[datetime]
    if isinstance(schedule, Once):
        kept = [last]  # no later occurrence would do its work
    elif policies.catch_up is CatchUp.SKIP:
        kept = []
    elif policies.catch_up is CatchUp.ALL:
        kept = _newest(schedule, max(first, end - policies.catch_up_window), end, policies)
    else:
        kept = [last]
    skipped_end = kept[0] if kept else end
    count = schedule.count(first, skipped_end)
    if count == 0:
        return kept, None
    final = schedule.last_before(skipped_end)
    span = Span(first=first, last=final or first, count=count, reason=SkipReason.CATCH_UP)
    return kept, span


def _newest(
    schedule: Schedule, first: datetime, end: datetime, policies: Policies
) -> list[datetime]:
    """Return the newest `catch_up_max` instants in [first, end), in order."""
    found: list[datetime] = []
    at = schedule.last_before(end)
    while at is not None and at >= first and len(found) < policies.catch_up_max:
        found.append(at)
        at = schedule.last_before(at)
    return found[::-1]


def _generation(job: Job, at: datetime) -> datetime:
    generation = in_force(job.generations, at) or job.generations[0]
    return generation.effective_from


def _paced(job: Job, at: datetime, now: datetime, delay: timedelta) -> Occurrence:
    if job.policies.catch_up is not CatchUp.ALL:
        return Occurrence(at, at, job.priority, _generation(job, at))
    return Occurrence(at, now + delay, Priority.BULK, _generation(job, at))


def _fresh(job: Job, at: datetime) -> Occurrence:
    flex = job.policies.flex // MILLISECOND
    delay = bucket_of(f"{job.job_id}@{at.isoformat()}", flex) * MILLISECOND if flex > 1 else _NONE
    return Occurrence(at, at + delay, job.priority, _generation(job, at))


_NONE = timedelta(0)
