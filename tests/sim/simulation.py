"""A seeded simulation of the real services: processes that fail, over a store that fails them.

    python -m tests.sim 17          one seed, with what happened
    python -m tests.sim 0 500       many seeds, with their violations

Each seed is one history, which can be repeated. First everything goes wrong for a while, then
faults stop and schedules end, and in the end the invariants must hold.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar, cast

from dynsched.bootstrap import (
    Base,
    build_dispatcher,
    build_operations,
    build_reaper,
    build_worker,
    init_store,
    open_base,
    prepare_store,
)
from dynsched.domain.run import Run
from dynsched.errors import DynschedError
from dynsched.services.loops import Pace
from dynsched.services.session import BEATS_PER_LEASE
from dynsched.services.slots import Work
from dynsched.settings import Settings
from dynsched.storage.codec import decode_run
from dynsched.storage.engine import Table
from dynsched.storage.placement import MapEntry, Topology, map_key
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.runner import TargetRunner
from dynsched.testing.checker import check_history, check_rest, check_rows
from dynsched.testing.faults import Call, Fault, FaultyEngine, LaggingEngine
from dynsched.testing.history import History, RecordingEngine
from dynsched.testing.messages import MemoryHandOff
from dynsched.testing.trail import ATTEMPTS, read_trail
from tests.sim.baton import Baton, Killed, Life
from tests.sim.functions import QUEUES, Function, messages_of
from tests.sim.operator import CAPPED, Operator, first_jobs
from tests.sim.simtime import SimClock
from tests.sim.weather import Weather, weather_of
from tests.sim.work import TOXIC, is_toxic, make_app

Answer = TypeVar("Answer")

CALM_S = 60.0  # how long schedules go on after it
REST_S = 150.0  # how long the store is left alone then
NET_S = 4_200.0  # beyond the last re-reading of closed minutes and sessions


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


SETTINGS = Settings(
    lease=_s(9),
    lease_margin=_s(3),
    reaper_period=_s(2),
    index_lag=_s(8),
    close_after=_s(13),
    catch_up_pace=_s(0.5),
    slots=3,
    poll_idle=_s(2),
    foreign_lanes=_s(2),
    drain_grace=_s(4),
    unknown_handler=_s(60),
    suspect_patience=_s(10),
    refusal=_s(1),
)


class SimEngine(FaultyEngine):
    """The connection of one simulated process: each call is a place where others may go first."""

    def __init__(self, town: Town, life: Life) -> None:
        super().__init__(town.shared, self._fault)
        self._town = town
        self._life = life

    def _around(self, call: Call, proceed: Callable[[], Answer]) -> Answer:
        rng, baton = self._town.rng, self._town.baton
        baton.pause(rng.random() * 0.004)
        self._town.strike(self._life)
        answer = super()._around(call, proceed)
        if rng.random() < 0.3:
            self._town.strike(self._life)
            baton.pause(rng.random() * 0.004)
        return answer

    def _fault(self, call: Call) -> Fault:
        town = self._town
        if not town.troubled:
            return Fault.NONE
        chance = town.rng.random()
        if chance < town.weather.refused:
            return town.rng.choice([Fault.THROTTLE, Fault.UNAVAILABLE])
        if len(call.writes) > 1 and town.rng.random() < town.weather.killed:
            town.baton.kill(self._life)
            return Fault.CRASH_HALFWAY
        if call.writes and chance < town.weather.refused + town.weather.lost:
            return town.rng.choice([Fault.LOST_APPLIED, Fault.LOST_UNAPPLIED, Fault.LOST_HALFWAY])
        return Fault.NONE


class SimSlots:
    """Slots whose handlers are actors; one begins before the worker's poll goes on."""

    def __init__(self, town: Town, life: Life) -> None:
        self._town = town
        self._life = life

    def start(self, work: Work) -> None:
        """Run a piece of work beside the poll."""
        self._town.baton.spawn(self._life, work, at_once=True)

    def replace_one(self) -> None:
        """Do nothing: there are as many actors as are asked for."""


