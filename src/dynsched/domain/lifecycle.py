"""The lifecycle: one table of the moves of a run, and one named constructor for each.

A `Transition` is the only way a run changes. It carries the run as it was seen (its version guards
the write), the run as it shall be, and the event. Constructors set every dependent field, so an
illegal mixture cannot be built. The table of moves is `dynsched.domain.moves`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.instants import EPOCH, LAST
from dynsched.domain.job import Priority
from dynsched.domain.moves import BY_EVENT, Event
from dynsched.domain.run import Run, RunState
from dynsched.errors import IllegalTransition

POISON_LOSSES = 3
SUSPECT_LOSSES = 2
CANCEL_REQUESTED = "cancel requested"
PULLED_BACK = "pulled back"
REPLACED_BY = "replaced by "  # what the reason of a run that a new one replaced begins with


@dataclass(frozen=True, slots=True)
class Transition:
    """A guarded change of one run: applied only if the stored version is still `before.version`."""

    event: Event
    before: Run
    after: Run


def _transition(event: Event, before: Run, after: Run) -> Transition:
    move = BY_EVENT[event]
    if before.state not in move.sources or after.state not in move.targets:
        apt = " or ".join(sorted(state.value for state in move.sources - {before.state}))
        raise IllegalTransition(
            f"{event.value} does not apply to run {before.run_id}:"
            f" it is {before.state.value}" + (f", not {apt}" if apt else "")
        )
    return Transition(event, before, after)


def _next(run: Run, **changes: object) -> Run:
    """Return the run's next version; the constructors check what may change."""
    return run.changed(version=run.version + 1, **changes)


def _expiry(run: Run, now: datetime) -> int:
    """Return the end of a run's retention in epoch seconds, whatever its job asked for."""
    return int((now - EPOCH + min(run.retention, LAST - now)).total_seconds())


def _ended(event: Event, run: Run, state: RunState, now: datetime, **more: object) -> Transition:
    after = _next(
        run,
        state=state,
        session=None,
        leased_at=None,
        lease_ends_at=None,
        ended_at=now,
        expires_at_s=_expiry(run, now),
        **more,
    )
    return _transition(event, run, after)


def _released(
    event: Event, run: Run, available_at: datetime, now: datetime, **more: object
) -> Transition:
    """Leave `leased` for another try; a requested cancel wins."""
    state = more.pop("state", RunState.READY)
    after = _next(
        run,
        state=state,
        session=None,
        leased_at=None,
        lease_ends_at=None,
        available_at=available_at,
        **more,
    )
    if run.cancel_requested:
        after = after.changed(
            state=RunState.CANCELLED,
            reason=run.reason or CANCEL_REQUESTED,
            ended_at=now,
            expires_at_s=_expiry(run, now),
        )
    return _transition(event, run, after)


def claim(
    run: Run,
    *,
    session: str,
    now: datetime | None = None,
    lease_ends_at: datetime | None = None,
) -> Transition:
    """Take a ready run for a session under the next fence."""
    after = _next(
        run,
        state=RunState.LEASED,
        session=session,
        leased_at=now,
        lease_ends_at=lease_ends_at,
        fence=run.fence + 1,
        reason="",
        callback="",
    )
    return _transition(Event.CLAIM, run, after)


def await_callback(
    run: Run, *, session: str, started_at: datetime, ends_at: datetime, callback: str
) -> Transition:
    """Let a started run go on outside of its worker, under the same fence, until it is answered.

    Args:
        run: the leased run.
        session: names the wait; no session row has it.
        started_at: when the attempt began.
        ends_at: the attempt has failed if there is no answer by then.
        callback: the digest of the token that an answer must show.
    """
    after = _next(
        run,
        session=session,
        lease_ends_at=ends_at,
        started_at=started_at,
        first_started_at=run.first_started_at or started_at,
        callback=callback,
    )
    return _transition(Event.AWAIT_CALLBACK, run, after)


