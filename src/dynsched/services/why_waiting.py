"""Why a run has not started: the first thing in its way, in the order in which it meets them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.instants import minute_start
from dynsched.domain.job import CatchUp, Job, JobState, Priority
from dynsched.domain.run import RunKind, RunState
from dynsched.domain.time_words import number, span, stamp
from dynsched.domain.why_ended import PATIENCE, made_late, tenant_option
from dynsched.domain.why_instant import owner_words
from dynsched.services.why_case import Case, starts
from dynsched.services.why_due import OBSTACLES, blocked, no_obstacle
from dynsched.storage.jobs import Unreadable

WAITS_FOR = "waits for "


def why_waiting(waiting: Case) -> Finding:
    """Return why a run has not started yet."""
    judges: tuple[Callable[[Case], Finding | None], ...] = (
        _gone,
        _held,
        _not_put_back,
        _put_aside,
        _later,
        *OBSTACLES,
    )
    found = next((one for judge in judges if (one := judge(waiting)) is not None), None)
    found = found or no_obstacle(waiting)
    return found.adding(*_past(waiting, found))


def _past(waiting: Case, found: Finding) -> list[str]:
    """Return what happened to it before, whatever it waits for now."""
    run, words = waiting.run, []
    late = made_late(run)
    if late > PATIENCE:
        words.append(
            f"Its row was made at {stamp(run.created_at)}, {span(late)} after its instant."
        )
    if run.spent and run.error and found.cause is not Cause.RETRY:
        words.append(f"{run.spent} of {run.limit} failures so far; the last: {run.error}")
    if run.losses:
        words.append(
            f"Its lease was lost {number(run.losses, 'time')} in a row; the third loss is the end."
        )
    if run.replays:
        words.append(f"It was replayed {number(run.replays, 'time')}.")
    return words


# its job


def _gone(waiting: Case) -> Finding | None:
    job = waiting.job
    if isinstance(job, Unreadable) or (job is not None and job.state is not JobState.DELETED):
        return None
    return Finding(
        cause=Cause.JOB_DELETED,
        headline=(
            f"{waiting.name} was deleted: the run starts no more, and is skipped as soon as a"
            " worker looks at it."
        ),
        hints=(f"dynsched run cancel {waiting.run.run_id}",),
    )


def _held(waiting: Case) -> Finding | None:
    run, job = waiting.run, waiting.job
    if isinstance(job, Unreadable):
        return Finding(
            cause=Cause.CANNOT_TELL,
            headline=(
                f"Cannot tell what run {run.run_id} is to do: the row of its job is damaged"
                f" ({job.problem}), and workers put it back until that is mended."
            ),
        )
    assert job is not None
    if job.state is JobState.PAUSED and job.policies.hold:
        since = stamp(job.generations[-1].effective_from)
        reason = f" ({job.reason})" if job.reason else ""
        return Finding(
            cause=Cause.PAUSED,
            headline=(
                f"{job.name} is paused with hold{reason} since {since}, and all its runs wait."
            ),
            hints=(f"dynsched job resume {job.name}{tenant_option(job.tenant)}",),
        )
    return None


# the dispatcher


def _not_put_back(waiting: Case) -> Finding | None:
    """Judge a failed run whose back-off is over."""
    run, evidence = waiting.run, waiting.evidence
    if run.state is not RunState.FAILED or run.available_at > evidence.now:
        return None
    return Finding(
        cause=Cause.DISPATCHER_BEHIND,
        headline=(
            f"{waiting.due}, as its back-off is over, but no dispatcher has put it back yet."
        ),
        hints=("dynsched dispatcher", "dynsched health"),
    ).adding(_dispatcher_words(waiting))


def _dispatcher_words(waiting: Case) -> str:
    run, evidence = waiting.run, waiting.evidence
    cursor = evidence.cursor("retry", run.job_id, run.available_at)
    if cursor is None:
        return "Its shard has no cursor: no dispatcher has ever ticked."
    # Replicas write their names into the cursors of jobs; those of retries go with them.
    owner = evidence.cursor("due", run.job_id, run.available_at) or cursor
    return owner_words(owner.owner, owner.owned_until, minute_start(cursor.minute), evidence.now)


# its time


def _put_aside(waiting: Case) -> Finding | None:
    """Judge a run that a worker put back to wait for another run of its job."""
    run = waiting.run
    if waiting.away <= timedelta(0) or not run.reason.startswith(WAITS_FOR):
        return None
    found = blocked(waiting)
    if found is not None:
        return found
    return Finding(
        cause=Cause.WAITING_FOR_TIME,
        headline=(
            f"{waiting.name} waited for {run.reason.removeprefix(WAITS_FOR)}, which runs no more; a"
            f" worker looks at it again at {stamp(run.available_at)}, in {span(waiting.away)}."
        ),
    )


def _later(waiting: Case) -> Finding | None:
    """Judge a run whose time has not come."""
    run = waiting.run
    if waiting.away <= timedelta(0):
        return None
    cause, words = _later_words(waiting)
    lack = waiting.evidence.lack(run)
    found = Finding(
        cause=cause,
        headline=(
            f"{waiting.name} {words}: it may start at {stamp(run.available_at)}, in"
            f" {span(waiting.away)}."
        ),
    )
    if lack:
        return found.adding(f"If it were due, nobody could run it: {lack}.", hints=starts(run))
    return found


def _later_words(waiting: Case) -> tuple[Cause, str]:
    run, job = waiting.run, waiting.job
    assert isinstance(job, Job)
    if run.reason == "retry":
        failed = f"attempt {run.attempt} failed ({run.error})"
        return Cause.RETRY, (
            f"waits for its next attempt, as {failed} and {run.spent} of {run.limit} failures"
            " are spent"
        )
    if run.reason == "snoozed":
        return Cause.SNOOZED, "was snoozed by its handler, which asked for a later time"
    if run.key.kind is RunKind.CRON and run.available_at > run.scheduled_for and not run.attempt:
        bulk = run.priority is Priority.BULK and made_late(run) > PATIENCE
        if bulk and job.policies.catch_up is CatchUp.ALL:
            return Cause.PACED, (
                f"was missed at {stamp(run.scheduled_for)} and is caught up with, paced"
                " (catch_up all)"
            )
        if job.policies.flex:
            return Cause.SPREAD, (
                f"is spread over the {span(job.policies.flex)} after its instant"
                f" {stamp(run.scheduled_for)} (flex)"
            )
    return Cause.WAITING_FOR_TIME, "waits for its time"
