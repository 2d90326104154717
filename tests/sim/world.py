"""A world for simulations: one store, one clock, and processes that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from dynsched.bootstrap import (
    build_dispatcher,
    build_operations,
    build_reaper,
    build_stepper,
    build_worker,
    init_store,
    open_base,
)
from dynsched.domain.instants import to_text
from dynsched.domain.run import Run
from dynsched.errors import StoreError
from dynsched.services.exits import Slots
from dynsched.services.slots import InlineSlots
from dynsched.settings import Settings
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.targets.context import Permanent, Snooze
from dynsched.testing.checker import check_history, check_rest, check_rows
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import FaultyEngine, Plan
from dynsched.testing.history import History, RecordingEngine
from dynsched.testing.trail import read_trail

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ROUND = timedelta(seconds=10)
LARGE = {"text": "x" * 600}


def handlers(history: History) -> App:
    """Return an app whose handlers note their start, each ending in another way."""
    app = App()

    @app.job("ok")
    def ok(ctx: Any) -> Any:
        history.started(ctx)
        return {"key": ctx.idempotency_key}

    @app.job("quiet")
    def quiet(ctx: Any) -> None:
        history.started(ctx)

    @app.job("once")
    def once(ctx: Any) -> None:
        history.started(ctx)
        if ctx.attempt == 1:
            raise OSError("the first try fails")

    @app.job("never")
    def never(ctx: Any) -> None:
        history.started(ctx)
        raise Permanent("it cannot succeed")

    @app.job("later")
    def later(ctx: Any) -> None:
        history.started(ctx)
        if ctx.attempt == 1:
            raise Snooze(after=timedelta(minutes=1))

    return app


class Process:
    """One process: all services, over a connection of its own that can fail and die."""

    def __init__(self, world: World, plan: Plan | None = None, slots: Slots | None = None) -> None:
        self.world = world
        self.engine = FaultyEngine(world.recorder, plan)
        self.base = open_base(
            environment={},
            engine=self.engine,
            clock=world.clock,
            rng=Random(world.processes),
            settings=world.settings,
        )
        world.processes += 1
        self.operations = build_operations(self.base)
        self.dispatcher = build_dispatcher(self.base)
        self.reaper = build_reaper(self.base)
        self.stepper = build_stepper(self.base)
        parts = build_worker(self.base, world.app, slots=slots or InlineSlots())
        self.worker, self.keeper, self.runner = parts.worker, parts.keeper, parts.runner

    def round(self) -> None:
        """Let each service take a step; one that meets a fault of the store goes on later."""
        for step in (
            self.keeper.beat,
            self.dispatcher.tick,
            self.stepper.step,
            self.worker.poll,
            self.worker.poll,
            self.reaper.sweep,
        ):
            try:
                step()
            except StoreError:
                continue


@dataclass(slots=True)
class World:
    """One store with its history."""

    clock: SettableClock
    settings: Settings
    recorder: RecordingEngine
    app: App
    processes: int = 0

    @classmethod
    def new(cls, *, settings: Settings | None = None) -> World:
        """Return a world with an empty store."""
        engine = SqliteEngine(None)
        engine.init()
        recorder = RecordingEngine(engine)
        world = cls(
            SettableClock(BEGIN), settings or Settings(), recorder, handlers(recorder.history)
        )
        base = open_base(
            environment={},
            engine=recorder,
            clock=world.clock,
            rng=Random(7),
            settings=world.settings,
        )
        init_store(base, lanes=1)
        return world

    @property
    def history(self) -> History:
        """Return what happened so far."""
        return self.recorder.history

    def settle(self, *processes: Process, rounds: int = 13) -> None:
        """Let time pass, beyond lease, margin and the first re-reading, while all processes run."""
        for _ in range(rounds):
            self.clock.step(ROUND)
            for process in processes:
                process.round()
        for process in processes:
            process.runner.close()

    def found(self) -> list[str]:
        """Return the broken invariants of a world that has settled."""
        trail = read_trail(self.history)
        topology = Process(self).base.store.refresh()
        return [
            *check_history(self.history, topology=topology),
            *check_rest(trail, self.clock.now()),
            *check_rows(self.history, self.recorder),
        ]

    def runs(self) -> Iterator[Run]:
        """Return all runs as they are stored now."""
        for changes in read_trail(self.history).runs.values():
            if changes[-1].after is not None:
                yield changes[-1].after

    def outcome(self, until: datetime) -> dict[str, list[str]]:
        """Return how runs ended that were for an instant up to `until`, to compare worlds."""
        names = {
            row.key.pk: str(row.body["n"])
            for row in self.history.rows.values()
            if row.key.sk == "job"
        }
        found: dict[str, list[str]] = {}
        for run in self.runs():
            if run.scheduled_for > until:
                continue
            name = f"{names[run.job_id]} {to_text(run.scheduled_for)} {run.key.kind.value}"
            reason = run.reason.partition(":")[0]
            found.setdefault(name, []).append(f"{run.state.value} {reason}".strip())
        return {name: sorted(outcomes) for name, outcomes in found.items()}
