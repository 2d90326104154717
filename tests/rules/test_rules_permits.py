"""Permits: caps and overlap hold at every point of the store's order, and no permit leaks.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynsched.domain.job import CatchUp, Job, Overlap
from dynsched.domain.overlap import Answer, decide_overlap
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run, RunState
from tests.rules.small_world import EVERY_MINUTE, WorkerProcess, World, at
from tests.rules.wire import claims, reads_permits, takes_permit


@pytest.fixture
def world() -> World:
    """Return a world with one lane, so that the order of claims is that of the instants."""
    return World(lanes=1)


def capped(world: World, most: int) -> Job:
    """Return a job whose tenant may have so many runs leased at once."""
    world.operations.set_tenant("default", max_running=most)
    return world.job("capped")


# caps


def test_a_permit_is_written_after_the_claim(world: World) -> None:
    """Between one worker's permit and its claim, another worker's run takes the same permit."""
    job = capped(world, 1)
    other = world.job("other", queue="other")
    first, second = world.worker(), world.worker(queues=("other",))
    world.enqueue(job)
    world.enqueue(other)
    first.wire.before(claims, second.poll)
    first.poll()
    assert len(first.slots.held) + len(second.slots.held) == 1


def test_a_permit_of_a_cap_is_taken_under_the_version_that_was_read(world: World) -> None:
    """Two workers have claimed a run each and read the tenant's only permit as free."""
    job = capped(world, 1)
    other = world.job("other", queue="other")
    first, second = world.worker(), world.worker(queues=("other",))
    world.enqueue(job)
    world.enqueue(other)
    first.wire.before(takes_permit, second.poll)
    first.poll()
    assert first.wire.sprung
    assert len(first.slots.held) + len(second.slots.held) == 1


def test_nobody_has_to_release_a_permit(world: World) -> None:
    """The holder of the only permit dies."""
    world.enqueue(capped(world, 1))
    world.lose_handler()
    assert world.worker().poll().started == 1


# overlap


def two_runs(world: World, overlap: Overlap) -> tuple[WorkerProcess, WorkerProcess]:
    """Return two workers, each with one of two ready runs of one job in reach."""
    job = world.job("a", queue="one", overlap=overlap)
    world.enqueue(job)
    world.operations.edit(job.job_id, queue="two")
    world.enqueue(world.reread(job))
    return world.worker(queues=("one",)), world.worker(queues=("two",))


def test_the_look_comes_after_the_claim(world: World) -> None:
    """Two workers look at two runs of a job, both before either has claimed."""
    first, second = two_runs(world, Overlap.SKIP)
    first.wire.before(claims, second.poll)
    first.poll()
    assert len(first.slots.held) + len(second.slots.held) == 1


def test_a_permit_is_taken_under_the_version_that_was_read(world: World) -> None:
    """Two workers have claimed a run each and read the permit as free."""
    first, second = two_runs(world, Overlap.SKIP)
    first.wire.before(takes_permit, second.poll)
    first.poll()
    assert first.wire.sprung
    assert len(first.slots.held) + len(second.slots.held) == 1


def test_a_permit_of_an_older_lease_of_the_run_holds_nobody_up(world: World) -> None:
    """The permit names a run's first lease, which was lost; the run is claimed again."""
    world.enqueue(world.job("a", overlap=Overlap.SKIP))
    world.lose_handler()
    assert world.worker().poll().started == 1


# who waits


class Minutely:
    """A job that is due each minute, a dispatcher, and a worker whose handlers go on."""

    def __init__(self, world: World, overlap: Overlap, **choices: Any) -> None:
        self.world = world
        self.job = world.job("a", EVERY_MINUTE, overlap=overlap, **choices)
        self.dispatcher, self.worker = world.dispatcher(), world.worker()

    def until(self, text: str, *, polling: bool = True) -> list[Run]:
        """Let everybody work up to an instant; return the runs that are due by then."""
        while self.world.now < at(text):
            self.world.clock.step(seconds=5)
            self.dispatcher.tick()
            self.worker.beat()
            if polling:
                self.worker.poll()
        return [run for run in self.world.runs(self.job) if run.scheduled_for <= self.world.now]


