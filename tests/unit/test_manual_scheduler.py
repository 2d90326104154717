"""The manual scheduler: what users' tests can rely on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from dynsched.domain.job import CatchUp, Overlap, Policies
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.errors import InvalidInput
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing import ManualScheduler, SettableClock, memory_store

RETRY = RetryPolicy(max_attempts=3, base=timedelta(minutes=2), jitter=Jitter.NONE)


def make_app() -> App:
    """Return an app with a handler for each need."""
    app = App()

    @app.job("ok")
    def ok(ctx: AnyContext) -> object:
        return ctx.payload

    @app.job("fails")
    def fails() -> None:
        raise OSError("always")

    return app


@pytest.fixture
def scheduler() -> Iterator[ManualScheduler]:
    """Return a scheduler at the beginning of 2026."""
    with ManualScheduler(make_app()) as manual:
        yield manual


def hourly(scheduler: ManualScheduler, **policies: object) -> None:
    """Make a job that is due at each full hour."""
    spec = JobSpec(
        name="hourly",
        target=HandlerTarget("ok"),
        schedule=CronSpec(expr="0 * * * *"),
        policies=Policies(overlap=Overlap.ALLOW, **policies),  # type: ignore[arg-type]
    )
    scheduler.operations.create(spec)


def test_a_handler_can_be_enqueued_by_its_name(scheduler: ManualScheduler) -> None:
    """A test needs no job to be declared first; an unknown name is an error."""
    scheduler.enqueue("ok", 1)
    scheduler.enqueue("ok", 2)
    assert scheduler.run_due() == 2
    assert [run.state for run in scheduler.runs("ok")] == [RunState.DONE] * 2
    with pytest.raises(InvalidInput):
        scheduler.enqueue("nobody")


def test_a_handlers_declaration_holds_for_its_job() -> None:
    """Attempts, overlap and the rest, as in production."""
    app = App()

    @app.job("report", max_attempts=3)
    def report() -> None:
        raise OSError

    with ManualScheduler(app) as scheduler:
        scheduler.enqueue("report")
        scheduler.advance(hours=3)
        (run,) = scheduler.runs("report")
    assert (run.state, run.attempt) == (RunState.DEAD, 3)


def test_nothing_runs_before_its_time(scheduler: ManualScheduler) -> None:
    """A delay is over when the clock says so, to the millisecond."""
    scheduler.enqueue("ok", delay=timedelta(minutes=5))
    scheduler.clock.step(minutes=4, seconds=59.999)
    assert scheduler.run_due() == 0
    scheduler.clock.step(milliseconds=1)
    assert scheduler.run_due() == 1


def test_running_what_is_due_takes_no_time(scheduler: ManualScheduler) -> None:
    """The clock is the test's alone."""
    began = scheduler.clock.now()
    scheduler.enqueue("ok")
    scheduler.run_due()
    scheduler.enqueue("ok")
    assert scheduler.run_due() == 1
    assert scheduler.clock.now() == began


def test_advancing_starts_each_run_at_its_instant(scheduler: ManualScheduler) -> None:
    """As in production, whatever the distance between two of them."""
    hourly(scheduler)
    assert scheduler.advance(days=2, hours=3) == 52
    starts = [(run.scheduled_for, run.started_at) for run in scheduler.runs("hourly")]
    assert all(scheduled_for == started_at for scheduled_for, started_at in starts)


def test_advancing_waits_for_back_offs(scheduler: ManualScheduler) -> None:
    """A run fails three times, two and four minutes apart, and is dead."""
    spec = JobSpec(name="f", target=HandlerTarget("fails"), policies=Policies(retry=RETRY))
    scheduler.operations.create(spec)
    scheduler.enqueue("f")
    assert scheduler.advance(minutes=5) == 2
    assert scheduler.advance(minutes=1) == 1
    (run,) = scheduler.runs("f")
    assert (run.state, run.attempt, run.reason) == (RunState.DEAD, 3, "attempts spent")


def test_an_outage_is_a_step_of_the_clock(scheduler: ManualScheduler) -> None:
    """No service ran meanwhile, so what was missed is caught up by policy."""
    hourly(scheduler, catch_up=CatchUp.LATEST)
    scheduler.advance()
    scheduler.clock.step(days=3)
    report = scheduler.tick()
    assert report.served.skipped == 70
    scheduler.run_due()
    assert len(scheduler.runs("hourly")) == 1 + 2


def test_a_lost_worker_leaves_its_runs_to_the_reaper(scheduler: ManualScheduler) -> None:
    """They come back after the lease, with the attempt counted, and run elsewhere."""
    scheduler.enqueue("ok")
    (lost,) = scheduler.lose_worker()
    assert lost.state is RunState.LEASED
    assert scheduler.run_due() == 0
    assert scheduler.expire_leases().returned == 1
    assert scheduler.run_due() == 1
    (run,) = scheduler.runs("ok")
    assert (run.attempt, run.fence) == (2, 2)


def test_inline_runs_what_is_enqueued_at_once() -> None:
    """For tests of code that enqueues and expects the effect."""
    with ManualScheduler(make_app(), inline=True) as scheduler:
        assert scheduler.enqueue("ok").state is RunState.DONE


def test_retries_without_a_delay_all_run_in_one_call() -> None:
    """What becomes due by running what is due is due too."""
    app = App()

    @app.job("again")
    def again() -> None:
        raise OSError

    retry = RetryPolicy(max_attempts=1000, base=timedelta(0))
    with ManualScheduler(app) as scheduler:
        spec = JobSpec(name="again", target=HandlerTarget("again"), policies=Policies(retry=retry))
        scheduler.operations.create(spec)
        scheduler.enqueue("again")
        assert scheduler.run_due() == 1000


def test_two_schedulers_may_share_a_store() -> None:
    """For a test of what a second process sees."""
    engine, clock = memory_store(), SettableClock()
    first = ManualScheduler(make_app(), engine=engine, clock=clock)
    second = ManualScheduler(make_app(), engine=engine, clock=clock)
    first.enqueue("ok")
    assert second.run_due() == 1
    assert [run.state for run in first.runs("ok")] == [RunState.DONE]


def test_a_clock_steps_forward_and_is_set_anywhere() -> None:
    """Time passes on both clocks; a correction is seen on the wall clock only."""
    clock = SettableClock()
    begin = clock.now()
    clock.step(seconds=1.5)
    clock.set(begin)
    assert (clock.now(), clock.monotonic()) == (begin, 1.5)
    with pytest.raises(AssertionError):
        clock.step(seconds=-1)
