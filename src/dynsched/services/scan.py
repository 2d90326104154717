"""Scanning ready rows: the next tenant with work is one query, a skip scan over the index.

A scan passes over what may not start here now (a capped tenant, an unknown handler) and goes on
behind it, so that no row that must wait stands before those that need not. It stays with one
tenant for a few queries only; where it stopped among rows that must wait is remembered.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from dynsched.domain.instants import within
from dynsched.domain.job import Priority
from dynsched.domain.run import Run
from dynsched.domain.selection import in_turn
from dynsched.storage.placement import after_share, after_tenant, ready_sort
from dynsched.storage.store import Store

QUERIES_MAX = 12  # of one reading: tenants reached, or pages of rows that must wait
QUERIES_OF_TENANT = 4  # of these, where there are others
CHUNK_MIN = 8
CHUNK_BARREN = 100  # rows of a query among rows that must wait
FRESH = timedelta(seconds=1)  # how long rows read ahead are used before the index is read again
# Least time to the next reading of a lane that had no more: none behind one that found rows, since
# more may have come; doubled by each reading that found none.
GAP_MIN = timedelta(milliseconds=1)
GAP_MAX = timedelta(milliseconds=50)
BARREN = timedelta(seconds=10)  # how long a stretch of rows that must wait is not read again
REMEMBERED_MAX = 10_000  # tenants and shares

LaneName = tuple[str, Priority, int]  # queue, priority, lane


class Sieve(Protocol):
    """What may be claimed here now."""

    def usable(self, run: Run, now: datetime) -> bool:
        """Return whether a due run may be claimed."""

    def shut(self, tenant: str, now: datetime) -> bool:
        """Return whether no run of a tenant may be claimed."""


@dataclass(slots=True)
class Lane:
    """What is known of one lane.

    Attributes:
        turn: sort key behind the tenant served last; "" at the beginning.
        shares: of each tenant whose jobs take turns, the share key served last.
        barren: by share key, up to which sort key nothing was usable, and until when that holds.
        order: what the last reading found, tenants in turn.
        ahead: what is left of it.
        read_at: when that was.
        next_at: the earliest row seen that is not due yet.
        more: the reading ended before the lane did.
        gap: least time to the next reading, unless there was more.
    """

    turn: str = ""
    shares: dict[str, str] = field(default_factory=dict)
    barren: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    order: Sequence[Run] = ()
    ahead: deque[Run] = field(default_factory=deque)
    read_at: datetime | None = None
    next_at: datetime | None = None
    more: bool = False
    gap: timedelta = timedelta(0)

    def serves(self, want: int, now: datetime) -> bool:
        """Return whether what was read ahead is enough, or all there is."""
        if self.read_at is None or now - self.read_at >= FRESH or now < self.read_at:
            return False
        if len(self.ahead) >= want:
            return True
        came = self.next_at is not None and self.next_at <= now
        return not self.more and not came and now - self.read_at < self.gap

    def note_found(self, found: bool) -> None:
        """Set the gap behind a reading that found something, or nothing."""
        self.gap = timedelta(0) if found else min(GAP_MAX, max(GAP_MIN, 2 * self.gap))

    def pass_turns(self) -> None:
        """Let the turn pass behind what was taken since the last reading."""
        taken = self.order[: len(self.order) - len(self.ahead)]
        if taken:
            self.turn = after_tenant(taken[-1].share)
        if len(self.shares) > REMEMBERED_MAX:
            self.shares.clear()
        self.shares.update((run.tenant, run.share) for run in taken if run.share != run.tenant)

    def refused_up_to(self, last: Run, now: datetime) -> str:
        """Remember that a share's rows up to one must wait; return where to read on."""
        after, until = self.barren.get(last.share, ("", now))
        if not within(now, until - BARREN, BARREN):
            after, until = "", now + BARREN
        after = max(after, ready_sort(last))
        if len(self.barren) > REMEMBERED_MAX:
            self.barren.clear()
        self.barren[last.share] = after, until
        return after


