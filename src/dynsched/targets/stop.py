"""Stopping an attempt: one signal for every reason, and the watch that raises it at a time limit.

Whoever wants an attempt to end sets its `Stop`; each kind of target listens to it in its own way:
a handler looks, a coroutine is cancelled, a request is hung up, a command is sent a signal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from dynsched.domain.instants import Clock
from dynsched.errors import InvalidInput

_log = logging.getLogger(__name__)


class StopReason(StrEnum):
    """Why an attempt is to end; the members are in order of precedence."""

    LEASE_LOST = "lease lost"
    """Somebody else may have the run by now: whatever this attempt reports is refused."""
    CANCELLED = "cancelled"
    """A person, or a newer run of the job, wants it gone."""
    HARD_LIMIT = "hard time limit"
    """It did not end after the soft limit: it is killed, or given up."""
    FUNCTION_LIMIT = "time limit of the function"
    """Its invocation is about to end, whatever its job allows; another one would end as it did."""
    SOFT_LIMIT = "soft time limit"
    """It has run as long as the job allows."""
    DRAIN = "drain"
    """The worker is shutting down and its grace is over; the run is handed back."""


Listener: TypeAlias = Callable[[StopReason], None]


class Stop:
    """A signal like `threading.Event` that carries its reasons and can be listened to.

    Concurrency: any thread may set it; listeners are called in that thread, once for each new
    reason, and must return at once.
    """

    __slots__ = ("_event", "_listeners", "_lock", "_reasons")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reasons: set[StopReason] = set()
        self._listeners: list[Listener] = []

    def set(self, reason: StopReason) -> None:
        """Ask the attempt to end; a reason given before has no effect."""
        with self._lock:
            if reason in self._reasons:
                return
            self._reasons.add(reason)
            listeners = tuple(self._listeners)
        self._event.set()
        for listener in listeners:
            _tell(listener, reason)

    def is_set(self) -> bool:
        """Tell whether there is any reason to end."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the attempt is to end, at most so many seconds; tell whether it is."""
        return self._event.wait(seconds)

    def has(self, reason: StopReason) -> bool:
        """Tell whether that reason was given."""
        return reason in self._reasons

    @property
    def reason(self) -> StopReason | None:
        """The reason that takes precedence, or None."""
        return next((reason for reason in StopReason if reason in self._reasons), None)

    @contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """Call `listener` with each reason, those given before too, while the block runs."""
        with self._lock:
            self._listeners.append(listener)
            given = tuple(self._reasons)
        try:
            for reason in given:
                _tell(listener, reason)
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


def _tell(listener: Listener, reason: StopReason) -> None:
    """Call a listener; its failure must not keep the others from hearing."""
    try:
        listener(reason)
    except Exception:  # noqa: BLE001  # whatever it is, it is not the setter's failure
        _log.exception("a listener to the stop signal failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits of one attempt, counted from its start.

    Attributes:
        soft: when it is asked to end; None for never.
        hard: when it is killed or given up, not before the soft limit; None for never.
    """

    soft: timedelta | None = None
    hard: timedelta | None = None

    def __post_init__(self) -> None:
        given = [limit for limit in (self.soft, self.hard) if limit is not None]
        if any(limit <= timedelta(0) for limit in given):
            raise InvalidInput("timeout", "a time limit is not positive", "give a longer one")
        if given != sorted(given):
            raise InvalidInput("timeout", "the hard limit is before the soft one", "raise it")


NO_LIMITS = Limits()


@dataclass(slots=True)
class _Watched:
    """One attempt under watch: what is still to be raised, earliest first, in monotonic seconds."""

    stop: Stop
    due: list[tuple[float, StopReason]]


class LimitWatch:
    """Sets the stop signals of attempts that reach their time limits.

    One thread serves all attempts of a process and exists only once a limit was given. It looks at
    the attempts in hand, which are as many as the worker has slots, and sleeps until the earliest.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._watched: dict[int, _Watched] = {}
        self._wakes_at = float("inf")
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def over(self, limits: Limits, stop: Stop) -> Iterator[None]:
        """Watch the limits of the attempt that the block runs."""
        if limits.soft is None and limits.hard is None:
            yield
            return
        self._add(limits, stop)
        try:
            yield
        finally:
            with self._changed:
                self._watched.pop(id(stop), None)

    def look(self) -> float:
        """Set what is due by now; return the seconds until the next limit, or infinity."""
        now = self._clock.monotonic()
        due: list[tuple[Stop, StopReason]] = []
        with self._changed:
            self._wakes_at = float("inf")
            for watched in self._watched.values():
                while watched.due and watched.due[0][0] <= now:
                    due.append((watched.stop, watched.due.pop(0)[1]))
                if watched.due:
                    self._wakes_at = min(self._wakes_at, watched.due[0][0])
            wakes_at = self._wakes_at
        for stop, reason in due:
            stop.set(reason)
        return wakes_at - now

    def close(self) -> None:
        """Stop watching."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _add(self, limits: Limits, stop: Stop) -> None:
        now = self._clock.monotonic()
        due = [
            (now + limit.total_seconds(), reason)
            for limit, reason in (
                (limits.soft, StopReason.SOFT_LIMIT),
                (limits.hard, StopReason.HARD_LIMIT),
            )
            if limit is not None
        ]
        with self._changed:
            self._watched[id(stop)] = _Watched(stop, due)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="dynsched-limits", daemon=True
                )
                self._thread.start()
            # The common limit is later than the one waited for: then nobody is woken.
            if due[0][0] < self._wakes_at:
                self._wakes_at = due[0][0]
                self._changed.notify()

    def _run(self) -> None:
        while True:
            seconds = self.look()
            with self._changed:
                if self._closed:
                    return
                # An attempt may have been added between the look and this point.
                seconds = min(seconds, self._wakes_at - self._clock.monotonic())
                self._changed.wait(None if seconds == float("inf") else max(seconds, 0))
