"""The worker: claims runs for its free slots, looks, starts them, and writes how they ended.

`poll` is one bounded step and is called from one thread. Handlers run on slot threads, heartbeats
on a thread of their own; both only leave notes for the next poll.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, within
from dynsched.domain.job import Priority
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.run import Run, RunState
from dynsched.domain.selection import WeightedTurns, home_lanes, take_by_weight
from dynsched.errors import StoreError
from dynsched.services.endings import Ending, Endings
from dynsched.services.hand import Hand, InHand
from dynsched.services.leadout import LeadOut, step_back
from dynsched.services.look import Found, Look, Looked
from dynsched.services.parts import PartCache
from dynsched.services.permits import PermitDesk
from dynsched.services.progress import ProgressNotes
from dynsched.services.reaper import Reaper
from dynsched.services.refusals import Refusals
from dynsched.services.scan import LaneName, Scanner
from dynsched.services.session import SessionKeeper
from dynsched.services.slots import Work
from dynsched.services.start import Starter
from dynsched.services.statistics import Statistics
from dynsched.settings import Settings
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")

LEASED_MAX = 10_000  # runs of the own session that one reconciliation reads


class Slots(Protocol):
    """Where handlers run."""

    def start(self, work: Work) -> None:
        """Run a piece of work, at once or on another thread."""

    def replace_one(self) -> None:
        """Make up for a slot whose handler was given up and does not return."""


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
        self._keeper, self._hand, self._slots, self._reaper = keeper, hand, slots, reaper
        self._queues = tuple(queues)
        self._desk, self._statistics = PermitDesk(store), Statistics(store)
        self._look = Look(store, clock=clock, desk=self._desk)
        self._endings = Endings(
            store, clock=clock, rng=rng, desk=self._desk, on_move=self._statistics.moved
        )
        self._progress = ProgressNotes(store, clock=clock, hand=hand)
        self._turns = WeightedTurns()
        self._refusals = Refusals(
            settings=settings, runner=runner, hand=hand, peek=self._peek, reread=store.runs.get
        )
        self._scanner = Scanner(store, self._refusals)
        self._lead_out = LeadOut(
            store, clock, refusals=self._refusals, endings=self._endings, write=self._write
        )
        self._starter = Starter(
            runner=runner, clock=clock, parts=PartCache(store), on_end=self._on_end
        )
        self._finished: queue.SimpleQueue[InHand] = queue.SimpleQueue()
        self._unwritten: list[Ending] = []
        self._stranded: list[InHand] = []
        self.wake = threading.Event()

    # steps

    @property
    def drained(self) -> bool:
        """Return whether the worker was asked to drain and has no run of its own any more.

        Handlers that were given up may still run; they end with the process.
        """
        if self._drain_until is None or self._unwritten or self._stranded:
            return False
        return all(item.given_up for item in self._hand.items())

    @property
    def idle(self) -> bool:
        """Return whether it has nothing in hand and nothing to write."""
        return not len(self._hand) and not self._unwritten and self._finished.empty()

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
        self._return_stranded(now)
        self._flush(report, now)
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
        self._flush(PollReport(), now)
        self._statistics.write(now)
        self._keeper.close()

    def _peek(self, tenant: str) -> bool:
        cap = self._look.tenant(tenant).max_running
        return cap is None or self._desk.any_free(tenant, cap)

    # endings

    def _on_end(self, item: InHand) -> None:
        """Note a handler's return; called on its slot's thread."""
        self._finished.put(item)
        if not self.wake.is_set():  # a poll clears it before it looks at what has finished
            self.wake.set()

    def _flush(self, report: PollReport, now: datetime) -> None:
        look_ahead = self._store.topology.look_ahead
        while True:
            try:
                item = self._finished.get_nowait()
            except queue.Empty:
                break
            if item.given_up:
                self._note_late(item)
            else:
                self._unwritten.append(self._ending_of(item, now, look_ahead))
        report.ended += self._write_out()

    def _ending_of(self, item: InHand, now: datetime, look_ahead: timedelta) -> Ending:
        """Return a result's way out; one that cannot be made must not hold up the others."""
        try:
            return self._endings.of_result(item, now, look_ahead)
        except Exception as error:
            log.exception("run %s: its result cannot be evaluated", item.run.run_id)
            problem = f"{type(error).__name__}: {error}"
            item.result = Failed(error_type="BadResult", message=problem, hint=Hint.PERMANENT)
            return self._endings.of_result(item, now, look_ahead)

    def _note_late(self, item: InHand) -> None:
        try:
            self._endings.note_late(item)
        except Exception:
            log.exception("run %s: its late result cannot be kept", item.run.run_id)

    def _write_out(self) -> int:
        """Write the ways out that are due; their runs leave the hand.

        Raises:
            StoreError: the store failed; all are kept for the next time.
        """
        endings = self._unwritten
        if not endings:
            return 0
        self._endings.write(endings)
        self._unwritten = []
        for ending in endings:
            item = ending.item
            self._refusals.ended(item.run)
            if item.permit is not None:
                self._refusals.freed(item.run)
            # Also one whose handler still runs: the run is not its any more.
            self._hand.leave(item)
        return len(endings)

    def _write(self, endings: Sequence[Ending]) -> bool:
        """Write ways out; False if the store failed, then the next poll writes them."""
        self._unwritten += endings
        try:
            self._write_out()
        except StoreError as error:
            log.warning("%d runs are given back later: %s", len(self._unwritten), error)
            return False
        return True

    def _give_up(self, items: Sequence[InHand], endings: Sequence[Ending]) -> None:
        """Write a way out for runs whose handlers still run; their slots are made up for."""
        for item in items:
            item.given_up = True
        for _ in items:
            self._slots.replace_one()
        self._write(endings)

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
        endings = [
            self._endings.hand_back(item, now, StopReason.LEASE_LOST.value) for item in started
        ]
        self._give_up(started, endings)
        if self._drain_until is not None:
            return None
        self._reaper.sweep_host()
        return self._keeper.open()

    def _stop_overdue(self, now: datetime) -> None:
        """Fail runs whose handler ignored its hard limit; hand back runs at the drain's end."""
        over: list[InHand] = []
        endings: list[Ending] = []
        grace, until = self._settings.drain_grace, self._drain_until
        draining = until is not None and not within(now, until - grace, grace)
        for item in self._hand.items():
            if item.given_up or item.result is not None or item.started_at is None:
                continue
            if item.stop.has(StopReason.HARD_LIMIT):
                if item.job is None or now < item.started_at + _patience(item):
                    continue
                item.result = Failed(
                    error_type="TimeLimit", message="the handler ignored its hard time limit"
                )
                look_ahead = self._store.topology.look_ahead
                endings.append(self._endings.of_result(item, now, look_ahead))
                over.append(item)
            elif draining:
                item.stop.set(StopReason.DRAIN)
                endings.append(self._endings.hand_back(item, now, StopReason.DRAIN.value))
                over.append(item)
        if over:
            self._give_up(over, endings)

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

    def _return_stranded(self, now: datetime) -> None:
        """Step back from claims that the store's failure left unanswered or not looked at."""
        if not self._stranded:
            return
        keys = [item.run.key for item in self._stranded]
        endings: list[Ending] = []
        for item, run in zip(self._stranded, self._store.runs.get_many(keys), strict=True):
            mine = run is not None and run.state is RunState.LEASED
            if run is None or not mine or run.session != item.session:
                self._hand.leave(item)
                continue
            item.run = run
            endings.append(step_back(item, now, now, "the store failed before the start"))
        self._stranded = []
        self._unwritten += endings

    # claims

    def _fill_slots(self, session: str, now: datetime, report: PollReport) -> None:
        free = self._settings.slots - len(self._hand)
        if free <= 0 or self._keeper.skewed or self._refusals.emptying(now):
            return
        names = self._lanes(session, now)
        runs = self._candidates(names, free, now)
        claimed = self._claim(runs, session) if runs else []
        report.claimed = len(claimed)
        if claimed:
            report.started = self._look_and_start(claimed)
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

    def _claim(self, runs: Sequence[Run], session: str) -> list[InHand]:
        """Claim runs under a session; each is entered in the table of runs in hand before."""
        entered = [item for run in runs if (item := self._hand.enter(run, session)) is not None]
        now = self._clock.now()
        moves = [lifecycle.claim(item.run, session=session, now=now) for item in entered]
        try:
            outcomes = self._store.runs.apply_many(moves)
        except Exception:
            self._stranded += entered
            raise
        claimed: list[InHand] = []
        for item, move, outcome in zip(entered, moves, outcomes, strict=True):
            current = outcome.run if isinstance(outcome, RunApplied) else outcome.current
            mine = (
                current is not None
                and current.state is RunState.LEASED
                and (current.session, current.fence) == (session, move.after.fence)
            )
            if mine and current is not None:
                item.run = current
                claimed.append(item)
            else:
                self._hand.leave(item)
        return claimed

    def _look_and_start(self, claimed: Sequence[InHand]) -> int:
        """Look at claimed runs, start those that may, lead the others out."""
        items = {item.run.run_id: item for item in claimed}
        ready: list[InHand] = []
        refused: list[tuple[InHand, Looked]] = []
        unknown: list[Ending] = []
        try:
            for looked in self._look.at([item.run for item in claimed]):
                item = items[looked.run.run_id]
                item.job, item.permit = looked.job, looked.permit
                if looked.found is not Found.START or looked.job is None:
                    refused.append((item, looked))
                elif self._refusals.knows(looked.job.needs):
                    ready.append(item)
                elif looked.job.needs != item.run.needs:
                    refused.append((item, replace(looked, found=Found.ELSEWHERE)))
                else:
                    unknown.append(self._lead_out.unknown(item, self._settings.unknown_handler))
            started = self._starter.prepare(ready)
        except Exception:
            self._stranded += claimed
            raise
        self._lead_out.refused(refused)
        self._unwritten += unknown
        return self._start(started)

    def _start(self, prepared: Sequence[tuple[InHand, Work]]) -> int:
        """Call the handlers whose lease is alive by this process's own clocks."""
        late: list[Ending] = []
        count = 0
        for item, work in prepared:
            if self._keeper.alive(item.session):
                item.started_at = self._clock.now()
                item.number, item.fence = item.run.attempt + 1, item.run.fence
                self._statistics.started(item.run, item.started_at)
                self._slots.start(work)
                count += 1
            else:
                now = self._clock.now()
                late.append(step_back(item, now, now, "lease over before the start"))
        if late:
            self._write(late)
        return count


def _patience(item: InHand) -> timedelta:
    """Return how long after its start a handler that ignores its hard limit is given up."""
    timeout = item.job.policies.timeout if item.job is not None else None
    return (timeout or timedelta(0)) + timedelta(seconds=1)
