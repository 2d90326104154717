"""Why an instant of a job has no run, or has not yet; and when that is an alarm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.explanation import Cause
from dynsched.domain.job import CatchUp, Job, JobState
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.specs import CronSpec
from dynsched.services.views import Views
from dynsched.storage.engine import Applied, Delete
from dynsched.storage.runs import run_table_key
from tests.rules.small_world import EVERY_MINUTE, World, at
from tests.unit.asking_why import said, why_at

HOURLY = CronSpec(expr="0 * * * *")


@pytest.fixture
def world() -> World:
    """Return a world that begins at 09:00:10."""
    return World()


def views(world: World) -> Views:
    """Return views of the world's store."""
    return build_views(world.people.base)


def served(world: World, job: Job, until: datetime) -> None:
    """Let a dispatcher and a worker do their work, a minute at a time."""
    dispatcher, worker = world.dispatcher(), world.worker()
    while world.now < until:
        world.clock.step(seconds=10)
        dispatcher.tick()
        if worker.keeper.session is not None:
            worker.keeper.beat()
        worker.poll()
        worker.finish()
    assert world.runs(job)


def forget(world: World, job: Job, instant: datetime) -> None:
    """Take away a run's row, as no part of the program ever does."""
    run = world.cron_run(job, instant)
    assert run is not None
    delete = Delete(run_table_key(run.key), run.version)
    assert isinstance(world.people.wire.write(delete), Applied)


def test_an_instant_that_was_never_named_tells_its_neighbours(world: World) -> None:
    """A typing error, or another zone: the two instants next to it are a command away."""
    job = world.job(schedule=HOURLY)
    explained = why_at(world, job, at("10:30"))
    assert explained.cause is Cause.NEVER_NAMED
    assert "that instant was never named" in explained.headline
    assert explained.hints == (
        "dynsched why job 2026-03-02T10:00:00Z",
        "dynsched why job 2026-03-02T11:00:00Z",
    )


def test_neighbours_are_those_of_the_schedules_in_force_at_their_instants(world: World) -> None:
    """Before the edit the old schedule names them, behind it the new one."""
    job = world.job(schedule=HOURLY)
    world.clock.step(hours=1, minutes=20)
    world.operations.reschedule(job.job_id, CronSpec(expr="45 * * * *"))
    explained = why_at(world, job, at("10:30"))
    assert explained.hints == (
        "dynsched why job 2026-03-02T10:00:00Z",
        "dynsched why job 2026-03-02T10:45:00Z",
    )


def test_a_job_run_by_hand_names_no_instant(world: World) -> None:
    """It has no schedule at all."""
    explained = why_at(world, world.job(), at("10:00"))
    assert explained.cause is Cause.NEVER_NAMED
    assert "is: by hand only" in explained.headline


def test_an_instant_before_the_jobs_creation_says_by_how_much(world: World) -> None:
    """The job did not exist."""
    explained = why_at(world, world.job(schedule=HOURLY), at("08:00"))
    assert explained.cause is Cause.BEFORE_CREATION
    assert "it was created 1h later" in explained.headline


def test_an_instant_still_ahead_says_in_how_long_and_when_its_row_comes(world: World) -> None:
    """Nothing is wrong, and that is the answer."""
    explained = why_at(world, world.job(schedule=HOURLY), at("14:00"))
    assert explained.cause is Cause.AHEAD
    assert "still ahead: in 4h 59m" in explained.headline
    assert "Its row will be made from 2026-03-02 13:59:30Z on" in said(explained)


def test_an_instant_inside_the_look_ahead_waits_for_the_next_tick(world: World) -> None:
    """And it tells whether a dispatcher serves the shard at all."""
    job = world.job(schedule=HOURLY)
    world.dispatcher().tick()
    world.clock.step(minutes=59, seconds=30)
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.AHEAD
    assert "next tick" in said(explained)
    assert "No dispatcher owns its shard since" in said(explained)


