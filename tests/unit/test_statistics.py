"""Minute statistics: what workers count says what the store's history says."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from dynsched.domain.histogram import ERROR
from dynsched.domain.instants import minute_of
from dynsched.domain.job import Policies
from dynsched.domain.minutes import NAMES_MAX, OTHERS, MinuteTally, count_name, summed
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.storage.engine import Query, Table
from dynsched.storage.item import row_size
from dynsched.storage.placement import MINUTES
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing import (
    FaultyEngine,
    ManualScheduler,
    SettableClock,
    memory_store,
)
from dynsched.testing.faults import Call, Fault

RETRY = RetryPolicy(max_attempts=2, base=timedelta(seconds=70), factor=1, jitter=Jitter.NONE)
ONCE = RetryPolicy(max_attempts=1)


def an_app() -> App:
    """Return handlers that succeed, and that fail."""
    app = App()

    @app.job("ok")
    def ok() -> None:
        """Succeed."""

    @app.job("fail")
    def fail(ctx: AnyContext) -> None:
        """Fail with the payload."""
        raise ValueError(f"no {ctx.payload}")

    return app


def job(scheduler: ManualScheduler, name: str, handler: str, **fields: object) -> str:
    """Make a job, return its id."""
    spec = JobSpec(name=name, target=HandlerTarget(handler), **fields)  # type: ignore[arg-type]
    return scheduler.operations.create(spec).job_id


def tallies(scheduler: ManualScheduler) -> list[MinuteTally]:
    """Return everything that was counted."""
    found, more = scheduler.store.minutes.read(0, 10**8, most=10_000)
    assert not more
    return found


def all_runs(scheduler: ManualScheduler) -> list[Run]:
    """Return all runs of the store."""
    return scheduler.store.runs.scan(10_000, None)[0]


@pytest.fixture(name="scheduler")
def _scheduler() -> ManualScheduler:
    """Return a scheduler that went through ten minutes of successes, failures and deaths."""
    scheduler = ManualScheduler(an_app())
    job(scheduler, "cron", "ok", schedule=CronSpec(expr="* * * * *"), tenant="acme")
    retried = job(scheduler, "retried", "fail", policies=Policies(retry=RETRY), tenant="globex")
    doomed = job(scheduler, "doomed", "fail", policies=Policies(retry=ONCE))
    for number in range(6):
        scheduler.operations.enqueue(retried, f"order {number}")
        scheduler.operations.enqueue(doomed, f"customer {number}")
        scheduler.advance(seconds=95)
    scheduler.advance(minutes=3)
    return scheduler


def test_counts_are_those_of_the_history(scheduler: ManualScheduler) -> None:
    """Starts, ends by outcome and deaths, minute by minute, as the runs' own rows tell them."""
    runs = all_runs(scheduler)
    started, done, dead, failed = (Counter[int]() for _ in range(4))
    for run in runs:
        if run.ended_at is not None:
            ended = dead if run.state is RunState.DEAD else done
            ended[minute_of(run.ended_at)] += 1
        tries = scheduler.store.runs.attempts(run.run_id)
        for one in tries if run.state is RunState.DEAD else ():
            assert one.started_at is not None
            started[minute_of(one.started_at)] += 1
            if one.number < len(tries):
                failed[minute_of(one.ended_at)] += 1
        if run.state is RunState.DONE and run.started_at is not None:
            started[minute_of(run.started_at)] += 1
    assert len(runs) > 20
    by_minute = {tally.minute: tally.total() for tally in tallies(scheduler)}
    for minute, total in by_minute.items():
        assert total.started == started.pop(minute, 0)
        assert total.done == done.pop(minute, 0)
        assert total.failed == failed.pop(minute, 0)
        assert total.dead == dead.pop(minute, 0)
    assert not started + done + failed + dead


def test_deaths_are_told_by_tenant_and_group(scheduler: ManualScheduler) -> None:
    """So that growth can be named without reading the dead-letter queue."""
    total = summed(tallies(scheduler))
    dead = [run for run in all_runs(scheduler) if run.state is RunState.DEAD]
    assert total.deaths == Counter(run.tenant for run in dead) == {"globex": 6, "default": 6}
    assert total.groups == Counter(run.signature for run in dead)


