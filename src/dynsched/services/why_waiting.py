"""Why a run has not started: the first thing in its way, in the order in which it meets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.instants import minute_start
from dynsched.domain.job import CatchUp, Job, JobState, Overlap, Priority
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.run import Run, RunKind, RunState
from dynsched.domain.time_words import number, span, stamp
from dynsched.domain.why_ended import PATIENCE, made_late, tenant_option
from dynsched.domain.why_instant import owner_words
from dynsched.services.why_evidence import SESSIONS_NAMED, Evidence
from dynsched.storage.control import Session
from dynsched.storage.jobs import Unreadable

HOLDERS_NAMED = 3
WAITS_FOR = "waits for "
LOST_REASONS = ("lost lease", "lease lost", "drain")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that is ready or failed, with its job and what can be read besides."""

    run: Run
    job: Job | Unreadable | None
    evidence: Evidence

    @property
    def name(self) -> str:
        """Return the job's name, else its id."""
        return self.job.name if isinstance(self.job, Job) else self.run.job_id

    @property
    def away(self) -> timedelta:
        """Return how long until it may start; negative once it may."""
        return self.run.available_at - self.evidence.now

    @property
    def idle(self) -> timedelta:
        """Return for how long a worker might have taken it: its row may have been made late."""
        return self.evidence.now - max(self.run.available_at, self.run.created_at)

    @property
    def due(self) -> str:
        """Return who has been due since when."""
        since = stamp(self.evidence.now - self.idle)
        return f"{self.name} has been due since {since}, for {span(abs(self.idle))}"


def why_waiting(waiting: Waiting) -> Finding:
    """Return why a run has not started yet."""
    judges: tuple[Callable[[Waiting], Finding | None], ...] = (
        _gone,
        _held,
        _not_put_back,
        _put_aside,
        _later,
        _nobody,
        _capped,
        _blocked,
        _suspect,
        _backlog,
        _fresh,
    )
    found = next((one for judge in judges if (one := judge(waiting)) is not None), None)
    found = found or _unknown(waiting)
    return found.adding(*_past(waiting, found))


def _past(waiting: Waiting, found: Finding) -> list[str]:
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


def worker_words(session: Session) -> str:
    """Return which process a session is."""
    return f"worker {session.host} (pid {session.pid}, session {session.session})"


def workers_words(serving: Sequence[Session], queue: str) -> str:
    """Return what the living workers of a queue can run."""
    if not serving:
        return ""
    named = "; ".join(_ability(one) for one in serving[:SESSIONS_NAMED])
    more = len(serving) - SESSIONS_NAMED
    rest = f"; and {more:,} more" if more > 0 else ""
    return f"{number(len(serving), 'living worker')} of queue {queue}: {named}{rest}."


def _ability(session: Session) -> str:
    handlers = session.handlers
    if handlers is None:
        knows = "does not list its handlers"
    else:
        shown = ", ".join(handlers[:10]) + (", …" if len(handlers) > 10 else "")
        knows = f"has handlers {shown}" if handlers else "has no handlers"
    commands = ", allows commands" if session.commands else ""
    slots = number(session.slots, "slot")
    return f"{session.host} (pid {session.pid}) with {slots} {knows}{commands}"


# its job


def _gone(waiting: Waiting) -> Finding | None:
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


def _held(waiting: Waiting) -> Finding | None:
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


def _not_put_back(waiting: Waiting) -> Finding | None:
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


def _dispatcher_words(waiting: Waiting) -> str:
    run, evidence = waiting.run, waiting.evidence
    cursor = evidence.cursor("retry", run.job_id, run.available_at)
    if cursor is None:
        return "Its shard has no cursor: no dispatcher has ever ticked."
    # Replicas write their names into the cursors of jobs; those of retries go with them.
    owner = evidence.cursor("due", run.job_id, run.available_at) or cursor
    return owner_words(owner.owner, owner.owned_until, minute_start(cursor.minute), evidence.now)


# its time


