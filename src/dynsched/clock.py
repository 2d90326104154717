"""The clocks that programs run by; services get one as a constructor parameter."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from dynsched.domain.instants import Signal


class SystemClock:
    """The machine's wall and monotonic clocks."""

    def now(self) -> datetime:
        """Return the present instant, aware UTC, in whole milliseconds."""
        value = datetime.now(UTC)
        return value.replace(microsecond=value.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Wait for an event, at most that many seconds."""
        return event.wait(seconds)


class ScaledClock:
    """A clock that runs faster than the machine's, for rehearsals and tests with processes.

    Args:
        factor: how many of its seconds pass in one second.
        since_s: epoch seconds at which both clocks agree; processes that share a store need the
            same.
    """

    def __init__(self, factor: float, since_s: float) -> None:
        self._factor = factor
        self._since_s = since_s
        self._real = SystemClock()

    def now(self) -> datetime:
        """Return the scaled instant, aware UTC, in whole milliseconds."""
        real_s = time.time()
        scaled_ms = int((self._since_s + (real_s - self._since_s) * self._factor) * 1000)
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=scaled_ms)

    def monotonic(self) -> float:
        """Return scaled seconds that never step back."""
        return time.monotonic() * self._factor

    def wait(self, seconds: float) -> None:
        """Sleep that many scaled seconds."""
        time.sleep(seconds / self._factor)

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Wait for an event, at most that many scaled seconds."""
        return event.wait(seconds / self._factor)
