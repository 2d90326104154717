"""What may not start for long costs few visits, and few writes: nothing turns round and round."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dynsched.bootstrap import build_dispatcher
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.storage.engine import Applied, Replace
from dynsched.testing.faults import Fault
from tests.functions.stage import PLAIN, Stage

SECOND = timedelta(seconds=1)
BROKEN = BrokenSchedule(body={"kind": "lunar"}, problem="there is no such kind")


def unjudged(stage: Stage) -> Run:
    """Return the first run of a job that has a schedule since which cannot be evaluated here."""
    made = stage.operations.create(
        JobSpec(
            name="cron",
            target=HandlerTarget("ok"),
            schedule=CronSpec(expr="0 * * * *"),
            policies=PLAIN,
        )
    )
    stage.clock.step(minutes=59, seconds=30)
    build_dispatcher(stage.base()).tick()
    job = stage.store.jobs.get(made.job_id)
    assert job is not None
    broken = tuple(
        replace(one, effective_from=one.effective_from - SECOND, schedule=BROKEN)
        for one in job.generations
    )
    row = stage.store.jobs.row_of(replace(job, generations=broken))
    assert isinstance(stage.store.engine.write(Replace(row, job.version)), Applied)
    (run,) = stage.store.runs.history(job.job_id, most=9)
    return run


def test_a_run_that_cannot_be_judged_here_is_claimed_ever_more_rarely(stage: Stage) -> None:
    """Each claim of it and its step back are paid for, and nothing changes by them."""
    run = unjudged(stage)
    worker, visits = stage.worker(), 0
    for _ in range(6 * 120):
        stage.clock.step(seconds=30)
        received = stage.receive()
        if received:
            (fate,) = stage.work(worker, received)
            assert fate.keep
            visits += 1
    assert 10 < visits < 50
    assert stage.now(run).fence == visits


def test_an_outage_of_the_store_costs_a_message_few_of_its_receives(stage: Stage) -> None:
    """A queue puts aside what was received a thousand times, and the outage may last for hours."""
    stage.run()
    worker = stage.worker(base=stage.base(lambda _: Fault.UNAVAILABLE))
    waits = []
    for _ in range(100):
        for fate in stage.work(worker, stage.receive()):
            assert fate.keep
            waits.append(fate.again_in)
        stage.clock.step(seconds=5)
    assert waits[0] == 5 * SECOND
    assert waits[-1] == 30 * SECOND
    assert len(waits) < 50