def step_back(
    run: Run,
    *,
    available_at: datetime,
    now: datetime,
    reason: str = "",
    waits: int | None = None,
    needs: str | None = None,
) -> Transition:
    """Give a claimed run back that was not started; no attempt is counted.

    Args:
        run: the claimed run.
        available_at: when it may be claimed again.
        now: the end, if a cancel was requested.
        reason: why it did not start.
        waits: how often it has waited now; None leaves it.
        needs: what it needs, if its job was given another target; None leaves it.
    """
    changes: dict[str, object] = {"reason": reason}
    if waits is not None:
        changes["waits"] = waits
    if needs is not None:
        changes["needs"] = needs
    return _released(Event.STEP_BACK, run, available_at, now, **changes)


def _tried(run: Run, started_at: datetime) -> dict[str, object]:
    return {
        "attempt": run.attempt + 1,
        "started_at": started_at,
        "first_started_at": run.first_started_at or started_at,
    }


def succeed(run: Run, *, started_at: datetime, now: datetime) -> Transition:
    """End a run whose handler returned."""
    return _ended(
        Event.SUCCEED,
        run,
        RunState.DONE,
        now,
        reported=True,
        losses=0,
        error="",
        signature="",
        reason="",
        waiter=None,
        **_tried(run, started_at),
    )


def retry(
    run: Run,
    *,
    started_at: datetime,
    now: datetime,
    at: datetime,
    look_ahead: timedelta,
    error: str,
    signature: str,
) -> Transition:
    """Let a failed run wait for its next attempt; at once ready if that lies in the look-ahead."""
    return _released(
        Event.RETRY,
        run,
        at,
        now,
        state=RunState.READY if at <= now + look_ahead else RunState.FAILED,
        reason="retry",
        spent=run.spent + 1,
        losses=0,
        reported=True,
        error=error,
        signature=signature,
        waiter=None,
        **_tried(run, started_at),
    )


def snooze(
    run: Run, *, started_at: datetime, now: datetime, until: datetime, look_ahead: timedelta
) -> Transition:
    """Let a run come back at the time its handler named; nothing is spent."""
    return _released(
        Event.SNOOZE,
        run,
        until,
        now,
        state=RunState.READY if until <= now + look_ahead else RunState.FAILED,
        reason="snoozed",
        losses=0,
        reported=True,
        waiter=None,
        **_tried(run, started_at),
    )


def bury(
    run: Run,
    *,
    now: datetime,
    reason: str,
    error: str,
    signature: str,
    started_at: datetime | None,
) -> Transition:
    """Make a run dead; with `started_at` None it never started in this lease (no handler)."""
    tried: dict[str, object] = {}
    if started_at is not None:
        tried = {**_tried(run, started_at), "spent": run.spent + 1, "reported": True, "losses": 0}
    return _ended(
        Event.BURY,
        run,
        RunState.DEAD,
        now,
        reason=reason,
        error=error,
        signature=signature,
        waiter=None,
        **tried,
    )


def hand_back(run: Run, *, started_at: datetime, now: datetime, reason: str) -> Transition:
    """Return a started run under its fence: its lease ran out, or its process drains."""
    return _released(
        Event.HAND_BACK, run, now, now, reason=reason, waiter=None, **_tried(run, started_at)
    )


def skip(run: Run, *, now: datetime, reason: str) -> Transition:
    """End a run that is not to start, with the reason."""
    return _ended(Event.SKIP, run, RunState.SKIPPED, now, reason=reason, waiter=None)


def cancel(
    run: Run,
    *,
    now: datetime,
    reason: str,
    started_at: datetime | None = None,
) -> Transition:
    """End a run that was called off; with `started_at` its handler had been called."""
    tried: dict[str, object] = {}
    if started_at is not None:
        tried = {**_tried(run, started_at), "reported": True}
    return _ended(Event.CANCEL, run, RunState.CANCELLED, now, reason=reason, waiter=None, **tried)


