"""Error groups: the dead-letter queue by cause, which is where a triage starts.

Dead runs lie in the index by the signature of their error and then by time, so each group is found
by one step over the one before, counted in the index, and looked at by its newest runs only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from dynsched.domain.filters import GROUPS, Filter
from dynsched.domain.health import ErrorGroup, Level
from dynsched.domain.instants import within
from dynsched.domain.run import Run
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.listing import LIMIT_MAX, check_limit
from dynsched.services.search import Found, RunSearch, as_filter
from dynsched.storage.dead import DeadStore

__all__ = ["ErrorGroup", "GroupViews", "group_runs"]

COUNT_MAX = 10_000  # runs that one group is counted to
GROUPS_MAX = 500  # groups that one listing steps over
EXAMINED_MAX = 20_000  # dead runs that are looked at for a filter
SAMPLE = 200  # newest runs of a group that are looked at
SHOWN_MAX = 20  # tenants and jobs that a group names
HOURS = 24
NO_GROUP = "0" * 16  # where runs lie that died without an error
HOUR = timedelta(hours=1)
KEPT = timedelta(minutes=1)  # how long a group that has not changed is not looked at again


@dataclass(frozen=True, slots=True)
class _Kept:
    """A group that was worked out, when, and from which count."""

    at: datetime
    count: int
    group: ErrorGroup


class GroupViews(RunSearch):
    """Reads the dead-letter queue by groups."""

    _kept: Mapping[str, _Kept] = MappingProxyType({})

    def groups(
        self,
        filter: Filter | str = "",
        *,
        limit: int = 100,
        cursor: str | None = None,
        examine: int | None = None,
    ) -> Found[ErrorGroup]:
        """Return the groups of the dead-letter queue, those with most runs first.

        Cost: two requests for each group (500 at most) and shard, two more for each that is
        returned, one if it has not changed within a minute; the read units of what is counted,
        10,000 runs of a group at most. With a filter up to 20,000 dead runs are read.

        Args:
            filter: only dead runs that fit it; empty for all.
            limit: at most so many groups.
            cursor: continues an earlier answer.
            examine: dead runs to look at for a filter; 20,000 by default.

        Raises:
            FilterError: the filter cannot be read.
            InvalidInput: the limit or the cursor is wrong.
        """
        check_limit(limit)
        given = as_filter(filter, GROUPS)
        if given.terms:
            return self._matching(given, limit, cursor, examine or EXAMINED_MAX)
        now = self._clock.now()
        self._store.refresh_by(now)
        dead = self._store.dead
        names = list(dead.groups(most=GROUPS_MAX + 1))
        notes: tuple[str, ...] = ()
        if len(names) > GROUPS_MAX:
            names = names[:GROUPS_MAX]
            notes = (f"only the first {GROUPS_MAX:,} groups were looked at",)
        counts = {name: dead.count(name, most=COUNT_MAX) for name in names}
        ordered = sorted(counts, key=lambda name: (-counts[name], name))
        ordered = [name for name in ordered if _behind(cursor, counts[name], name)]
        shown = ordered[:limit]
        found = [self._group_again(dead, name, counts[name], now) for name in shown]
        self._kept = {name: self._kept[name] for name in counts if name in self._kept}
        groups = tuple(self._shown_group(group) for group in found if group is not None)
        return Found(
            items=groups,
            matched=len(groups),
            examined=sum(counts.values()),
            cursor=_cursor(counts[shown[-1]], shown[-1]) if len(ordered) > limit else None,
            notes=notes,
        )

    def _group_again(
        self, dead: DeadStore, name: str, count: int, now: datetime
    ) -> ErrorGroup | None:
        """Return a group, as it was worked out a moment ago if neither count nor newest changed.

        A console asks every few seconds, and 200 runs of each group are much to read for nothing.
        """
        kept = self._kept.get(name)
        if kept is not None and within(now, kept.at, KEPT) and kept.count == count:
            newest = dead.newest(name, most=1)
            if newest and newest[0].run_id == kept.group.newest:
                return kept.group
        group = group_of(dead, name, count, now)
        if group is not None:
            self._kept = {**self._kept, name: _Kept(now, count, group)}
        return group

    def _matching(
        self, given: Filter, limit: int, cursor: str | None, examine: int
    ) -> Found[ErrorGroup]:
        """Return the groups of the dead runs that fit a filter, as far as one search goes."""
        runs = self.find_runs(given, limit=LIMIT_MAX, examine=examine)
        complete = runs.cursor is None
        every = group_runs(runs.items, self._clock.now(), complete=complete)
        behind = [one for one in every if _behind(cursor, one.count.count, one.signature)]
        shown = behind[:limit]
        notes = () if complete else ("only the newest runs that fit were looked at",)
        return Found(
            items=tuple(map(self._shown_group, shown)),
            matched=len(shown),
            examined=runs.examined,
            cursor=_cursor(shown[-1].count.count, shown[-1].signature)
            if len(behind) > limit
            else None,
            indexed=runs.indexed,
            tested=runs.tested,
            notes=(*runs.notes, *notes),
        )

    def group(self, signature: str) -> ErrorGroup:
        """Return one group, with its deaths of each hour counted and not sampled.

        Raises:
            NotFound: no dead run has this signature.
        """
        now = self._clock.now()
        self._store.refresh_by(now)
        dead = self._store.dead
        found = group_of(dead, signature, dead.count(signature, most=COUNT_MAX), now)
        if found is None:
            raise NotFound("error group", signature, "`dynsched groups` shows them")
        found = self._shown_group(found)
        if found.sampled == found.count.count:
            return found
        hours = [now - HOUR * back for back in range(HOURS, 0, -1)]
        per_hour = tuple(
            dead.count(signature, most=COUNT_MAX, since=hour, before=hour + HOUR) for hour in hours
        )
        return replace(found, per_hour=per_hour)

    def _shown_group(self, group: ErrorGroup) -> ErrorGroup:
        return replace(group, error=self.masker.text(group.error))


def group_of(
    dead: DeadStore, name: str, count: int, now: datetime, *, sample: int = SAMPLE
) -> ErrorGroup | None:
    """Return a group by its newest runs; None if it has none that can be read any more."""
    runs = dead.newest(name, most=sample)
    first = dead.first_seen(name)
    if not runs or first is None:
        return None
    level = Level(max(count, len(runs)), count >= COUNT_MAX)
    return _group(name, level, min(first, _ended(runs[0])), runs, now)


def group_runs(runs: Iterable[Run], now: datetime, *, complete: bool = True) -> list[ErrorGroup]:
    """Return the groups of given dead runs, those with most runs first.

    Args:
        runs: dead ones, in any order.
        now: the end of the last hour.
        complete: there are no others; False lets every count be a least one.
    """
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.signature or NO_GROUP, []).append(run)
    found = []
    for name, members in by_name.items():
        members.sort(key=_ended, reverse=True)
        level = Level(len(members), not complete)
        found.append(_group(name, level, _ended(members[-1]), members, now))
    return sorted(found, key=lambda group: (-group.count.count, group.signature))


def _ended(run: Run) -> datetime:
    return run.available_at if run.ended_at is None else run.ended_at


def _most(names: Iterable[str]) -> Mapping[str, int]:
    """Return how often each name comes, the most frequent first."""
    return dict(Counter(names).most_common(SHOWN_MAX))


def _behind(cursor: str | None, count: int, name: str) -> bool:
    """Return whether a group lies behind the last one of an earlier answer."""
    if cursor is None:
        return True
    number, _, last = cursor.partition("-")
    if not (number.isascii() and number.isdigit() and last):
        raise InvalidInput("cursor", "it is not one of this list's", "begin again without it")
    return (-count, name) > (-int(number), last)


def _cursor(count: int, name: str) -> str:
    return f"{count}-{name}"


def _group(name: str, level: Level, first: datetime, runs: list[Run], now: datetime) -> ErrorGroup:
    return ErrorGroup(
        signature=name,
        error=runs[0].error,
        count=level,
        first_seen=first,
        last_seen=_ended(runs[0]),
        tenants=_most(run.tenant for run in runs),
        jobs=_most(run.job_id for run in runs),
        sampled=len(runs),
        again=sum(run.replays > 0 for run in runs),
        newest=runs[0].run_id,
        per_hour=hourly((_ended(run) for run in runs), now),
    )


def hourly(ends: Iterable[datetime], now: datetime) -> tuple[int, ...]:
    """Return how many instants lie in each of the last 24 hours, the oldest hour first."""
    counts = [0] * HOURS
    for end in ends:
        back = max(now - end, timedelta(0)) // HOUR
        if back < HOURS:
            counts[HOURS - 1 - back] += 1
    return tuple(counts)
