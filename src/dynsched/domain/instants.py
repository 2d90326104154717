"""Instants: aware UTC datetimes in whole milliseconds, their fixed-width text and their minutes.

Inside dynsched every instant is an aware `datetime` in UTC, truncated to milliseconds. Zones exist
only in `dynsched.domain.recurrence` and in renderers.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

from dynsched.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)


class Signal(Protocol):
    """What one can wait for, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether it has been given."""

    def wait(self, seconds_max: float | None = None, /) -> bool:
        """Wait until it is given, at most that many seconds; return whether it was."""


class Clock(Protocol):
    """Where time comes from; services get one as a constructor parameter."""

    def now(self) -> datetime:
        """Return the wall clock's present instant, aware UTC."""

    def monotonic(self) -> float:
        """Return seconds that never step back, from an arbitrary origin."""

    def wait(self, seconds: float) -> None:
        """Let that many seconds pass."""

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Wait until the event is set, at most that many seconds; return whether it is."""


def to_utc(value: datetime, field: str) -> datetime:
    """Return `value` in UTC, truncated to milliseconds.

    Raises:
        InvalidInput: the datetime is naive, or lies outside the calendar in UTC.

    >>> to_utc(datetime.fromisoformat("2026-01-01T01:00:00+01:00"), "at").isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(field, "the datetime has no zone", "give an offset, e.g. +00:00 or Z")
    try:
        utc = value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(
            field, f"{value.isoformat()!r} is out of range", "give a year from 1 to 9999 in UTC"
        ) from None
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def instant_after(now: datetime, delay: timedelta, field: str) -> datetime:
    """Return the instant a delay after `now`, in UTC, truncated to milliseconds.

    Raises:
        InvalidInput: the calendar ends before.
    """
    try:
        return to_utc(now + delay, field)
    except OverflowError:
        raise InvalidInput(field, "it reaches beyond the year 9999", "give less") from None


def to_ms(value: datetime) -> int:
    """Return whole milliseconds since 1970.

    >>> to_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    return (value - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    """Return the instant of so many milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=value)


@lru_cache(maxsize=1024)  # the rows of a batch share their instants
def to_text(value: datetime) -> str:
    """Return the fixed-width text used in keys and in JSON; texts sort as the instants do.

    >>> to_text(datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC))
    '2026-01-02T03:04:05.006Z'
    """
    return value.isoformat(timespec="milliseconds")[:-6] + "Z"


def from_text(text: str, field: str = "instant") -> datetime:
    """Parse an ISO 8601 instant with an offset or `Z`.

    Raises:
        InvalidInput: it is no ISO instant, or has no offset.
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            field, f"{text!r} is not an ISO instant", "for example 2026-03-01T09:00:00Z"
        ) from None
    return to_utc(value, field)


def within(now: datetime, since: datetime | None, span: timedelta) -> bool:
    """Return whether less than `span` has passed since an instant; False if it is None.

    A clock that was set back makes it False too: what is remembered must not last longer for that.

    >>> within(EPOCH, EPOCH + MINUTE, MINUTE), within(EPOCH + MILLISECOND, EPOCH, MINUTE)
    (False, True)
    """
    return since is not None and timedelta(0) <= now - since < span


def minute_of(value: datetime) -> int:
    """Return the number of whole minutes since 1970: the name of the instant's minute bucket."""
    return (value - EPOCH) // MINUTE


def minute_start(minute: int) -> datetime:
    """Return the first instant of a minute bucket."""
    return EPOCH + minute * MINUTE
