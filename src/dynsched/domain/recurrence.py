"""Schedules: when a job is to run. Pure values that answer which instants they name.

A schedule is a `Cron` expression in a zone, an `Interval`, or `Once`. All three answer the same
questions about instants (aware UTC datetimes, whole milliseconds): the next after and the last
before one, the number in a span, and whether one belongs to them. Every answer takes bounded time,
however long the span, and none depends on where an earlier one stopped. Instants are given for the
years 1800 to 2199.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self, TypeAlias, cast

from dynsched.domain.cron_fields import normalise, uses_hash
from dynsched.domain.cron_walk import CronWalk, DstRule, cron_walk
from dynsched.domain.cron_words import describe_cron
from dynsched.domain.instants import MILLISECOND, from_text, to_ms, to_text, to_utc
from dynsched.domain.schedule_base import (
    END_MS,
    FIRST_MS,
    Bounded,
    Instants,
    ScheduleBody,
    checked_limits,
)
from dynsched.errors import InvalidInput

__all__ = [
    "BrokenSchedule",
    "Cron",
    "DstRule",
    "Interval",
    "Once",
    "Schedule",
    "read_schedule",
    "schedule_from_body",
]

INTERVAL_MIN = timedelta(seconds=1)
INTERVAL_MAX = timedelta(days=3660)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron(Bounded):
    """A cron expression in a time zone. Build it with `Cron.parse`.

    Attributes:
        expr: five fields or a macro; six fields with a leading seconds field if `seconds`.
        zone: IANA name of the zone whose wall clock the fields speak of.
        dst: what fixed-time jobs do where that clock jumps.
        seconds: the expression has a seconds field.
        key: what `H` is hashed from (the job's id); empty if the expression has no `H`.

    >>> berlin = Cron.parse("30 2 * * *", zone="Europe/Berlin")
    >>> to_text(berlin.next_after(from_text("2025-03-29T12:00Z")))  # 02:30 did not exist that day
    '2025-03-30T01:00:00.000Z'
    """

    expr: str
    zone: str = "UTC"
    dst: DstRule = DstRule.VIXIE
    seconds: bool = False
    key: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be evaluated; free for an expression that was seen before."""
        _ = self._walk

    @classmethod
    def parse(
        cls,
        expr: str,
        *,
        zone: str = "UTC",
        dst: str = DstRule.VIXIE,
        seconds: bool = False,
        key: str = "",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Self:
        """Check a person's input and build the schedule.

        Args:
            expr: the expression; blanks in it are normalised.
            zone: IANA name.
            dst: name of a `DstRule`.
            seconds: the expression has a leading seconds field.
            key: the job's id, from which `H` is hashed; dropped if the expression has no `H`.
            start: first instant that may be named, with any offset.
            end: last instant that may be named, with any offset.

        Raises:
            InvalidInput: the expression (`cron`), the zone (`tz`), the rule (`dst`) or a limit
                (`start`, `end`) is wrong.
        """
        if not isinstance(zone, str):
            raise InvalidInput("tz", "the zone is not text", "for example Europe/Riga or UTC")
        expr = normalise(expr)
        start, end = checked_limits(start, end)
        return cls(
            expr=expr,
            zone=zone,
            dst=_dst_rule(dst),
            seconds=bool(seconds),
            key=key if uses_hash(expr) else "",
            start=start,
            end=end,
        )

    def to_body(self) -> ScheduleBody:
        """Return the schedule as JSON values."""
        body: ScheduleBody = {"kind": "cron", "cron": self.expr}
        if self.zone != "UTC":
            body["tz"] = self.zone
        if self.dst is not DstRule.VIXIE:
            body["dst"] = self.dst.value
        if self.seconds:
            body["seconds"] = True
        if self.key:
            body["key"] = self.key
        return body | self._limits_body()

    def describe(self) -> str:
        """Return the schedule in words, one line.

        >>> Cron.parse("*/15 9-17 * * mon-fri", zone="Europe/Riga").describe()
        'every 15 minutes from 09:00 to 17:59, Mon to Fri, Europe/Riga'
        """
        words = describe_cron(self.expr, seconds=self.seconds, key=self.key)
        return f"{words}, {self.zone}{self._limits_words()}"

    @property
    def _walk(self) -> CronWalk:
        return cron_walk(self.expr, self.zone, self.dst, self.seconds, self.key)

    def _first_ms(self, low: int) -> int | None:
        found = self._walk.first_from(-(-low // 1000))
        return None if found is None else found * 1000

    def _last_ms(self, high: int) -> int | None:
        found = self._walk.last_before(-(-high // 1000))
        return None if found is None else found * 1000

    def _count_ms(self, low: int, high: int) -> int:
        return self._walk.count(-(-low // 1000), -(-high // 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Bounded):
    """Every so often, in elapsed time; zones and clock changes do not matter.

    Attributes:
        every: from one second to ten years, whole milliseconds.
        anchor: one of the instants; the others lie whole multiples of `every` before and after it
            (use `start` to say when it begins).

    >>> ten = Interval(every=timedelta(minutes=10), anchor=from_text("2026-01-01T00:05Z"))
    >>> to_text(ten.next_after(from_text("2026-01-01T12:00Z")))
    '2026-01-01T12:05:00.000Z'
    """

    every: timedelta
    anchor: datetime

    def __post_init__(self) -> None:
        """Check the values and bring the instants to UTC.

        Raises:
            InvalidInput: `every`, `anchor`, `start` or `end` is wrong.
        """
        if not isinstance(self.every, timedelta) or self.every % MILLISECOND:
            raise InvalidInput("every", "the interval is not a whole number of milliseconds")
        if not INTERVAL_MIN <= self.every <= INTERVAL_MAX:
            raise InvalidInput("every", f"{self.every} is out of range", "1 second to 3660 days")
        start, end = checked_limits(self.start, self.end)
        object.__setattr__(self, "anchor", to_utc(self.anchor, "anchor"))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    def to_body(self) -> ScheduleBody:
        """Return the schedule as JSON values; `every_ms` in milliseconds."""
        body: ScheduleBody = {
            "kind": "interval",
            "every_ms": self.every // MILLISECOND,
            "anchor": to_text(self.anchor),
        }
        return body | self._limits_body()

    def describe(self) -> str:
        """Return the schedule in words, one line.

        >>> Interval(every=timedelta(minutes=90), anchor=from_text("1970-01-01T00:00Z")).describe()
        'every 1 h 30 min, counted from 1970-01-01T00:00:00.000Z'
        """
        counted = f"counted from {to_text(self.anchor)}"
        return f"every {_duration_words(self.every)}, {counted}{self._limits_words()}"

    def _first_ms(self, low: int) -> int | None:
        every, anchor = self.every // MILLISECOND, to_ms(self.anchor)
        return anchor - (anchor - low) // every * every

    def _last_ms(self, high: int) -> int | None:
        every, anchor = self.every // MILLISECOND, to_ms(self.anchor)
        return anchor + (high - 1 - anchor) // every * every

    def _count_ms(self, low: int, high: int) -> int:
        every, anchor = self.every // MILLISECOND, to_ms(self.anchor)
        return (high - 1 - anchor) // every - (low - 1 - anchor) // every


@dataclass(frozen=True, slots=True, kw_only=True)
class Once(Instants):
    """A single instant.

    Attributes:
        at: the instant, whole milliseconds.

    >>> once = Once(at=from_text("2026-01-01T00:00Z"))
    >>> once.next_after(from_text("2025-01-01T00:00Z")).isoformat()
    '2026-01-01T00:00:00+00:00'
    """

    at: datetime

    def __post_init__(self) -> None:
        """Bring the instant to UTC.

        Raises:
            InvalidInput: `at` has no offset or lies outside of 1800 to 2199.
        """
        at = to_utc(self.at, "at")
        if not FIRST_MS <= to_ms(at) < END_MS:
            raise InvalidInput("at", f"the year {at.year} is out of range", "1800 to 2199")
        object.__setattr__(self, "at", at)

    def to_body(self) -> ScheduleBody:
        """Return the schedule as JSON values."""
        return {"kind": "once", "at": to_text(self.at)}

    def describe(self) -> str:
        """Return the schedule in words, one line."""
        return f"once at {to_text(self.at)}"

    def _first_ms(self, low: int) -> int | None:
        at = to_ms(self.at)
        return at if at >= low else None

    def _last_ms(self, high: int) -> int | None:
        at = to_ms(self.at)
        return at if at < high else None

    def _count_ms(self, low: int, high: int) -> int:
        return int(low <= to_ms(self.at) < high)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSchedule(Instants):
    """A stored schedule that cannot be evaluated here: damaged, or in a zone that is not known.

    It is stored as it was found, so that its job can be read, shown and given another schedule.

    Attributes:
        body: what is stored.
        problem: why it cannot be evaluated.

    Raises (every question about instants):
        InvalidInput: it cannot be answered.
    """

    body: Mapping[str, object]
    problem: str

    def to_body(self) -> ScheduleBody:
        """Return what is stored."""
        return cast("ScheduleBody", dict(self.body))

    def describe(self) -> str:
        """Return the problem, one line."""
        return f"cannot be evaluated: {self.problem}"

    def _limits(self) -> tuple[int, int]:
        raise InvalidInput("schedule", self.problem, "give the job another one")


Schedule: TypeAlias = Cron | Interval | Once | BrokenSchedule


def read_schedule(body: Mapping[str, object]) -> Schedule:
    """Return the schedule that `to_body` wrote, a broken one if it cannot be evaluated here.

    >>> read_schedule({"kind": "cron", "cron": "@daily", "tz": "Mars/Olympus"}).to_body()["tz"]
    'Mars/Olympus'
    """
    try:
        return schedule_from_body(body)
    except InvalidInput as error:
        return BrokenSchedule(body=body, problem=str(error))


def schedule_from_body(body: Mapping[str, object]) -> Schedule:
    """Return the schedule that `to_body` wrote.

    Raises:
        InvalidInput: the body is of no known kind, lacks a value, or has one that this version
            refuses; the job it belongs to cannot be evaluated.

    >>> schedule_from_body({"kind": "cron", "cron": "@daily"}).to_body()
    {'kind': 'cron', 'cron': '@daily'}
    """
    kind = body.get("kind")
    try:
        if kind == "cron":
            return _cron_from_body(body)
        if kind == "interval":
            every = timedelta(milliseconds=cast("int", body["every_ms"]))
            return Interval(every=every, anchor=_instant(body, "anchor"), **_limits_of(body))
        if kind == "once":
            return Once(at=_instant(body, "at"))
    except (KeyError, TypeError, ValueError, OverflowError) as fault:
        raise InvalidInput(
            "schedule", f"the stored {kind} schedule is damaged: {fault!r}", "set it again"
        ) from fault
    raise InvalidInput("schedule", f"{kind!r} is no kind of schedule", "cron, interval or once")


def _cron_from_body(body: Mapping[str, object]) -> Cron:
    return Cron(
        expr=cast("str", body["cron"]),
        zone=cast("str", body.get("tz", "UTC")),
        dst=DstRule(cast("str", body.get("dst", "vixie"))),
        seconds=bool(body.get("seconds", False)),
        key=cast("str", body.get("key", "")),
        **_limits_of(body),
    )


def _limits_of(body: Mapping[str, object]) -> dict[str, datetime]:
    return {name: _instant(body, name) for name in ("start", "end") if name in body}


def _instant(body: Mapping[str, object], name: str) -> datetime:
    return from_text(cast("str", body[name]), name)


def _dst_rule(name: str) -> DstRule:
    try:
        return DstRule(name)
    except ValueError:
        raise InvalidInput(
            "dst", f"{name!r} is no rule for clock changes", "vixie, skip or both"
        ) from None


def _duration_words(duration: timedelta) -> str:
    """Return a duration in days, hours, minutes and seconds, without those that are nought."""
    left_ms, parts = duration // MILLISECOND, []
    units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))
    for width, unit in units:
        number, left_ms = divmod(left_ms, width)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts)
