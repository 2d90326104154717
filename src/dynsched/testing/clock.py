"""A clock that tests set: no time passes but what they let pass."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from dynsched.domain.instants import Signal, to_utc

START = datetime(2026, 1, 1, tzinfo=UTC)


class SettableClock:
    """A wall clock and a monotonic one that move only when they are told to.

    Whoever waits on this clock moves it: a wait returns at once, that much later.

    Args:
        now: where it begins, with any offset.

    Concurrency: any number of threads may read and move it.

    >>> clock = SettableClock(datetime(2026, 3, 1, 9, tzinfo=UTC))
    >>> clock.step(minutes=5)
    >>> clock.now().isoformat()
    '2026-03-01T09:05:00+00:00'
    >>> clock.wait(30)
    >>> clock.monotonic()
    330.0
    """

    def __init__(self, now: datetime = START) -> None:
        self._lock = threading.Lock()
        self._wall = to_utc(now, "now")
        self._passed = timedelta(0)

    def now(self) -> datetime:
        """Return the wall clock's instant, aware UTC, in whole milliseconds."""
        return to_utc(self._wall, "now")

    def monotonic(self) -> float:
        """Return the seconds that have passed since the clock was made; they never step back."""
        return self._passed.total_seconds()

    def step(self, length: timedelta = timedelta(0), **parts: float) -> None:
        """Let time pass, on both clocks.

        Args:
            length: how much, not negative; or
            parts: the parts of a `timedelta`: `hours=1, minutes=30`.
        """
        passed = length + timedelta(**parts)
        assert passed >= timedelta(0), "time does not step back; `set` moves the wall clock"
        with self._lock:
            self._wall += passed
            self._passed += passed

    def set(self, now: datetime) -> None:
        """Set the wall clock, forwards or back, as a correction of the machine's time does.

        The monotonic clock does not notice.
        """
        with self._lock:
            self._wall = to_utc(now, "now")

    def wait(self, seconds: float) -> None:
        """Let that many seconds pass, at once."""
        self.step(timedelta(seconds=max(seconds, 0)))

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Let the seconds pass unless the event is set; return whether it is."""
        if not event.is_set():
            self.wait(seconds)
        return event.is_set()