def test_an_instant_ahead_names_the_dispatcher_that_is_to_serve_it(world: World) -> None:
    """Or says that none has ever been there."""
    job = world.job(schedule=HOURLY)
    world.clock.step(minutes=59, seconds=25)
    assert "No dispatcher has ever owned its shard" in said(why_at(world, job, at("10:00")))
    world.hide(job)  # its index entry is late
    world.dispatcher().tick()
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.AHEAD
    assert "Dispatcher dispatcher-" in said(explained)


def test_an_instant_with_a_run_is_explained_as_that_run(world: World) -> None:
    """One question, whatever the answer is made of."""
    job = world.job(schedule=EVERY_MINUTE)
    served(world, job, at("09:03"))
    explained = why_at(world, job, at("09:02"))
    assert explained.cause is Cause.DONE
    assert explained.run_id == f"{job.job_id}@2026-03-02T09:02:00.000Z-c"


def test_a_dead_run_of_an_instant_tells_how_late_it_started(world: World) -> None:
    """Both matter: that it died, and that it was late already."""
    job = world.job(schedule=EVERY_MINUTE, handler="fail")
    world.tick_for(world.dispatcher(), 50)
    world.clock.step(seconds=30)
    worker = world.worker()
    worker.poll()
    worker.finish()
    explained = why_at(world, job, at("09:01"))
    assert explained.cause is Cause.RETRY
    assert "It was first started 30s after its instant." in explained.sentences


def test_an_instant_that_catch_up_skipped_names_the_span(world: World) -> None:
    """`skip`: none of the missed ones gets a run, and they are counted."""
    job = world.job(schedule=EVERY_MINUTE, catch_up=CatchUp.SKIP)
    world.clock.step(minutes=30)
    world.dispatcher().tick()
    explained = why_at(world, job, at("09:10"))
    assert explained.cause is Cause.CAUGHT_UP
    assert "one of 29 instants from 2026-03-02T09:01:00Z to 2026-03-02T09:29:00Z" in said(explained)


def test_an_instant_before_the_latest_that_was_caught_up_names_the_span(world: World) -> None:
    """`latest`: one run for any number missed."""
    job = world.job(schedule=EVERY_MINUTE, catch_up=CatchUp.LATEST)
    world.clock.step(minutes=30)
    world.dispatcher().tick()
    assert why_at(world, job, at("09:10")).cause is Cause.CAUGHT_UP
    assert why_at(world, job, at("09:29")).run_id is not None


def test_a_span_that_left_the_jobs_row_is_still_found(world: World) -> None:
    """Only the last two spans lie in the row."""
    job = world.job(schedule=EVERY_MINUTE, catch_up=CatchUp.SKIP)
    for _ in range(4):
        world.clock.step(minutes=30)
        world.dispatcher().tick()
    assert world.reread(job).older_spans
    assert why_at(world, job, at("09:10")).cause is Cause.CAUGHT_UP


def test_an_instant_of_a_paused_job_tells_since_when_and_why(world: World) -> None:
    """The reason that was given, the count so far, and the way back."""
    job = world.job(schedule=HOURLY)
    world.operations.pause(job.job_id, reason="month-end")
    world.clock.step(hours=3)
    explained = why_at(world, job, at("11:00"))
    assert explained.cause is Cause.PAUSED
    assert "it was paused (month-end) from 2026-03-02 09:00:12Z and still is" in explained.headline
    assert "3 instants so far" in said(explained)
    assert any(what.startswith("job.pause by program on ") for _, what in explained.timeline)
    assert explained.hints == ("dynsched job resume job",)


def test_an_instant_ahead_of_a_job_just_paused_is_told_as_paused(world: World) -> None:
    """There is nothing to count yet."""
    job = world.job(schedule=HOURLY)
    world.operations.pause(job.job_id, reason="month-end")
    explained = why_at(world, job, at("11:00"))
    assert explained.cause is Cause.PAUSED
    assert explained.sentences == ()


