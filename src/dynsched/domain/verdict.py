"""The look: may this run start, judged by the job as read after the claim?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.job import (
    Generation,
    Job,
    JobState,
    SkipReason,
    Span,
    in_force,
)
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.run import Run, RunKind

EXPIRY_MARGIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Skip with a reason, hold (paused so, or it cannot be judged here), or neither: start."""

    skip: SkipReason | None = None
    hold: bool = False


START = Verdict()


def untouched(run: Run) -> bool:
    """Return whether a run has no reported outcome and was never replayed.

    Not `attempt == 0`: a lost lease raises that too.
    """
    return not run.reported and run.replays == 0


def needs_old_spans(run: Run, job: Job) -> bool:
    """Return whether spans kept apart may cover the run's instant."""
    return (
        job.older_spans
        and run.key.kind is RunKind.CRON
        and untouched(run)
        and (not job.spans or run.scheduled_for < job.spans[0].first)
    )


def needs_old_generations(run: Run, job: Job) -> bool:
    """Return whether the generation in force at the run's instant lies apart."""
    return (
        job.older_generations
        and run.key.kind is RunKind.CRON
        and run.scheduled_for < job.generations[0].effective_from
    )


def judge(
    run: Run,
    job: Job | None,
    *,
    now: datetime,
    old_span: Span | None = None,
    old_generations: Sequence[Generation] = (),
) -> Verdict:
    """Judge a claimed run by its job.

    Args:
        run: leased, under its present fence; its instant is not after `now`.
        job: read strongly after the claim and after the permits; None if it is gone.
        now: the look's instant.
        old_span: a span kept apart that covers the instant.
        old_generations: generations kept apart, oldest first.
    """
    if job is None or job.state is JobState.DELETED:
        return Verdict(SkipReason.DELETED)
    if job.state is JobState.PAUSED and job.policies.hold:
        return Verdict(hold=True)
    if run.key.kind is not RunKind.CRON:
        return START
    if untouched(run):
        reason = _untouched_reason(run, job, now, old_span)
        if reason is not None:
            return Verdict(reason)
    return _named(run, (*old_generations, *job.generations))


def _named(run: Run, generations: Sequence[Generation]) -> Verdict:
    """Judge by the generation in force at the run's instant."""
    generation = in_force(generations, run.scheduled_for)
    if generation is None:
        return Verdict(SkipReason.EDITED)
    if not generation.enabled:
        return Verdict(SkipReason.PAUSED)
    if generation.effective_from == run.generation:
        return START  # the one that made it
    if isinstance(generation.schedule, BrokenSchedule):
        return Verdict(hold=True)
    named = generation.schedule is not None and generation.schedule.names(run.scheduled_for)
    return START if named else Verdict(SkipReason.EDITED)


def _untouched_reason(
    run: Run, job: Job, now: datetime, old_span: Span | None
) -> SkipReason | None:
    at = run.scheduled_for
    if at < now - (job.policies.retention - EXPIRY_MARGIN):
        # Its row may have expired and come back by a late dispatcher. The row's own age cannot
        # tell: one that was frozen writes the instant before it froze as `created_at`.
        return SkipReason.EXPIRED
    for span in (*job.spans, *([old_span] if old_span else [])):
        if span.covers(at):
            return span.reason
    deadline = job.policies.start_deadline
    # Once it has started it is not late any more, though its process had to hand it back.
    if deadline is not None and run.first_started_at is None and now > at + deadline:
        return SkipReason.DEADLINE
    return None