def _put_aside(waiting: Waiting) -> Finding | None:
    """Judge a run that a worker put back to wait for another run of its job."""
    run = waiting.run
    if waiting.away <= timedelta(0) or not run.reason.startswith(WAITS_FOR):
        return None
    found = _blocked(waiting)
    if found is not None:
        return found
    return Finding(
        cause=Cause.WAITING_FOR_TIME,
        headline=(
            f"{waiting.name} waited for {run.reason.removeprefix(WAITS_FOR)}, which runs no more; a"
            f" worker looks at it again at {stamp(run.available_at)}, in {span(waiting.away)}."
        ),
    )


def _later(waiting: Waiting) -> Finding | None:
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
        return found.adding(f"If it were due, nobody could run it: {lack}.", hints=_starts(run))
    return found


def _later_words(waiting: Waiting) -> tuple[Cause, str]:
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


# what stands in the way of a run that is due


def _nobody(waiting: Waiting) -> Finding | None:
    run, evidence = waiting.run, waiting.evidence
    lack = evidence.lack(run)
    if not lack:
        return None
    serving = evidence.serving(run.queue)
    if not serving:
        cause = Cause.NO_WORKER
    else:
        handler = run.needs.startswith("handler:")
        cause = Cause.NO_HANDLER if handler else Cause.COMMANDS_REFUSED
    clause = lack.partition(" (")[0]
    return Finding(
        cause=cause,
        headline=f"{waiting.due}, but {clause}.",
        hints=_starts(run),
    ).adding(workers_words(serving, run.queue) if serving else _elsewhere(evidence.alive))


def _elsewhere(alive: Sequence[Session]) -> str:
    """Return which queues are served instead."""
    if not alive:
        return "No worker lives at all."
    queues = sorted({queue for one in alive for queue in one.queues})
    shown = ", ".join(queues[:10]) + (", …" if len(queues) > 10 else "")
    return (
        f"{number(len(alive), 'living worker')} {'serves' if len(alive) == 1 else 'serve'} {shown}."
    )


def _starts(run: Run) -> tuple[str, ...]:
    """Return how to start a worker that can run it."""
    options = {"handler": " --app MODULE:APP", "command": " --allow-commands"}
    return (f"dynsched worker --queue {run.queue}{options.get(run.needs.partition(':')[0], '')}",)


def _capped(waiting: Waiting) -> Finding | None:
    run, cap = waiting.run, waiting.evidence.cap(waiting.run.tenant)
    if cap is None or not cap.reached:
        return None
    named = ", ".join(
        f"{one.run_id} since {stamp(one.leased_at)}" if one.leased_at else one.run_id
        for one in cap.holders[:HOLDERS_NAMED]
    )
    more = len(cap.holders) - HOLDERS_NAMED
    return Finding(
        cause=Cause.AT_CAP,
        headline=(
            f"{waiting.due}, but tenant {run.tenant} is at its cap:"
            f" {len(cap.holders)} of at most {number(cap.most, 'run')} are leased."
        ),
        sentences=(f"The permits are held by {named}{f' and {more} more' if more > 0 else ''}.",),
        hints=(
            f"dynsched tenant set {run.tenant} --max-running {cap.most + 1}",
            f"dynsched why {cap.holders[0].run_id}",
        ),
    )


def _blocked(waiting: Waiting) -> Finding | None:
    """Judge a run whose job forbids overlap."""
    run, job = waiting.run, waiting.job
    assert isinstance(job, Job)
    policy = job.policies.overlap
    if policy is Overlap.ALLOW or run.forced:
        return None
    permission = waiting.evidence.overlap(job.job_id)
    holder = permission.holder
    if holder is None or holder.run_id == run.run_id:
        return None
    since = "" if holder.leased_at is None else f" since {stamp(holder.leased_at)}"
    asked = " It has been asked to stop." if holder.cancel_requested else ""
    turn = (
        "It is the one that is to run next."
        if permission.waiter == run.run_id
        else f"The next one to run is {permission.waiter}."
        if permission.waiter
        else ""
    )
    again = (
        f"A worker looks at it again at {stamp(run.available_at)}, or when that run ends; it was"
        f" put back {number(run.waits, 'time')}."
        if waiting.away > timedelta(0)
        else f"{waiting.due}."
    )
    return Finding(
        cause=Cause.OVERLAP,
        headline=(
            f"{job.name} waits for its own run {holder.run_id}, which is leased{since}: the job"
            f" forbids overlap ({policy.value}).{asked}"
        ),
        hints=(f"dynsched why {holder.run_id}", f"dynsched run cancel {holder.run_id}"),
    ).adding(turn, again)


