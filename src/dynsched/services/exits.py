"""Exits: what a worker does with handlers that have returned, and with those that do not.

Handlers run on slot threads, which only leave a note; everything else is one thread's.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from dynsched.domain.instants import Clock
from dynsched.domain.retry import Failed, Hint
from dynsched.errors import StoreError
from dynsched.services.endings import Ending, Endings
from dynsched.services.hand import Hand, InHand
from dynsched.services.refusals import Refusals
from dynsched.services.slots import Work
from dynsched.storage.store import Store
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")


class Slots(Protocol):
    """Where handlers run."""

    def start(self, work: Work) -> None:
        """Run a piece of work, at once or on another thread."""

    def replace_one(self) -> None:
        """Make up for a slot whose handler was given up and does not return."""


class Exits:
    """The ways out of one process's runs: kept until they are written.

    Attributes:
        wake: set when a handler has returned.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        hand: Hand,
        endings: Endings,
        refusals: Refusals,
        slots: Slots,
    ) -> None:
        self._store = store
        self._clock = clock
        self._hand, self._endings = hand, endings
        self._refusals, self._slots = refusals, slots
        self._finished: queue.SimpleQueue[InHand] = queue.SimpleQueue()
        self._unwritten: list[Ending] = []
        self.wake = threading.Event()

    @property
    def unwritten(self) -> int:
        """Return how many ways out are still to be written."""
        return len(self._unwritten)

    @property
    def none_new(self) -> bool:
        """Return whether no handler has returned since the last flush."""
        return self._finished.empty()

    def returned(self, item: InHand) -> None:
        """Note a handler's return; called on its slot's thread."""
        self._finished.put(item)
        if not self.wake.is_set():  # who waits clears it before looking at what has finished
            self.wake.set()

    def add(self, endings: Sequence[Ending]) -> None:
        """Keep ways out for the next flush."""
        self._unwritten += endings

    def flush(self, now: datetime) -> int:
        """Write how the handlers ended that have returned; return how many ways out it were.

        Raises:
            StoreError: the store failed; all are kept for the next time.
        """
        look_ahead = self._store.topology.look_ahead
        while True:
            try:
                item = self._finished.get_nowait()
            except queue.Empty:
                break
            if item.given_up:
                self._note_late(item)
            else:
                self._unwritten.append(self._ending_of(item, now, look_ahead))
        return self._write_out()

    def write(self, endings: Sequence[Ending]) -> bool:
        """Write ways out; False if the store failed, then the next flush writes them."""
        self._unwritten += endings
        try:
            self._write_out()
        except StoreError as error:
            log.warning("%d runs are given back later: %s", len(self._unwritten), error)
            return False
        return True

    def hand_back(self, items: Sequence[InHand], reason: StopReason, now: datetime) -> None:
        """Stop handlers and give their runs back under their fences, without waiting for them.

        Not what waits for its callback: that goes on elsewhere, and its row has an end of its own.
        """
        items = [item for item in items if not item.run.awaits_callback]
        for item in items:
            item.stop.set(reason)
        self._give_up(items, [self._endings.hand_back(item, now, reason.value) for item in items])

    def fail_overdue(self, now: datetime) -> None:
        """Fail the runs whose handlers have ignored their hard time limit."""
        over = [
            item
            for item in self.running()
            if item.stop.has(StopReason.HARD_LIMIT)
            and item.job is not None
            and item.started_at is not None
            and now >= item.started_at + patience(item)
        ]
        self.fail(over, "the handler ignored its hard time limit", now)

    def fail(self, items: Sequence[InHand], problem: str, now: datetime) -> None:
        """Fail runs for want of time, without waiting for their handlers."""
        for item in items:
            item.result = Failed(error_type="TimeLimit", message=problem)
        if items:
            look_ahead = self._store.topology.look_ahead
            self._give_up(items, [self._endings.of_result(item, now, look_ahead) for item in items])

    def running(self) -> list[InHand]:
        """Return the runs whose handlers were called and have not ended, nor been given up.

        What waits for its callback is not this process's any more, though its invocation is not yet
        answered: it may have been taken, so that another start would do the work twice.
        """
        return [
            item
            for item in self._hand.items()
            if not item.given_up
            and item.result is None
            and item.started_at is not None
            and not item.run.awaits_callback
        ]

    def _ending_of(self, item: InHand, now: datetime, look_ahead: timedelta) -> Ending:
        """Return a result's way out; one that cannot be made must not hold up the others."""
        try:
            return self._endings.of_result(item, now, look_ahead)
        except Exception as error:
            log.exception("run %s: its result cannot be evaluated", item.run.run_id)
            problem = f"{type(error).__name__}: {error}"
            item.result = Failed(error_type="BadResult", message=problem, hint=Hint.PERMANENT)
            return self._endings.of_result(item, now, look_ahead)

    def _note_late(self, item: InHand) -> None:
        try:
            self._endings.note_late(item)
        except Exception:
            log.exception("run %s: its late result cannot be kept", item.run.run_id)

    def _write_out(self) -> int:
        """Write the ways out that are due; their runs leave the hand.

        Raises:
            StoreError: the store failed; all are kept for the next time.
        """
        endings = self._unwritten
        if not endings:
            return 0
        self._endings.write(endings)
        self._unwritten = []
        for ending in endings:
            item = ending.item
            self._refusals.ended(item.run)
            if item.permit is not None:
                self._refusals.freed(item.run)
            # Also one whose handler still runs: the run is not its any more.
            self._hand.leave(item)
        return len(endings)

    def _give_up(self, items: Sequence[InHand], endings: Sequence[Ending]) -> None:
        """Write a way out for runs whose handlers still run; their slots are made up for."""
        for item in items:
            item.given_up = True
        for _ in items:
            self._slots.replace_one()
        self.write(endings)


def patience(item: InHand) -> timedelta:
    """Return how long after its start a handler that ignores its hard limit is given up."""
    timeout = item.job.policies.timeout if item.job is not None else None
    return (timeout or timedelta(0)) + timedelta(seconds=1)
