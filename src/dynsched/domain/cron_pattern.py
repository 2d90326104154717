"""Matching a cron expression against wall times, without any zone.

A wall time is a number of seconds since 1970-01-01T00:00 as a clock on the wall shows it. A day is
a bit mask over its slots (minutes; seconds where a seconds field asks for it), a month a bit mask
over its days. So the next match, the last match and the number of matches are bit operations and
never a walk over minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Self

from dynsched.domain.cron_fields import CronFields

DAY_S = 86_400
FIRST_YEAR = 1799
LAST_YEAR = 2200
"""The years in which wall times are matched: one more at each end than instants are given for."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class WallPattern:
    """The wall times that an expression names.

    Attributes:
        unit_s: seconds in a slot: 60, or 1 with a seconds field.
        slots: mask of the slots of a day.
        days, months, weekdays, both_days: as in `CronFields`.
    """

    unit_s: int
    slots: int
    days: int
    months: int
    weekdays: int
    both_days: bool
    _month_masks: dict[tuple[int, int, int], int] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, fields: CronFields) -> Self:
        """Build the pattern of checked fields."""
        minutes = _spread(fields.hours, fields.minutes, 60)
        fine = fields.seconds != 1
        return cls(
            unit_s=1 if fine else 60,
            slots=_spread(minutes, fields.seconds, 60) if fine else minutes,
            days=fields.days,
            months=fields.months,
            weekdays=fields.weekdays,
            both_days=fields.both_days,
        )

    def first_from(self, wall: int) -> int | None:
        """Return the earliest match at or after a wall time; None past `LAST_YEAR`."""
        day, second = divmod(wall, DAY_S)
        at = date.fromordinal(day + _EPOCH_DAY)
        if self.days_of(at.year, at.month) >> (at.day - 1) & 1:
            slot = -(-second // self.unit_s)
            rest = self.slots >> slot
            if rest:
                return day * DAY_S + (slot + _lowest(rest)) * self.unit_s
        next_day = self._day_from(at.year, at.month, at.day)
        return None if next_day is None else next_day * DAY_S + _lowest(self.slots) * self.unit_s

    def last_before(self, wall: int) -> int | None:
        """Return the latest match before a wall time; None before `FIRST_YEAR`."""
        day, second = divmod(wall, DAY_S)
        at = date.fromordinal(day + _EPOCH_DAY)
        if self.days_of(at.year, at.month) >> (at.day - 1) & 1:
            past = self.slots & _below(-(-second // self.unit_s))
            if past:
                return day * DAY_S + (past.bit_length() - 1) * self.unit_s
        last_day = self._day_before(at.year, at.month, at.day)
        if last_day is None:
            return None
        return last_day * DAY_S + (self.slots.bit_length() - 1) * self.unit_s

    def count(self, first: int, before: int) -> int:
        """Return the number of matches in [first, before), by arithmetic over months."""
        if first >= before:
            return 0
        first_day, first_second = divmod(first, DAY_S)
        last_day, last_second = divmod(before, DAY_S)
        whole = self._count_days(first_day, last_day) * self.slots.bit_count()
        return whole - self._passed(first_day, first_second) + self._passed(last_day, last_second)

    def days_of(self, year: int, month: int) -> int:
        """Return the matching days of a month as a mask; bit 0 is the first."""
        _, weekday, length = _month(year, month)
        shape = (month, weekday, length)
        mask = self._month_masks.get(shape)
        if mask is None:
            mask = self._month_masks[shape] = self._month_mask(month, weekday, length)
        return mask

    def _month_mask(self, month: int, weekday: int, length: int) -> int:
        if not self.months >> month & 1:
            return 0
        by_date = self.days >> 1 & _below(length)
        by_weekday = sum(
            1 << day for day in range(length) if self.weekdays >> ((weekday + day) % 7) & 1
        )
        return by_date & by_weekday if self.both_days else by_date | by_weekday

    def _day_from(self, year: int, month: int, skip: int) -> int | None:
        """Return the first matching day after the first `skip` days of a month."""
        while year <= LAST_YEAR:
            rest = self.days_of(year, month) >> skip
            if rest:
                return _month(year, month)[0] + skip + _lowest(rest)
            year, month, skip = (year, month + 1, 0) if month < 12 else (year + 1, 1, 0)
        return None

    def _day_before(self, year: int, month: int, day: int) -> int | None:
        """Return the last matching day before a date."""
        mask = self.days_of(year, month) & _below(day - 1)
        while not mask:
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            if year < FIRST_YEAR:
                return None
            mask = self.days_of(year, month)
        return _month(year, month)[0] + mask.bit_length() - 1

    def _count_days(self, first: int, before: int) -> int:
        """Return the number of matching days in [first, before), days since 1970."""
        at, end = date.fromordinal(first + _EPOCH_DAY), date.fromordinal(before + _EPOCH_DAY)
        year, month = at.year, at.month
        total = -(self.days_of(year, month) & _below(at.day - 1)).bit_count()
        while (year, month) < (end.year, end.month):
            total += self.days_of(year, month).bit_count()
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return total + (self.days_of(year, month) & _below(end.day - 1)).bit_count()

    def _passed(self, day: int, second: int) -> int:
        """Return the number of matches of a day before a second of it."""
        at = date.fromordinal(day + _EPOCH_DAY)
        if not self.days_of(at.year, at.month) >> (at.day - 1) & 1:
            return 0
        return (self.slots & _below(-(-second // self.unit_s))).bit_count()


@lru_cache(maxsize=(LAST_YEAR - FIRST_YEAR + 2) * 12)
def _month(year: int, month: int) -> tuple[int, int, int]:
    """Return a month's first day (since 1970), that day's weekday (0 is Sunday), its length."""
    first = date(year, month, 1).toordinal()
    after = date(year + month // 12, month % 12 + 1, 1).toordinal()
    return first - _EPOCH_DAY, first % 7, after - first


def _spread(coarse: int, fine: int, width: int) -> int:
    """Return the mask with `fine` repeated at `width` times each bit of `coarse`."""
    mask = 0
    for position in range(coarse.bit_length()):
        if coarse >> position & 1:
            mask |= fine << position * width
    return mask


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _below(bits: int) -> int:
    return (1 << bits) - 1
