"""The walk over minute buckets, of which the dispatcher's and the reaper's passes are made.

It visits the present minutes first, then the backlog that an outage left. A shard's cursor moves
over minutes that are closed and were read empty; closed minutes are read again later, since an
index entry may be late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain.instants import minute_of, minute_start
from dynsched.settings import Settings
from dynsched.storage.control import Cursor
from dynsched.storage.store import Store

REREAD_AFTER = (timedelta(minutes=1), timedelta(minutes=10), timedelta(minutes=60))
REREAD_MINUTES = 30  # closed minutes that one walk reads again at most, for each net


@dataclass(frozen=True, slots=True)
class Times:
    """The instants of one walk: when it began, and before which entries are of use."""

    now: datetime
    horizon: datetime

    @property
    def judged(self) -> datetime:
        """Return since when minutes have to be over: what is of no use yet keeps a cursor."""
        return min(self.now, self.horizon)


Visit = Callable[[int, int, Times, int], int]
"""Visits a minute of a shard: minute, shard, times, most entries; returns how many lay there."""


def time_is_left() -> bool:
    """Return True: nothing hurries."""
    return True


class MinuteWalk:
    """The walks of one pass, one for each shard and kind of bucket.

    Args:
        store: where the cursors lie.
        settings: how many minutes and entries one walk takes, and when a minute is closed.
        least: entries that a visit may take, however little of the budget is left.
        time_left: asked between two minutes; on False the rest is left to the next pass.
        log: whose warnings late entries are.

    Attributes:
        late: entries that only a re-reading found.
        behind: a walk ended before its backlog did.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        least: int,
        time_left: Callable[[], bool] = time_is_left,
        log: logging.Logger,
    ) -> None:
        self._store = store
        self._settings = settings
        self._least = least
        self._time_left = time_left
        self._log = log
        self.late = 0
        self.behind = False

    def walk(self, cursor: Cursor, times: Times, visit: Visit) -> None:
        """Visit the present minutes, the backlog and the re-readings of one shard; move on."""
        present, last = minute_of(times.now), minute_of(times.horizon)
        budget = self._settings.tick_jobs
        for minute in range(present, last + 1):
            budget -= visit(minute, cursor.shard, times, max(budget, self._least))
        moved = self._backlog(cursor, times, visit, budget)
        reread = self._read_again(cursor, moved, times, visit)
        if moved != cursor.minute or reread != cursor.reread:
            self._store.control.write_cursor(replace(cursor, minute=moved, reread=reread))

    def _backlog(self, cursor: Cursor, times: Times, visit: Visit, budget: int) -> int:
        """Visit past minutes in order; return the minute that the cursor may move to.

        It moves contiguously, over minutes that are closed and were read empty.
        """
        moved, present, total = cursor.minute, minute_of(times.now), 0
        last = min(present, cursor.minute + self._settings.tick_minutes)
        for minute in range(cursor.minute, last):
            if budget <= 0 or not self._time_left():
                self.behind = True
                return moved
            found = visit(minute, cursor.shard, times, max(budget, self._least))
            budget, total = budget - found, total + found
            if minute == moved and not found and self._closed(minute, times.judged):
                moved += 1
        # Where nothing moved and nothing lay, only time helps.
        self.behind = self.behind or (last < present and (moved > cursor.minute or total > 0))
        return moved

    def _closed(self, minute: int, now: datetime) -> bool:
        return minute_start(minute + 1) + self._settings.close_after <= now

    def _read_again(
        self, cursor: Cursor, moved: int, times: Times, visit: Visit
    ) -> tuple[int, ...]:
        """Read closed minutes again: the net for index entries that came late."""
        marks = list(cursor.reread or (cursor.minute,) * len(REREAD_AFTER))
        for net, after in enumerate(REREAD_AFTER):
            end = min(moved, marks[net] + REREAD_MINUTES)
            while marks[net] < end and self._closed(marks[net], times.judged - after):
                found = visit(marks[net], cursor.shard, times, self._least)
                if found:
                    self.late += found
                    self._log.warning(
                        "%d late %s entries in minute %d", found, cursor.kind, marks[net]
                    )
                marks[net] += 1
        return tuple(marks)