def test_skip_skips_a_later_run_and_names_the_running_one(world: World) -> None:
    """09:01 runs on when 09:02 comes due."""
    first, second = Minutely(world, Overlap.SKIP).until("09:02:10")
    assert first.state is RunState.LEASED
    assert (second.state, second.reason) == (RunState.SKIPPED, f"overlap: {first.run_id}")


def test_queue_one_keeps_the_first_waiter(world: World) -> None:
    """09:01 runs on when 09:02 and 09:03 come due."""
    first, second, third = Minutely(world, Overlap.QUEUE_ONE).until("09:03:20")
    assert [run.state for run in (first, second)] == [RunState.LEASED, RunState.READY]
    assert (third.state, third.reason) == (RunState.SKIPPED, f"overlap: {second.run_id}")


def test_the_run_that_ends_pulls_its_waiter_forward(world: World) -> None:
    """09:02 has waited for so long that its next look is half a minute away."""
    minutely = Minutely(world, Overlap.QUEUE_ONE)
    _, second = minutely.until("09:02:40")
    assert second.available_at > world.now
    minutely.worker.finish()
    world.clock.step(seconds=0.1)
    minutely.worker.poll()
    assert world.run(second).state is RunState.LEASED


def test_a_reaped_run_pulls_its_waiter_forward(world: World) -> None:
    """The holder dies; its waiter need not wait for its own next look."""
    minutely = Minutely(world, Overlap.QUEUE_ONE)
    minutely.until("09:01:10")
    minutely.worker.die()
    minutely.worker = world.worker()
    _, second = minutely.until("09:02:35")
    assert second.available_at > world.now
    world.reaper().sweep()
    assert world.run(second).available_at == world.now


def test_an_old_claim_does_not_write_itself_over_a_newer_one_of_its_run(world: World) -> None:
    """A worker freezes before its permit; its run is returned, claimed and started elsewhere."""
    frozen, second = two_runs(world, Overlap.SKIP)
    third = world.worker(queues=("one",))

    def meanwhile() -> None:
        world.reap()
        assert third.poll().started == 1

    frozen.wire.before(reads_permits, meanwhile)
    assert frozen.poll().started == 0
    assert second.poll().started == 0


def test_a_refused_permit_is_remembered_for_all_who_need_it(world: World) -> None:
    """Another process holds the only permit; twenty runs of the tenant wait for it."""
    job = capped(world, 1)
    world.enqueue(job)
    world.worker().poll()
    waiting = world.enqueue(job, 20)
    worker = world.worker(slots=2)
    for _ in range(10):
        worker.poll()
        world.clock.step(seconds=0.2)
    assert sum(world.run(run).fence for run in waiting) == 2


def test_after_a_refusal_a_read_shows_a_free_permit_before_the_next_claim(world: World) -> None:
    """The refusal is forgotten after three seconds, but the permit is still held."""
    job = capped(world, 1)
    world.enqueue(job)
    holder, worker = world.worker(), world.worker(slots=1)
    holder.poll()
    (run,) = world.enqueue(job)
    for _ in range(5):
        worker.poll()
        world.clock.step(seconds=4)
    assert world.run(run).fence == 1
    holder.worker.drain()
    holder.finish()
    assert worker.poll().started == 1


def test_every_permit_is_tried_when_the_mark_is_of_no_use(world: World) -> None:
    """The freed mark names a permit that was taken since; another one was freed by a death."""
    job = capped(world, 2)
    world.enqueue(job, 2)
    dying, living = world.worker(slots=2), world.worker(slots=1)
    dying.poll()
    dying.worker.drain()
    dying.finish(1)
    world.enqueue(job)
    assert living.poll().started == 1
    world.living.append(living)
    world.reap()
    assert world.worker(slots=1).poll().started == 1


