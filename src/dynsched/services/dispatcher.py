"""The dispatcher: creates due occurrences and puts back runs whose back-off ends.

Any number of replicas may tick at once. Each reads the minute buckets of its shards: the present
ones first, then the backlog that an outage left. A cursor per shard moves over minutes that are
closed and read empty; closed minutes are read again later, since an index entry may be late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, minute_of, minute_start
from dynsched.domain.selection import shards_to_serve
from dynsched.services.beats import Beats
from dynsched.services.reminding import Reminding
from dynsched.services.serving import CHUNK, JobServer, Served
from dynsched.services.skew import check_clock
from dynsched.settings import Settings
from dynsched.storage.beats import DISPATCHER
from dynsched.storage.control import Cursor
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.dispatcher")

REREAD_AFTER = (timedelta(minutes=1), timedelta(minutes=10), timedelta(minutes=60))
REREAD_MINUTES = 30  # closed minutes that one tick reads again at most, for each net


@dataclass(slots=True)
class TickReport:
    """What one tick did.

    Attributes:
        served: jobs and occurrences.
        promoted: failed runs put back to ready.
        late: entries that only a re-reading found; each one is an alarm.
        behind: the tick ended before the backlog did; tick again at once.
        shards: shards that this replica served.
        lag: how far the slowest cursor is behind; a few minutes are healthy.
    """

    served: Served = field(default_factory=Served)
    promoted: int = 0
    late: int = 0
    behind: bool = False
    shards: int = 0
    lag: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Times:
    """The instants of one tick: when it began, and the end of its look-ahead."""

    now: datetime
    horizon: datetime


Visit = Callable[[int, int, Times, int], int]


class Dispatcher:
    """One replica.

    Args:
        name: unique among replicas; names the owner of shards.
    """

    def __init__(self, store: Store, *, clock: Clock, settings: Settings, name: str) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._name = name
        self._server = JobServer(store, settings=settings)
        self._reminding = Reminding(store)
        self._report = TickReport()
        self._beats = Beats(store, role=DISPATCHER, name=name)

    @property
    def period(self) -> timedelta:
        """Return the time between two ticks: a third of the look-ahead."""
        return self._store.topology.look_ahead / 3

    def tick(self) -> TickReport:
        """Make one bounded pass over the minute buckets.

        Concurrency: any number of replicas may tick at once; a lost race costs one failed write.

        Raises:
            ClockSkewed: this process's clock differs from the store's beyond the bound.
            StoreError: the store failed; the next tick repeats what is missing.
        """
        topology = self._store.refresh()
        now = self._clock.now()
        check_clock(self._store.engine.store_time(), now, self._settings)
        report = self._report = TickReport()
        due = self._cursors("due")
        longest = now + topology.look_ahead  # a later end was written by a clock that was ahead
        owners = [
            (cursor.owner, cursor.owned_until)
            if cursor.owned_until is not None and cursor.owned_until <= longest
            else ("", None)
            for cursor in due
        ]
        mine = shards_to_serve(self._name, owners, now)
        report.shards = len(mine)
        retry = self._cursors("retry") if mine else []
        times = Times(now, now + topology.look_ahead)
        for shard in sorted(mine):
            owned = self._own(due[shard], now)
            if owned is None:
                continue  # another replica took the shard in this moment
            self._walk(owned, times, self._visit_due)
            self._walk(retry[shard], times, self._visit_retry)
        report.lag = now - minute_start(min(one.minute for one in (*due, *retry)))
        self._tell(report)
        return report

    def end(self) -> None:
        """Take the sign of life away, when no more ticks follow."""
        self._beats.end()

    def _tell(self, report: TickReport) -> None:
        done = {
            "jobs served": report.served.jobs,
            "runs made": report.served.created,
            "skipped": report.served.skipped,
            "retries due": report.promoted,
            "late": report.late,
        }
        self._beats.note(self._clock.now(), done, lag=report.lag)

    def _cursors(self, kind: str) -> list[Cursor]:
        topology = self._store.topology
        found = self._store.control.cursors(kind, topology.shards)
        if None in found:
            self._store.ensure_cursors(topology)
            found = self._store.control.cursors(kind, topology.shards)
        return [cursor for cursor in found if cursor is not None]

    def _own(self, cursor: Cursor, now: datetime) -> Cursor | None:
        """Write this replica into a shard's cursor unless it owns it for long enough."""
        hold = self._store.topology.look_ahead * 2 / 3
        until = cursor.owned_until
        if cursor.owner == self._name and until is not None and until - now > hold / 2:
            return cursor
        return self._store.control.write_cursor(
            replace(cursor, owner=self._name, owned_until=now + hold)
        )

    def _walk(self, cursor: Cursor, times: Times, visit: Visit) -> None:
        """Visit the present minutes, the backlog and the re-readings of one shard; move on."""
        present, last = minute_of(times.now), minute_of(times.horizon)
        budget = self._settings.tick_jobs
        for minute in range(present, last + 1):
            budget -= visit(minute, cursor.shard, times, max(budget, CHUNK))
        moved = self._backlog(cursor, present, times, visit, budget)
        reread = self._read_again(cursor, moved, times, visit)
        if moved != cursor.minute or reread != cursor.reread:
            self._store.control.write_cursor(replace(cursor, minute=moved, reread=reread))

    def _backlog(
        self,
        cursor: Cursor,
        present: int,
        times: Times,
        visit: Visit,
        budget: int,
    ) -> int:
        """Visit past minutes in order; return the minute that the cursor may move to.

        It moves contiguously, over minutes that are closed and were read empty.
        """
        moved = cursor.minute
        last = min(present, cursor.minute + self._settings.tick_minutes)
        for minute in range(cursor.minute, last):
            if budget <= 0:
                self._report.behind = True
                return moved
            found = visit(minute, cursor.shard, times, max(budget, CHUNK))
            budget -= found
            if minute == moved and not found and self._closed(minute, times.now):
                moved += 1
        self._report.behind = self._report.behind or last < present
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
            while marks[net] < end and self._closed(marks[net], times.now - after):
                found = visit(marks[net], cursor.shard, times, CHUNK)
                if found:
                    self._report.late += found
                    log.warning("%d late %s entries in minute %d", found, cursor.kind, marks[net])
                marks[net] += 1
        return tuple(marks)

    def _visit_due(self, minute: int, shard: int, times: Times, most: int) -> int:
        rows = self._store.jobs.due_rows(minute, shard, times.horizon, most=most)
        if rows:
            self._report.served.add(
                self._server.serve_rows(rows, now=times.now, before=times.horizon)
            )
            self._report.behind = self._report.behind or len(rows) >= most
        return len(rows)

    def _visit_retry(self, minute: int, shard: int, times: Times, most: int) -> int:
        runs = self._store.runs.waiting(minute, shard, times.horizon, most=most)
        for start in range(0, len(runs), CHUNK):
            moves = [lifecycle.due(run) for run in runs[start : start + CHUNK]]
            outcomes = self._store.runs.apply_many(moves)
            self._report.promoted += sum(isinstance(item, RunApplied) for item in outcomes)
        return len(runs) + self._reminding.send(minute, shard, times.horizon, most=most)
