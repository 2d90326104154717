"""A store with dead runs, the verbs and views on them, and steppers that tests drive by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from dynsched.bootstrap import (
    Base,
    build_operations,
    build_stepper,
    build_views,
    build_worker,
    init_store,
    open_base,
)
from dynsched.domain.access import Access
from dynsched.domain.batch import Batch
from dynsched.domain.job import Job, Overlap, Policies
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.operations import Operations
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import JobSpec
from dynsched.services.stepper import BatchStepper, StepReport
from dynsched.settings import Settings
from dynsched.storage.engine import Engine
from dynsched.targets.app import App
from dynsched.testing import SettableClock, memory_store

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ONCE = Policies(overlap=Overlap.ALLOW, retry=RetryPolicy(max_attempts=1))


class Ward:
    """A store whose handlers fail until they are mended.

    Args:
        engine: the store; by default one in memory.
        start: when it begins.
        settings: bounds of the services.
    """

    def __init__(
        self, engine: Engine | None = None, *, start: datetime = START, **settings: Any
    ) -> None:
        self.clock = SettableClock(start)
        self.engine = engine or memory_store()
        self.settings = Settings(**settings)
        self._seed = 0
        self.base = self.connect()
        init_store(self.base)
        self.store = self.base.store
        self.store.refresh()
        self.operations = build_operations(self.base, Access(actor="ada"))
        self.views = build_views(self.base)
        self.broken = True
        self.calls: list[str] = []
        app = App()
        app.job("work")(self._work)
        self._parts = build_worker(self.base, app, slots=InlineSlots())
        self.stepper = build_stepper(self.base)

    def connect(self, engine: Engine | None = None) -> Base:
        """Return another process's way to the store, perhaps through an engine of its own."""
        self._seed += 1
        return open_base(
            environment={},
            engine=engine or self.engine,
            clock=self.clock,
            rng=Random(self._seed),
            settings=self.settings,
        )

    def another(self, engine: Engine | None = None) -> BatchStepper:
        """Return another replica of the stepper."""
        return build_stepper(self.connect(engine))

    def as_(self, access: Access) -> Operations:
        """Return the door for somebody else."""
        return build_operations(self.base, access)

    def _work(self, ctx: Any) -> None:
        self.calls.append(ctx.idempotency_key)
        if self.broken:
            raise ValueError("no disk")

    def job(self, name: str = "j", **fields: Any) -> Job:
        """Make a job, or return the one of that name."""
        tenant = fields.get("tenant", "default")
        found = self.store.jobs.find(tenant, name)
        if found is not None:
            return self.operations.find(found)
        policies = fields.pop("policies", ONCE)
        spec = JobSpec(name=name, target=HandlerTarget("work"), policies=policies, **fields)
        return self.operations.create(spec)

    def die(self, count: int = 1, name: str = "j", **fields: Any) -> list[Run]:
        """Make runs that are dead; return them, in the order in which a batch moves them."""
        job = self.job(name, **fields)
        made = self.operations.enqueue_many(job.job_id, list(range(count)))
        self.broken = True
        self.work()
        runs = [self.run(run) for run in made]
        assert {run.state for run in runs} == {RunState.DEAD}
        self.clock.step(SECOND)  # so that they lie behind the next cut-off
        return sorted(runs, key=lambda run: (run.scheduled_for, run.run_id))

    def work(self, *, broken: bool = True) -> None:
        """Let the worker run all that is due now."""
        self.broken = broken
        if self._parts.keeper.session is None:
            self._parts.keeper.close()
        self._parts.worker.look_again()
        while self._parts.worker.poll().claimed:
            self._parts.worker.look_again()

    def run(self, run: Run) -> Run:
        """Return a run as it is stored now."""
        return self.operations.get_run(run.run_id)

    def states(self, runs: Sequence[Run]) -> list[str]:
        """Return the states of runs as they are stored now."""
        return [self.run(run).state.value for run in runs]

    def started(self, text: str = "", **options: Any) -> Batch:
        """Preview and confirm a batch, unlimited unless told otherwise."""
        options.setdefault("rate", None)
        draft = self.operations.preview_replay(text, **options)
        return self.operations.confirm_replay(
            draft.batch_id, reason="disk is mended", count=draft.planned
        )

    def batch(self, batch: Batch) -> Batch:
        """Return a batch as people see it now."""
        return self.views.batch(batch.batch_id).batch

    def step(self, seconds: float = 1, *, stepper: BatchStepper | None = None) -> StepReport:
        """Let time pass, and the stepper do all that it wants to do at once."""
        self.clock.step(timedelta(seconds=seconds))
        stepper = stepper or self.stepper
        total = stepper.step()
        report = total
        while report.again:
            report = stepper.step()
            for name in ("moved", "skipped", "failed", "ended", "broken"):
                setattr(total, name, getattr(total, name) + getattr(report, name))
        return replace(total, running=report.running, again=False)

    def adds_up(self, batch: Batch) -> None:
        """Check that every entry is accounted for, once, by the marks that are stored."""
        found = self.batch(batch)
        skipped = sum(found.skipped.values())
        assert found.planned == found.moved + skipped + found.failed + found.left
        entries = self.views.batch_entries(batch.batch_id, limit=10_000)
        assert len({entry.run_id for entry in entries.items}) == found.planned