def test_skip_lets_a_manual_run_wait(world: World) -> None:
    """A run is made by hand while 09:01 runs on, which then ends."""
    minutely = Minutely(world, Overlap.SKIP)
    minutely.until("09:01:10")
    manual = world.operations.run_now(minutely.job.job_id)
    minutely.until("09:01:30")
    assert world.run(manual).state is RunState.READY
    minutely.worker.finish()
    minutely.until("09:01:35")
    assert world.run(manual).state is RunState.LEASED


def test_cancel_running_stops_the_running_one_and_keeps_the_newest(world: World) -> None:
    """09:01 does not stop when asked; 09:02 and 09:03 come due."""
    minutely = Minutely(world, Overlap.CANCEL_RUNNING)
    minutely.until("09:02:10")
    first, second, third = minutely.until("09:03:50")
    assert first.cancel_requested
    assert [run.state for run in (second, third)] == [RunState.SKIPPED, RunState.READY]
    minutely.worker.slots.release()
    assert world.calls[0].cancelled


def failing(world: World) -> Minutely:
    """Return a job whose runs fail at 09:01:55 and are tried again after a minute."""
    retry = RetryPolicy(base=timedelta(minutes=1), jitter=Jitter.NONE)
    minutely = Minutely(world, Overlap.SKIP, handler="fail", retry=retry)
    minutely.until("09:01:55")
    minutely.worker.finish()
    return minutely


def test_a_run_in_back_off_does_not_count_as_running(world: World) -> None:
    """09:01 has failed and waits for its next try when 09:02 comes due."""
    first, second = failing(world).until("09:02")
    assert (first.state, second.state) == (RunState.FAILED, RunState.LEASED)


def test_a_try_again_waits_for_the_run_that_is_running(world: World) -> None:
    """09:01 failed, 09:02 runs when the back-off of 09:01 ends."""
    first, second = failing(world).until("09:02:55")
    assert (first.state, second.state) == (RunState.READY, RunState.LEASED)
    assert first.reason == f"waits for {second.run_id}"


def test_a_forced_run_does_not_wait(world: World) -> None:
    """A person forces a run while 09:01 runs on."""
    minutely = Minutely(world, Overlap.SKIP)
    minutely.until("09:01:10")
    forced = world.operations.run_now(minutely.job.job_id, force=True)
    minutely.until("09:01:15")
    assert world.run(forced).state is RunState.LEASED


def test_queue_one_keeps_the_first_of_those_that_are_looked_at_together(world: World) -> None:
    """09:01 runs on; a worker that is new claims 09:02 to 09:04 at once and judges them leased."""
    minutely = Minutely(world, Overlap.QUEUE_ONE)
    minutely.until("09:01:10")
    minutely.until("09:04:10", polling=False)
    world.worker(slots=8).poll()
    first, *others = minutely.until("09:04:10")
    assert first.state is RunState.LEASED
    assert [run.state for run in others] == [RunState.READY, *[RunState.SKIPPED] * 2]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])
def test_runs_that_are_late_together_take_turns(world: World, overlap: Overlap) -> None:
    """After an outage six are due; none of them became due while another was running."""
    job = world.job("a", EVERY_MINUTE, overlap=overlap, catch_up=CatchUp.ALL)
    world.clock.step(minutes=6)
    world.dispatcher().tick()
    world.clock.step(seconds=10)
    world.worker(slots=8).poll()
    states = [run.state for run in world.runs(job) if run.scheduled_for <= world.now]
    assert sorted(states) == [RunState.LEASED, *[RunState.READY] * (len(states) - 1)]


def test_an_older_run_makes_way_for_a_newer_one_that_runs(world: World) -> None:
    """09:02 starts before 09:01, which was put back; cancel_running keeps the newest."""
    older, newer = Minutely(world, Overlap.CANCEL_RUNNING).until("09:02:10", polling=False)
    decision = decide_overlap(
        older,
        Overlap.CANCEL_RUNNING,
        holder=(newer.run_id, 1),
        waiter=None,
        holder_run=replace(newer, state=RunState.LEASED, fence=1),
        waiter_run=None,
    )
    assert (decision.answer, decision.ask_cancel) == (Answer.SKIP, False)
