"""Why a run ended as it did: all that its own row and its job say. Pure.

How late a run started, and for whose sake, lies in its row; what workers did in between does not,
and then the words say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.instants import from_ms
from dynsched.domain.job import Job, JobState, SkipReason
from dynsched.domain.lifecycle import POISON_LOSSES, PULLED_BACK, REPLACED_BY
from dynsched.domain.retry import BuryReason
from dynsched.domain.run import Run, RunKind, RunState
from dynsched.domain.time_words import number, span, stamp

PATIENCE = timedelta(seconds=5)
"""A start that was late by less was on time."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, with its job; None if that is gone or cannot be read."""

    run: Run
    job: Job | None

    @property
    def name(self) -> str:
        """Return the job's name, else its id."""
        return self.run.job_id if self.job is None else self.job.name

    @property
    def alive(self) -> bool:
        """Return whether there is a job to replay or to run again."""
        return self.job is not None and self.job.state is not JobState.DELETED

    @property
    def ended(self) -> str:
        """Return when the run ended, in words."""
        return "at an unknown time" if self.run.ended_at is None else stamp(self.run.ended_at)

    def job_command(self, verb: str, options: str = "") -> tuple[str, ...]:
        """Return a command line on the job; none if there is no such job any more."""
        if not self.alive:
            return ()
        return (f"dynsched job {verb} {self.name}{tenant_option(self.run.tenant)}{options}",)

    def dlq_command(self, verb: str) -> tuple[str, ...]:
        """Return a command line on the dead run; none if its job is gone."""
        return (f"dynsched dlq {verb} {self.run.run_id}",) if self.alive else ()


def tenant_option(tenant: str) -> str:
    """Return what has to be typed behind a job's name.

    >>> tenant_option("default"), tenant_option("acme")
    ('', ' --tenant acme')
    """
    return "" if tenant == "default" else f" --tenant {tenant}"


def why_ended(run: Run, job: Job | None) -> Finding:
    """Return why a run ended as it did."""
    ended = Ended(run, job)
    if run.state is RunState.DONE:
        return _done(ended)
    if run.state is RunState.DEAD:
        return _dead(ended)
    if run.state is RunState.CANCELLED:
        return _cancelled(ended)
    return _skipped(ended)


# done


def _done(ended: Ended) -> Finding:
    run = ended.run
    late = lateness(run) - (timedelta(0) if ended.job is None else ended.job.policies.flex)
    tries = f"on attempt {run.attempt}" if run.attempt > 1 else "on its first attempt"
    failures = (
        f"{number(run.spent, 'failure')} came before, of {run.limit} that it may have."
        if run.spent
        else ""
    )
    if run.replays:
        return Finding(
            cause=Cause.REPLAYED,
            headline=(
                f"{ended.name} was dead, was replayed {number(run.replays, 'time')}, and is done"
                f" since {ended.ended}, {tries}."
            ),
        ).adding(failures)
    if late <= PATIENCE:
        return Finding(
            cause=Cause.DONE,
            headline=f"{ended.name} started in time and is done since {ended.ended}, {tries}.",
        ).adding(failures)
    reason, *more = _why_late(run)
    return Finding(
        cause=Cause.DONE_LATE,
        headline=(
            f"{ended.name} is done since {ended.ended}, but started {span(late)} late: {reason}."
        ),
    ).adding(failures, *more)


def lateness(run: Run) -> timedelta:
    """Return how much later than its instant a run was first started; nothing if it never was."""
    if run.first_started_at is None:
        return timedelta(0)
    return max(run.first_started_at - run.scheduled_for, timedelta(0))


def made_late(run: Run) -> timedelta:
    """Return how long after its instant a scheduled run's row was made."""
    if run.key.kind is not RunKind.CRON:
        return timedelta(0)
    return max(run.created_at - run.scheduled_for, timedelta(0))


