"""Why a run that is due has not been taken: what stands in its way, in the order of the worker's.

`OBSTACLES` are asked in turn; `no_obstacle` is the answer when none of them knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.job import Job, Overlap
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.time_words import number, span, stamp
from dynsched.domain.why_ended import PATIENCE, made_late
from dynsched.services.why_case import Case, level_words, number_of, starts, workers_words
from dynsched.storage.control import Session

HOLDERS_NAMED = 3
LOST_REASONS = ("lost lease", "lease lost", "drain")


def _nobody(waiting: Case) -> Finding | None:
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
        hints=starts(run),
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


def _capped(waiting: Case) -> Finding | None:
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


def blocked(waiting: Case) -> Finding | None:
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


def _suspect(waiting: Case) -> Finding | None:
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
        hints=starts(run),
    ).adding(
        f"The workers of queue {run.queue} have {number_of(evidence, serving)} in hand.",
        workers_words(serving, run.queue),
    )


def _beside(waiting: Case) -> Finding | None:
    """Judge a run whose workers have a suspect in hand, or empty themselves for one."""
    run, evidence = waiting.run, waiting.evidence
    if waiting.idle <= PATIENCE:
        return None
    serving = evidence.serving(run.queue)
    held = evidence.busy(serving).suspects
    if {one.session for one in serving} <= {one.session for one in held}:
        return Finding(
            cause=Cause.SUSPECT_BESIDE,
            headline=(
                f"{waiting.due}, but every living worker of queue {run.queue} has a run in hand"
                " that may be what kills its process, and claims nothing beside it."
            ),
            sentences=(f"One of these is {held[0].run_id}, after {held[0].losses} lost leases.",),
            hints=(f"dynsched why {held[0].run_id}", *starts(run)),
        )
    return None


def _emptying_words(waiting: Case) -> str:
    """Return for which suspect workers may empty themselves."""
    suspects = waiting.evidence.ahead(waiting.run).suspects
    if not suspects:
        return ""
    return (
        f"Run {suspects[0].run_id} may only start in a process with nothing else in hand: a worker"
        " that met it empties itself, and claims nothing until then."
    )


def _backlog(waiting: Case) -> Finding | None:
    run, evidence = waiting.run, waiting.evidence
    serving = evidence.serving(run.queue)
    busy, slots = evidence.busy(serving).runs, sum(one.slots for one in serving)
    ahead = evidence.ahead(run).runs
    full = busy.count >= slots or busy.at_least
    working = bool(busy.count and ahead.count and waiting.idle > PATIENCE)
    if not full and not working:
        return None
    one = ahead.count == 1 and not ahead.at_least
    return Finding(
        cause=Cause.BACKLOG,
        headline=(
            f"{waiting.due}, but workers have a backlog: {level_words(ahead, 'due run')} of queue"
            f" {run.queue}, priority {run.priority.value} {'was' if one else 'were'} there before"
            " it."
        ),
        hints=(*starts(run), "dynsched stats"),
    ).adding(
        f"{number(len(serving), 'living worker')} of the queue with {number(slots, 'slot')},"
        f" {'all' if full else busy} of them taken.",
        _emptying_words(waiting),
        "Tenants take turns, and priorities by weight, so it may start before some of those.",
    )


def _fresh(waiting: Case) -> Finding | None:
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


def _handed_off(waiting: Case) -> Finding | None:
    """Judge a run that only functions can take: they have no sessions to look at."""
    run, evidence = waiting.run, waiting.evidence
    if evidence.serving(run.queue) or not evidence.handed_off(run):
        return None
    return _fresh(waiting) or Finding(
        cause=Cause.HANDED_OFF,
        headline=(
            f"{waiting.due}; it is handed off to functions by a message, and none has taken it."
        ),
        sentences=(
            "Its message waits in a queue, or was lost: then the reaper sends another one.",
            *_needed_there(run.needs),
        ),
        hints=("dynsched handoff list --depth", "dynsched health"),
    )


def _needed_there(needs: str) -> tuple[str, ...]:
    """Return what a function lacks perhaps, which nothing in the store can tell."""
    kind, _, name = needs.partition(":")
    told = "puts the message back and says so in its log."
    if kind == "handler":
        return (f"A function whose app has no handler {name} {told}",)
    return (f"A function that may not run commands {told}",) if kind == "command" else ()


def no_obstacle(waiting: Case) -> Finding:
    """Return that it cannot be told why a due run was not taken, and what was looked at."""
    run, evidence = waiting.run, waiting.evidence
    serving = evidence.serving(run.queue)
    reason = f"; the last worker that put it back wrote {run.reason!r}" if run.reason else ""
    return Finding(
        cause=Cause.CANNOT_TELL,
        headline=(f"{waiting.due}; cannot tell why no worker has taken it."),
        sentences=(
            "Looked at: its job, the living workers and what they can run, their free slots, the"
            f" tenant's cap, the job's overlap, and the runs that were due before it{reason}.",
            f"Due before it in its queue and priority: {evidence.ahead(run).runs}; the workers have"
            f" {number_of(evidence, serving)} in hand.",
            workers_words(serving, run.queue),
            *filter(None, [_emptying_words(waiting)]),
        ),
        hints=("dynsched health", f"dynsched run show {run.run_id}"),
    )


OBSTACLES = (_nobody, _capped, blocked, _handed_off, _suspect, _beside, _backlog, _fresh)
"""What may stand in the way of a due run, and last that it has only just come due."""
