"""The clock of a simulated process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dynsched.domain.instants import Signal, to_utc
from tests.sim.baton import Baton

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class SimClock:
    """A wall clock that is off by so much, and a monotonic one.

    Args:
        baton: the time that both run by.
        skew_s: how far the wall clock is ahead, seconds.
    """

    def __init__(self, baton: Baton, skew_s: float) -> None:
        self._baton = baton
        self._begin = BEGIN + timedelta(seconds=skew_s)

    def now(self) -> datetime:
        """Return the wall clock's instant."""
        return to_utc(self._begin + timedelta(seconds=self._baton.now_s), "now")

    def monotonic(self) -> float:
        """Return the seconds since the beginning."""
        return self._baton.now_s

    def wait(self, seconds: float) -> None:
        """Let others run meanwhile."""
        self._baton.pause(seconds)

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Let others run until the event is set, at most so long."""
        self._baton.pause(seconds, event.is_set)
        return event.is_set()
