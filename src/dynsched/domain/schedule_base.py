"""What all kinds of schedules share: the questions about instants, and a start and an end.

The public methods take and return aware UTC datetimes; a kind of schedule answers in integer
milliseconds since 1970, where spans are half-open and comparisons are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from dynsched.domain.cron_walk import END_S, FIRST_S
from dynsched.domain.instants import EPOCH, MILLISECOND, from_ms, to_ms, to_text, to_utc
from dynsched.errors import InvalidInput

ScheduleBody: TypeAlias = dict[str, str | int | bool]
"""A schedule as it is stored: plain JSON values, nothing that is at its default."""

FIRST_MS = FIRST_S * 1000
END_MS = END_S * 1000
"""Instants lie in [FIRST_MS, END_MS): the years 1800 to 2199."""


class Instants:
    """The questions that every schedule answers, asked of its kind in milliseconds."""

    __slots__ = ()

    def next_after(self, t: datetime) -> datetime | None:
        """Return the earliest instant strictly later than `t`, or None if there is no other."""
        low, high = self._limits()
        found = self._first_ms(max(low, to_ms(t) + 1))
        return from_ms(found) if found is not None and found < high else None

    def last_before(self, t: datetime) -> datetime | None:
        """Return the latest instant strictly earlier than `t`, or None if there is none."""
        low, high = self._limits()
        found = self._last_ms(min(high, _ceil_ms(t)))
        return from_ms(found) if found is not None and found >= low else None

    def count(self, first: datetime, before: datetime) -> int:
        """Return the number of instants in [first, before), without stepping through them."""
        low, high = self._span(first, before)
        return self._count_ms(low, high) if low < high else 0

    def names(self, t: datetime) -> bool:
        """Tell whether `t` is one of the instants."""
        low, high = self._limits()
        at = _ceil_ms(t)
        return low <= at < high and from_ms(at) == t and self._first_ms(at) == at

    def instants(self, first: datetime, before: datetime, limit: int) -> Iterator[datetime]:
        """Yield the instants in [first, before) in order, at most `limit` of them."""
        low, high = self._span(first, before)
        for _ in range(limit):
            found = self._first_ms(low)
            if found is None or found >= high:
                return
            yield from_ms(found)
            low = found + 1

    def _span(self, first: datetime, before: datetime) -> tuple[int, int]:
        low, high = self._limits()
        return max(low, _ceil_ms(first)), min(high, _ceil_ms(before))

    def _limits(self) -> tuple[int, int]:
        """Return [low, high): the milliseconds in which an instant may lie."""
        return FIRST_MS, END_MS

    def _first_ms(self, low: int) -> int | None:
        """Return the earliest instant at or after a millisecond."""
        raise NotImplementedError

    def _last_ms(self, high: int) -> int | None:
        """Return the latest instant before a millisecond."""
        raise NotImplementedError

    def _count_ms(self, low: int, high: int) -> int:
        """Return the number of instants in a span of milliseconds that is not empty."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Instants):
    """A schedule with a start and an end.

    Attributes:
        start: the first instant that may be named; None for no limit.
        end: the last instant that may be named; None for no limit.
    """

    start: datetime | None = None
    end: datetime | None = None

    def _limits(self) -> tuple[int, int]:
        low = FIRST_MS if self.start is None else max(FIRST_MS, _ceil_ms(self.start))
        high = END_MS if self.end is None else min(END_MS, to_ms(self.end) + 1)
        return low, high

    def _limits_body(self) -> ScheduleBody:
        limits = (("start", self.start), ("end", self.end))
        return {name: to_text(value) for name, value in limits if value is not None}

    def _limits_words(self) -> str:
        since = f", from {to_text(self.start)}" if self.start else ""
        return since + (f", until {to_text(self.end)}" if self.end else "")


def checked_limits(
    start: datetime | None, end: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Return both limits in UTC, or refuse a span that is empty."""
    start = None if start is None else to_utc(start, "start")
    end = None if end is None else to_utc(end, "end")
    if start is not None and end is not None and end < start:
        raise InvalidInput("end", "the end lies before the start", "swap them or drop one")
    return start, end


def _ceil_ms(t: datetime) -> int:
    return -((EPOCH - t) // MILLISECOND)
