"""The dispatcher: creates due occurrences and puts back runs whose back-off ends.

Any number of replicas may tick at once. Each reads the minute buckets of its shards, as
`dynsched.services.minute_walk` says.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, minute_start
from dynsched.domain.selection import shards_to_serve
from dynsched.services.beats import Beats
from dynsched.services.minute_walk import MinuteWalk, Times
from dynsched.services.reminding import Reminding
from dynsched.services.serving import CHUNK, JobServer, Served
from dynsched.services.skew import check_clock
from dynsched.settings import Settings
from dynsched.storage.beats import DISPATCHER
from dynsched.storage.control import Cursor
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.dispatcher")


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
        walk = MinuteWalk(self._store, self._settings, least=CHUNK, log=log)
        for shard in sorted(mine):
            owned = self._own(due[shard], now)
            if owned is None:
                continue  # another replica took the shard in this moment
            walk.walk(owned, times, self._visit_due)
            walk.walk(retry[shard], times, self._visit_retry)
        report.late, report.behind = walk.late, report.behind or walk.behind
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
