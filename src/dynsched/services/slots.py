"""Slots: the threads on which handlers run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class ThreadSlots:
    """A fixed number of daemon threads, started as they are needed.

    Args:
        count: most handlers at once, given-up ones not counted.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._lock = threading.Lock()

    def start(self, work: Work) -> None:
        """Run a piece of work on a free thread."""
        with self._lock:
            self._busy += 1
            if self._busy > len(self._threads) and len(self._threads) < self._count:
                self._spawn()
        self._work.put(work)

    def replace_one(self) -> None:
        """Start one thread more, for a handler that was given up and does not return."""
        with self._lock:
            self._count += 1
            self._spawn()

    def _spawn(self) -> None:
        thread = threading.Thread(
            target=self._serve, name=f"dynsched-slot-{len(self._threads)}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            try:
                work()
            finally:
                with self._lock:
                    self._busy -= 1

    def close(self) -> None:
        """End the threads that are idle; those with a handler end with the process."""
        for _ in self._threads:
            self._work.put(None)


class InlineSlots:
    """Runs each piece of work at once in the calling thread; for tests and `--once`."""

    def start(self, work: Work) -> None:
        """Run it."""
        work()

    def replace_one(self) -> None:
        """Do nothing: a handler cannot be given up while it is being called."""
