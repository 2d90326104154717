"""Occurrences: each intended instant becomes one row or one counted skip, and starts only if named.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from dynsched.domain.job import CatchUp, Job, JobState, Overlap, names_instant
from dynsched.domain.run import RunState
from dynsched.services.specs import AtSpec, CronSpec, EverySpec
from dynsched.testing.faults import Crash, Fault
from tests.rules.small_world import EVERY_MINUTE, World, at
from tests.rules.wire import advances, makes_runs, takes_permit

EVERY_TEN = EverySpec(every=timedelta(seconds=10))


@pytest.fixture
def world() -> World:
    """Return a world with one shard and two lanes."""
    return World()


# what may start


def test_a_run_starts_if_the_schedule_in_force_at_its_instant_names_it(world: World) -> None:
    """09:01 has its row; the job is edited to another schedule that names 09:01 too."""
    job = world.job("a", EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 30)
    world.operations.reschedule(job.job_id, CronSpec(expr="1-59/2 * * * *"))
    world.clock.step(seconds=25)
    assert world.worker().poll().started == 1


def test_a_run_is_skipped_if_the_schedule_in_force_at_its_instant_does_not_name_it(
    world: World,
) -> None:
    """09:01 has its row; the job is edited, before 09:01, to a schedule without it."""
    job = world.job("a", EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 30)
    world.operations.reschedule(job.job_id, CronSpec(expr="30 * * * *"))
    world.clock.step(seconds=25)
    assert world.worker().poll().started == 0
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert (run.state, run.reason) == (RunState.SKIPPED, "edited")


def test_a_generation_that_has_left_the_row_still_judges_its_instants(world: World) -> None:
    """09:01 is not claimed until four edits later, when its generation lies apart."""
    job = world.job("a", EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 60)
    for minute in range(30, 34):
        world.operations.reschedule(job.job_id, CronSpec(expr=f"{minute} * * * *"))
        world.clock.step(seconds=10)
    assert world.reread(job).older_generations
    world.worker().poll()
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert run.state is RunState.LEASED


def test_a_process_with_a_fast_clock_skips_nothing_that_a_resume_lets_run(world: World) -> None:
    """A pause is over just before 09:01, but a worker 1.9 s ahead has judged 09:01 by it."""
    job = world.job("a", EVERY_MINUTE)
    dispatcher, fast = world.dispatcher(), world.worker(skew_s=1.9)
    world.tick_for(dispatcher, 30)
    world.operations.pause(job.job_id, reason="test")
    world.clock.step(seconds=18.2)
    fast.poll()
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert (run.state, run.reason) == (RunState.SKIPPED, "paused")
    resumed = world.operations.resume(job.job_id).job
    assert not names_instant(resumed.generations, at("09:01"))


# each instant once


def test_an_edit_after_an_outage_serves_what_was_due_before_it(world: World) -> None:
    """09:05 passes while no dispatcher lives; then the job is edited to another time."""
    job = world.job("a", CronSpec(expr="5 9 * * *"))
    world.clock.step(minutes=30)
    world.operations.reschedule(job.job_id, CronSpec(expr="50 * * * *"))
    assert world.cron_run(job, at("09:05")) is not None


def test_one_serve_makes_all_rows_and_lands_in_no_past_minute(world: World) -> None:
    """After ten minutes without dispatcher the advance's index entry is 40 s late."""
    job = world.job("a", EVERY_MINUTE, catch_up=CatchUp.ALL)
    world.clock.step(minutes=10)
    dispatcher = world.dispatcher()
    dispatcher.tick()
    world.hide(job)
    total = world.tick_for(dispatcher, 40)
    world.show()
    total.late += world.tick_for(dispatcher, 10).late
    assert [run.scheduled_for.minute for run in world.runs(job)] == list(range(1, 12))
    assert total.late == 0


def test_a_minute_is_closed_only_when_no_entry_can_come_any_more(world: World) -> None:
    """The entry in minute 09:00 is a minute late, when that minute is over."""
    job = world.job("a", EVERY_TEN)
    world.hide(job)
    dispatcher = world.dispatcher()
    world.tick_for(dispatcher, 60)
    world.show()
    assert world.tick_for(dispatcher, 10).late == 0
    assert world.cron_run(job, at("09:00:40")) is not None


def test_closed_minutes_are_read_again(world: World) -> None:
    """The entry comes five minutes late, when the cursor has passed its minute."""
    job = world.job("a", EVERY_TEN, catch_up=CatchUp.ALL)
    world.hide(job)
    dispatcher = world.dispatcher()
    world.tick_for(dispatcher, 300)
    world.show()
    assert world.tick_for(dispatcher, 600).late == 1
    assert world.cron_run(job, at("09:00:40")) is not None


def test_a_cursor_begins_where_its_shard_begins(world: World) -> None:
    """A resize dies before it makes the cursors; jobs come due; the first reader comes late."""
    operations, process = world.operator()
    process.wire.before(
        lambda call: any(write.key.pk == "cursors" for write in call.writes),
        fault=Fault.CRASH_BEFORE,
    )
    with pytest.raises(Crash):
        operations.resize(shards=4)
    jobs = [world.job(f"j{number}", AtSpec(at=at("09:10"))) for number in range(8)]
    world.clock.step(minutes=20)
    world.dispatcher().tick()
    assert [len(world.runs(job)) for job in jobs] == [1] * 8


