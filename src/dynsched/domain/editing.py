"""Editing jobs: new generations, moved pointers, and what a pause counts as skipped. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from dynsched.domain.instants import MILLISECOND
from dynsched.domain.job import Generation, Job, JobState, SkipReason, Span
from dynsched.domain.recurrence import BrokenSchedule, Schedule


def with_generation(job: Job, at: datetime, *, enabled: bool, schedule: Schedule | None) -> Job:
    """Return the job with one more generation, from `at` on."""
    generation = Generation(effective_from=at, enabled=enabled, schedule=schedule)
    return replace(job, generations=(*job.generations, generation))


def pointed_from(job: Job, at: datetime) -> Job:
    """Return the job active, its pointer at its schedule's first instant at or after `at`."""
    schedule = job.schedule
    next_at = None if schedule is None else schedule.next_after(at - MILLISECOND)
    finished = schedule is not None and next_at is None
    state = JobState.FINISHED if finished else JobState.ACTIVE
    return replace(job, next_at=next_at, state=state)


def count_paused(job: Job, at: datetime) -> Job:
    """Return the job with its instants from the pointer up to `at` counted as skipped (paused)."""
    schedule, first = job.schedule, job.next_at
    if schedule is None or first is None or first >= at or isinstance(schedule, BrokenSchedule):
        return job
    count = schedule.count(first, at)
    last = schedule.last_before(at)
    if not count or last is None:
        return job
    span = Span(first=first, last=last, count=count, reason=SkipReason.PAUSED)
    return replace(job, spans=(*job.spans, span), skipped=job.skipped + count)
