"""Levels: how much of everything there is, by bounded counts and steps over the index.

One look reads the ready rows by one step for each share key of a lane, which tells at once what
waits by queue, by priority and by tenant, and the longest waiting run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from dynsched.domain.health import Level, OldestDue
from dynsched.domain.instants import minute_of, minute_start, to_text
from dynsched.domain.job import Priority
from dynsched.domain.run import Run
from dynsched.errors import InvalidInput
from dynsched.services.capacity import PATIENCE, Capacity, alive_sessions
from dynsched.services.lease_ends import fixed_minutes
from dynsched.services.run_places import BUCKETS_AHEAD, BUCKETS_MAX, QUEUES_MAX, SESSIONS_MAX
from dynsched.storage.codec import decode_job
from dynsched.storage.control import Session
from dynsched.storage.placement import (
    REMINDERS,
    after_share,
    dead_partition,
    fixed_partition,
    hidden_partition,
    leased_partition,
    ready_partition,
    retry_partition,
)
from dynsched.storage.store import Store

COUNT_MAX = 10_000  # rows that one level is counted to
SHARE_LEAST = 100  # rows that each share key is counted to, however many others there are
SHARES_MAX = 200  # share keys of one lane that are stepped over
LEASED_READ = 200  # leased rows of one session that are read for their tenants
JOB_PAGE = 500
JOB_PAGES = 40
DAMAGED = "damaged"
DAMAGE = (InvalidInput, ValueError, LookupError, TypeError, AttributeError)
"""What decoding a damaged row may raise; faults of the store are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """What waits in one queue.

    Attributes:
        ready: runs that may be claimed, now or when they are due.
        depth: those of them that are due, by priority.
        oldest: the longest waiting one of them that might have started; one of bulk priority only
            if no other is late.
        sessions: open worker sessions that serve the queue.
        lacks: why no living worker can run them, with the number of such runs among those that
            were looked at: the first of each lane's share keys.
        handed_off: functions are told of its runs, of one priority at least.
    """

    queue: str
    ready: Level
    depth: Mapping[str, Level]
    oldest: OldestDue | None
    sessions: int
    lacks: Mapping[str, int]
    handed_off: bool = False

    @property
    def oldest_due_at(self) -> datetime | None:
        """Return since when the longest waiting run might have started."""
        return None if self.oldest is None else self.oldest.since


