"""A scheduler without threads, driven by a test one step at a time, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from dynsched.bootstrap import (
    build_dispatcher,
    build_reaper,
    build_stepper,
    build_worker,
    init_store,
    open_base,
)
from dynsched.client import Client
from dynsched.domain.instants import minute_of
from dynsched.domain.job import Job
from dynsched.domain.payload import Json
from dynsched.domain.run import Run
from dynsched.errors import InvalidInput
from dynsched.services.dispatcher import TickReport
from dynsched.services.reaper import SweepReport
from dynsched.services.slots import InlineSlots, Work
from dynsched.settings import Settings
from dynsched.storage.codec import decode_job
from dynsched.storage.engine import Engine
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.testing.clock import SettableClock

POLLS_MAX = 10_000  # of one `run_due`: a handler that always comes back at once ends the test
STOPS_MAX = 200_000  # of one `advance`
STRIDE_MAX = timedelta(hours=1)  # the longest time that `advance` lets pass without a look
LISTED_MAX = 10_000


def memory_store() -> Engine:
    """Return an empty store in memory; it is gone with the object."""
    return SqliteEngine(None)


class LostSlots:
    """Slots of a worker that dies: nothing that is started there ever runs."""

    def start(self, work: Work) -> None:
        """Lose the work."""

    def replace_one(self) -> None:
        """Do nothing."""


class ManualScheduler:
    """The whole scheduler in one object: dispatcher, worker and reaper do what a test tells them.

    Handlers run in the calling thread. Nothing happens between two calls, and time passes only
    by the clock's `step` or by `advance`; so a test has no sleeps and no races.

    Args:
        app: the handlers.
        clock: the time; by default a `SettableClock` at the beginning of 2026.
        engine: the store; by default one in memory.
        settings: bounds of the services; by default the ones of production.
        queues: the queues that the worker serves.
        inline: run what is due whenever something was enqueued.

    >>> app = App()
    >>> @app.job("greet")
    ... def greet(ctx):
    ...     return f"hello {ctx.payload}"
    >>> with ManualScheduler(app) as scheduler:
    ...     run = scheduler.enqueue("greet", "Ada")
    ...     started = scheduler.run_due()
    ...     [run.state.value for run in scheduler.runs("greet")]
    ['done']

    A handler with a schedule, over a whole day:

    >>> @app.job("hourly", cron="0 * * * *")
    ... def hourly():
    ...     pass
    >>> with ManualScheduler(app) as scheduler:
    ...     jobs = scheduler.declare()
    ...     scheduler.advance(days=1)
    25
    """

    def __init__(
        self,
        app: App | None = None,
        *,
        clock: SettableClock | None = None,
        engine: Engine | None = None,
        settings: Settings | None = None,
        queues: Sequence[str] = ("main",),
        inline: bool = False,
    ) -> None:
        self.app = app or App()
        self.clock = clock or SettableClock()
        self._queues = tuple(queues)
        self._inline = inline
        self._base = open_base(
            environment={},
            engine=engine or memory_store(),
            clock=self.clock,
            rng=Random(2026),
            settings=settings or Settings(),
        )
        init_store(self._base)
        self.store = self._base.store
        self._client = Client(self._base, self.app)
        self.operations = self._client.operations
        self._dispatcher = build_dispatcher(self._base)
        self._reaper = build_reaper(self._base)
        self._stepper = build_stepper(self._base)
        self._stepping = False
        self._parts = build_worker(self._base, self.app, queues=queues, slots=InlineSlots())
        self._next_at: datetime | None = None

    def __enter__(self) -> ManualScheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker and drop the store, if it lies in memory."""
        self._parts.worker.close()
        self._parts.runner.close()
        self._base.store.engine.close()

    # what the services do

    def tick(self) -> TickReport:
        """Let the dispatcher make what is due within the look-ahead, its backlog included."""
        report = self._dispatcher.tick()
        while report.behind:
            more = self._dispatcher.tick()
            report.served.add(more.served)
            report.promoted += more.promoted
            report.late += more.late
            report.behind = more.behind
        return report

    def run_due(self) -> int:
        """Let the worker run what is due now, and what becomes due by that; return how many.

        Raises:
            AssertionError: something comes back at once, time and again.
        """
        keeper, worker = self._parts.keeper, self._parts.worker
        if keeper.session is None:
            keeper.close()  # time has passed since the last call: its lease is over
        started = 0
        for _ in range(POLLS_MAX):
            worker.look_again()
            report = worker.poll()
            started += report.started
            if not report.claimed and not report.ended:
                self._next_at = report.next_at
                return started
        raise AssertionError(f"runs are still due after {POLLS_MAX} polls; does one never end?")

    def sweep(self) -> SweepReport:
        """Let the reaper return the runs of workers whose lease is over."""
        return self._reaper.sweep()

    def step_batches(self) -> int:
        """Let the stepper move of running replay batches what may move now; return how many."""
        moved = 0
        while True:
            report = self._stepper.step()
            moved += report.moved
            self._stepping = report.running > 0
            if not report.again:
                return moved

    def lose_worker(self) -> list[Run]:
        """Let another worker claim and start what is due, and die of it; return those runs.

        They stay leased until its lease is over, see `expire_leases`.
        """
        lost = build_worker(self._base, self.app, queues=self._queues, slots=LostSlots())
        lost.worker.poll()
        lost.runner.close()
        session = lost.keeper.session
        return [] if session is None else self.store.runs.leased(session, most=LISTED_MAX)

    def expire_leases(self) -> SweepReport:
        """Let every lease run out, and the reaper return what lay under them.

        The clock moves by the lease and its margin.
        """
        self.clock.step(self._base.settings.lease + self._base.settings.lease_margin)
        return self.sweep()

    def advance(self, length: timedelta = timedelta(0), **parts: float) -> int:
        """Let time pass as if all services ran all the while; return how many runs started.

        The clock stops at each instant at which something is due. To rehearse an outage, step the
        clock instead and call `tick` and `run_due` after it.

        Args:
            length: how much time; or
            parts: the parts of a `timedelta`: `hours=1, minutes=30`.

        Raises:
            InvalidInput: more is due in that time than a test can mean.
        """
        end = self.clock.now() + length + timedelta(**parts)
        started = self._step()
        for _ in range(STOPS_MAX):
            now = self.clock.now()
            if now >= end:
                return started
            self.clock.step(self._next_stop(now, end) - now)
            started += self._step()
        raise InvalidInput("length", f"over {STOPS_MAX} instants are due in it", "advance less")

    def _step(self) -> int:
        self.tick()
        self.sweep()
        self.step_batches()
        return self.run_due()

    def _next_stop(self, now: datetime, end: datetime) -> datetime:
        """Return when something is due next, at most `STRIDE_MAX` from now."""
        stops = [min(end, now + STRIDE_MAX)]
        if self._stepping:
            stops.append(now + self._base.settings.step_period)
        if self._next_at is not None:
            stops.append(self._next_at)
        rows, _ = self.store.jobs.scan(LISTED_MAX, None)
        jobs = [decode_job(row) for row in rows if row.index is not None]
        stops += [job.next_at for job in jobs if job.next_at is not None]
        stops += self._ends_of_back_off(now, min(stops))
        return max(min(stops), now)

    def _ends_of_back_off(self, now: datetime, end: datetime) -> list[datetime]:
        """Return when the first failed run is to be tried again, if that is before `end`."""
        for minute in range(minute_of(now), minute_of(end) + 1):
            for shard in range(self.store.topology.shards):
                runs = self.store.runs.waiting(minute, shard, end, most=1)
                if runs:
                    return [runs[0].available_at]
        return []

    # what people do

    def job(self, name: str, *, tenant: str = "default") -> Job:
        """Return a job by its name or its id.

        Raises:
            NotFound: there is none.
        """
        return self.operations.find(name, tenant)

    def enqueue(
        self,
        name: str,
        payload: Json = None,
        *,
        tenant: str = "default",
        at: datetime | None = None,
        delay: timedelta | None = None,
        priority: str | None = None,
        key: str | None = None,
    ) -> Run:
        """Make a run of a job; a handler's job is made with its first run.

        Args:
            name: the job's name, or the name of a handler.
            payload: what the run carries.
            tenant: whose job it is.
            at: when it may start.
            delay: or how long from now.
            priority: high, default or bulk.
            key: equal keys of one job are one run.

        Raises:
            InvalidInput: there is no such job or handler, or a value is wrong.
        """
        run = self._client.enqueue(
            name, payload, tenant=tenant, at=at, delay=delay, priority=priority, key=key
        )
        if self._inline:
            self.run_due()
            run = self.operations.get_run(run.run_id)
        return run

    def declare(self) -> list[Job]:
        """Make the jobs whose handlers declare a schedule, as a starting worker does."""
        return self._client.declare()

    def runs(self, job: str, *, tenant: str = "default") -> list[Run]:
        """Return a job's runs, the latest instant first."""
        job_id = self.job(job, tenant=tenant).job_id
        return list(self.store.runs.history(job_id, most=LISTED_MAX))
