"""Weeks of an ordinary store in virtual time: retention, the daily sweep, edits, an outage."""

from __future__ import annotations

from datetime import timedelta

from dynsched.domain.job import CatchUp, Policies
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing.checker import check_history, check_rest, check_rows
from dynsched.testing.history import RecordingEngine
from dynsched.testing.manual import ManualScheduler, memory_store
from dynsched.testing.trail import read_trail


def test_two_weeks_of_a_store_break_no_invariant() -> None:
    """Rows go when their retention is over, and nothing that went comes back."""
    engine = RecordingEngine(memory_store())
    app = App()

    @app.job("work")
    def work(ctx: AnyContext) -> None:
        engine.history.started(ctx)
        if ctx.scheduled_for.day % 3 == 0 and ctx.attempt == 1:
            raise OSError("on every third day")

    scheduler = ManualScheduler(app, engine=engine)
    operations = scheduler.operations
    short = timedelta(days=2)
    for name, expr, catch_up in (
        ("latest", "30 */3 * * *", CatchUp.LATEST),
        ("all", "0 */6 * * *", CatchUp.ALL),
        ("skip", "15 4 * * *", CatchUp.SKIP),
    ):
        policies = Policies(retention=short, catch_up=catch_up)
        schedule = CronSpec(expr=expr)
        operations.create(
            JobSpec(name=name, target=HandlerTarget("work"), schedule=schedule, policies=policies)
        )
    scheduler.advance(days=4)
    operations.pause(scheduler.job("latest").job_id, reason="for a day")
    scheduler.advance(days=1)
    operations.resume(scheduler.job("latest").job_id)
    scheduler.clock.step(days=3)
    scheduler.advance(days=2)
    operations.reschedule(scheduler.job("skip").job_id, CronSpec(expr="45 * * * *"))
    operations.delete(scheduler.job("all").job_id)
    scheduler.advance(days=4)

    history, now = engine.history, scheduler.clock.now()
    found = check_history(history, topology=scheduler.store.refresh())
    found += check_rest(read_trail(history), now) + check_rows(history, engine)
    assert found == []
    assert any(change.purged for change in history.changes)
    ended = [run for run in scheduler.runs("latest") if run.state is RunState.DONE]
    assert min(run.scheduled_for for run in ended) >= now - short - timedelta(minutes=1)
