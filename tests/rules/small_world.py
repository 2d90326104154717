"""A small world to play schedules of events in: one store, a clock that tests move, processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import Any

import pytest

from dynsched.bootstrap import (
    Base,
    build_operations,
    build_reaper,
    build_worker,
    init_store,
    open_base,
)
from dynsched.domain import lifecycle
from dynsched.domain.instants import minute_start
from dynsched.domain.job import Job, Overlap, Policies, Priority
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import FIXED_SESSION, Run, RunKey, RunKind, RunState, occur
from dynsched.domain.target import HandlerTarget
from dynsched.services.dispatcher import Dispatcher, TickReport
from dynsched.services.operations import Operations
from dynsched.services.reaper import Reaper, SweepReport
from dynsched.services.session import SessionKeeper
from dynsched.services.slots import Work
from dynsched.services.specs import CronSpec, JobSpec, ScheduleSpec
from dynsched.services.worker import PollReport, Worker
from dynsched.settings import Settings
from dynsched.storage.codec import encode_generation
from dynsched.storage.engine import Applied, Body, Engine, Key, Replace
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.placement import job_key
from dynsched.storage.runs import RunApplied
from dynsched.storage.sqlite import SqliteEngine
from dynsched.storage.store import Store
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext, Snooze
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import Crash, Fault, LaggingEngine
from dynsched.testing.messages import MemoryHandOff
from tests.rules.wire import Wire, claims

START = datetime(2026, 3, 2, 9, 0, 10, tzinfo=UTC)
RETRY = RetryPolicy(base=timedelta(seconds=5), jitter=Jitter.NONE)
PLAIN = Policies(timeout=None, retry=RETRY, overlap=Overlap.ALLOW)
HANDED_OFF = tuple(
    MessageQueue(queue="main", priority=priority, url=f"http://sqs/{priority.value}")
    for priority in Priority
)
EVERY_MINUTE = CronSpec(expr="* * * * *")


def at(text: str) -> datetime:
    """Return an instant of the day on which the world begins, from `HH:MM` or `HH:MM:SS`."""
    return datetime.combine(START.date(), time.fromisoformat(text), UTC)


def policies(**changes: Any) -> Policies:
    """Return policies without time limits that allow overlap, but for the changes."""
    return replace(PLAIN, **changes)


class ProcessClock(SettableClock):
    """A clock as one process has it: perhaps a little off, perhaps read a while ago."""

    def __init__(self, clock: SettableClock, skew_s: float) -> None:
        super().__init__()
        self._clock, self._skew = clock, timedelta(seconds=skew_s)
        self._held: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the wall clock's instant."""
        return self._held[0] if self._held else self._clock.now() + self._skew

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._held[1] if self._held else self._clock.monotonic()

    def step(self, length: timedelta = timedelta(0), **parts: float) -> None:
        """Let time pass, for everybody."""
        self._clock.step(length, **parts)

    def hold(self) -> None:
        """Stop: what the process does from now on was begun now and lands later."""
        self._held = (self.now(), self.monotonic())

    def let_go(self) -> None:
        """Go on, with the true time."""
        self._held = None


class HeldSlots:
    """Slots on which handlers begin, and go on until the test releases them."""

    def __init__(self) -> None:
        self.held: list[Work] = []

    def start(self, work: Work) -> None:
        """Hold a piece of work."""
        self.held.append(work)

    def replace_one(self) -> None:
        """Do nothing: there is no bound but the worker's own."""

    def release(self, count: int = 1_000) -> None:
        """Let the handlers that are held longest do their work and return."""
        for work in self.held[:count]:
            self.held.remove(work)
            work()


@dataclass(slots=True)
class Process:
    """A process: its clock, its wire and its view of the store."""

    base: Base
    wire: Wire
    clock: ProcessClock

    @property
    def store(self) -> Store:
        """Return its view of the store."""
        return self.base.store

    def die(self) -> None:
        """Kill it."""
        self.wire.die()


@dataclass(slots=True)
class WorkerProcess(Process):
    """A process with a worker in it."""

    worker: Worker
    keeper: SessionKeeper
    slots: HeldSlots

    def poll(self, times: int = 1) -> PollReport:
        """Poll; return what the last one did."""
        for _ in range(times - 1):
            self.worker.poll()
        return self.worker.poll()

    @property
    def session(self) -> str:
        """Return the id of its session."""
        assert self.keeper.session is not None
        return self.keeper.session

    def beat(self) -> bool:
        """Send a heartbeat."""
        return self.keeper.beat()

    def finish(self, count: int = 1_000) -> None:
        """Let the longest running handlers return, and write how they ended."""
        self.slots.release(count)
        self.worker.poll()


