"""The process around the loops: threads, signals, and an end that hands work back."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from dynsched.cli.command import INTERRUPTED
from dynsched.domain.instants import Clock
from dynsched.services.loops import Stopper

log = logging.getLogger("dynsched.process")

END_MARGIN = timedelta(seconds=10)
"""How much longer than the grace a loop may take before the process ends without it."""

LISTEN_S = 1.0
"""How long the main thread waits at a time, in seconds.

A signal to a process that was frozen may reach another thread; it does not end the main thread's
wait then, and its handler, which only the main thread runs, would not run before the next one.
"""

Loop = Callable[[], None]


class Process:
    """Runs loops on threads until a signal, a time limit or a failure ends them all.

    The first SIGTERM or SIGINT drains; a SIGINT after that ends the process at once, and what it
    had in hand is returned when its session is found over.

    Args:
        clock: measures the time limit.
        grace: how long a drain may take.
    """

    def __init__(self, clock: Clock, *, grace: timedelta) -> None:
        self.stopper = Stopper()
        self._clock = clock
        self._grace = grace
        # Handlers only put notes here: the queue, unlike an event, is safe to use in one.
        self._notes: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._on_stop: list[Callable[[], None]] = []

    def add(self, name: str, loop: Loop, *, on_stop: Callable[[], None] | None = None) -> None:
        """Add a loop.

        Args:
            name: its thread's.
            loop: returns once the stopper is set and its work is handed back.
            on_stop: wakes it.
        """
        thread = threading.Thread(target=self._guarded(loop), name=f"dynsched-{name}", daemon=True)
        self._threads.append(thread)
        if on_stop is not None:
            self._on_stop.append(on_stop)

    def run(self, limit: timedelta | None = None) -> None:
        """Run the loops to their end.

        Args:
            limit: stop by itself after so long; None for never.

        Raises:
            DynschedError: what made a loop end by itself.
        """
        with self._listening():
            for thread in self._threads:
                thread.start()
            self._wait(limit)
            self._stop()
            self._drain()
        if self.stopper.failure is not None:
            raise self.stopper.failure

    def _guarded(self, loop: Loop) -> Loop:
        def run() -> None:
            try:
                loop()
            except Exception as failure:  # noqa: BLE001  # whatever it is, the process must end
                self.stopper.fail(failure)
            finally:
                self._notes.put(None)

        return run

    def _wait(self, limit: timedelta | None) -> None:
        """Wait for the first note: a signal, or a loop that has ended."""
        end = float("inf") if limit is None else self._clock.monotonic() + limit.total_seconds()
        while (left_s := end - self._clock.monotonic()) > 0:
            try:
                note = self._notes.get(timeout=min(left_s, LISTEN_S))
            except queue.Empty:
                continue
            if note is not None:
                log.info("%s: draining (Ctrl-C ends at once)", signal.Signals(note).name)
            return
        log.info("the time limit is reached")

    def _stop(self) -> None:
        self.stopper.stop()
        for wake in self._on_stop:
            wake()

    def _drain(self) -> None:
        """Wait for the loops, but no longer than the grace and a margin."""
        end = self._clock.monotonic() + (self._grace + END_MARGIN).total_seconds()
        while any(thread.is_alive() for thread in self._threads):
            left_s = end - self._clock.monotonic()
            if left_s <= 0:
                log.error("a loop does not end; the process ends without it")
                return
            try:
                note = self._notes.get(timeout=min(left_s, LISTEN_S))
            except queue.Empty:
                continue
            if note == signal.SIGINT:
                sys.stderr.flush()
                os._exit(INTERRUPTED)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Turn SIGTERM and SIGINT into notes; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _: FrameType | None) -> None:
            self._notes.put(number)

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
