"""Losses and poison: a run that kills its process takes no neighbours with it, and is ended.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

import pytest

from dynsched.domain.run import Run, RunState
from tests.rules.small_world import WorkerProcess, World


@pytest.fixture
def world() -> World:
    """Return a world with one lane, so that the order of claims is that of the instants."""
    return World(lanes=1)


def enqueued(world: World, count: int = 1) -> list[Run]:
    """Return ready runs of a job of their own."""
    return world.enqueue(world.job(f"job-{world.now:%H-%M-%S}"), count)


def suspect(world: World) -> Run:
    """Return a ready run whose lease was lost twice in a row."""
    (run,) = enqueued(world)
    world.lose_handler()
    world.lose_handler()
    assert world.run(run).losses == 2
    return run


# alone


def test_a_suspect_is_claimed_alone(world: World) -> None:
    """An idle process finds a suspect first and innocent runs behind it."""
    run = suspect(world)
    world.clock.step(seconds=1)
    innocent = enqueued(world, 3)
    assert world.worker().poll().started == 1
    assert world.run(run).state is RunState.LEASED
    assert world.states(*innocent) == [RunState.READY] * 3


def test_nothing_is_claimed_beside_a_suspect(world: World) -> None:
    """A process has a suspect in hand when an innocent run comes."""
    suspect(world)
    worker = world.worker()
    worker.poll()
    (innocent,) = enqueued(world)
    world.clock.step(seconds=2)
    worker.poll()
    assert world.run(innocent).state is RunState.READY
    worker.finish()
    worker.poll()
    assert world.run(innocent).state is RunState.LEASED


# three in a row


def test_the_third_loss_in_a_row_is_dead(world: World) -> None:
    """Three processes die, one after the other, while they run it."""
    run = suspect(world)
    world.lose_handler()
    found = world.run(run)
    assert (found.state, found.reason, found.attempt) == (RunState.DEAD, "poison", 3)
    assert found.spent == 0


@pytest.mark.parametrize("handler", ["fail", "snooze"])
def test_a_reported_outcome_zeroes_the_losses(world: World, handler: str) -> None:
    """Two losses, then an outcome that is reported, then two losses more."""
    (run,) = world.enqueue(world.job("a", handler=handler))
    world.lose_handler()
    world.lose_handler()
    worker = world.worker()
    worker.poll()
    worker.finish()
    world.clock.step(seconds=20)
    world.lose_handler()
    world.lose_handler()
    assert (world.run(run).state, world.run(run).losses) == (RunState.READY, 2)


def test_a_replayed_poison_run_dies_at_its_next_loss(world: World) -> None:
    """A person replays a poison run, which kills its process again."""
    run = suspect(world)
    world.lose_handler()
    world.operations.replay(run.run_id)
    world.lose_handler()
    assert (world.run(run).state, world.run(run).attempt) == (RunState.DEAD, 4)


def test_a_living_process_whose_lease_ran_out_reports_no_loss(world: World) -> None:
    """A process was frozen with a handler running; it wakes before the reaper comes."""
    (run,) = enqueued(world)
    worker = world.worker()
    worker.poll()
    world.clock.step(seconds=27)
    worker.poll()
    found = world.run(run)
    assert (found.attempt, found.losses) == (1, 0)
    assert (found.state, found.fence) == (RunState.LEASED, 2), "handed back, and claimed again"


def busy(world: World) -> WorkerProcess:
    """Return a living worker with a run in hand that goes on and on."""
    worker = world.worker()
    world.enqueue(world.job("long"))
    assert worker.poll().started == 1
    world.living.append(worker)
    return worker


def test_a_busy_process_passes_a_suspect_over(world: World) -> None:
    """A process has a run in hand; the queue holds a suspect and an innocent run behind it."""
    worker, run = busy(world), suspect(world)
    (innocent,) = enqueued(world)
    worker.poll()
    assert world.states(run, innocent) == [RunState.READY, RunState.LEASED]


def test_a_suspect_that_waits_too_long_gets_a_process_of_its_own(world: World) -> None:
    """The only process is never idle, as its handlers take longer than a lease."""
    worker, run = busy(world), suspect(world)
    for _ in range(12):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    (innocent,) = enqueued(world)
    for _ in range(12):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    assert world.states(run, innocent) == [RunState.READY] * 2
    worker.finish()
    worker.poll()
    assert world.states(run, innocent) == [RunState.LEASED, RunState.READY]


def test_nobody_empties_himself_for_a_suspect_that_another_took(world: World) -> None:
    """A busy process waits for its handlers to end; an idle one comes and takes the suspect."""
    worker, run = busy(world), suspect(world)
    for _ in range(7):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    idle = world.worker()
    idle.poll()
    assert world.run(run).state is RunState.LEASED
    (innocent,) = enqueued(world)
    for _ in range(4):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    assert world.run(innocent).state is RunState.LEASED
