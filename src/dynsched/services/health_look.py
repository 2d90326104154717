"""One look at a store, as a reader of its health makes it.

What is expensive is looked at less often, the more of it there is, and taken from the look before
in between: the counts of jobs and of error groups, and of a dead-letter queue that is so large
that it would be told as `10,000+` again. The minutes of the last hour are read once each,
after five minutes, when no writer is behind with them any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain.health import (
    Beat,
    Cost,
    ErrorGroup,
    Health,
    Level,
    MinutePoint,
    TenantLine,
    WorkerLine,
)
from dynsched.domain.instants import Clock, minute_of, minute_start, within
from dynsched.domain.judging import Limits, judge
from dynsched.domain.minutes import OTHERS, MinuteTally, busiest, summed
from dynsched.domain.run import RunState
from dynsched.services.groups import COUNT_MAX, group_of
from dynsched.services.lease_ends import WALK_PERIOD
from dynsched.services.levels import Levels, level_sum
from dynsched.services.store_views import DISCARDED, Stats, stats_of
from dynsched.settings import Settings
from dynsched.storage.beats import DISPATCHER, REAPER, StoredBeat
from dynsched.storage.control import Session
from dynsched.storage.counted import CountedEngine
from dynsched.storage.store import Store

HOUR = 60  # minutes that are shown
RECENT = 6  # of them, those whose writers may still write: the present one and five whole ones
MINUTE_ROWS_MAX = 5_000
BEATS_MAX = 500
BEATS_KEPT = timedelta(minutes=10)  # a replica that was not heard for longer is not shown
WORKERS_MAX = 100
TENANTS_MAX = 20
GROUPS_SHOWN = 10
GROUPS_MAX = 100  # groups that are stepped over; those that grew in the last hour come besides
GROUP_SAMPLE = 20
NAMES_MAX = 5
ROWS_A_SECOND = 500
"""Rows that jobs and groups may cost in a second, about: so often they are counted again."""
PAUSE_MAX = timedelta(minutes=1)


class Look:
    """Makes one health.

    Args:
        store: where to look; its engine is used, and counted, through a store of the look's own.
        recount: how long the counts of jobs, of error groups and of a full dead-letter queue are
            good at least; for a reader that looks often and shows none of them.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        settings: Settings,
        recount: timedelta = timedelta(0),
    ) -> None:
        self._engine = CountedEngine(store.engine)
        self._store = Store(self._engine, rng=Random(0))  # its tokens are not used
        self._clock = clock
        self._settings = settings
        self._recount = recount

    def health(self, before: Health | None, limits: Limits) -> Health:
        """Look at everything.

        Args:
            before: the last look's; None for the first.
            limits: from when on something is worth a warning.
        """
        now, began = self._clock.now(), self._clock.monotonic()
        self._store.refresh()
        levels = Levels(self._store, now)
        jobs, jobs_at = self._jobs(levels, before, now)
        stats = stats_of(self._store, levels, now, jobs=jobs, known=self._full(before, now))
        recent, minutes = self._minutes(before, now)
        groups, groups_at = self._groups(stats, minutes, before, now)
        beats = self._store.beats.all(most=BEATS_MAX)
        health = Health(
            at=now,
            delay=recent.total().delay(),
            delays={name: one.delay() for name, one in recent.priorities.items()},
            oldest_due={one.queue: one.oldest for one in stats.queues if one.oldest is not None},
            depth=_depth(stats),
            queues={one.queue: level_sum(one.depth.values()) for one in stats.queues},
            ready=stats.runs[RunState.READY.value],
            leased=stats.runs[RunState.LEASED.value],
            leased_by_functions=levels.leased_by_functions,
            failed=stats.runs[RunState.FAILED.value],
            dead=stats.runs[RunState.DEAD.value],
            discarded=stats.runs[DISCARDED],
            expired_leases=self._expired(levels, now),
            dead_per_hour=sum(one.dead for one in minutes),
            minutes=minutes,
            dispatchers=_heard(beats, DISPATCHER, now),
            reapers=_heard(beats, REAPER, now),
            workers=self._workers(levels),
            top_tenants=self._tenants(levels, recent, minutes),
            top_groups=groups,
            jobs_by_state=stats.jobs,
            jobs_at_least=stats.jobs_at_least,
            cursor_lags=stats.cursor_lags,
            slots=stats.slots,
            sessions=stats.sessions,
            handed_off=bool(self._store.topology.message_queues),
            tenants=stats.tenants,
            cost=self._cost(began, jobs_at, groups_at),
        )
        return replace(health, verdicts=judge(health, limits))

    def _cost(self, began: float, jobs_at: datetime, groups_at: datetime) -> Cost:
        return Cost(
            requests=self._engine.requests,
            rows=self._engine.rows,
            took=timedelta(seconds=self._clock.monotonic() - began),
            jobs_at=jobs_at,
            groups_at=groups_at,
        )

    def _jobs(
        self, levels: Levels, before: Health | None, now: datetime
    ) -> tuple[tuple[Mapping[str, int], bool], datetime]:
        """Count the jobs, unless that was done a moment ago."""
        if before is not None:
            known = sum(before.jobs_by_state.values())
            # None costs nothing to count again, and a first job is not to be missed for long.
            if known and within(now, before.cost.jobs_at, self._pause(known)):
                return (before.jobs_by_state, before.jobs_at_least), before.cost.jobs_at
        return levels.jobs(), now

    def _full(self, before: Health | None, now: datetime) -> dict[str, Level]:
        """Return the levels that were full a moment ago: counted again they would say the same."""
        if before is None or not within(now, before.cost.groups_at, self._pause(None)):
            return {}
        levels = {RunState.DEAD.value: before.dead, DISCARDED: before.discarded}
        return {name: level for name, level in levels.items() if level.at_least}

    def _pause(self, rows: int | None) -> timedelta:
        """Return how long a count of so many rows is not made again; None is very many."""
        pause = PAUSE_MAX if rows is None else timedelta(seconds=rows / ROWS_A_SECOND)
        return max(min(pause, PAUSE_MAX), self._recount)

    # what the workers counted

    def _minutes(
        self, before: Health | None, now: datetime
    ) -> tuple[MinuteTally, tuple[MinutePoint, ...]]:
        """Return the newest minutes' tallies, and the points of the last hour."""
        present = minute_of(now)
        first = present - HOUR + 1
        points = {}
        if before is not None and before.at <= now:
            settled = minute_of(before.at) - RECENT + 1
            points = {minute_of(one.at): one for one in before.minutes}
            points = {minute: one for minute, one in points.items() if first <= minute < settled}
            first = max(first, settled)
        read = min(first, present - RECENT + 1)
        # A clock may be ahead of this one.
        tallies, _ = self._store.minutes.read(read, present + 2, most=MINUTE_ROWS_MAX)
        by_minute: dict[int, list[MinuteTally]] = {}
        for tally in tallies:
            by_minute.setdefault(min(tally.minute, present), []).append(tally)
        for minute in range(first, present + 1):
            points[minute] = _point(minute, by_minute.get(minute, ()))
        recent = summed(one for one in tallies if one.minute > present - RECENT)
        hour = range(present - HOUR + 1, present + 1)
        return recent, tuple(points.get(minute) or _point(minute, ()) for minute in hour)

    # the dead-letter queue

    def _groups(
        self, stats: Stats, minutes: Sequence[MinutePoint], before: Health | None, now: datetime
    ) -> tuple[tuple[ErrorGroup, ...], datetime]:
        """Return the groups with most runs, unless that was done a moment ago."""
        dead = stats.runs[RunState.DEAD.value]
        pause = self._pause(None if dead.at_least else dead.count)
        if before is not None and within(now, before.cost.groups_at, pause):
            return before.top_groups, before.cost.groups_at
        names = dict.fromkeys(self._store.dead.groups(most=GROUPS_MAX)) if dead.count else {}
        grown = _sum(one.dead_groups for one in minutes)
        names |= dict.fromkeys(name for name in busiest(grown, GROUPS_SHOWN) if name != OTHERS)
        counts = {name: self._store.dead.count(name, most=COUNT_MAX) for name in names}
        largest = sorted(counts, key=lambda name: (-counts[name], name))[:GROUPS_SHOWN]
        found = [
            group_of(self._store.dead, name, counts[name], now, sample=GROUP_SAMPLE)
            for name in largest
            if counts[name]
        ]
        return tuple(_short(group) for group in found if group is not None), now

    # who works, and for whom

    def _expired(self, levels: Levels, now: datetime) -> int:
        """Count the runs under sessions and leases that the reaper should have found by now."""
        patience = self._settings.lease_margin + 2 * self._settings.reaper_period
        over = [end for end in levels.ends if end + patience + WALK_PERIOD < now]
        return len(over) + sum(
            levels.held.get(one.session, 0)
            for one in levels.sessions
            if (one.expires_at if one.open else one.closed_at or now) + patience < now
        )

    def _workers(self, levels: Levels) -> tuple[WorkerLine, ...]:
        lines = [self._line(one, levels.held.get(one.session, 0)) for one in levels.sessions]
        shown = [line for line in lines if line.open or line.leased]
        shown.sort(key=lambda line: (line.open, line.last_beat), reverse=True)
        return tuple(shown[:WORKERS_MAX])

    def _line(self, session: Session, held: int) -> WorkerLine:
        beat = session.expires_at - self._settings.lease if session.open else session.closed_at
        return WorkerLine(
            session=session.session,
            host=session.host,
            pid=session.pid,
            slots=session.slots,
            leased=held,
            queues=session.queues,
            last_beat=beat or session.started_at,
            expires_at=session.expires_at,
            open=session.open,
        )

    def _tenants(
        self, levels: Levels, recent: MinuteTally, minutes: Iterable[MinutePoint]
    ) -> tuple[TenantLine, ...]:
        started = recent.starts
        dead = _sum(one.dead_tenants for one in minutes)
        names = {*levels.waiting, *levels.running, *started, *dead} - {OTHERS}

        def weight(name: str) -> tuple[int, int, int, int, str]:
            waiting = levels.waiting.get(name, Level(0)).count
            counts = (waiting, levels.running[name], dead[name], started.get(name, 0))
            return *(-count for count in counts), name  # type: ignore[return-value]

        shown = sorted(names, key=weight)[:TENANTS_MAX]
        caps = self._store.control.tenants(shown)
        return tuple(
            TenantLine(
                tenant=name,
                waiting=levels.waiting.get(name, Level(0)),
                running=levels.running[name],
                started=started.get(name, 0),
                dead=dead[name],
                cap=caps[name].max_running,
            )
            for name in shown
        )