def test_only_first_starts_have_a_delay() -> None:
    """A retry starts when its back-off lets it; the first start counts from when it was due."""
    with ManualScheduler(an_app()) as scheduler:
        job_id = job(scheduler, "late", "fail", policies=Policies(retry=RETRY))
        scheduler.operations.enqueue(job_id, 1)
        scheduler.clock.step(seconds=40)
        scheduler.run_due()
        scheduler.advance(minutes=3)
        total = summed(tallies(scheduler)).total()
        assert (total.started, sum(total.delays), total.delay_max_ms) == (2, 1, 40_000)
        half = total.delay().p50
        assert half is not None
        assert abs(half.total_seconds() - 40) <= 40 * ERROR


def test_a_delayed_run_is_not_late_before_it_is_due() -> None:
    """The delay counts from the later of its instant and of when it may start."""
    with ManualScheduler(an_app()) as scheduler:
        scheduler.enqueue("ok", delay=timedelta(minutes=5))
        scheduler.advance(minutes=6)
        assert summed(tallies(scheduler)).total().delay_max_ms == 0


def test_nothing_is_written_while_nothing_happens() -> None:
    """An idle worker costs no statistics; one run costs a small row, and its end once more."""
    with ManualScheduler(an_app()) as scheduler:
        scheduler.advance(minutes=5)
        assert tallies(scheduler) == []
        scheduler.enqueue("ok")
        scheduler.advance(minutes=5)
        (row,) = scheduler.store.engine.query(Query(Table.CONTROL, MINUTES)).rows
        assert (row.version, row_size(row) < 400) == (2, True)


def test_a_minute_is_written_again_as_it_goes_on() -> None:
    """At most each ten seconds, and once more when it is over."""
    with ManualScheduler(an_app()) as scheduler:
        for _ in range(60):
            scheduler.enqueue("ok")
            scheduler.advance(seconds=1)
        scheduler.advance(seconds=10)
        rows = scheduler.store.engine.query(Query(Table.CONTROL, MINUTES)).rows
        assert summed(tallies(scheduler)).total().started == 60
        assert all(row.version <= 7 for row in rows)


class Refusing:
    """A plan that refuses writes of statistics while it is told to."""

    def __init__(self, fault: Fault) -> None:
        self.fault, self.active = fault, False

    def __call__(self, call: Call) -> Fault:
        """Return what becomes of a call."""
        statistics = any(key.pk == MINUTES for key in call.keys)
        return self.fault if self.active and statistics else Fault.NONE


@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.LOST_APPLIED, Fault.LOST_UNAPPLIED])
def test_what_cannot_be_written_is_written_later(fault: Fault) -> None:
    """A failing store loses no count, counts none twice, and stops no run."""
    plan = Refusing(fault)
    engine = FaultyEngine(memory_store(), plan)
    with ManualScheduler(an_app(), engine=engine) as scheduler:
        plan.active = True
        for _ in range(3):
            scheduler.enqueue("ok")
            scheduler.advance(seconds=45)
        plan.active = False
        scheduler.advance(minutes=1)
        assert summed(tallies(scheduler)).total().done == 3


def test_a_draining_worker_writes_its_last_minute() -> None:
    """What was counted since the last write is lost with a crash only."""
    scheduler = ManualScheduler(an_app())
    for _ in range(2):
        scheduler.enqueue("ok")
        scheduler.run_due()
    before = summed(tallies(scheduler)).total()
    scheduler._parts.worker.close()
    after = summed(tallies(scheduler)).total()
    assert (before.done, after.started, after.done) == (0, 2, 2)


def test_names_without_end_take_no_memory_without_end() -> None:
    """Behind the first hundred, tenants are counted together."""
    counts: dict[str, int] = {}
    for number in range(NAMES_MAX + 50):
        count_name(counts, f"tenant-{number}")
    assert (len(counts), counts[OTHERS]) == (NAMES_MAX + 1, 50)


def test_a_clock_that_is_set_back_loses_no_count() -> None:
    """The minute that was written before is not written over."""
    with ManualScheduler(an_app()) as scheduler:
        for step in (timedelta(minutes=1), timedelta(seconds=-50), timedelta(minutes=2)):
            scheduler.enqueue("ok")
            scheduler.advance(seconds=15)
            scheduler.clock.set(scheduler.clock.now() + step)
        scheduler.advance(minutes=1)
        assert summed(tallies(scheduler)).total().done == 3


def test_old_minutes_expire() -> None:
    """Each row says when: a week after its minute."""
    clock = SettableClock()
    with ManualScheduler(an_app(), clock=clock) as scheduler:
        scheduler.enqueue("ok")
        scheduler.advance(minutes=1)
        assert tallies(scheduler)
        scheduler.advance(days=7, minutes=2)
        scheduler.sweep()
        assert tallies(scheduler) == []