def test_readers_read_every_shard_under_which_jobs_may_lie() -> None:
    """Jobs lie in four shards when the count is lowered to one."""
    world = World(shards=4)
    jobs = [world.job(f"j{number}", AtSpec(at=at("09:10"))) for number in range(8)]
    world.operations.resize(shards=1)
    world.clock.step(minutes=20)
    world.dispatcher().tick()
    assert [len(world.runs(job)) for job in jobs] == [1] * 8


def test_readers_read_every_lane_in_which_runs_may_lie() -> None:
    """Runs lie in four lanes when the count is lowered to one."""
    world = World(lanes=4)
    job = world.job("a")
    world.operations.enqueue_many(job.job_id, list(range(8)))
    world.operations.resize(lanes=1)
    world.clock.step(minutes=20)
    assert world.worker(slots=8).poll().claimed == 8


def test_a_manual_run_takes_no_occurrences_place(world: World) -> None:
    """A run is enqueued for exactly the instant that the schedule names."""
    job = world.job("a", EVERY_MINUTE)
    world.operations.enqueue(job.job_id, at=at("09:01"))
    world.tick_for(world.dispatcher(), 30)
    assert [run.scheduled_for for run in world.runs(job)] == [at("09:01")] * 2


# what comes back from the past


def made_again(world: World) -> World:
    """Let a frozen dispatcher make 09:01 again after it ran and its row has expired."""
    job = world.job("a", AtSpec(at=at("09:01")))
    frozen, worker = world.dispatcher(), world.worker()

    def meanwhile() -> None:
        world.dispatcher().tick()
        world.clock.step(seconds=20)
        worker.poll()
        worker.finish()
        worker.die()
        world.clock.step(days=15)
        world.reaper().sweep()
        assert world.runs(job) == []

    world.clock.step(seconds=40)
    frozen.wire.before(makes_runs, meanwhile)
    frozen.tick()
    assert len(world.runs(job)) == 1
    return world


def test_an_instant_older_than_its_retention_does_not_run_again(world: World) -> None:
    """A dispatcher freezes with 09:01 in its plan until 09:01 has run and its row is gone."""
    made_again(world).worker().poll()
    (run,) = world.runs(world.operations.find("a"))
    assert (run.state, run.reason) == (RunState.SKIPPED, "expired")


def test_an_expired_instant_does_not_run_because_its_lease_was_lost(world: World) -> None:
    """The row that was made again is claimed by a process that dies before its look."""
    made_again(world)
    world.lose_claim()
    world.worker().poll()
    (run,) = world.runs(world.operations.find("a"))
    assert (run.attempt, run.state, run.reason) == (1, RunState.SKIPPED, "expired")


def test_a_job_that_cannot_be_evaluated_leaves_the_due_index(world: World) -> None:
    """Its zone is unknown here; the minutes it is due in must be closed all the same."""
    broken, good = world.job("broken", EVERY_MINUTE), world.job("good", EVERY_MINUTE)
    world.break_schedule(broken)
    dispatcher = world.dispatcher()
    world.tick_for(dispatcher, 300)
    assert world.cursor_at("due") >= at("09:03")
    assert len(world.runs(good)) == 5


# skipped spans


def outages(world: World, count: int) -> list[datetime]:
    """Let ten minutes pass unserved, several times; return an instant of each skipped span."""
    dispatcher = world.dispatcher()
    found = []
    for _ in range(count):
        found.append(world.now.replace(second=0) + timedelta(minutes=5))
        world.clock.step(minutes=10)
        dispatcher.tick()
    return found


def skipping(world: World) -> Job:
    """Return a job that has each minute skipped that was missed."""
    return world.job("a", EVERY_MINUTE, catch_up=CatchUp.SKIP)


def test_an_instant_that_was_counted_as_skipped_does_not_run(world: World) -> None:
    """A dispatcher freezes with 09:01 in its plan; another counts 09:01 as skipped meanwhile."""
    job = skipping(world)
    frozen = world.dispatcher()
    world.clock.step(seconds=40)
    frozen.wire.before(makes_runs, lambda: outages(world, 1))
    frozen.tick()
    world.worker().poll()
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert (run.state, run.reason) == (RunState.SKIPPED, "catch-up")


def test_a_skipped_instant_does_not_run_because_its_lease_was_lost(world: World) -> None:
    """As above, and the first to claim the row dies before its look."""
    job = skipping(world)
    (instant,) = outages(world, 1)
    run = world.put_late(job, instant)
    world.lose_claim()
    world.worker(slots=40).poll()
    assert world.run(run).state is RunState.SKIPPED


def test_an_instant_in_a_span_that_has_left_the_row_does_not_run(world: World) -> None:
    """Three outages later the first one's span lies apart; a frozen dispatcher wakes."""
    job = skipping(world)
    first = outages(world, 3)[0]
    run = world.put_late(world.reread(job), first)
    world.worker(slots=40).poll()
    assert world.run(run).reason == "catch-up"