def _suspect(waiting: Waiting) -> Finding | None:
    run, evidence = waiting.run, waiting.evidence
    if run.losses < SUSPECT_LOSSES or waiting.idle <= PATIENCE:
        return None
    serving = evidence.serving(run.queue)
    return Finding(
        cause=Cause.SUSPECT,
        headline=(
            f"{waiting.due}, but only in a process with nothing else"
            " in hand, as it may be what killed the last ones."
        ),
        hints=_starts(run),
    ).adding(
        f"The workers of queue {run.queue} have {number_of(evidence, serving)} in hand.",
        workers_words(serving, run.queue),
    )


def number_of(evidence: Evidence, sessions: Sequence[Session]) -> str:
    """Return how many runs sessions hold, in words."""
    level = evidence.busy(sessions)
    return f"{level} {'run' if level.count == 1 and not level.at_least else 'runs'}"


def _backlog(waiting: Waiting) -> Finding | None:
    run, evidence = waiting.run, waiting.evidence
    serving = evidence.serving(run.queue)
    busy, slots = evidence.busy(serving), sum(one.slots for one in serving)
    ahead = evidence.ahead(run)
    full = busy.count >= slots or busy.at_least
    working = bool(busy.count and ahead.count and waiting.idle > PATIENCE)
    if not full and not working:
        return None
    state = "all of them are taken" if full else f"{busy} of them are taken"
    return Finding(
        cause=Cause.BACKLOG,
        headline=(
            f"{waiting.due}, but workers have a backlog: {ahead} due"
            f" {'run' if ahead.count == 1 else 'runs'} of queue {run.queue}, priority"
            f" {run.priority.value} {'was' if ahead.count == 1 else 'were'} there before it."
        ),
        hints=(*_starts(run), "dynsched stats"),
    ).adding(
        f"{number(len(serving), 'living worker')} of the queue with {number(slots, 'slot')};"
        f" {state}.",
        "Tenants take turns, and priorities by weight, so it may start before some of those.",
    )


def _fresh(waiting: Waiting) -> Finding | None:
    """Judge a run that has only just come to be ready."""
    run = waiting.run
    if waiting.idle > PATIENCE:
        return None
    if run.losses or run.reason in LOST_REASONS:
        lost = "its worker was lost" if run.losses else f"its worker gave it back ({run.reason})"
        return Finding(
            cause=Cause.LEASE_LOST,
            headline=(
                f"{waiting.name} was returned at {stamp(run.available_at)}, as {lost} in attempt"
                f" {run.attempt}; it is to be started again now."
            ),
        )
    if made_late(run) > PATIENCE and not run.attempt and not run.replays:
        return Finding(
            cause=Cause.DISPATCHER_BEHIND,
            headline=(
                f"{waiting.name} is {span(made_late(run))} late, as no dispatcher had made its row"
                " before; it is to be started now."
            ),
            hints=("dynsched health",),
        )
    return Finding(
        cause=Cause.JUST_DUE,
        headline=f"{waiting.due}; a worker is to take it now.",
    )


def _unknown(waiting: Waiting) -> Finding:
    run, evidence = waiting.run, waiting.evidence
    serving = evidence.serving(run.queue)
    reason = f"; the last worker that put it back wrote {run.reason!r}" if run.reason else ""
    return Finding(
        cause=Cause.CANNOT_TELL,
        headline=(f"{waiting.due}; cannot tell why no worker has taken it."),
        sentences=(
            "Looked at: its job, the living workers and what they can run, their free slots, the"
            f" tenant's cap, the job's overlap, and the runs that were due before it{reason}.",
            f"Due before it in its queue and priority: {evidence.ahead(run)}; the workers have"
            f" {number_of(evidence, serving)} in hand.",
            workers_words(serving, run.queue),
        ),
        hints=("dynsched health", f"dynsched run show {run.run_id}"),
    )