def test_an_instant_of_a_pause_that_is_over_names_its_end(world: World) -> None:
    """A resume counts what lay in between."""
    job = world.job(schedule=HOURLY)
    world.operations.pause(job.job_id, reason="month-end")
    world.clock.step(hours=3)
    world.operations.resume(job.job_id)
    explained = why_at(world, job, at("11:00"))
    assert explained.cause is Cause.PAUSED
    assert "to 2026-03-02 12:00:12Z" in explained.headline
    assert "one of 3 instants" in said(explained)
    assert explained.hints == ("dynsched job run-now job",)


def test_an_instant_of_a_deleted_job_says_when_it_was_deleted(world: World) -> None:
    """A tombstone is found by the job's id."""
    job = world.job(schedule=HOURLY)
    world.operations.delete(job.job_id)
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.JOB_DELETED
    assert "it was deleted at 2026-03-02 09:00:12Z" in explained.headline


def test_an_instant_of_a_parked_job_tells_why_it_was_parked(world: World) -> None:
    """A schedule that cannot be evaluated pins nothing, and says so here."""
    job = world.job(schedule=HOURLY)
    row = world.store.jobs.row_of(world.reread(job))
    assert world.store.jobs.park(row, "its schedule cannot be evaluated: no such zone")
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.PARKED
    assert "no such zone" in explained.headline


def test_an_instant_under_a_schedule_that_cannot_be_read_is_not_guessed(world: World) -> None:
    """An older zone database does not know the zone."""
    job = world.job(schedule=HOURLY)
    world.break_schedule(job)
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.CANNOT_TELL
    assert "cannot be read here" in explained.headline


def test_an_instant_of_a_dispatcher_outage_tells_how_far_it_is_behind(world: World) -> None:
    """Late, not lost: whose shard it was, until when, and what catch-up will do."""
    job = world.job(schedule=HOURLY)
    world.dispatcher().tick()
    world.clock.step(hours=2)
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.DISPATCHER_BEHIND
    assert "1h late: no dispatcher has served the job since" in explained.headline
    assert "the last was dispatcher-" in said(explained)
    assert "its catch-up policy (latest) decides" in said(explained)
    assert not explained.alarm


def test_an_instant_whose_row_is_gone_is_an_alarm(world: World) -> None:
    """The pointer has passed it, nothing was skipped, and retention is not over."""
    job = world.job(schedule=EVERY_MINUTE)
    served(world, job, at("09:06"))
    forget(world, job, at("09:02"))
    explained = why_at(world, job, at("09:02"))
    assert explained.cause is Cause.LOST
    assert explained.alarm
    assert explained.headline.startswith("ALARM: job has no run at 2026-03-02T09:02:00Z")
    assert explained.hints[0] == "dynsched job run-now job"


def test_an_instant_that_its_minute_was_closed_without_is_an_alarm(world: World) -> None:
    """The job's index entry was late; the re-readings may yet find it."""
    job = world.job(schedule=HOURLY)
    dispatcher = world.dispatcher()
    world.clock.step(minutes=58)
    dispatcher.tick()
    world.hide(job)
    world.tick_for(dispatcher, 400)
    explained = why_at(world, job, at("10:00"))
    assert explained.cause is Cause.LOST
    assert "has passed that minute without serving the job" in explained.headline
    assert "read again after 1, 10 and 60 minutes" in said(explained)


def test_a_dispatcher_that_comes_back_between_two_reads_makes_no_alarm(world: World) -> None:
    """Its cursor passes the minute after the job was read, and the row is there."""
    job = world.job(schedule=HOURLY)
    dispatcher = world.dispatcher()
    dispatcher.tick()
    world.clock.step(minutes=65)
    wire = world.people.wire
    wire.before(
        lambda call: any(key.pk == "cursors" for key in call.keys),
        lambda: world.tick_for(dispatcher, 200),
    )
    explained = why_at(world, job, at("10:00"))
    assert wire.sprung
    assert explained.run_id is not None
    assert not explained.alarm


def test_a_missing_row_of_an_open_minute_is_no_alarm_yet(world: World) -> None:
    """Inside of the closing margin it says when to ask again."""
    job = world.job(schedule=EVERY_MINUTE)
    served(world, job, at("09:02:20"))
    forget(world, job, at("09:02"))
    explained = why_at(world, job, at("09:02"))
    assert explained.cause is Cause.CANNOT_TELL
    assert "Ask again after 2026-03-02 09:03:30Z." in explained.sentences


