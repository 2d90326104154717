"""Leases with a fixed end, found by the minute in which they end, as no session stands behind them.

Each run is judged by its own end, never by the minute that it lies in, and returned a margin after
it. Now and then the walk over minute buckets is made, with its cursor and its re-readings; in
between only what has just ended is looked for, one query for each shard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from dynsched.domain.instants import minute_of, minute_start, within
from dynsched.domain.run import Run
from dynsched.services.minute_walk import MinuteWalk, Times
from dynsched.settings import Settings
from dynsched.storage.control import Cursor
from dynsched.storage.store import LEASED, Store

log = logging.getLogger("dynsched.reaper")

WALK_PERIOD = timedelta(seconds=30)
LOOK_MAX = 1_000  # ends that one look for what has just ended reads, of each minute and shard
LEAST = 100
PINNED_MAX = timedelta(minutes=75)
"""For so long after its minute a row that cannot be returned keeps the cursor from going on."""

AHEAD = 16
"""Minutes in which the leases of functions may end, which live for 15 at most."""
BEHIND_MAX = 240  # minutes behind now that a reader looks at, while the reaper is away

GiveBack = Callable[[Run, str, datetime], bool | None]
"""Returns a run, by its session and now: False if it is in other hands, None if that failed."""


def fixed_minutes(store: Store, now: datetime) -> range:
    """Return the minutes in which leases of functions end that are alive or yet to be returned.

    Cost: 1 read unit for each shard.
    """
    present = minute_of(now)
    cursors = store.control.cursors(LEASED, store.topology.shards)
    first = min((one.minute for one in cursors if one is not None), default=present)
    return range(max(first, present - BEHIND_MAX), present + AHEAD + 1)


class LeaseEnds:
    """Finds leases with a fixed end that are over; for one reaper replica.

    Args:
        give_back: returns a run whose lease is over.
    """

    def __init__(self, store: Store, *, settings: Settings, give_back: GiveBack) -> None:
        self._store = store
        self._settings = settings
        self._give_back = give_back
        self._walked_at: datetime | None = None
        self._looked_to: datetime | None = None  # ends before it were looked for
        self._time_left: Callable[[], bool] = lambda: True
        self.late = 0
        self.behind = False

    def sweep(self, now: datetime, time_left: Callable[[], bool]) -> None:
        """Return what is over, as far as there is time.

        Afterwards `late` is how many runs only a re-reading found, `behind` whether some are left.

        Cost: half a read unit for each shard and minute looked at, one or two of them; every half
        minute some three, and for each shard one unit for its cursor, which moves by one write.
        """
        self.late, self.behind, self._time_left = 0, False, time_left
        horizon = now - self._settings.lease_margin + timedelta(milliseconds=1)
        times = Times(now, horizon)
        if self._looked_to is None or not within(now, self._walked_at, WALK_PERIOD):
            self._walk(times)
            self._walked_at = now
        else:
            self._look(self._looked_to, times)
        self._looked_to = horizon
        if self.behind:
            self._walked_at = None

    def _look(self, since: datetime, times: Times) -> None:
        """Look for what has ended since the look before; the walk finds what this one leaves."""
        for minute in range(minute_of(since), minute_of(times.horizon) + 1):
            for shard in range(self._store.topology.shards):
                found = self._visit(minute, shard, times, LOOK_MAX)
                self.behind = self.behind or found >= LOOK_MAX

    def _walk(self, times: Times) -> None:
        walk = MinuteWalk(
            self._store, self._settings, least=LEAST, time_left=self._time_left, log=log
        )
        for cursor in self._cursors():
            walk.walk(cursor, times, self._visit)
        self.late = walk.late
        self.behind = self.behind or walk.behind

    def _cursors(self) -> list[Cursor]:
        topology = self._store.topology
        found = self._store.control.cursors(LEASED, topology.shards)
        if None in found:
            self._store.ensure_cursors(topology)
            found = self._store.control.cursors(LEASED, topology.shards)
        return [cursor for cursor in found if cursor is not None]

    def _visit(self, minute: int, shard: int, times: Times, most: int) -> int:
        """Return the runs of a minute whose leases are over; tell how many lay there."""
        runs = self._store.runs.ending(minute, shard, most=most, before=times.horizon)
        old = minute_start(minute + 1) + PINNED_MAX <= times.now
        found = len(runs)
        for run in runs:
            if not self._time_left():
                self.behind = True
                break
            if self._give_back(run, run.session or "", times.now) is None and old:
                found -= 1
        return found
