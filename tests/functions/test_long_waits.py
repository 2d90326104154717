"""What may not start for long costs few visits, and few writes: nothing turns round and round."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dynsched.bootstrap import build_dispatcher, build_reaper
from dynsched.domain.job import Overlap
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.storage.engine import Applied, Replace
from dynsched.testing.faults import Fault
from tests.functions.stage import PLAIN, HeldSlots, Stage

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


def test_a_run_that_waits_for_another_keeps_one_message_however_long(stage: Stage) -> None:
    """Each message more would claim it and put it back, again and again, for nothing."""
    job = stage.job(overlap=Overlap.QUEUE_ONE)
    stage.enqueue(job)
    slots, about = HeldSlots(), set[int]()
    claims: list[int] = []

    def meanwhile() -> None:
        run, reaper = stage.enqueue(job), build_reaper(stage.base())
        for _ in range(3 * 60):
            stage.visit()
            reaper.sweep()
            stage.clock.step(seconds=60)
            about.add(sum(one.run_id == run.run_id for one in stage.messages.messages()))
        claims.append(stage.now(run).fence)

    stage.clock.after(1, meanwhile)
    stage.work(stage.worker(slots), stage.receive(), lasts=timedelta(hours=4))
    assert about == {1}
    assert 20 < claims[0] < 100


def test_a_run_that_may_not_start_for_long_has_a_bounded_number_of_messages(
    stage: Stage,
) -> None:
    """It is told of again for ever, in case its message is lost; and at last it starts once."""
    job = stage.job()
    stage.operations.pause(job.job_id, reason="an incident", hold=True)
    run, about = stage.enqueue(job), []
    base = stage.base(resend_after=SECOND)
    worker, reaper = stage.worker(base=base), build_reaper(base)
    for _ in range(12 * 60):
        stage.work(worker, stage.receive())
        reaper.sweep()
        stage.clock.step(seconds=60)
        about.append(sum(one.run_id == run.run_id for one in stage.messages.messages()))
    assert min(about) >= 1
    assert max(about) < 15
    assert stage.now(run).fence == 0
    stage.operations.resume(job.job_id)
    stage.drain(3_600)
    assert stage.now(run).state is RunState.DONE
    assert len(stage.calls) == 1