def test_a_missing_row_beyond_retention_is_expired_and_no_alarm(world: World) -> None:
    """It was there, most probably; nobody can tell any more."""
    job = world.job(schedule=EVERY_MINUTE, retention=timedelta(days=2))
    served(world, job, at("09:03"))
    forget(world, job, at("09:02"))
    world.clock.step(days=3)
    explained = why_at(world, job, at("09:02"))
    assert explained.cause is Cause.EXPIRED
    assert "runs are kept for 2d only" in explained.headline


def test_a_lost_instant_days_ago_leaves_room_for_an_edit_of_the_retention(world: World) -> None:
    """No row says how long it was to be kept; that is said."""
    job = world.job(schedule=EVERY_MINUTE, retention=timedelta(days=14))
    served(world, job, at("09:03"))
    forget(world, job, at("09:02"))
    world.clock.step(days=3)
    explained = why_at(world, job, at("09:02"))
    assert explained.cause is Cause.LOST
    assert "Cannot tell whether its runs were kept shorter" in said(explained)


def test_a_finished_jobs_last_instant_that_is_missing_is_lost_too(world: World) -> None:
    """Its pointer is gone, as all was served."""
    job = world.job(schedule=CronSpec(expr="* * * * *", end=at("09:03")))
    served(world, job, at("09:08"))
    assert world.reread(job).state is JobState.FINISHED
    forget(world, job, at("09:03"))
    assert why_at(world, job, at("09:03")).cause is Cause.LOST


def test_an_instant_is_found_by_the_jobs_name_in_its_tenant(world: World) -> None:
    """With any offset; the hints carry the tenant."""
    world.job(schedule=HOURLY, tenant="acme")
    berlin = datetime.fromisoformat("2026-03-02T11:30:00+01:00")
    explained = views(world).why_instant("job", berlin, "acme")
    assert explained.cause is Cause.NEVER_NAMED
    assert all(hint.endswith(" --tenant acme") for hint in explained.hints)
    with pytest.raises(NotFound, match="tenant acme has one"):
        views(world).why_instant("job", berlin)


def test_an_instant_without_an_offset_is_refused(world: World) -> None:
    """Whose clock would it be?"""
    world.job(schedule=HOURLY)
    with pytest.raises(InvalidInput, match="no zone"):
        views(world).why_instant("job", at("10:00").replace(tzinfo=None))


def test_a_scheduled_runs_id_without_a_row_is_explained_as_its_instant(world: World) -> None:
    """Ids from old logs stay good questions; a manual run's cannot be answered."""
    job = world.job(schedule=HOURLY)
    explained = views(world).why_run(f"{job.job_id}@2026-03-02T10:30:00.000Z-c")
    assert explained.cause is Cause.NEVER_NAMED
    with pytest.raises(NotFound, match="its retention is over"):
        views(world).why_run(f"{job.job_id}@2026-03-02T10:30:00.000Z-m0-abc")


def test_generations_that_left_the_row_still_judge_their_instants(world: World) -> None:
    """After many edits the schedule of the first hour is read apart."""
    job = world.job(schedule=HOURLY)
    served(world, job, at("10:01"))
    for minute in range(10, 16):
        world.clock.step(minutes=1)
        world.operations.reschedule(job.job_id, CronSpec(expr=f"{minute} 3 * * *"))
    assert world.reread(job).older_generations
    assert why_at(world, job, at("10:00")).cause is Cause.DONE
    assert why_at(world, job, at("09:30")).cause is Cause.NEVER_NAMED
    assert why_at(world, job, datetime(2026, 3, 1, tzinfo=UTC)).cause is Cause.BEFORE_CREATION


@pytest.mark.parametrize(
    "end", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC, microsecond=0)]
)
def test_the_first_and_the_last_instant_of_all_are_explained(world: World, end: datetime) -> None:
    """What no calendar goes beyond is an instant like others."""
    assert why_at(world, world.job(schedule=HOURLY), end).headline
