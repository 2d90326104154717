"""Scanning ready rows: the next tenant with work is one query, a skip scan over the index.

A scan passes over what may not start here now (a capped tenant, an unknown handler) and goes on
behind it, so that no row that must wait stands before those that need not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dynsched.domain.job import Priority
from dynsched.domain.run import Run
from dynsched.domain.selection import in_turn
from dynsched.storage.placement import after_tenant, ready_sort
from dynsched.storage.store import Store

QUERIES_MAX = 12  # of one reading: tenants reached, or pages of rows that must wait
CHUNK_MIN = 8
FRESH = timedelta(seconds=1)  # how long rows read ahead are used before the index is read again
GAP = timedelta(milliseconds=50)  # least time between readings of a lane that had no more

LaneName = tuple[str, Priority, int]  # queue, priority, lane


@dataclass(slots=True)
class Lane:
    """What is known of one lane.

    Attributes:
        turn: sort key behind the tenant served last; "" at the beginning.
        ahead: runs read ahead, tenants in turn.
        read_at: when they were read.
        next_at: the earliest row seen that is not due yet.
        more: the reading ended before the lane did.
    """

    turn: str = ""
    ahead: deque[Run] = field(default_factory=deque)
    read_at: datetime | None = None
    next_at: datetime | None = None
    more: bool = False

    def serves(self, want: int, now: datetime) -> bool:
        """Return whether what was read ahead is enough, or all there is."""
        if self.read_at is None or now - self.read_at >= FRESH or now < self.read_at:
            return False
        if len(self.ahead) >= want:
            return True
        came = self.next_at is not None and self.next_at <= now
        return not self.more and not came and now - self.read_at < GAP


class Scanner:
    """Reads lanes for one worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lanes: dict[LaneName, Lane] = {}

    def lane(self, name: LaneName) -> Lane:
        """Return what is known of a lane."""
        return self._lanes.setdefault(name, Lane())

    def forget(self) -> None:
        """Forget what was read ahead; whose turn it is stays known."""
        for lane in self._lanes.values():
            lane.ahead.clear()
            lane.read_at = None

    def fill(
        self, name: LaneName, want: int, now: datetime, usable: Callable[[Run], bool]
    ) -> deque[Run]:
        """Return due, usable runs of a lane, read again if there are fewer than wanted.

        Args:
            name: which lane.
            want: how many are of use now.
            now: rows available later are only noted.
            usable: False for rows that may not start here now.
        """
        lane = self.lane(name)
        if lane.serves(want, now):
            return lane.ahead
        found = self._read(name, lane, want, now, usable)
        lane.ahead = deque(in_turn(found))
        lane.read_at = now
        if found:
            lane.turn = after_tenant(lane.ahead[min(want, len(lane.ahead)) - 1].share)
        return lane.ahead

    def _read(
        self, name: LaneName, lane: Lane, want: int, now: datetime, usable: Callable[[Run], bool]
    ) -> list[Run]:
        """Read from the tenant whose turn it is, round to where it began."""
        found: dict[str, Run] = {}
        lane.next_at, lane.more = None, True
        after, wrapped = lane.turn, not lane.turn
        chunk = max(2 * want, CHUNK_MIN)
        for _ in range(QUERIES_MAX):
            page = self._store.runs.ready(*name, after=after, limit=chunk)
            good = [run for run in page if run.available_at <= now and usable(run)]
            found.update((run.run_id, run) for run in good)
            later = [run.available_at for run in page if run.available_at > now]
            lane.next_at = min([*later, *([lane.next_at] if lane.next_at else [])], default=None)
            if len(page) == chunk:
                after = _behind(page[-1], good, now)
                if not (wrapped and found and lane.turn and after >= lane.turn):
                    continue
                break
            if wrapped:
                lane.more = len(found) > want
                break
            after, wrapped = "", True
        else:
            # Nothing but rows that must wait, so far: the next reading goes on behind them.
            lane.turn = after
        return list(found.values())


def _behind(last: Run, good: list[Run], now: datetime) -> str:
    """Return where to read on: behind the last tenant, or behind rows of it that must wait."""
    if last.available_at > now or any(run.tenant == last.tenant for run in good):
        return after_tenant(last.share)
    return ready_sort(last)