@dataclass(slots=True)
class DispatcherProcess(Process):
    """A process with a dispatcher in it."""

    dispatcher: Dispatcher

    def tick(self) -> TickReport:
        """Make one tick."""
        return self.dispatcher.tick()


@dataclass(slots=True)
class ReaperProcess(Process):
    """A process with a reaper in it."""

    reaper: Reaper

    def sweep(self, until: datetime | None = None) -> SweepReport:
        """Make one sweep."""
        return self.reaper.sweep(until)


class World:
    """One store and the processes around it.

    Args:
        lag_s: how long an index entry takes to appear or to go, seconds.
        shards: of each minute bucket.
        lanes: of each queue; with one, the order of claims is that of the index.
        handed_off: whether runs of the main queue are handed off by messages too.

    Attributes:
        messages: the queues of messages.
        hidden: keys whose index entries are late.
        calls: the contexts of the handlers that were called, in order.
        living: workers that send their heartbeats while the dead are reaped.
    """

    def __init__(
        self, *, lag_s: float = 0, shards: int = 1, lanes: int = 2, handed_off: bool = False
    ) -> None:
        self.clock = SettableClock(START)
        self.messages = MemoryHandOff(self.clock)
        self.hidden: set[Key] = set()
        self.calls: list[AnyContext] = []
        self.living: list[WorkerProcess] = []
        engine: Engine = SqliteEngine(None)
        engine.init()
        self.index = LaggingEngine(engine, clock=self.clock, lag_s=lag_s) if lag_s else None
        self._engine = self.index or engine
        self._made = 0
        people = self._process(0)
        init_store(people.base, shards=shards, lanes=lanes)
        if handed_off:
            mapped = replace(people.store.topology, message_queues=HANDED_OFF)
            assert people.store.control.write_map(mapped)
            people.store.refresh()
        self.people = people
        self.operations: Operations = build_operations(people.base)

    @property
    def store(self) -> Store:
        """Return a view of the store to look at it with."""
        return self.people.store

    @property
    def now(self) -> datetime:
        """Return the true time."""
        return self.clock.now()

    # processes

    def _process(self, skew_s: float, slots: int = 4) -> Process:
        self._made += 1
        wire = Wire(self._engine, self.hidden)
        clock = ProcessClock(self.clock, skew_s)
        settings = Settings(slots=slots)
        base = open_base(
            engine=wire,
            handoff=self.messages,
            clock=clock,
            rng=Random(self._made),
            settings=settings,
            environment={},
        )
        return Process(base, wire, clock)

    def operator(self) -> tuple[Operations, Process]:
        """Start a process of another person."""
        process = self._process(0)
        return build_operations(process.base), process

    def worker(
        self,
        *,
        slots: int = 4,
        queues: Sequence[str] = ("main",),
        skew_s: float = 0,
        app: App | None = None,
    ) -> WorkerProcess:
        """Start a worker whose handlers go on until they are released."""
        process = self._process(skew_s, slots)
        held = HeldSlots()
        parts = build_worker(process.base, app or self.app(), queues=queues, slots=held)
        return WorkerProcess(
            process.base, process.wire, process.clock, parts.worker, parts.keeper, held
        )

    def dispatcher(self, *, skew_s: float = 0) -> DispatcherProcess:
        """Start a dispatcher replica."""
        process = self._process(skew_s)
        base = process.base
        name = f"dispatcher-{self._made}"
        replica = Dispatcher(base.store, clock=base.clock, settings=base.settings, name=name)
        return DispatcherProcess(base, process.wire, process.clock, replica)

    def reaper(self) -> ReaperProcess:
        """Start a reaper."""
        process = self._process(0)
        reaper = build_reaper(process.base)
        return ReaperProcess(process.base, process.wire, process.clock, reaper)

    def app(self) -> App:
        """Return an app whose handlers note their calls: `ok`, `fail` and `snooze`."""
        app = App()

        @app.job("ok")
        def _ok(ctx: AnyContext) -> None:
            self.calls.append(ctx)

        @app.job("fail")
        def _fail(ctx: AnyContext) -> None:
            self.calls.append(ctx)
            raise RuntimeError("no luck")

        @app.job("snooze")
        def _snooze(ctx: AnyContext) -> None:
            self.calls.append(ctx)
            raise Snooze(after=timedelta(seconds=5))

        return app

    # jobs and runs

    def job(
        self,
        name: str = "job",
        schedule: ScheduleSpec | None = None,
        *,
        handler: str = "ok",
        tenant: str = "default",
        queue: str = "main",
        priority: Priority = Priority.DEFAULT,
        **choices: Any,
    ) -> Job:
        """Create a job; the choices are those of its policies."""
        return self.operations.create(
            JobSpec(
                name=name,
                target=HandlerTarget(handler),
                schedule=schedule,
                tenant=tenant,
                queue=queue,
                priority=priority,
                policies=policies(**choices),
            )
        )

    def reread(self, job: Job) -> Job:
        """Return a job as it is stored now."""
        found = self.store.jobs.get(job.job_id)
        assert found is not None
        return found

    def cron_run(self, job: Job, at: datetime) -> Run | None:
        """Return the run of a job's occurrence."""
        return self.store.runs.get(RunKey(job.job_id, at, RunKind.CRON))

    def run(self, run: Run) -> Run:
        """Return a run as it is stored now."""
        found = self.store.runs.get(run.key)
        assert found is not None
        return found

    def runs(self, job: Job) -> list[Run]:
        """Return a job's runs, oldest instant first."""
        return sorted(self.store.runs.history(job.job_id, most=1000), key=lambda run: run.key.sort)

    def states(self, *runs: Run) -> list[RunState]:
        """Return the states of runs as they are stored now."""
        return [self.run(run).state for run in runs]

    def put_late(self, job: Job, at: datetime) -> Run:
        """Make an occurrence's row, as a replica does that was frozen with an old plan."""
        key = RunKey(job.job_id, at, RunKind.CRON)
        generation = job.generations[0].effective_from
        run = occur(job, key, available_at=at, now=self.now, generation=generation)
        assert self.store.runs.create_many([run]) == [True]
        return run

    def cursor_at(self, kind: str) -> datetime:
        """Return the beginning of the first minute that a cursor has not passed."""
        (cursor,) = self.store.control.cursors(kind, 1)
        assert cursor is not None
        return minute_start(cursor.minute)

    def hide(self, job: Job) -> None:
        """Let a job's index entry be late, until `show`."""
        self.hidden.add(job_key(job.job_id))

    def show(self) -> None:
        """Let every index entry appear that was late."""
        self.hidden.clear()

    def enqueue(self, job: Job, count: int = 1) -> list[Run]:
        """Enqueue runs of a job, available now."""
        return self.operations.enqueue_many(job.job_id, [None] * count, priority=job.priority)

    def land_claim(self, run: Run, session: str) -> None:
        """Let a claim land that a process sent for a session a while ago."""
        move = lifecycle.claim(self.run(run), session=session)
        assert isinstance(self.store.runs.apply(move), RunApplied)

    def claim_fixed(self, run: Run, invocation: str, ends_at: datetime) -> Run:
        """Let an invocation claim a run under a lease with a fixed end."""
        session = f"{FIXED_SESSION}{invocation}"
        move = lifecycle.claim(self.run(run), session=session, now=self.now, lease_ends_at=ends_at)
        assert isinstance(self.store.runs.apply(move), RunApplied)
        return move.after

    def break_schedule(self, job: Job) -> None:
        """Leave a zone in a job's newest generation that an older zone database does not know."""
        engine, key = self.people.wire, job_key(job.job_id)
        row = engine.get(key)
        assert row is not None
        schedule: Body = {"kind": "cron", "cron": "* * * * *", "tz": "Nowhere/Atlantis"}
        *older, newest = (encode_generation(item) for item in job.generations)
        body: Body = {**row.body, "g": [*older, {**newest, "s": schedule}]}
        broken = replace(row, body=body, token=self.store.token())
        assert isinstance(engine.write(Replace(broken, row.version)), Applied)

    # stretches of time

    def lose_claim(self) -> None:
        """Let a process die right after a claim, before its look; the reaper returns the run."""
        dying = self.worker(slots=1)
        dying.wire.before(claims, fault=Fault.CRASH_AFTER)
        with pytest.raises(Crash):
            dying.poll()
        self.reap()

    def lose_handler(self, **options: Any) -> None:
        """Let a process die while a handler runs; the reaper returns the run."""
        dying = self.worker(slots=1, **options)
        assert dying.poll().started == 1
        dying.slots.release()
        dying.die()
        self.reap()

    def reap(self) -> SweepReport:
        """Let the sessions of the dead run out; sweep."""
        self.leave_alone(*self.living, seconds=40)
        return self.reaper().sweep()

    def leave_alone(self, *processes: WorkerProcess, seconds: float) -> None:
        """Let time pass while workers send their heartbeats, each ten seconds."""
        for _ in range(int(seconds // 10)):
            self.clock.step(seconds=10)
            for process in processes:
                assert process.beat()

    def tick_for(self, dispatcher: DispatcherProcess, seconds: float) -> TickReport:
        """Let time pass while a dispatcher ticks each ten seconds; return all it did."""
        total = TickReport()
        for _ in range(int(seconds // 10)):
            self.clock.step(seconds=10)
            report = dispatcher.tick()
            total.late += report.late
            total.served.add(report.served)
        return total