class Scanner:
    """Reads lanes for one worker."""

    def __init__(self, store: Store, sieve: Sieve) -> None:
        self._store = store
        self._sieve = sieve
        self._lanes: dict[LaneName, Lane] = {}

    def lane(self, name: LaneName) -> Lane:
        """Return what is known of a lane."""
        return self._lanes.setdefault(name, Lane())

    def forget(self) -> None:
        """Forget what was read ahead; whose turn it is stays known."""
        for lane in self._lanes.values():
            lane.pass_turns()
            lane.order = ()
            lane.ahead.clear()
            lane.barren.clear()
            lane.read_at = None

    def fill(self, name: LaneName, want: int, now: datetime) -> deque[Run]:
        """Return due, usable runs of a lane, read again if there are fewer than wanted.

        Args:
            name: which lane.
            want: how many are of use now.
            now: rows available later are only noted.
        """
        lane = self.lane(name)
        if lane.serves(want, now):
            return lane.ahead
        lane.pass_turns()
        found = self._read(name, lane, want, now)
        lane.order = in_turn(found, lane.shares)
        lane.ahead = deque(lane.order)
        lane.read_at = now
        lane.note_found(bool(found))
        return lane.ahead

    def _read(self, name: LaneName, lane: Lane, want: int, now: datetime) -> list[Run]:
        """Read from the tenant whose turn it is, round to where it began."""
        reading = Reading(lane, self._sieve, now)
        lane.next_at, lane.more = None, True
        after, wrapped = lane.turn, not lane.turn
        chunk = max(2 * want, CHUNK_MIN)
        for _ in range(QUERIES_MAX):
            limit = max(chunk, CHUNK_BARREN) if reading.barren else chunk
            page = self._store.runs.ready(*name, after=after, limit=limit)
            reading.take(page)
            if len(page) == limit:
                after = reading.behind(page[-1])
                ended = wrapped and bool(lane.turn) and after >= lane.turn
            else:
                ended, wrapped, after = wrapped, True, ""
            if not ended:
                continue
            rest = reading.rest()
            if rest is None:
                lane.more = len(reading.found) > want
                break
            after = rest
        if lane.more and not reading.found:
            lane.turn = after
        return list(reading.found.values())


class Reading:
    """One reading of a lane."""

    def __init__(self, lane: Lane, sieve: Sieve, now: datetime) -> None:
        self._lane = lane
        self._sieve = sieve
        self._now = now
        self._pages: Counter[str] = Counter()
        self._page: list[Run] = []
        self._tenants: set[str] = set()
        self._rest: str | None = None
        self.found: dict[str, Run] = {}
        self.barren = False

    def take(self, page: Sequence[Run]) -> None:
        """Keep what is due and usable; note when the next row is due."""
        now, self.barren = self._now, False
        self._page = [
            run for run in page if run.available_at <= now and self._sieve.usable(run, now)
        ]
        self.found.update((run.run_id, run) for run in self._page)
        self._tenants.update(run.tenant for run in page)
        later = [run.available_at for run in page if run.available_at > now]
        if self._lane.next_at is not None:
            later.append(self._lane.next_at)
        self._lane.next_at = min(later, default=None)

    def behind(self, last: Run) -> str:
        """Return where to read on after a full page."""
        self._pages[last.tenant] += 1
        if self._sieve.shut(last.tenant, self._now):
            return after_tenant(last.share)
        after = after_share(last.share)
        self.barren = last.available_at <= self._now and all(
            run.share != last.share for run in self._page
        )
        if self.barren:
            after = self._lane.refused_up_to(last, self._now)
        if self._pages[last.tenant] >= QUERIES_OF_TENANT:
            self._rest = after
            return after_tenant(last.share)
        served = self._lane.shares.get(last.tenant)
        if served is not None and self._pages[last.tenant] == 1:
            # Go on where the tenant's own jobs have their turn.
            after = max(after, after_share(served))
        return after

    def rest(self) -> str | None:
        """Return where to read on when the round has ended and met one tenant only."""
        rest, self._rest = self._rest, None
        if rest is None or len(self._tenants) > 1:
            return None
        self._pages = Counter(dict.fromkeys(self._tenants, 1))
        return rest