class Levels:
    """One look at a store.

    Args:
        store: where to read; its map has been read.
        now: the instant of the look.

    Attributes:
        sessions: all worker sessions.
        alive: those that are open and whose lease has not ended.
        waiting: due runs by tenant, once `queues` was asked.
        running: leased runs by tenant, once `leased` was asked.
        held: leased runs by session, likewise.
        leased_by_functions: runs whose leases have a fixed end, likewise.
        ends: of those of them that were read, likewise.
    """

    def __init__(self, store: Store, now: datetime) -> None:
        self._store = store
        self._now = now
        self.sessions = store.control.sessions()
        self.alive = alive_sessions(self.sessions, now)
        self._capacity = Capacity(self.alive, store.topology.message_queues)
        self.waiting: dict[str, Level] = {}
        self.running: Counter[str] = Counter()
        self.held: dict[str, int] = {}
        self.leased_by_functions = Level(0)
        self.ends: list[datetime] = []

    def queues(self) -> tuple[QueueLevel, ...]:
        """Return what waits in each queue in use.

        Cost: one request for each lane, two more for each share key in it, of 200 at most.
        """
        names = self._store.control.queues(most=QUEUES_MAX)
        return tuple(self._queue(name) for name in names)

    def _queue(self, name: str) -> QueueLevel:
        heads: list[Run] = []
        ready, depth = Level(0), {}
        for priority in Priority:
            total = Level(0)
            for lane in range(self._store.topology.lanes):
                partition = ready_partition(name, priority, lane)
                found = self._store.runs.count(partition, most=COUNT_MAX)
                if found:
                    ready = level_sum([ready, Level(found, found >= COUNT_MAX)])
                    total = self._due(name, priority, lane, total, heads)
            depth[priority.value] = total
        due = [run for run in heads if run.available_at <= self._now]
        lacks = Counter(filter(None, (self._capacity.lack_of(run, self._now) for run in due)))
        return QueueLevel(
            queue=name,
            ready=ready,
            depth=depth,
            oldest=self._oldest(due),
            sessions=sum(name in session.queues for session in self.alive),
            lacks=dict(lacks),
            handed_off=any(name == one.queue for one in self._store.topology.message_queues),
        )

    def _due(
        self, queue: str, priority: Priority, lane: int, total: Level, heads: list[Run]
    ) -> Level:
        """Step over a lane's share keys; return the level with what is due in the lane."""
        partition, after = ready_partition(queue, priority, lane), ""
        for _ in range(SHARES_MAX):
            head = self._store.runs.ready_head(queue, priority, lane, after=after)
            if head is None:
                return total
            share, run = head
            after = after_share(share)
            if run is not None:
                heads.append(run)
                if run.available_at > self._now:
                    continue  # the first of its share key: the others are due later still
            most = max(COUNT_MAX - total.count, SHARE_LEAST)
            found = self._store.runs.count(
                partition, most=most, after=f"{share}#", before=f"{share}#{to_text(self._now)}$"
            )
            level, tenant = Level(found, found >= most), share.partition("+")[0]
            self.waiting[tenant] = level_sum([self.waiting.get(tenant, Level(0)), level])
            total = level_sum([total, level])
        return Level(total.count, True)

    def _oldest(self, due: list[Run]) -> OldestDue | None:
        """Return the longest waiting run; work that is made to wait hides no late one."""
        late = [
            run
            for run in due
            if run.priority is not Priority.BULK and self._now - run.available_at > PATIENCE
        ]
        if not due:
            return None
        run = min(late or due, key=lambda one: one.available_at)
        return OldestDue(
            run_id=run.run_id,
            since=run.available_at,
            priority=run.priority.value,
            lack=self._capacity.lack_of(run, self._now),
        )

    def leased(self) -> Level:
        """Count what workers and functions hold, by session and by tenant.

        Cost: a query for each session, and for each shard of some twenty minutes.
        """
        for session in self.sessions[:SESSIONS_MAX]:
            runs = self._store.runs.leased(session.session, most=LEASED_READ)
            self.running.update(run.tenant for run in runs)
            held = len(runs)
            if held >= LEASED_READ:
                partition = leased_partition(session.session)
                held = self._store.runs.count(partition, most=COUNT_MAX)
            self.held[session.session] = held
        total = sum(self.held.values())
        by_workers = Level(min(total, COUNT_MAX), total >= COUNT_MAX or self._left_out)
        self._fixed()
        return level_sum([by_workers, self.leased_by_functions])

    def _fixed(self) -> None:
        """Count what is leased until a fixed end."""
        total = 0
        for minute, shard in product(fixed_minutes(self._store, self._now), self._shards()):
            runs = self._store.runs.ending(minute, shard, most=LEASED_READ)
            self.running.update(run.tenant for run in runs)
            self.ends += [run.lease_ends_at for run in runs if run.lease_ends_at is not None]
            held = len(runs)
            if held >= LEASED_READ:
                held = self._store.runs.count(fixed_partition(minute, shard), most=COUNT_MAX)
            total += held
        self.leased_by_functions = Level(min(total, COUNT_MAX), total >= COUNT_MAX)

    @property
    def _left_out(self) -> bool:
        return len(self.sessions) > SESSIONS_MAX

    def failed(self) -> Level:
        """Count the retries of the minutes in which most lie; a longer back-off lies behind."""
        cursors = self._store.control.cursors("retry", self._store.topology.shards)
        last = minute_of(self._now) + BUCKETS_AHEAD
        first = min((one.minute for one in cursors if one is not None), default=last)
        minutes = range(max(first, last + 1 - BUCKETS_MAX), last + 1)
        level = self._count(
            (retry_partition(minute, shard) for minute, shard in product(minutes, self._shards())),
            before=REMINDERS,
        )
        return Level(level.count, True) if first < minutes.start else level

    def dead(self) -> Level:
        """Count the dead-letter queue."""
        return self._count(map(dead_partition, self._shards()))

    def discarded(self) -> Level:
        """Count the dead runs that were hidden."""
        return self._count(map(hidden_partition, self._shards()))

    def lag(self, kind: str) -> timedelta | None:
        """Return how far the slowest cursor of a kind is behind; None before the first."""
        cursors = self._store.control.cursors(kind, self._store.topology.shards)
        minutes = [one.minute for one in cursors if one is not None]
        return self._now - minute_start(min(minutes)) if minutes else None

    def jobs(self) -> tuple[Mapping[str, int], bool]:
        """Count jobs by state, and tell whether there may be more. Cost: reads up to 20,000."""
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
                break
        return dict(sorted(counts.items())), cursor is not None

    def _shards(self) -> range:
        return range(self._store.topology.shards)

    def _count(self, partitions: Iterable[str], *, before: str | None = None) -> Level:
        count = 0
        for partition in partitions:
            count += self._store.runs.count(partition, most=COUNT_MAX - count, before=before)
            if count >= COUNT_MAX:
                return Level(COUNT_MAX, True)
        return Level(count)


def level_sum(levels: Iterable[Level]) -> Level:
    """Return levels together, counted up to ten thousand.

    >>> str(level_sum([Level(9_000), Level(2_000)]))
    '10,000+'
    """
    found = list(levels)
    total = sum(level.count for level in found)
    if total > COUNT_MAX:
        return Level(COUNT_MAX, True)
    return Level(total, any(level.at_least for level in found))


def sessions_by_state(sessions: Iterable[Session], alive: int) -> Mapping[str, int]:
    """Return the number of sessions that live, that are over, and that were closed."""
    found = list(sessions)
    opened = sum(one.open for one in found)
    return {"alive": alive, "expired": opened - alive, "closed": len(found) - opened}


def lags(levels: Levels, kinds: Iterable[str]) -> Iterator[tuple[str, timedelta | None]]:
    """Yield the lag of each kind of cursor."""
    for kind in kinds:
        yield kind, levels.lag(kind)