def test_a_span_is_written_apart_before_the_advance_that_drops_it(world: World) -> None:
    """The dispatcher dies right after the advance that drops the first outage's span."""
    job = skipping(world)
    first = outages(world, 2)[0]
    world.clock.step(minutes=10)
    dying = world.dispatcher()
    dying.wire.before(advances, fault=Fault.CRASH_AFTER)
    with pytest.raises(Crash):
        dying.tick()
    run = world.put_late(world.reread(job), first)
    world.worker(slots=40).poll()
    assert world.run(run).reason == "catch-up"


def test_the_job_is_read_after_the_permits(world: World) -> None:
    """The job is deleted, acknowledged, while the permit of its run is being written."""
    job = world.job("a", EVERY_MINUTE, overlap=Overlap.SKIP)
    world.tick_for(world.dispatcher(), 60)
    worker = world.worker()
    worker.wire.before(takes_permit, lambda: world.operations.delete(job.job_id))
    assert worker.poll().started == 0
    assert worker.wire.sprung


def test_the_advance_lands_in_no_past_minute_however_many_are_caught_up(world: World) -> None:
    """Each second an instant, 40 minutes without dispatcher, a thousand of them wanted."""
    job = world.job(
        "a", EverySpec(every=timedelta(seconds=1)), catch_up=CatchUp.ALL, catch_up_max=1000
    )
    world.clock.step(minutes=40)
    dispatcher = world.dispatcher()
    dispatcher.wire.after(advances, lambda: world.hide(job))
    dispatcher.tick()
    pointer = world.reread(job).next_at
    assert pointer is not None
    assert pointer >= world.now


# start deadlines


def with_deadline(world: World) -> Job:
    """Return a job due at 09:00:20 that must start within half a minute."""
    job = world.job("a", AtSpec(at=at("09:00:20")), start_deadline=timedelta(seconds=30))
    world.clock.step(seconds=11)
    return job


def test_a_run_that_would_start_too_late_is_skipped(world: World) -> None:
    """No worker is there until half a minute after the deadline."""
    job = with_deadline(world)
    world.clock.step(seconds=60)
    assert world.worker().poll().started == 0
    assert world.runs(job)[0].reason == "missed deadline"


def test_a_run_that_was_drained_is_not_late_for_its_deadline(world: World) -> None:
    """It started in time; its process had to hand it back after the deadline."""
    job, worker = with_deadline(world), world.worker()
    assert worker.poll().started == 1
    worker.worker.drain()
    world.leave_alone(worker, seconds=60)
    worker.poll()
    assert world.worker().poll().started == 1
    assert world.runs(job)[0].fence == 2


def test_an_edit_brings_a_parked_job_back(world: World) -> None:
    """A job was parked; it is given a schedule that can be evaluated."""
    job = world.job("a", EVERY_MINUTE)
    world.break_schedule(job)
    world.tick_for(world.dispatcher(), 60)
    world.operations.reschedule(job.job_id, EVERY_MINUTE)
    assert world.reread(job).state is JobState.ACTIVE


def test_a_run_of_a_job_that_cannot_be_evaluated_any_more_starts(world: World) -> None:
    """09:01 has its row, made by the generation in force, when the zone becomes unknown."""
    job = world.job("a", EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 60)
    world.break_schedule(job)
    assert world.worker().poll().started == 1


def test_a_run_whose_instant_cannot_be_judged_waits_for_the_edit(world: World) -> None:
    """09:01 was made by a generation that is not in force any more, and that one is broken."""
    job = world.job("a", EVERY_MINUTE)
    world.tick_for(world.dispatcher(), 30)
    world.operations.reschedule(job.job_id, CronSpec(expr="1-59/2 * * * *"))
    world.break_schedule(world.reread(job))
    world.clock.step(seconds=25)
    assert world.worker().poll().started == 0
    run = world.cron_run(job, at("09:01"))
    assert run is not None
    assert (run.state, run.reason) == (RunState.READY, "its job cannot be evaluated here")


def test_the_map_keeps_older_counts_while_somebody_may_write_by_them() -> None:
    """Right after the lanes were lowered the daily sweep finds nothing left to be moved."""
    world = World(lanes=4)
    job, reaper = world.job("a"), world.reaper()
    reaper.sweep()
    world.clock.step(hours=24)
    operations, process = world.operator()
    process.store.refresh_by(world.now)
    world.operations.resize(lanes=1)
    reaper.sweep()
    operations.enqueue_many(job.job_id, [None] * 8)
    world.clock.step(seconds=1)
    assert world.worker(slots=8).poll().claimed == 8


def test_the_map_forgets_older_counts_when_nothing_lies_under_them() -> None:
    """Two days after the lanes were lowered; the first sweep has moved what lay there."""
    world = World(lanes=4)
    world.enqueue(world.job("a"), 8)
    world.operations.resize(lanes=1)
    reaper = world.reaper()
    for _ in range(4):
        reaper.sweep()
        world.clock.step(hours=24)
    assert world.store.refresh().lanes == 1
    assert world.worker(slots=8).poll().claimed == 8
