"""Views of the store as a whole: levels, the oldest due run, sessions, cursors, tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.health import Level
from dynsched.domain.instants import Clock
from dynsched.domain.run import RunState
from dynsched.services.job_views import TENANTS_MAX
from dynsched.services.levels import Levels, QueueLevel, lags, level_sum, sessions_by_state
from dynsched.services.listing import Listing
from dynsched.storage.control import Tenant
from dynsched.storage.store import CURSOR_KINDS, Store

__all__ = ["QueueLevel", "Stats", "StoreViews", "stats_of"]

DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Levels of a store; its health says what to think of them.

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
    """Reads the store's levels for people; only reading, every count bounded."""

    _store: Store
    _clock: Clock

    def list_tenants(self) -> Listing[Tenant]:
        """List the tenants that have jobs or settings, by name."""
        found = self._store.control.all_tenants(most=TENANTS_MAX + 1)
        return Listing(items=tuple(found[:TENANTS_MAX]), more=len(found) > TENANTS_MAX)

    def stats(self) -> Stats:
        """Count what the store holds, each level up to ten thousand.

        Cost: half a read unit for 4 KB of what is counted, so some 1,250 units for each full level.
        """
        self._store.refresh()
        levels = Levels(self._store, self._clock.now())
        return stats_of(self._store, levels, self._clock.now())


def stats_of(
    store: Store,
    levels: Levels,
    now: datetime,
    *,
    jobs: tuple[Mapping[str, int], bool] | None = None,
    known: Mapping[str, Level] | None = None,
) -> Stats:
    """Return what one look counts.

    Args:
        store: where to read.
        levels: the look.
        now: its instant.
        jobs: the counts of jobs, if they are known; else they are counted.
        known: levels of `dead` and `discarded`, likewise.
    """
    known = known or {}
    queues = levels.queues()
    by_state, at_least = levels.jobs() if jobs is None else jobs
    return Stats(
        now=now,
        runs={
            RunState.READY.value: level_sum(queue.ready for queue in queues),
            RunState.LEASED.value: levels.leased(),
            RunState.FAILED.value: levels.failed(),
            RunState.DEAD.value: known.get(RunState.DEAD.value) or levels.dead(),
            DISCARDED: known.get(DISCARDED) or levels.discarded(),
        },
        queues=queues,
        sessions=sessions_by_state(levels.sessions, len(levels.alive)),
        slots=sum(one.slots for one in levels.alive),
        cursor_lags=dict(lags(levels, CURSOR_KINDS)),
        jobs=by_state,
        jobs_at_least=at_least,
        tenants=len(store.control.all_tenants(most=TENANTS_MAX)),
    )