def reclaim(run: Run, *, now: datetime, signature: str, reason: str = "lost lease") -> Transition:
    """Take a run from a session that is over; it may have started, so the try is counted."""
    losses, attempt = run.losses + 1, run.attempt + 1
    if losses >= POISON_LOSSES and not run.cancel_requested:
        return _ended(
            Event.RECLAIM,
            run,
            RunState.DEAD,
            now,
            reason="poison",
            losses=losses,
            attempt=attempt,
            error=f"{losses} leases lost in a row: the run seems to kill its process",
            signature=signature,
            waiter=None,
        )
    return _released(
        Event.RECLAIM, run, now, now, reason=reason, losses=losses, attempt=attempt, waiter=None
    )


def due(run: Run) -> Transition:
    """Put a waiting run back to ready, `available_at` unchanged."""
    return _transition(Event.DUE, run, _next(run, state=RunState.READY))


def replay(
    run: Run,
    *,
    now: datetime,
    max_attempts: int,
    batch: str | None = None,
    priority: Priority | None = None,
    payload: tuple[str | None, str | None] | None = None,
) -> Transition:
    """Bring a dead run back: same row, same idempotency key, attempts kept, limit raised.

    A poison run starts with two losses, so that it runs alone and dies at the next one.

    Args:
        run: the dead run.
        now: when it may start.
        max_attempts: failures that it may have from now on.
        batch: the replay batch that moves it; None leaves the one before.
        priority: another priority; None leaves it.
        payload: another (payload, payload_ref); None leaves them.
    """
    changes: dict[str, object] = {}
    if batch is not None:
        changes["batch"] = batch
    if priority is not None:
        changes["priority"] = priority
    if payload is not None:
        changes["payload"], changes["payload_ref"] = payload
    after = _next(
        run,
        state=RunState.READY,
        reason="replayed",
        available_at=now,
        limit=run.spent + max_attempts,
        losses=SUSPECT_LOSSES if run.losses >= POISON_LOSSES else 0,
        replays=run.replays + 1,
        waits=0,
        cancel_requested=False,
        hidden=False,
        ended_at=None,
        expires_at_s=None,
        **changes,
    )
    return _transition(Event.REPLAY, run, after)


def pull_back(run: Run, *, now: datetime, ended_at: datetime, priority: Priority) -> Transition:
    """Make a replayed run that nobody has tried since dead again, as if never replayed.

    Error, signature and attempts are as they were, since a replay leaves them. It lies at its old
    place in the dead-letter queue, but its retention begins anew: it is not to vanish by this.

    Args:
        run: the ready run.
        now: when its retention begins.
        ended_at: when it had died.
        priority: what it had before.
    """
    after = _next(
        run,
        state=RunState.DEAD,
        reason=PULLED_BACK,
        priority=priority,
        # Untried since its replay, so two losses mean that it was poison, with three.
        losses=POISON_LOSSES if run.losses == SUSPECT_LOSSES else run.losses,
        replays=run.replays - 1,
        batch="",
        waits=0,
        waiter=None,
        ended_at=ended_at,
        expires_at_s=_expiry(run, now),
    )
    return _transition(Event.PULL_BACK, run, after)


def discard(run: Run, *, reason: str | None = None) -> Transition:
    """Hide a dead run from the dead-letter queue; it stays until its retention date.

    Args:
        run: the dead run.
        reason: what takes its place; None leaves the reason of its death.
    """
    why = run.reason if reason is None else reason
    return _transition(Event.DISCARD, run, _next(run, hidden=True, reason=why))


def restore(run: Run) -> Transition:
    """Show a discarded dead run again."""
    return _transition(Event.RESTORE, run, _next(run, hidden=False))


def ask_cancel(run: Run, *, reason: str = CANCEL_REQUESTED) -> Transition:
    """Ask the holder of a leased run to stop; its fence stays, the first reason too."""
    asked = _next(run, cancel_requested=True, reason=run.reason or reason)
    return _transition(Event.ASK_CANCEL, run, asked)


def pull_forward(run: Run, *, now: datetime) -> Transition:
    """Make a waiting run available now."""
    return _transition(Event.PULL_FORWARD, run, _next(run, available_at=now))


def mark_waiter(run: Run, *, waiter: str) -> Transition:
    """Note in a leased run who waits for its end."""
    return _transition(Event.MARK_WAITER, run, _next(run, waiter=waiter))