def _depth(stats: Stats) -> dict[str, Level]:
    names = dict.fromkeys(name for queue in stats.queues for name in queue.depth)
    return {name: level_sum(queue.depth[name] for queue in stats.queues) for name in names}


def _point(minute: int, tallies: Iterable[MinuteTally]) -> MinutePoint:
    tally = summed(tallies)
    total = tally.total()
    delay = total.delay()
    return MinutePoint(
        at=minute_start(minute),
        started=total.started,
        done=total.done,
        failed=total.failed,
        dead=total.dead,
        delay_p50=delay.p50,
        delay_p95=delay.p95,
        delay_max=delay.max,
        dead_tenants=busiest(tally.deaths, NAMES_MAX),
        dead_groups=busiest(tally.groups, NAMES_MAX),
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _short(group: ErrorGroup) -> ErrorGroup:
    """Return a group with fewer names: a snapshot is written every few seconds."""
    return replace(
        group,
        tenants=dict(list(group.tenants.items())[:NAMES_MAX]),
        jobs=dict(list(group.jobs.items())[:NAMES_MAX]),
    )


def _heard(beats: Iterable[StoredBeat], role: str, now: datetime) -> tuple[Beat, ...]:
    """Return the replicas that were heard lately; the last one in any case."""
    found = [one.beat for one in beats if one.role == role]
    return tuple(
        beat for number, beat in enumerate(found) if not number or now - beat.at < BEATS_KEPT
    )