@dataclass(slots=True)
class Town:
    """One store and the processes around it.

    Attributes:
        troubled: things go wrong now.
        counts: what has happened, for the report.
    """

    seed: int
    rng: Random
    baton: Baton
    recorder: RecordingEngine
    shared: LaggingEngine
    weather: Weather
    messages: MemoryHandOff
    troubled: bool = True
    ending: bool = False
    processes: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lives: dict[int, Life] = field(default_factory=dict)
    names: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def new(cls, seed: int) -> Town:
        """Return a town with an empty store; the seed decides everything."""
        rng = Random(seed)
        baton = Baton(rng)
        engine = SqliteEngine(None)
        engine.init()
        recorder = RecordingEngine(engine)
        weather = weather_of(rng)
        shared = LaggingEngine(
            recorder, clock=SimClock(baton, 0.0), lag_s=rng.choice(weather.lag_s)
        )
        town = cls(seed, rng, baton, recorder, shared, weather, messages_of(baton, rng))
        base = town.base(shared, 0.0)
        init_store(
            base,
            look_ahead=_s(10),
            shards=rng.choice([1, 2]),
            lanes=rng.choice([1, 2, 3]),
            spread=rng.choice([1, 2]),
        )
        prepare_store(base, look_ahead=_s(10), shards=1, lanes=1, message_queues=QUEUES)
        return town

    def base(self, engine: LaggingEngine | SimEngine, skew_s: float) -> Base:
        """Open the store for one process."""
        self.processes += 1
        return open_base(
            environment={},
            engine=engine,
            clock=SimClock(self.baton, skew_s),
            rng=Random(self.seed * 1_000 + self.processes),
            settings=SETTINGS,
            handoff=self.messages,
        )

    def strike(self, life: Life) -> None:
        """Let the process of the actor that runs now be killed or frozen, by chance."""
        if not self.troubled:
            return
        chance = self.rng.random()
        weather = self.weather
        if chance < weather.killed:
            self.counts["killed"] += 1
            self.baton.kill(life)
            raise Killed
        frozen = weather.dispatchers if life.name.startswith("dispatcher") else weather.frozen
        if chance < weather.killed + frozen:
            self.counts["frozen"] += 1
            length_s = self.rng.uniform(1.0, weather.frozen_s_max)
            life.frozen_until_s = self.baton.now_s + length_s
            self.baton.pause()

    # processes

    @property
    def history(self) -> History:
        """Return what has happened so far."""
        return self.recorder.history

    def settle_in(self) -> None:
        """Make the first jobs, the processes, and the one who starts them again."""
        founder = Life("founder")
        self.baton.spawn(founder, self._found)
        self.baton.run(1.0)
        assert not self.baton.failures, self.baton.failures
        kinds = (
            [self._dispatcher] * 2
            + [self._worker] * self.rng.choice([2, 3])
            + [self._function] * self.rng.choice([0, 2, 4])
            + [self._reaper] * 2
            + [self._operator]
        )
        self.baton.spawn(Life("nanny"), lambda: self._nurse(kinds))

    def _found(self) -> None:
        operations = build_operations(self.base(self.shared, 0.0))
        operations.set_tenant(CAPPED, max_running=2)
        for spec in first_jobs(self.rng, toxic=self.rng.random() < self.weather.toxic):
            operations.create(spec)
            self.names.append((spec.tenant, spec.name))

    def _nurse(self, kinds: Sequence[Callable[[Life], None]]) -> None:
        """Start every process, and again whenever it has died."""
        while True:
            for number, kind in enumerate(kinds):
                life = self.lives.get(number)
                if life is None or life.dead:
                    life = self.lives[number] = Life(f"{kind.__name__.strip('_')}{number}")
                    kind(life)
            self.baton.pause(self.rng.uniform(0.5, 4.0))

    def _open(self, life: Life) -> Base:
        return self.base(SimEngine(self, life), self.rng.uniform(-1.0, 1.0))

    def _dispatcher(self, life: Life) -> None:
        dispatcher = build_dispatcher(self._open(life))

        def loop() -> None:
            while True:
                report = self.attempt(dispatcher.tick)
                behind = report is not None and report.behind
                self.baton.pause(0.0 if behind else dispatcher.period.total_seconds())

        self.baton.spawn(life, loop)

    def _reaper(self, life: Life) -> None:
        reaper = build_reaper(self._open(life))

        def loop() -> None:
            while True:
                report = self.attempt(reaper.sweep)
                if report is not None:
                    self.counts["returned"] += report.returned
                    self.counts["returned late"] += report.late
                self.baton.pause(SETTINGS.reaper_period.total_seconds())

        self.baton.spawn(life, loop)

    def _worker(self, life: Life) -> None:
        base = self._open(life)
        parts = build_worker(base, make_app(self, life), slots=SimSlots(self, life))
        worker, keeper, pace = parts.worker, parts.keeper, Pace(SETTINGS.poll_idle.total_seconds())

        def poll() -> None:
            while not worker.drained:
                if self.troubled and self.rng.random() < 0.002:
                    self.counts["drained"] += 1
                    worker.drain()
                report = self.attempt(worker.poll)
                pause_s = 1.0 if report is None else pace.after(report, base.clock.now())
                base.clock.wait_for(worker.wake, max(pause_s, 0.001))
            self.attempt(worker.close)
            life.dead = True

        def beat() -> None:
            while True:
                if not self.attempt(keeper.beat):
                    worker.wake.set()
                self.baton.pause(SETTINGS.lease.total_seconds() / BEATS_PER_LEASE)

        self.baton.spawn(life, poll)
        self.baton.spawn(life, beat)
        self.baton.spawn(life, self._watch_limits(parts.runner))

    def _function(self, life: Life) -> None:
        base = self._open(life)
        function = Function(self, life, base, SimSlots(self, life))
        self.baton.spawn(life, function.serve)
        self.baton.spawn(life, function.end_in_time)
        self.baton.spawn(life, self._watch_limits(function.runner))

    def _watch_limits(self, runner: TargetRunner) -> Callable[[], None]:
        """Return an actor that does what the runner's own thread does in real time."""
        watch = runner._watch
        watch._thread = threading.current_thread()

        def loop() -> None:
            while True:
                watch.look()
                self.baton.pause(0.25)

        return loop

    def _ends(self) -> bool:
        return self.ending

    def _operator(self, life: Life) -> None:
        base = self._open(life)
        operations = build_operations(base)
        operator = Operator(
            operations, self.rng, clock=base.clock, runs=self.runs, names=self.names
        )

        def loop() -> None:
            while not self.ending:
                self.baton.pause(self.rng.uniform(0.2, self.weather.operator_s), self._ends)
                if self.troubled:
                    self.attempt(operator.act)
            while not self.attempt(operator.end_schedules):
                self.baton.pause(1.0)

        self.baton.spawn(life, loop)

    def attempt(self, step: Callable[[], Answer]) -> Answer | None:
        """Return what a step answers; None after a failure of the store: the loop goes on."""
        try:
            return step()
        except DynschedError as error:
            self.counts[type(error).__name__] += 1
            return None

    def runs(self) -> list[Run]:
        """Return all runs, as whoever lists them sees them."""
        return [
            decode_run(row)
            for row in self.history.rows.values()
            if row.key.table is Table.RUNS and not row.key.pk.startswith(ATTEMPTS)
        ]

    # the course of events

    def live(self) -> list[str]:
        """Let everything happen; return the broken invariants."""
        self.settle_in()
        if self.rng.random() < self.weather.outage:
            self.baton.run(self.weather.trouble_s / 3)
            self._freeze_dispatchers(self.rng.uniform(60.0, 100.0))
        for _ in range(10):
            self.shared.lag_s = self.rng.choice(self.weather.lag_s)
            self.baton.run(self.weather.trouble_s / 10)
        self.troubled = False
        self.messages.loss = self.messages.doubling = 0.0
        for life in self.lives.values():
            life.frozen_until_s = min(life.frozen_until_s, self.baton.now_s + 2.0)
        self.baton.run(CALM_S)
        self.ending = True
        self.baton.run(REST_S)
        if not self._at_rest():
            self.counts["needed the last nets"] += 1
            self.baton.run(NET_S)
        found = self._found_broken()
        self.baton.end()
        return found

    def _freeze_dispatchers(self, length_s: float) -> None:
        self.counts["outages"] += 1
        for life in self.lives.values():
            if life.name.startswith("dispatcher"):
                life.frozen_until_s = self.baton.now_s + length_s

    def _at_rest(self) -> bool:
        return not check_rest(read_trail(self.history), self.recorder_now())

    def recorder_now(self) -> datetime:
        """Return the true time."""
        return SimClock(self.baton, 0.0).now()

    def _found_broken(self) -> list[str]:
        trail = read_trail(self.history)
        found = [f"raised: {failure}" for failure in self.baton.failures]
        found += check_history(self.history, topology=self._topology())
        found += check_rest(trail, self.recorder_now())
        found += check_rows(self.history, self.recorder)
        if self.weather.name == "poisoned":
            found += self._innocents()
        for changes in trail.runs.values():
            run = changes[-1].run
            self.counts[f"{run.state.value}"] += 1
        self.counts["starts"] += len(self.history.starts)
        return found

    def _innocents(self) -> list[str]:
        """Invariant 11: without other faults only those die of poison that are poison."""
        return [
            f"11: {run.run_id} is dead as poison and is innocent"
            for run in self.runs()
            if run.reason == "poison"
            and not (run.needs == f"handler:{TOXIC}" and is_toxic(run.run_id))
        ]

    def _topology(self) -> Topology:
        """Return a map with all entries that there ever were."""
        entries = {
            MapEntry(*entry)
            for change in self.history.changes
            if change.key == map_key() and change.after is not None
            for entry in cast("list[list[int]]", change.after.body["m"])
        }
        return Topology(tuple(sorted(entries, key=lambda entry: entry.from_minute)))


def simulate(seed: int) -> tuple[list[str], Counter[str]]:
    """Run one seed; return the broken invariants and what happened."""
    log = logging.getLogger("dynsched")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what goes wrong here is meant to
    town = Town.new(seed)
    try:
        found = town.live()
    finally:
        log.setLevel(level)
    return [f"({town.weather.name}) {sentence}" for sentence in found], town.counts
