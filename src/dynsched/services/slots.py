"""Slots: the threads on which handlers run."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Work = Callable[[], None]

_log: Final = logging.getLogger("dynsched.worker")


class ThreadSlots:
    """A fixed number of daemon threads, started as they are needed.

    At most one thread is on its way at a time: it takes a piece of work and, if there is more,
    calls the next. So handlers that return at once are run by one or two threads without waking
    the others, which would fight the polling thread for the interpreter; one that waits for
    something lets the next thread in.

    Args:
        count: most handlers at once, given-up ones not counted.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._work: deque[Work] = deque()
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._coming = False
        self._lock = threading.Lock()

    def start(self, work: Work) -> None:
        """Run a piece of work on a free thread.

        It is kept if the system has no thread to give: the next start or return tries again.
        """
        with self._lock:
            self._work.append(work)
            self._call_one()

    def replace_one(self) -> None:
        """Let there be one thread more, for a handler that was given up and does not return."""
        with self._lock:
            self._count += 1
            self._call_one()

    def _call_one(self) -> None:
        """Bring one thread on its way, unless there is no work or one is coming; under the lock."""
        if self._coming or not self._work:
            return
        if self._idle:
            self._idle -= 1
            self._calls.put(True)
            self._coming = True
        elif len(self._threads) < self._count:
            self._coming = self._spawn()

    def _spawn(self) -> bool:
        """Start a thread; return whether there is one."""
        thread = threading.Thread(
            target=self._serve, name=f"dynsched-slot-{len(self._threads)}", daemon=True
        )
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            _log.error(
                "a slot's thread cannot be started (%s): %d pieces of work wait for one of the"
                " %d that run; raise the limit of threads or give the worker fewer slots",
                error,
                len(self._work),
                len(self._threads),
            )
            return False
        self._threads.append(thread)
        return True

    def _serve(self) -> None:
        called = True
        try:
            while called:
                self._work_off()
                called = self._calls.get()
        finally:
            with self._lock:
                self._threads.remove(threading.current_thread())
                self._call_one()  # in its place, should it have died after all

    def _work_off(self) -> None:
        """Run pieces of work until none is left."""
        arrived = True
        while True:
            with self._lock:
                if arrived:
                    self._coming = arrived = False
                if not self._work:
                    self._idle += 1
                    return
                work = self._work.popleft()
                self._call_one()
            try:
                work()
            except BaseException:  # noqa: BLE001  # handlers are not ours
                _log.exception("a piece of work raised past its runner; its slot goes on")

    def close(self) -> None:
        """End the threads that are idle; those with a handler end with the process."""
        with self._lock:
            for _ in self._threads:
                self._calls.put(False)


class InlineSlots:
    """Runs each piece of work at once in the calling thread; for tests and `--once`."""

    def start(self, work: Work) -> None:
        """Run it."""
        work()

    def replace_one(self) -> None:
        """Do nothing: a handler cannot be given up while it is being called."""