def _why_late(run: Run) -> list[str]:
    """Return why a run started late, as far as its row tells; the first completes a sentence."""
    found: list[str] = []
    behind = made_late(run)
    if behind > PATIENCE:
        found.append(
            f"no dispatcher had made its row before {stamp(run.created_at)},"
            f" {span(behind)} after its instant"
        )
    if run.waits:
        found.append(f"it waited {number(run.waits, 'time')} for another run of its job")
    taken = run.first_started_at or run.created_at
    idle = taken - max(run.created_at, run.scheduled_for)
    if not found:
        found.append(f"no worker took it for {span(idle)} after it was due")
        found.append(
            "Cannot tell whether the workers had no free slot, were absent or were held by a cap:"
            " the row was looked at, and keeps no record of it."
        )
    elif idle > PATIENCE and not run.waits:
        found.append(f"After that, {span(idle)} went by until a worker took it.")
    return found


# dead


def _dead(ended: Ended) -> Finding:
    run = ended.run
    found = _death(ended)
    again = f"It was replayed {number(run.replays, 'time')} before, and is dead again."
    kept = (
        ""
        if run.expires_at_s is None
        else f"Its row is kept until {stamp(from_ms(run.expires_at_s * 1000))}."
    )
    found = found.adding(
        f"The last error: {run.error}" if run.error and found.cause is Cause.CANNOT_TELL else "",
        again if run.replays else "",
        "" if ended.alive else "Its job is gone, so it cannot be replayed.",
        kept,
    )
    if run.hidden and found.cause is Cause.REPLACED:
        return found
    if not run.hidden:
        return found.adding(hints=(*ended.dlq_command("replay"), f"dynsched run show {run.run_id}"))
    return Finding(
        cause=Cause.DISCARDED,
        headline=f"{ended.name} is dead and was discarded by hand ({run.reason}).",
        sentences=(found.headline, *found.sentences),
        hints=(f"dynsched dlq restore {run.run_id}",),
    )


def _death(ended: Ended) -> Finding:
    """Return why a run died, as its reason says."""
    run = ended.run
    known = {
        BuryReason.SPENT.value: _spent,
        BuryReason.PERMANENT.value: _permanent,
        "poison": _poison,
        "no handler": _unknown_handler,
        PULLED_BACK: _pulled_back,
    }.get(run.reason)
    if run.reason.startswith(REPLACED_BY):
        known = _replaced
    if known is not None:
        return known(ended, f"{ended.name} is dead since {ended.ended}")
    return Finding(
        cause=Cause.CANNOT_TELL,
        headline=(
            f"{ended.name} is dead since {ended.ended}; cannot tell why: the row was looked at, and"
            f" gives the reason {run.reason!r}."
        ),
    )


def _spent(ended: Ended, dead: str) -> Finding:
    run = ended.run
    return Finding(
        cause=Cause.SPENT,
        headline=(
            f"{dead}: {run.spent} of {run.limit} attempts have failed, the last with"
            f" {run.error or 'an error that was not kept'}."
        ),
        sentences=(f"It has used {number(run.attempt, 'attempt')} in all.",),
    )


def _permanent(ended: Ended, dead: str) -> Finding:
    run = ended.run
    return Finding(
        cause=Cause.PERMANENT,
        headline=(
            f"{dead}: its error is permanent by the handler's word or a rule of its job,"
            f" {run.error or 'which was not kept'}."
        ),
        sentences=(f"It was failure {run.spent} of {run.limit}; no other try was made.",),
    )


def _poison(ended: Ended, dead: str) -> Finding:
    return Finding(
        cause=Cause.POISON,
        headline=(
            f"{dead} as poison: {ended.run.losses} leases in a row were lost while it ran, so it"
            " seems to kill its process."
        ),
        sentences=("A replay runs alone in a process, and one more lost lease ends it again.",),
    )


def _pulled_back(ended: Ended, dead: str) -> Finding:
    run = ended.run
    poison = run.losses >= POISON_LOSSES
    return Finding(
        cause=Cause.POISON if poison else Cause.PULLED_BACK,
        headline=(
            f"{dead}: a replay batch had brought it back, and pulled it back before it was tried;"
            f" it had died of {run.error or 'an error that was not kept'}."
        ),
        sentences=(f"It has used {number(run.attempt, 'attempt')} in all.",),
    )


def _replaced(ended: Ended, dead: str) -> Finding:
    run = ended.run
    new = run.reason.removeprefix(REPLACED_BY)
    return Finding(
        cause=Cause.REPLACED,
        headline=f"{dead} and was replaced by a new run, {new}, which does its work.",
        sentences=(f"It had died of {run.error}.",) if run.error else (),
        hints=(f"dynsched run show {new}",),
    )


