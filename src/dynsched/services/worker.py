"""The worker: claims runs for its free slots, looks, starts them, and writes how they ended.

`poll` is one bounded step and is called from one thread. Handlers run on slot threads, heartbeats
on a thread of their own; both only leave notes for the next poll.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, within
from dynsched.domain.job import Priority
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.run import Run, RunState
from dynsched.domain.selection import WeightedTurns, home_lanes, take_by_weight
from dynsched.services.exits import Slots
from dynsched.services.hand import Hand, InHand
from dynsched.services.reaper import Reaper
from dynsched.services.scan import LaneName, Scanner
from dynsched.services.session import SessionKeeper
from dynsched.services.workbench import Workbench
from dynsched.settings import Settings
from dynsched.storage.store import Store
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")

LEASED_MAX = 10_000  # runs of the own session that one reconciliation reads


@dataclass(slots=True)
class PollReport:
    """What one poll did.

    Attributes:
        ended: ways out that were written.
        claimed: runs claimed.
        started: handlers called.
        again: there may be more to do at once.
        next_at: when the next row that was seen becomes due.
    """

    ended: int = 0
    claimed: int = 0
    started: int = 0
    again: bool = False
    next_at: datetime | None = None


class Worker:
    """One worker process.

    Args:
        queues: the queues that it serves.
        runner: what it can run.
        slots: where handlers run.
        reaper: returns the runs of this host's dead workers when a session is opened.
    """

    _reconciled_at: datetime | None = None
    _foreign_at: datetime | None = None
    _drain_until: datetime | None = None

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        settings: Settings,
        keeper: SessionKeeper,
        hand: Hand,
        runner: TargetRunner,
        slots: Slots,
        reaper: Reaper,
        queues: Sequence[str] = ("main",),
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._keeper, self._hand, self._reaper = keeper, hand, reaper
        self._queues = tuple(queues)
        bench = Workbench(
            store,
            clock=clock,
            rng=rng,
            settings=settings,
            hand=hand,
            runner=runner,
            slots=slots,
        )
        self._look, self._refusals, self._exits = bench.look, bench.refusals, bench.exits
        self._claims, self._starts, self._progress = bench.claims, bench.starts, bench.progress
        self._statistics = bench.statistics
        self._turns = WeightedTurns()
        self._scanner = Scanner(store, self._refusals)
        self.wake = self._exits.wake

    # steps

    @property
    def drained(self) -> bool:
        """Return whether the worker was asked to drain and has no run of its own any more.

        Handlers that were given up may still run; they end with the process.
        """
        if self._drain_until is None or self._exits.unwritten or self._claims.stranded:
            return False
        return all(item.given_up for item in self._hand.items())

    @property
    def idle(self) -> bool:
        """Return whether it has nothing in hand and nothing to write."""
        return not len(self._hand) and not self._exits.unwritten and self._exits.none_new

    def drain(self) -> None:
        """Stop claiming; handlers get the grace, then their runs are handed back."""
        if self._drain_until is None:
            self._drain_until = self._clock.now() + self._settings.drain_grace
            log.info("draining: %d runs in hand", len(self._hand))
        self.wake.set()

    def look_again(self) -> None:
        """Let the next poll read every lane, whatever it has seen of them a moment ago."""
        self._scanner.forget()
        self._foreign_at = None

    def poll(self) -> PollReport:
        """Write what has ended, then claim, look and start for the free slots.

        Raises:
            StoreError: the store failed; what was not written is kept for the next poll.
        """
        now = self._clock.now()
        self._statistics.turn(now)
        report = self._step(now)
        self._statistics.write_by(now)
        return report

    def _step(self, now: datetime) -> PollReport:
        self.wake.clear()
        report = PollReport()
        self._exits.add(self._claims.give_back(now))
        report.ended += self._exits.flush(now)
        session = self._present_session(now)
        self._stop_overdue(now)
        if session is None:
            return report
        self._reconcile(session, now)
        self._progress.write(now)
        if self._drain_until is None:
            self._fill_slots(session, now, report)
        return report

    def close(self) -> None:
        """Write what is left and close the session; called once drained."""
        now = self._clock.now()
        self._statistics.turn(now)
        self._exits.flush(now)
        self._statistics.write(now)
        self._keeper.close()

    # session

    def _present_session(self, now: datetime) -> str | None:
        """Return the living session; after a lapse hand back what is left and open a new one."""
        session = self._keeper.session
        if session is not None:
            return session
        lapsed = self._keeper.abandon()
        if lapsed is not None:
            log.warning("session %s lapsed: its runs are handed back", lapsed)
        left = [item for item in self._hand.items() if not item.given_up and item.result is None]
        for item in left:
            item.stop.set(StopReason.LEASE_LOST)
        started = [item for item in left if item.started_at is not None]
        self._exits.hand_back(started, StopReason.LEASE_LOST, now)
        if self._drain_until is not None:
            return None
        self._reaper.sweep_host()
        return self._keeper.open()

    def _stop_overdue(self, now: datetime) -> None:
        """Fail runs whose handler ignored its hard limit; hand back runs at the drain's end."""
        self._exits.fail_overdue(now)
        grace, until = self._settings.drain_grace, self._drain_until
        if until is None or within(now, until - grace, grace):
            return
        # What ignored its hard limit is failed in a moment.
        left = [one for one in self._exits.running() if not one.stop.has(StopReason.HARD_LIMIT)]
        if left:
            self._exits.hand_back(left, StopReason.DRAIN, now)

    def _reconcile(self, session: str, now: datetime) -> None:
        """Hand back what lies under the own session and no slot has in hand.

        A claim whose answer was lost, or a slot that died: heartbeats go on, so no reaper comes.
        """
        if within(now, self._reconciled_at, self._settings.lease):
            return
        first, self._reconciled_at = self._reconciled_at is None, now
        if first:
            return
        for seen in self._store.runs.leased(session, most=LEASED_MAX):
            if seen.run_id in self._hand:
                continue
            run = self._store.runs.get(seen.key)
            if run is None or run.state is not RunState.LEASED or run.session != session:
                continue
            log.warning("run %s lay under the worker's own session in nobody's hand", run.run_id)
            self._store.runs.apply(lifecycle.reclaim(run, now=now, signature="orphaned0000"))

    # claims

    def _fill_slots(self, session: str, now: datetime, report: PollReport) -> None:
        free = self._settings.slots - len(self._hand)
        if free <= 0 or self._keeper.skewed or self._refusals.emptying(now):
            return
        names = self._lanes(session, now)
        runs = self._candidates(names, free, now)
        claimed = self._claims.take(runs, session) if runs else []
        report.claimed = len(claimed)
        if claimed:
            report.started = self._starts.start(claimed, self._alive)
        lanes = [self._scanner.lane(name) for name in names]
        report.again = any(lane.ahead or lane.more for lane in lanes)
        report.next_at = min((lane.next_at for lane in lanes if lane.next_at), default=None)

    def _lanes(self, session: str, now: datetime) -> list[LaneName]:
        """Return the lanes to look at: the own ones, now and then all."""
        count = self._store.topology.lanes
        lanes: frozenset[int] = home_lanes(session, self._keeper.others, count)
        foreign = self._settings.foreign_lanes
        if not within(now, self._foreign_at, foreign):
            self._foreign_at = now
            lanes = frozenset(range(count))
        return [
            (name, priority, lane)
            for name in self._queues
            for priority in Priority
            for lane in sorted(lanes)
        ]

    def _candidates(self, names: Sequence[LaneName], free: int, now: datetime) -> list[Run]:
        def usable(run: Run) -> bool:
            return self._refusals.usable(run, now)

        sources: dict[Priority, list[deque[Run]]] = {priority: [] for priority in Priority}
        for name in names:
            sources[name[1]].append(self._scanner.fill(name, free, now))
        taken = self._look.one_of_each(take_by_weight(sources, self._turns, free, usable))
        suspects = [run for run in taken if run.losses >= SUSPECT_LOSSES]
        if suspects:
            # It may kill its process: it runs alone, and nothing is claimed beside it.
            return suspects[:1] if not len(self._hand) else []
        return taken

    def _alive(self, item: InHand) -> bool:
        """Return whether a run's lease is alive by this process's own clocks."""
        return self._keeper.alive(item.session)
