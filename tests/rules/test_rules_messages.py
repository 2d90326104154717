"""The hand-off: every ready run has a message or will have one, and no run has them without end.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dynsched.bootstrap import build_message_worker
from dynsched.domain.job import Overlap, Priority
from dynsched.domain.resending import WAITING
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.services.message_worker import Message
from dynsched.services.slots import InlineSlots
from dynsched.testing.faults import Crash, Fault
from tests.rules.small_world import EVERY_MINUTE, World, at
from tests.rules.wire import leaves_lease, makes_runs

MINUTE = timedelta(minutes=1)
SOON = RetryPolicy(base=timedelta(seconds=5), jitter=Jitter.NONE)
LATER = RetryPolicy(base=timedelta(hours=1), jitter=Jitter.NONE)


@pytest.fixture
def world() -> World:
    """Return a world whose main queue is handed off by messages."""
    return World(lanes=1, handed_off=True)


def messages_about(world: World, run: Run) -> int:
    """Return how many messages about a run there are, whether visible or not."""
    return sum(one.run_id == run.run_id for one in world.messages.messages())


def forget(world: World) -> None:
    """Let every message be lost that was sent until now."""
    for one in world.messages.messages():
        world.messages.delete(one)


def started(world: World, *, handler: str = "ok", **choices: Any) -> Run:
    """Return a run of a job that a worker has in hand; its message is gone."""
    (run,) = world.enqueue(world.job(handler=handler, **choices))
    forget(world)
    return run


def visit(world: World, *, lasts: timedelta = MINUTE) -> list[str]:
    """Let a function visit what is visible; return why each message is kept or dropped."""
    process = world.operator()[1]
    worker = build_message_worker(process.base, world.app(), slots=InlineSlots())
    received = world.messages.receive()
    whys = []
    for one in received:
        message = Message(id=one.message_id, body=one.body, sent_at=one.sent_at)
        (fate,) = worker.work([message], ends_at=world.now + lasts, invocation=one.message_id)
        whys.append(fate.why)
        world.messages.settle(one, keep=fate.keep, again_in=fate.again_in)
    return whys


def pulled(world: World) -> None:
    """Let a worker that pulls take what is ready and run it."""
    worker = world.worker()
    worker.poll()
    worker.finish()


# sqsall: whoever makes a row ready sends its message


def test_an_occurrence_that_a_tick_makes_has_a_message(world: World) -> None:
    """A dispatcher makes the row of a boundary; nobody pulls."""
    job = world.job(schedule=EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 60)
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert messages_about(world, run) == 1


def _fails(world: World) -> Run:
    run = started(world, handler="fail", retry=SOON)
    pulled(world)
    return run


def _snoozes(world: World) -> Run:
    run = started(world, handler="snooze")
    pulled(world)
    return run


def _loses_its_worker(world: World) -> Run:
    run = started(world)
    world.lose_handler()
    return run


def _is_due_again(world: World) -> Run:
    run = started(world, handler="fail", retry=LATER)
    pulled(world)
    assert world.run(run).state is RunState.FAILED
    assert messages_about(world, run) == 0
    world.clock.step(hours=1)
    world.dispatcher().tick()
    return run


def _is_replayed(world: World) -> Run:
    run = started(world, handler="fail", retry=RetryPolicy(max_attempts=1))
    pulled(world)
    assert world.run(run).state is RunState.DEAD
    world.operations.replay(run.run_id)
    return run


def _is_replayed_with_another_payload(world: World) -> Run:
    run = started(world, handler="fail", retry=RetryPolicy(max_attempts=1))
    pulled(world)
    world.operations.replay_edited(run.run_id, {"n": 1}, reason="it was wrong")
    return run


def _is_pulled_forward(world: World) -> Run:
    job = world.job(overlap=Overlap.QUEUE_ONE)
    world.enqueue(job)
    worker = world.worker()
    worker.poll()
    (run,) = world.enqueue(job)
    worker.poll()
    assert world.run(run).available_at > world.now
    forget(world)
    worker.finish()
    worker.poll()
    return run


def _is_handed_back(world: World) -> Run:
    run = started(world)
    worker = world.worker()
    worker.poll()
    world.clock.step(seconds=27)  # its lease has run out, and nobody has come for it
    worker.poll()
    return run


@pytest.mark.parametrize(
    "happen",
    [
        _fails,
        _snoozes,
        _loses_its_worker,
        _is_due_again,
        _is_replayed,
        _is_replayed_with_another_payload,
        _is_pulled_forward,
        _is_handed_back,
    ],
)
def test_a_run_that_comes_back_has_a_message(world: World, happen: Callable[[World], Run]) -> None:
    """A run was told of, its message is done with, and its row becomes ready once more."""
    run = happen(world)
    assert messages_about(world, run) == 1


def test_a_run_far_ahead_has_a_message_in_time(world: World) -> None:
    """A message can wait for fifteen minutes; the run lies two hours ahead."""
    run = world.operations.enqueue(world.job().job_id, None, delay=timedelta(hours=2))
    world.clock.step(hours=2)
    world.dispatcher().tick()
    assert messages_about(world, run) == 1


def test_a_message_does_not_come_before_its_row(world: World) -> None:
    """A process dies right before it writes a row; a message about nothing would be dropped."""
    job = world.job(schedule=EVERY_MINUTE)
    dying = world.dispatcher()
    world.clock.step(seconds=40)
    dying.wire.before(makes_runs, fault=Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        dying.tick()
    assert world.messages.messages() == []
    world.dispatcher().tick()
    assert [one.run_id for one in world.messages.messages()] == [
        run.run_id for run in world.runs(job)
    ]


def test_a_message_does_not_come_before_its_run_is_ready_again(world: World) -> None:
    """A process dies right before it gives a run back: its row is still leased."""
    run = started(world, handler="fail", retry=SOON)
    dying = world.worker()
    dying.poll()
    dying.wire.before(leaves_lease, fault=Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        dying.finish()
    assert messages_about(world, run) == 0


def test_a_message_that_was_lost_between_row_and_queue_is_made_good(world: World) -> None:
    """A dispatcher dies right behind the row; every later tick finds the row made."""
    job = world.job(schedule=EVERY_MINUTE)
    dying, dispatcher = world.dispatcher(), world.dispatcher()
    world.clock.step(seconds=40)
    dying.wire.before(makes_runs, fault=Fault.CRASH_AFTER)
    with pytest.raises(Crash):
        dying.tick()
    world.clock.step(seconds=10)
    dispatcher.tick()
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert messages_about(world, run) == 0
    world.clock.step(seconds=80)
    assert world.reaper().sweep().resent == 1
    assert messages_about(world, run) == 1


# sqsbound: a backlog makes no storm


def test_a_backlog_makes_no_storm(world: World) -> None:
    """No function comes for an hour; two thousand runs wait, each with its message."""
    world.enqueue(world.job(), 2_000)
    assert len(world.messages.messages()) == 2_000
    reaper = world.reaper()
    for _ in range(60):
        world.clock.step(seconds=60)
        assert reaper.sweep().resent <= 10
    assert len(world.messages.messages()) <= 2_600


def test_a_run_that_waits_its_turn_is_told_of_ever_more_rarely(world: World) -> None:
    """A run has been ready for two hours; a reaper sweeps each five seconds or so."""
    (run,) = world.enqueue(world.job())
    reaper = world.reaper()
    for _ in range(240):
        world.clock.step(seconds=30)
        reaper.sweep()
    assert messages_about(world, run) == 8


def test_what_was_lost_in_an_outage_is_sent_again_as_fast_as_it_is_taken(world: World) -> None:
    """The queues did not answer for ten minutes, in which two thousand rows were made."""
    world.messages.down = True
    world.enqueue(world.job(), 2_000)
    reaper = world.reaper()
    for _ in range(20):
        world.clock.step(seconds=30)
        reaper.sweep()
    world.messages.down = False
    sent = []
    for _ in range(3):
        world.clock.step(seconds=15)
        sent.append(reaper.sweep().resent)
        for one in world.messages.messages():
            world.messages.delete(one)
    assert sent == [1_210, 790, 0]


# onemessage: a step back keeps the message that it came by


def test_messages_do_not_double_while_a_run_waits(world: World) -> None:
    """Functions visit a run again and again that waits for another of its job."""
    job = world.job(overlap=Overlap.QUEUE_ONE)
    world.enqueue(job)
    worker = world.worker()
    worker.poll()
    (run,) = world.enqueue(job)
    whys = []
    for _ in range(6):
        world.leave_alone(worker, seconds=30)
        whys += visit(world)
    assert len(whys) > 3
    assert messages_about(world, run) == 1


def test_a_worker_that_pulls_and_steps_back_leaves_the_run_to_pulls_and_to_the_reaper(
    world: World,
) -> None:
    """Its claim came by no message, and the run's message was dropped while it was leased."""
    job = world.job(overlap=Overlap.QUEUE_ONE)
    world.enqueue(job)
    worker = world.worker()
    worker.poll()
    (run,) = world.enqueue(job)
    worker.poll()
    forget(world)
    stepped = world.run(run)
    assert stepped.state is RunState.READY
    worker.die()
    world.clock.step(seconds=40)
    other = world.worker()
    world.reaper().sweep()
    forget(world)
    world.clock.step(WAITING)
    world.reaper().sweep()
    assert messages_about(world, run) == 1
    other.poll()
    assert world.run(run).state is RunState.LEASED


# both ways of being found


def test_functions_and_workers_that_pull_share_a_queue(world: World) -> None:
    """Each run starts once, whoever comes first; a message whose run was pulled is dropped."""
    runs = world.enqueue(world.job(), 6)
    worker = world.worker(slots=3)
    worker.poll()
    whys = visit(world)
    assert sorted(whys).count("its run is leased") == 3
    worker.finish()
    assert world.states(*runs) == [RunState.DONE] * 6
    assert len(world.calls) == 6
    assert world.messages.messages() == []


def test_a_run_is_found_by_pulling_although_its_message_is_lost(world: World) -> None:
    """A row is an entry of its lane, with or without a message."""
    world.messages.down = True
    (run,) = world.enqueue(world.job(priority=Priority.HIGH))
    pulled(world)
    assert world.run(run).state is RunState.DONE