def _unknown_handler(ended: Ended, dead: str) -> Finding:
    run = ended.run
    return Finding(
        cause=Cause.UNKNOWN_HANDLER,
        headline=(
            f"{dead}: no worker of queue {run.queue} had {run.needs} for as long as a run waits for"
            " one."
        ),
        sentences=("It was never started.",) if run.first_started_at is None else (),
        hints=(f"dynsched worker --queue {run.queue} --app MODULE:APP",),
    )


# cancelled


def _cancelled(ended: Ended) -> Finding:
    run = ended.run
    started = (
        f"Its handler had been called at {stamp(run.started_at)} and stopped when it was asked to."
        if run.started_at is not None and run.reported
        else f"It had {number(run.attempt, 'attempt')} before."
        if run.attempt
        else "It was never started."
    )
    way, _, other = run.reason.partition(": makes way for ")
    if other:
        return Finding(
            cause=Cause.MADE_WAY,
            headline=(
                f"{ended.name} was stopped at {ended.ended} to make way for {other}, as its job's"
                f" {way} policy cancels what runs."
            ),
            sentences=(started,),
            hints=(f"dynsched why {other}",),
        )
    return Finding(
        cause=Cause.CANCELLED,
        headline=f"{ended.name} was cancelled at {ended.ended}: {run.reason or 'no reason given'}.",
        sentences=(started,),
        hints=ended.job_command("run-now"),
    )


# skipped


def _skipped(ended: Ended) -> Finding:
    run = ended.run
    reason, _, other = run.reason.partition(": ")
    try:
        kind = SkipReason(reason)
    except ValueError:
        return Finding(
            cause=Cause.CANNOT_TELL,
            headline=(
                f"{ended.name} was skipped at {ended.ended}; cannot tell why: the row was looked"
                f" at, and gives the reason {run.reason!r}."
            ),
        )
    cause, words, hints = _skip_words(ended, kind, other)
    return Finding(
        cause=cause,
        headline=f"{ended.name} was skipped at {ended.ended}: {words}.",
        hints=hints,
    )


def _skip_words(ended: Ended, kind: SkipReason, other: str) -> tuple[Cause, str, tuple[str, ...]]:
    """Return the code, the clause behind the colon and the hints of a skip."""
    run, again = ended.run, ended.job_command("run-now")
    if kind is SkipReason.OVERLAP:
        policy = "" if ended.job is None else f" ({ended.job.policies.overlap.value})"
        words = f"{other or 'another run of its job'} was running or waiting, and its job forbids"
        hints = (f"dynsched why {other}",) if other else ()
        return Cause.SKIPPED_OVERLAP, f"{words} overlap{policy}", (*hints, *again)
    if kind is SkipReason.DEADLINE:
        edit = ended.job_command("edit", " --start-deadline none")
        return Cause.MISSED_DEADLINE, _deadline_words(ended), (*again, *edit)
    if kind is SkipReason.PAUSED:
        words = f"its job was paused at its instant, {stamp(run.scheduled_for)}"
        paused = ended.job is not None and ended.job.state is JobState.PAUSED
        return Cause.PAUSED, words, (*(ended.job_command("resume") if paused else ()), *again)
    return {
        SkipReason.EDITED: (
            Cause.EDITED,
            "its job's schedule was edited, and does not name its instant",
            (*ended.job_command("show"), *again),
        ),
        SkipReason.DELETED: (Cause.JOB_DELETED, "its job was deleted before it could start", ()),
        SkipReason.EXPIRED: (
            Cause.EXPIRED,
            "its row was made so late that an earlier row of the instant may have expired",
            again,
        ),
        SkipReason.CATCH_UP: (
            Cause.CAUGHT_UP,
            "its instant is among those that its job's catch-up policy counts as missed",
            again,
        ),
    }[kind]


def _deadline_words(ended: Ended) -> str:
    """Return by how much a skipped run was behind its deadline."""
    run = ended.run
    late = "some time" if run.ended_at is None else span(run.ended_at - run.scheduled_for)
    deadline = None if ended.job is None else ended.job.policies.start_deadline
    limit = "its start deadline" if deadline is None else f"a start deadline of {span(deadline)}"
    return f"it could have started {late} after its instant, behind {limit}"
