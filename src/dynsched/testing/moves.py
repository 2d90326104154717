"""Which move of the lifecycle a change of a run's row is, told by the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dynsched.domain.lifecycle import POISON_LOSSES, SUSPECT_LOSSES
from dynsched.domain.moves import MOVES, Event
from dynsched.domain.run import Run

Shape = Callable[[Run, Run], bool]

FIXED = (
    "key", "tenant", "queue", "share", "needs", "retention", "forced", "generation", "created_at",
    "origin",
)  # fmt: skip
REPLAYED = ("priority", "payload", "payload_ref", "batch")
"""What a replay may change, and only the first and last of them a pull back."""
COUNTS = ("fence", "attempt", "spent", "losses", "replays")


def _grows(before: Run, after: Run, **by: int) -> bool:
    """Say whether the counts grew by so much, and those not named not at all."""
    return all(getattr(after, name) - getattr(before, name) == by.get(name, 0) for name in COUNTS)


def _reported(before: Run, after: Run, **by: int) -> bool:
    """Say whether the try was counted and its outcome reported, which zeroes the losses."""
    return after.reported and _grows(before, after, attempt=1, losses=-before.losses, **by)


def _claimed(before: Run, after: Run) -> bool:
    return after.session is not None and _grows(before, after, fence=1)


def _reclaimed(before: Run, after: Run) -> bool:
    poison = after.losses >= POISON_LOSSES and not before.cancel_requested
    return _grows(before, after, attempt=1, losses=1) and poison == (after.state.value == "dead")


def _retried(before: Run, after: Run) -> bool:
    return _reported(before, after, spent=1) and after.spent < after.limit


def _buried(before: Run, after: Run) -> bool:
    if after.reason == "no handler":
        return _grows(before, after)
    spent = after.reason != "attempts spent" or after.spent >= after.limit
    return _reported(before, after, spent=1) and spent


def _replayed(before: Run, after: Run) -> bool:
    losses = SUSPECT_LOSSES if before.losses >= POISON_LOSSES else 0
    return (
        _grows(before, after, replays=1, losses=losses - before.losses)
        and after.limit > before.spent
        and not after.cancel_requested
    )


def _pulled_back(before: Run, after: Run) -> bool:
    poison = POISON_LOSSES - SUSPECT_LOSSES if before.losses == SUSPECT_LOSSES else 0
    return (
        _grows(before, after, replays=-1, losses=poison)
        and after.batch == ""
        and (after.payload, after.payload_ref) == (before.payload, before.payload_ref)
    )


def _cancelled(before: Run, after: Run) -> bool:
    tried = before.session is not None and _grows(before, after, attempt=1)
    return tried or _grows(before, after)


SHAPES: Mapping[Event, Shape] = {
    Event.CLAIM: _claimed,
    Event.AWAIT_CALLBACK: lambda before, after: (
        _grows(before, after) and after.callback not in ("", before.callback)
    ),
    Event.STEP_BACK: _grows,
    Event.SUCCEED: _reported,
    Event.SNOOZE: lambda before, after: _reported(before, after) and after.reason != "retry",
    Event.RETRY: _retried,
    Event.BURY: _buried,
    Event.HAND_BACK: lambda before, after: _grows(before, after, attempt=1),
    Event.SKIP: _grows,
    Event.CANCEL: _cancelled,
    Event.RECLAIM: _reclaimed,
    Event.DUE: _grows,
    Event.REPLAY: _replayed,
    Event.PULL_BACK: _pulled_back,
    Event.DISCARD: lambda before, after: _grows(before, after) and not before.hidden,
    Event.RESTORE: lambda before, after: _grows(before, after) and before.hidden,
    Event.ASK_CANCEL: lambda before, after: _grows(before, after) and after.cancel_requested,
    Event.PULL_FORWARD: _grows,
    Event.MARK_WAITER: lambda before, after: (
        _grows(before, after) and after.waiter != before.waiter
    ),
}


def event_of(before: Run, after: Run) -> Event | None:
    """Return the move that leads from one row to the other, None if none does.

    Where several do, the first of the lifecycle's table.
    """
    if after.version != before.version + 1:
        return None
    if any(getattr(after, name) != getattr(before, name) for name in FIXED):
        return None
    for move in MOVES:
        fits = before.state in move.sources and after.state in move.targets
        free = move.event in (Event.REPLAY, Event.PULL_BACK)
        fits = fits and (free or all(getattr(after, n) == getattr(before, n) for n in REPLAYED))
        if fits and SHAPES[move.event](before, after):
            return move.event
    return None
