"""Why, asked of everything in made-up histories: no false alarm, no riddle, no failure."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from dynsched.domain.explanation import Cause
from dynsched.domain.job import CatchUp, Job, JobState, Overlap
from dynsched.services.specs import CronSpec
from tests.rules.small_world import World
from tests.unit.asking_why import why, why_at

MINUTES = 90
SCHEDULES = ("* * * * *", "*/5 * * * *", "7 * * * *", "*/2 9 * * *")


def live(world: World, rng: Random, jobs: list[Job]) -> None:
    """Let people, outages and dispatchers have their way with some jobs."""
    dispatcher, worker = world.dispatcher(), world.worker(slots=2)
    end = world.now + timedelta(minutes=MINUTES)
    while world.now < end:
        if rng.random() < 0.04:
            world.clock.step(minutes=rng.randint(1, 12))  # nobody is there
        world.clock.step(seconds=10)
        if rng.random() < 0.1:
            meddle(world, rng, rng.choice(jobs))
        if rng.random() < 0.8:
            dispatcher.tick()
        if worker.keeper.session is None:
            world.reaper().sweep()
        if rng.random() < 0.7:
            worker.keeper.beat()
            worker.poll()
            worker.slots.release(rng.randint(0, 4))


def meddle(world: World, rng: Random, job: Job) -> None:
    """Pause, resume, edit or delete a job, whatever it is just now."""
    state = world.reread(job).state
    choice = rng.random()
    if state is JobState.PAUSED:
        world.operations.resume(job.job_id)
    elif state is JobState.ACTIVE and choice < 0.5:
        world.operations.pause(job.job_id, reason="to see", hold=choice < 0.1)
    elif state is JobState.ACTIVE and choice < 0.95:
        world.operations.reschedule(job.job_id, CronSpec(expr=rng.choice(SCHEDULES)))
    elif state is JobState.ACTIVE:
        world.operations.delete(job.job_id)


@pytest.mark.parametrize("seed", range(4))
def test_no_instant_of_any_history_is_called_lost(seed: int) -> None:
    """Each minute of each job is a run, a counted skip, late, or named by nobody."""
    rng = Random(seed)
    world = World()
    begin = world.now.replace(second=0)
    jobs = [
        world.job(
            f"job{number}",
            schedule=CronSpec(expr=SCHEDULES[number]),
            catch_up=rng.choice(list(CatchUp)),
            overlap=rng.choice(list(Overlap)),
            handler=rng.choice(["ok", "fail", "snooze"]),
        )
        for number in range(3)
    ]
    live(world, rng, jobs)
    for job in jobs:
        for minute in range(MINUTES + 30):
            explained = why_at(world, job, begin + timedelta(minutes=minute))
            assert explained.cause is not Cause.LOST, explained
            assert explained.run_id or explained.cause is not Cause.CANNOT_TELL, explained


@pytest.mark.parametrize("seed", range(4, 6))
def test_every_run_of_any_history_is_explained(seed: int) -> None:
    """Whatever state it is in; what cannot be told says what was looked at."""
    rng = Random(seed)
    world = World()
    overlap = rng.choice(list(Overlap))
    job = world.job(schedule=CronSpec(expr="* * * * *"), overlap=overlap, handler="fail")
    live(world, rng, [job])
    for run in world.runs(job):
        explained = why(world, run)
        assert explained.run_id == run.run_id
        if explained.cause is Cause.CANNOT_TELL:
            assert "ooked at" in " ".join((explained.headline, *explained.sentences))
