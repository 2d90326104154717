"""Moves: the one table of what may happen to a run; `docs/lifecycle.md` is generated from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dynsched.domain.run import RunState


class Event(StrEnum):
    """What happened to a run."""

    CLAIM = "claim"
    AWAIT_CALLBACK = "await callback"
    STEP_BACK = "step back"
    SUCCEED = "succeed"
    SNOOZE = "snooze"
    RETRY = "retry"
    BURY = "bury"
    HAND_BACK = "hand back"
    SKIP = "skip"
    CANCEL = "cancel"
    RECLAIM = "reclaim"
    DUE = "due"
    REPLAY = "replay"
    PULL_BACK = "pull back"
    DISCARD = "discard"
    RESTORE = "restore"
    ASK_CANCEL = "ask cancel"
    PULL_FORWARD = "pull forward"
    MARK_WAITER = "mark waiter"


@dataclass(frozen=True, slots=True)
class Move:
    """One row of the table: `event` takes a run from one of `sources` to one of `targets`."""

    event: Event
    sources: frozenset[RunState]
    targets: frozenset[RunState]
    by: str
    meaning: str


def _move(event: Event, sources: str, targets: str, by: str, meaning: str) -> Move:
    return Move(
        event,
        frozenset(RunState(name) for name in sources.split()),
        frozenset(RunState(name) for name in targets.split()),
        by,
        meaning,
    )


MOVES = (
    _move(Event.CLAIM, "ready", "leased", "worker", "takes the run under the next fence"),
    _move(
        Event.AWAIT_CALLBACK,
        "leased",
        "leased",
        "worker",
        "the attempt goes on elsewhere; whoever has its token tells how it ended",
    ),
    _move(
        Event.STEP_BACK,
        "leased",
        "ready cancelled",
        "worker",
        "may not start now: waiting, at a cap, draining, handler unknown; no attempt counted",
    ),
    _move(Event.SUCCEED, "leased", "done", "worker, operations", "the handler returned"),
    _move(
        Event.SNOOZE,
        "leased",
        "failed ready cancelled",
        "worker",
        "the handler asked for a later time; nothing is spent",
    ),
    _move(
        Event.RETRY,
        "leased",
        "failed ready cancelled",
        "worker, operations, reaper",
        "the handler failed and has attempts left; ready when due within the look-ahead",
    ),
    _move(
        Event.BURY,
        "leased",
        "dead",
        "worker, operations, reaper",
        "attempts spent, permanent error, or no handler",
    ),
    _move(
        Event.HAND_BACK,
        "leased",
        "ready cancelled",
        "worker",
        "started, but its lease ran out or its process drains: attempt counted, no loss",
    ),
    _move(Event.SKIP, "leased ready failed", "skipped", "worker, dispatcher", "is not to start"),
    _move(Event.CANCEL, "leased ready failed", "cancelled", "operations, worker", "was called off"),
    _move(
        Event.RECLAIM,
        "leased",
        "ready dead cancelled",
        "reaper",
        "its session is over: attempt and loss counted; the third loss in a row is dead (poison)",
    ),
    _move(Event.DUE, "failed", "ready", "dispatcher", "its back-off ends within the look-ahead"),
    _move(Event.REPLAY, "dead", "ready", "operations", "same row and key, higher limit"),
    _move(
        Event.PULL_BACK,
        "ready",
        "dead",
        "operations",
        "the replay batch that moved it was aborted before it was tried: dead as it was",
    ),
    _move(Event.DISCARD, "dead", "dead", "operations", "hidden until its retention date"),
    _move(Event.RESTORE, "dead", "dead", "operations", "a discarded run is shown again"),
    _move(
        Event.ASK_CANCEL, "leased", "leased", "operations, worker", "the holder is asked to stop"
    ),
    _move(Event.PULL_FORWARD, "ready", "ready", "worker", "the run that it waited for has ended"),
    _move(Event.MARK_WAITER, "leased", "leased", "worker", "somebody waits for this run to end"),
)
BY_EVENT = {move.event: move for move in MOVES}
