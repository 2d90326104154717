"""Scanning: no row that must wait stands before those that need not, and everybody has a turn.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from dynsched.domain.arrival import WAIT_MAX
from dynsched.domain.job import Overlap, Priority
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from tests.rules.small_world import WorkerProcess, World


@pytest.fixture
def world() -> World:
    """Return a world with one lane, so that the order of claims is that of the index."""
    return World(lanes=1)


def served(world: World, worker: WorkerProcess, polls: int) -> list[str]:
    """Let a worker with one slot work; return the names of the jobs that it ran, in order."""
    begun = len(world.calls)
    for _ in range(polls):
        worker.poll()
        worker.slots.release()
        world.clock.step(seconds=0.1)
    return [context.job_name for context in world.calls[begun:]]


# what must wait


def test_a_scan_goes_on_behind_rows_whose_handler_is_unknown_here(world: World) -> None:
    """Most rows at the head of a tenant need a handler that this worker has not."""
    world.enqueue(world.job("foreign", handler="elsewhere"), 2500)
    world.clock.step(seconds=1)
    world.enqueue(world.job("known"))
    worker, behind = world.worker(slots=1), world.job("behind", tenant="other")
    order = []
    for _ in range(10):
        world.enqueue(behind)
        order += served(world, worker, 2)
        assert "behind" in order[-2:]
    assert Counter(order) == {"behind": 10, "known": 1}


def test_a_scan_goes_on_behind_a_tenant_at_its_cap(world: World) -> None:
    """A tenant at its cap has a thousand rows ready; another tenant sorts behind it."""
    job = world.job("capped", tenant="acme")
    world.operations.set_tenant("acme", max_running=1)
    world.enqueue(job, 1000)
    world.worker(slots=1).poll()
    worker, behind = world.worker(slots=1), world.job("behind", tenant="beta")
    for number in range(10):
        world.enqueue(behind)
        assert served(world, worker, 2) == ["behind"], number
    queries = [call for call in worker.wire.calls if call.query is not None and call.query.index]
    assert len(queries) < 100


def test_a_waiting_run_is_put_back_later_and_later(world: World) -> None:
    """A run waits for another of its job that goes on for ten minutes."""
    job = world.job("a", overlap=Overlap.SKIP)
    world.enqueue(job)
    worker = world.worker()
    worker.poll()
    (run,) = world.enqueue(job)
    for _ in range(60):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    assert world.run(run).waits < 30
    assert world.run(run).available_at - world.now <= WAIT_MAX


def test_a_waiting_run_is_not_looked_at_at_each_poll(world: World) -> None:
    """A run waits; its worker polls ten times within a second."""
    job = world.job("a", overlap=Overlap.SKIP)
    world.enqueue(job, 2)
    worker = world.worker()
    for _ in range(10):
        worker.poll()
        world.clock.step(seconds=0.1)
    fences = [run.fence for run in world.runs(job)]
    assert fences == [1, 1]


# turns


def test_tenants_take_turns(world: World) -> None:
    """One tenant has enqueued five hundred runs before the others came with three each."""
    world.enqueue(world.job("many", tenant="acme"), 500)
    world.clock.step(seconds=1)
    for tenant in ("beta", "gamma"):
        world.enqueue(world.job(tenant, tenant=tenant), 3)
    order = served(world, world.worker(slots=1), 9)
    assert Counter(order) == {"many": 3, "beta": 3, "gamma": 3}


def test_the_jobs_of_a_tenant_take_turns_where_they_share(world: World) -> None:
    """Three jobs have enqueued a hundred runs each, seven others of their tenant two each."""
    jobs = [world.job(f"job-{number}", share_by_job=True) for number in range(10)]
    for number, job in enumerate(jobs):
        world.enqueue(job, 100 if number < 3 else 2)
    counts = Counter(served(world, world.worker(slots=1), 44))
    assert [counts[job.name] for job in jobs[3:]] == [2] * 7
    assert min(counts[job.name] for job in jobs[:3]) >= 5


def test_every_tenant_has_a_turn_however_many_there_are(world: World) -> None:
    """Forty tenants have more runs ready than one reading of the lane can tell."""
    for number in range(40):
        world.enqueue(world.job(f"job-{number}", tenant=f"tenant-{number}"), 9)
    assert len(set(served(world, world.worker(slots=1), 80))) == 40


def test_every_job_that_shares_has_a_turn_however_many_there_are(world: World) -> None:
    """Forty jobs of one tenant have more runs ready than one reading of the lane can tell."""
    for number in range(40):
        world.enqueue(world.job(f"job-{number}", share_by_job=True), 9)
    assert len(set(served(world, world.worker(slots=1), 80))) == 40


def test_jobs_that_share_do_not_stand_behind_rows_that_are_not_due(world: World) -> None:
    """One job has a hundred runs that are due in half a minute, another one that is due."""
    for number in range(4):
        early = world.job(f"early-{number}", share_by_job=True)
        for _ in range(25):
            world.operations.enqueue(early.job_id, delay=timedelta(seconds=20))
        world.enqueue(world.job(f"due-{number}", share_by_job=True))
    assert len(served(world, world.worker(slots=1), 8)) == 4


def test_priorities_share_by_weight_and_none_starves(world: World) -> None:
    """All three priorities have more work than the only slot can do."""
    for priority in Priority:
        world.enqueue(world.job(priority.value, priority=priority), 40)
    order = served(world, world.worker(slots=1), 20)
    assert Counter(order) == {"high": 12, "default": 6, "bulk": 2}


def test_a_priority_without_others_gets_every_slot(world: World) -> None:
    """Only bulk work is there."""
    world.enqueue(world.job("bulk", priority=Priority.BULK), 10)
    assert world.worker(slots=8).poll().started == 8


def test_a_lane_whose_worker_died_is_read_by_the_others() -> None:
    """Two workers share two lanes; one dies with its session still open."""
    world = World(lanes=2)
    first, second = world.worker(slots=8), world.worker(slots=8)
    first.poll()
    second.poll()
    first.beat()
    first.die()
    runs = world.enqueue(world.job("a"), 8)
    for _ in range(12):
        second.poll()
        world.clock.step(seconds=1)
    assert world.states(*runs) == [RunState.LEASED] * 8


def test_work_stays_in_its_queue(world: World) -> None:
    """A worker serves one queue; a run is enqueued in another."""
    runs: list[Run] = world.enqueue(world.job("a", queue="gpu"))
    world.worker(queues=("main",)).poll()
    world.clock.step(seconds=5)
    assert world.states(*runs) == [RunState.READY]
    assert world.worker(queues=("gpu",)).poll().started == 1


def test_a_run_whose_job_got_a_target_that_is_unknown_here_is_left_to_others(world: World) -> None:
    """A job is given a new handler while its runs wait; old workers have not got it yet."""
    job = world.job("a")
    (run,) = world.enqueue(job)
    world.operations.edit(job.job_id, target=HandlerTarget("new"))
    old = world.worker()
    for _ in range(3):
        assert old.poll().started == 0
        world.clock.step(seconds=2)
    found = world.run(run)
    assert (found.state, found.fence, found.attempt) == (RunState.READY, 1, 0)
    assert found.needs == "handler:new"
