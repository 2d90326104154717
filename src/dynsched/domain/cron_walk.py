"""The instants of a cron expression in a zone: wall-time matches carried across zone changes.

All quantities are whole seconds since 1970, UTC, unless they are called wall times.

At a zone change the wall clock jumps. Forward, it leaves a gap of wall times that never are;
backward, it passes a stretch of wall times twice. Wildcard jobs follow the wall clock: they run
whenever it shows a time that they name. Fixed-time jobs follow the `DstRule`. A walk looks at one
stretch of constant offset at a time, so its results cannot but rise, wherever it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from dynsched.domain.cron_fields import parse_fields
from dynsched.domain.cron_pattern import DAY_S, WallPattern
from dynsched.domain.instants import EPOCH
from dynsched.domain.zone_changes import Stretch, ZoneClock, zone_clock

FIRST_S = (datetime(1800, 1, 1, tzinfo=UTC) - EPOCH).days * DAY_S
END_S = (datetime(2200, 1, 1, tzinfo=UTC) - EPOCH).days * DAY_S
"""Instants lie in [FIRST_S, END_S), so every search ends."""

_GAP_S_MAX = 180 * 60
_OVERLAP_S_MAX = 181 * 60
"""Larger jumps are not daylight saving but a change of date. cronie compares whole minutes with
three hours in such a way that a gap of exactly three hours counts as too large, and an overlap of
three hours and one minute does not."""
_SPREAD_S = 2 * DAY_S
"""More than any two offsets of a zone differ by, less than any two of its changes lie apart."""


class DstRule(StrEnum):
    """What a fixed-time job does where its zone's wall clock jumps.

    A job is fixed-time if neither its minute nor its hour (nor its second) begins with `*`; all
    other jobs follow the wall clock under every rule.
    """

    VIXIE = "vixie"
    """Wall times in a gap run once, together, at the first instant after it; wall times that come
    twice run at the first. Jumps of three hours or more are changes of date, not daylight saving:
    what they skip does not run, what they repeat runs again."""
    SKIP = "skip"
    """A run is never moved: wall times in a gap do not run. Wall times that come twice run at the
    first."""
    BOTH = "both"
    """As `vixie` in a gap; wall times that come twice run at both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronWalk:
    """Steps through the instants of a pattern in a zone."""

    pattern: WallPattern
    clock: ZoneClock
    rule: DstRule
    wildcard: bool

    def first_from(self, second: int) -> int | None:
        """Return the earliest instant at or after a second; None if there is none before 2200."""
        second = max(second, FIRST_S)
        while second < END_S:
            stretch = self.clock.at(second)
            if second == stretch.start and self._catches_up(stretch):
                return second
            wall = self.pattern.first_from(max(second + stretch.offset, self._opens(stretch)))
            if wall is None:
                return None
            instant = wall - stretch.offset
            if instant < stretch.end:
                return instant if instant < END_S else None
            near = stretch.end - second < _SPREAD_S
            # Nothing matches from here up to `wall`, so stretches well before it can be passed
            # over; but an overlap right ahead shows again what lies just behind.
            second = stretch.end if near else max(stretch.end, instant - _SPREAD_S)
        return None

    def last_before(self, second: int) -> int | None:
        """Return the latest instant before a second; None if there is none from 1800 on."""
        second = min(second, END_S)
        while second > FIRST_S:
            stretch = self.clock.at(second - 1)
            wall = self.pattern.last_before(second + stretch.offset)
            if wall is None:
                return None
            instant = wall - stretch.offset
            if wall >= self._opens(stretch):
                return instant if instant >= FIRST_S else None
            if self._catches_up(stretch):
                return stretch.start
            near = second - stretch.start < _SPREAD_S
            second = stretch.start if near else min(stretch.start, instant + _SPREAD_S + 1)
        return None

    def count(self, first: int, before: int) -> int:
        """Return the number of instants in [first, before): a sum over stretches."""
        second, before = max(first, FIRST_S), min(before, END_S)
        total = 0
        while second < before:
            stretch = self.clock.at(second)
            end = min(stretch.end, before)
            opens = max(second + stretch.offset, self._opens(stretch))
            total += self.pattern.count(opens, end + stretch.offset)
            if (
                second == stretch.start
                and self._catches_up(stretch)
                and self.pattern.first_from(stretch.wall) != stretch.wall
            ):
                total += 1
            second = end
        return total

    def _catches_up(self, stretch: Stretch) -> bool:
        """Tell whether the stretch begins with a run for wall times lost in the gap before it."""
        if self.wildcard or self.rule is DstRule.SKIP or not 0 < stretch.jump < _GAP_S_MAX:
            return False
        wall = self.pattern.first_from(stretch.wall - stretch.jump)
        return wall is not None and wall < stretch.wall

    def _opens(self, stretch: Stretch) -> int:
        """Return the wall time from which matches count: later than the first if it repeats."""
        if self.wildcard or stretch.jump >= 0 or self.rule is DstRule.BOTH:
            return stretch.wall
        if self.rule is DstRule.VIXIE and -stretch.jump > _OVERLAP_S_MAX:
            return stretch.wall
        return stretch.wall - stretch.jump


@lru_cache(maxsize=16_384)
def cron_walk(expr: str, zone: str, rule: DstRule, seconds: bool, key: str) -> CronWalk:
    """Return the walk of an expression; compiled once for each distinct set of arguments.

    Raises:
        InvalidInput: the expression or the zone is wrong.

    >>> walk = cron_walk("0 0 * * *", "UTC", DstRule.VIXIE, False, "")
    >>> walk.first_from(1), walk.last_before(1), walk.count(0, 864_000)
    (86400, 0, 10)
    """
    fields = parse_fields(expr, seconds, key)
    return CronWalk(
        pattern=_pattern(expr, seconds, key),
        clock=zone_clock(zone),
        rule=rule,
        wildcard=fields.wildcard,
    )


@lru_cache(maxsize=2048)  # a pattern with seconds takes 11 KB
def _pattern(expr: str, seconds: bool, key: str) -> WallPattern:
    return WallPattern.of(parse_fields(expr, seconds, key))
