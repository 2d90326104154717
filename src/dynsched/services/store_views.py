"""Views of the store as a whole: levels, the oldest due run, sessions, cursors, tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from dynsched.domain.health import Level
from dynsched.domain.instants import Clock, minute_of, minute_start
from dynsched.domain.job import Priority
from dynsched.domain.run import Run, RunState
from dynsched.errors import InvalidInput
from dynsched.services.capacity import Capacity, alive_sessions
from dynsched.services.job_views import TENANTS_MAX
from dynsched.services.listing import Listing
from dynsched.services.run_places import BUCKETS_AHEAD, BUCKETS_MAX, QUEUES_MAX, SESSIONS_MAX
from dynsched.storage.codec import decode_job
from dynsched.storage.control import Session, Tenant
from dynsched.storage.placement import (
    after_share,
    dead_partition,
    hidden_partition,
    leased_partition,
    ready_partition,
    retry_partition,
)
from dynsched.storage.store import CURSOR_KINDS, Store

COUNT_MAX = 10_000  # rows that one level is counted to
SHARES_MAX = 500  # share keys of one lane that the search for the oldest run steps over
JOB_PAGE = 500
JOB_PAGES = 40
DAMAGED = "damaged"
DAMAGE = (InvalidInput, ValueError, LookupError, TypeError, AttributeError)
"""What decoding a damaged row may raise; faults of the store are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """What waits in one queue.

    Attributes:
        ready: runs that may be claimed now or within the look-ahead.
        oldest_due_at: since when the longest waiting one of them might have started.
        sessions: open worker sessions that serve the queue.
        lacks: why no living worker can run them, with the number of such runs among those that
            were looked at: the first of each lane's share keys.
    """

    queue: str
    ready: Level
    oldest_due_at: datetime | None
    sessions: int
    lacks: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Levels and health of a store.

    Attributes:
        now: when they were read.
        runs: levels of `ready`, `leased`, `failed`, `dead` and `discarded`.
        queues: in the order of their names.
        sessions: those in the store that are open and alive, open but expired, and closed.
        slots: handlers that the living sessions can run at once.
        cursor_lags: how far the slowest cursor of each kind is behind now; some two minutes are
            healthy, as a minute is closed only when no entry of it can come late.
        jobs: counts by state, and of rows that cannot be read.
        jobs_at_least: not all jobs were counted.
        tenants: how many are in use.
    """

    now: datetime
    runs: Mapping[str, Level]
    queues: tuple[QueueLevel, ...]
    sessions: Mapping[str, int]
    slots: int
    cursor_lags: Mapping[str, timedelta | None]
    jobs: Mapping[str, int]
    jobs_at_least: bool
    tenants: int


class StoreViews:
    """Reads the store's health for people; only reading, every count bounded."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def list_tenants(self) -> Listing[Tenant]:
        """List the tenants that have jobs or settings, by name."""
        found = self._store.control.all_tenants(most=TENANTS_MAX + 1)
        return Listing(items=tuple(found[:TENANTS_MAX]), more=len(found) > TENANTS_MAX)

    def stats(self) -> Stats:
        """Count what the store holds, each level up to `COUNT_MAX`.

        Cost: half a read unit for 4 KB of what is counted, so some 1,250 units for each full level.
        """
        now = self._clock.now()
        self._store.refresh()
        sessions = self._store.control.sessions()
        alive = alive_sessions(sessions, now)
        queues = tuple(self._queue(name, alive, now) for name in self._queues())
        jobs, jobs_at_least = self._count_jobs()
        return Stats(
            now=now,
            runs={
                RunState.READY.value: _sum(queue.ready for queue in queues),
                RunState.LEASED.value: self._count_leased(sessions),
                RunState.FAILED.value: self._count_failed(now),
                RunState.DEAD.value: self._level(map(dead_partition, self._shards())),
                "discarded": self._level(map(hidden_partition, self._shards())),
            },
            queues=queues,
            sessions={
                "alive": len(alive),
                "expired": sum(one.open for one in sessions) - len(alive),
                "closed": sum(not one.open for one in sessions),
            },
            slots=sum(one.slots for one in alive),
            cursor_lags={kind: self._lag(kind, now) for kind in CURSOR_KINDS},
            jobs=jobs,
            jobs_at_least=jobs_at_least,
            tenants=len(self._store.control.all_tenants(most=TENANTS_MAX)),
        )

    def _shards(self) -> range:
        return range(self._store.topology.shards)

    def _queues(self) -> list[str]:
        return self._store.control.queues(most=QUEUES_MAX)

    def _queue(self, name: str, alive: list[Session], now: datetime) -> QueueLevel:
        lanes = list(product(Priority, range(self._store.topology.lanes)))
        oldest: list[Run] = []
        for priority, lane in lanes:
            oldest += self._first_due(name, priority, lane, now)
        capacity = Capacity(alive)
        lacks = Counter(filter(None, (capacity.lack_of(run, now) for run in oldest)))
        return QueueLevel(
            queue=name,
            ready=self._level(ready_partition(name, priority, lane) for priority, lane in lanes),
            oldest_due_at=min((run.available_at for run in oldest), default=None),
            sessions=sum(name in session.queues for session in alive),
            lacks=dict(lacks),
        )

    def _first_due(self, queue: str, priority: Priority, lane: int, now: datetime) -> Iterator[Run]:
        """Yield a lane's longest waiting due runs: one query for each share key."""
        after = ""
        for _ in range(SHARES_MAX):
            found = self._store.runs.ready(queue, priority, lane, after=after, limit=1)
            if not found:
                break
            if found[0].available_at <= now:
                yield found[0]
            after = after_share(found[0].share)

    def _count_leased(self, sessions: list[Session]) -> Level:
        level = self._level(leased_partition(one.session) for one in sessions[:SESSIONS_MAX])
        return Level(level.count, level.at_least or len(sessions) > SESSIONS_MAX)

    def _count_failed(self, now: datetime) -> Level:
        """Count the retries of the minutes in which most lie; a longer back-off lies behind."""
        cursors = self._store.control.cursors("retry", self._store.topology.shards)
        last = minute_of(now) + BUCKETS_AHEAD
        first = min((one.minute for one in cursors if one is not None), default=last)
        minutes = range(max(first, last + 1 - BUCKETS_MAX), last + 1)
        level = self._level(
            retry_partition(minute, shard) for minute, shard in product(minutes, self._shards())
        )
        return Level(level.count, True) if first < minutes.start else level

    def _level(self, partitions: Iterable[str]) -> Level:
        count = 0
        for partition in partitions:
            count += self._store.runs.count(partition, most=COUNT_MAX - count)
            if count >= COUNT_MAX:
                return Level(COUNT_MAX, True)
        return Level(count)

    def _lag(self, kind: str, now: datetime) -> timedelta | None:
        cursors = self._store.control.cursors(kind, self._store.topology.shards)
        minutes = [one.minute for one in cursors if one is not None]
        return now - minute_start(min(minutes)) if minutes else None

    def _count_jobs(self) -> tuple[Mapping[str, int], bool]:
        counts: Counter[str] = Counter()
        cursor: str | None = None
        for _ in range(JOB_PAGES):
            rows, cursor = self._store.jobs.scan(JOB_PAGE, cursor)
            for row in rows:
                try:
                    counts[decode_job(row).state.value] += 1
                except DAMAGE:
                    counts[DAMAGED] += 1
            if cursor is None:
                return dict(sorted(counts.items())), False
        return dict(sorted(counts.items())), True


def _sum(levels: Iterable[Level]) -> Level:
    found = list(levels)
    total = sum(level.count for level in found)
    return Level(total, any(level.at_least for level in found))
