"""Why a run waits or runs: the cause by name, with figures, and the command that mends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.explanation import Cause
from dynsched.domain.job import CatchUp, Overlap, Priority
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import CommandTarget
from dynsched.domain.time_words import stamp
from dynsched.services.specs import EverySpec, JobSpec
from dynsched.storage.engine import Applied, Replace
from dynsched.storage.placement import job_key
from dynsched.storage.runs import ProgressNote
from dynsched.targets.app import App
from tests.rules.small_world import EVERY_MINUTE, World, at, policies
from tests.unit.asking_why import said, why, why_at


@pytest.fixture
def world() -> World:
    """Return a world that begins at 09:00:10."""
    return World()


def enqueued(world: World, **options: object) -> Run:
    """Return a new run of a new job."""
    (run,) = world.enqueue(world.job(**options))  # type: ignore[arg-type]
    return run


def test_a_run_before_its_time_is_told_when_it_may_start(world: World) -> None:
    """A manual run of tomorrow waits for nothing but its time."""
    world.worker().poll()
    job = world.job()
    run = world.operations.enqueue(job.job_id, at=at("10:30"))
    explained = why(world, run)
    assert explained.cause is Cause.WAITING_FOR_TIME
    assert "2026-03-02 10:30:00Z, in 1h 29m" in explained.headline
    assert explained.hints == ()


def test_a_run_before_its_time_that_nobody_could_run_warns_of_that(world: World) -> None:
    """There is time yet to start a worker."""
    run = world.operations.enqueue(world.job(queue="far").job_id, at=at("10:30"))
    explained = why(world, run)
    assert explained.cause is Cause.WAITING_FOR_TIME
    assert "no living worker serves queue far" in said(explained)
    assert explained.hints == ("dynsched worker --queue far --app MODULE:APP",)


def test_a_caught_up_run_is_told_as_paced(world: World) -> None:
    """After an outage the runs of `catch_up all` come a second apart."""
    job = world.job(schedule=EVERY_MINUTE, catch_up=CatchUp.ALL)
    world.clock.step(minutes=10)
    world.dispatcher().tick()
    last = max(world.runs(job), key=lambda run: run.available_at)
    explained = why(world, last)
    assert explained.cause is Cause.PACED
    assert "catch_up all" in explained.headline
    assert "after its instant" in said(explained)


def test_a_run_inside_its_flexible_window_is_told_as_spread(world: World) -> None:
    """Its instant has come, its own place in the window has not."""
    job = world.job(schedule=EVERY_MINUTE, flex=timedelta(minutes=40))
    world.clock.step(seconds=50)
    world.dispatcher().tick()
    explained = why(world, world.runs(job)[0])
    assert explained.cause is Cause.SPREAD
    assert "40m" in explained.headline


def test_a_queue_that_no_worker_serves_is_named_with_those_that_are(world: World) -> None:
    """The most common mistake of all: the worker listens elsewhere."""
    world.worker().poll()
    run = enqueued(world, queue="reports")
    world.clock.step(seconds=20)
    explained = why(world, run)
    assert explained.cause is Cause.NO_WORKER
    assert "no living worker serves queue reports" in explained.headline
    assert "1 living worker serves main." in explained.sentences
    assert explained.hints == ("dynsched worker --queue reports --app MODULE:APP",)


def test_a_handler_that_no_worker_has_is_named_with_those_they_have(world: World) -> None:
    """A release was forgotten on the workers."""
    world.worker().poll()
    explained = why(world, enqueued(world, handler="brand_new"))
    assert explained.cause is Cause.NO_HANDLER
    assert "no living worker of queue main has handler brand_new" in explained.headline
    assert "has handlers fail, ok, snooze" in said(explained)


def test_a_command_that_no_worker_allows_is_told_how_to_allow_it(world: World) -> None:
    """Commands run only where a worker was started for them."""
    world.worker().poll()
    job = world.operations.create(
        JobSpec(name="sh", target=CommandTarget("true"), schedule=None, policies=policies())
    )
    explained = why(world, world.enqueue(job)[0])
    assert explained.cause is Cause.COMMANDS_REFUSED
    assert explained.hints == ("dynsched worker --queue main --allow-commands",)


def test_a_tenant_at_its_cap_is_named_with_the_count_and_the_holders(world: World) -> None:
    """Two of two are leased; who has the permits is one more command away."""
    world.operations.set_tenant("acme", max_running=2)
    job = world.job(tenant="acme")
    worker = world.worker()
    held = world.enqueue(job, 2)
    assert worker.poll().started == 2
    world.clock.step(seconds=8)
    (run,) = world.enqueue(job)
    worker.poll()
    explained = why(world, run)
    assert explained.cause is Cause.AT_CAP
    assert "tenant acme is at its cap: 2 of at most 2 runs are leased" in explained.headline
    assert held[0].run_id in said(explained)
    assert "dynsched tenant set acme --max-running 3" in explained.hints


def test_a_run_behind_another_of_its_job_names_the_holder(world: World) -> None:
    """`queue_one`: the first waiter is kept, and told for whom it waits."""
    job = world.job(schedule=EVERY_MINUTE, overlap=Overlap.QUEUE_ONE)
    dispatcher, worker = world.dispatcher(), world.worker()
    world.tick_for(dispatcher, 50)
    worker.poll()
    world.leave_alone(worker, seconds=60)
    dispatcher.tick()
    worker.poll()
    first, second = world.runs(job)[:2]
    explained = why(world, second)
    assert explained.cause is Cause.OVERLAP
    assert f"waits for its own run {first.run_id}, which is leased since" in explained.headline
    assert "It is the one that is to run next." in explained.sentences
    assert explained.hints[0] == f"dynsched why {first.run_id}"


def test_a_run_whose_holder_has_ended_is_told_when_it_is_looked_at_again(world: World) -> None:
    """Between the holder's end and the next look it waits for nothing but that look."""
    run = enqueued(world)
    later = replace(
        run, reason="waits for x", available_at=world.now + timedelta(seconds=20), version=2
    )
    assert world.store.runs.create_many([_renamed(later)]) == [True]
    explained = why(world, _renamed(later))
    assert explained.cause is Cause.WAITING_FOR_TIME
    assert "waited for x, which runs no more" in explained.headline


def _renamed(run: Run) -> Run:
    """Return the run under a key of its own."""
    return run.changed(key=replace(run.key, nonce="0-other"), version=1)


def test_a_run_of_a_job_paused_with_hold_is_told_who_paused_it_and_why(world: World) -> None:
    """The reason that was given is the one that is told."""
    job = world.job()
    (run,) = world.enqueue(job)
    world.operations.pause(job.job_id, reason="disk is full", hold=True)
    explained = why(world, run)
    assert explained.cause is Cause.PAUSED
    assert "(disk is full)" in explained.headline
    assert explained.hints == ("dynsched job resume job",)


def test_a_waiting_run_of_a_deleted_job_is_told_that_it_never_starts(world: World) -> None:
    """It is skipped as soon as somebody looks."""
    job = world.job()
    (run,) = world.enqueue(job)
    world.operations.delete(job.job_id)
    assert why(world, run).cause is Cause.JOB_DELETED


def test_a_failed_run_is_told_which_attempt_when_and_the_last_error(world: World) -> None:
    """One of five failures is spent, the next try comes in a known number of seconds."""
    worker = world.worker()
    run = enqueued(world, handler="fail")
    worker.poll()
    worker.finish()
    explained = why(world, run)
    assert explained.cause is Cause.RETRY
    assert "attempt 1 failed (RuntimeError: no luck)" in explained.headline
    assert "1 of 5 failures are spent" in explained.headline
    assert "2026-03-02 09:00:15Z, in 5s" in explained.headline


def test_a_failed_run_that_nobody_puts_back_names_the_dispatcher(world: World) -> None:
    """Its back-off is over; only a dispatcher moves it to ready."""
    retry = replace(policies().retry, base=timedelta(minutes=2), cap=timedelta(minutes=2))
    worker, dispatcher = world.worker(), world.dispatcher()
    run = enqueued(world, handler="fail", retry=retry)
    dispatcher.tick()
    worker.poll()
    worker.finish()
    assert world.states(run) == [RunState.FAILED]
    world.clock.step(minutes=5)
    explained = why(world, run)
    assert explained.cause is Cause.DISPATCHER_BEHIND
    assert "no dispatcher has put it back yet" in explained.headline
    assert "No dispatcher owns its shard since" in said(explained)
    assert "dynsched dispatcher" in explained.hints


def test_a_snoozed_run_is_told_that_its_handler_asked_for_it(world: World) -> None:
    """Nothing failed and nothing is spent."""
    worker = world.worker()
    run = enqueued(world, handler="snooze")
    worker.poll()
    worker.finish()
    explained = why(world, run)
    assert explained.cause is Cause.SNOOZED
    assert "asked for a later time" in explained.headline


def test_a_running_run_is_told_where_since_when_and_how_far_it_is(world: World) -> None:
    """Host, pid and session of its worker, and what its handler reported last."""
    worker = world.worker()
    run = enqueued(world, timeout=timedelta(minutes=10))
    worker.poll()
    world.leave_alone(worker, seconds=20)
    note = ProgressNote(
        run_id=run.run_id, attempt=1, done=30, total=100, note="third file", at=world.now
    )
    world.store.runs.note_progress(note, 2_000_000_000)
    explained = why(world, run)
    assert explained.cause is Cause.RUNNING
    assert f"session {worker.session}" in explained.headline
    assert "since 2026-03-02 09:00:10Z, for 20s" in explained.headline
    assert any(one.startswith("Progress: 30 of 100") for one in explained.sentences)
    assert "Its time limit of 10m ends it in 9m 40s." in explained.sentences


def test_a_run_asked_to_stop_is_told_as_stopping(world: World) -> None:
    """The flag is set, the handler has not answered."""
    worker = world.worker()
    run = enqueued(world)
    worker.poll()
    world.operations.cancel(run.run_id, reason="wrong file")
    explained = why(world, run)
    assert explained.cause is Cause.STOPPING
    assert "(wrong file)" in explained.headline


def test_a_run_whose_workers_lease_ran_out_names_the_silent_worker(world: World) -> None:
    """The reaper has not come yet; since when the session is silent is told."""
    worker = world.worker()
    run = enqueued(world)
    worker.poll()
    worker.die()
    world.clock.step(seconds=90)
    explained = why(world, run)
    assert explained.cause is Cause.LEASE_EXPIRED
    assert "its lease ended at 2026-03-02 09:00:40Z, 1m ago" in explained.headline
    assert explained.hints[0] == "dynsched reaper"


def test_a_run_under_a_closed_session_waits_for_the_reaper(world: World) -> None:
    """A claim that landed after the session's end."""
    worker = world.worker()
    worker.poll()
    session = worker.session
    worker.worker.close()
    run = enqueued(world)
    world.land_claim(run, session)
    explained = why(world, run)
    assert explained.cause is Cause.LEASE_EXPIRED
    assert "was closed at" in explained.headline


@pytest.mark.parametrize(("seconds", "cause"), [(60, Cause.RUNNING), (-60, Cause.LEASE_EXPIRED)])
def test_a_lease_without_heartbeats_is_told_by_its_own_end(
    world: World, seconds: int, cause: Cause
) -> None:
    """Some processes cannot send heartbeats; their lease has a fixed end."""
    run = enqueued(world)
    ends_at = world.now + timedelta(seconds=seconds)
    move = lifecycle.claim(world.run(run), session="~1#0", now=world.now, lease_ends_at=ends_at)
    world.store.runs.apply(move)
    explained = why(world, run)
    assert explained.cause is cause
    assert stamp(ends_at) in explained.headline


def test_a_run_over_its_time_limit_says_by_how_much(world: World) -> None:
    """Its worker should have ended it."""
    worker = world.worker()
    run = enqueued(world, timeout=timedelta(seconds=30))
    worker.poll()
    world.leave_alone(worker, seconds=50)
    assert "It is 20s over its time limit of 30s" in said(why(world, run))


def test_a_run_of_a_session_without_a_row_waits_for_the_reaper(world: World) -> None:
    """The session is so long gone that its row is, too."""
    run = enqueued(world)
    world.land_claim(run, "of-yesterday")
    explained = why(world, run)
    assert explained.cause is Cause.LEASE_EXPIRED
    assert "session of-yesterday, which has no row any more" in explained.headline


def test_a_run_that_lost_its_lease_is_told_as_returned(world: World) -> None:
    """Its attempt rows say which session was lost."""
    run = enqueued(world)
    world.lose_handler()
    world.worker().keeper.open()
    explained = why(world, run)
    assert explained.cause is Cause.LEASE_LOST
    assert "its worker was lost in attempt 1" in explained.headline
    assert any("attempt 1 lost in session" in what for _, what in explained.timeline)


def test_a_suspect_that_waits_for_an_idle_process_is_told_so(world: World) -> None:
    """After two losses in a row it runs alone, and every worker has something in hand."""
    run = enqueued(world)
    world.lose_handler()
    world.lose_handler()
    worker = world.worker(slots=4)
    busy = enqueued(world, name="other", priority=Priority.HIGH)
    suspect = world.run(run)
    assert suspect.losses == 2
    worker.keeper.open()
    world.land_claim(busy, worker.session)
    world.clock.step(seconds=10)
    explained = why(world, run)
    assert explained.cause is Cause.SUSPECT
    assert "have 1 run in hand" in said(explained)


def test_a_run_whose_workers_hold_a_suspect_names_the_suspect(world: World) -> None:
    """Nothing is claimed beside a run that may kill its process."""
    suspect = enqueued(world, name="killer")
    world.lose_handler()
    world.lose_handler()
    worker = world.worker()
    assert worker.poll().started == 1
    run = enqueued(world)
    worker.poll()
    world.clock.step(seconds=10)
    explained = why(world, run)
    assert explained.cause is Cause.SUSPECT_BESIDE
    assert f"One of these is {suspect.run_id}, after 2 lost leases." in explained.sentences


def test_a_run_behind_a_backlog_is_told_how_many_are_ahead(world: World) -> None:
    """All slots are taken, and three due runs were there before."""
    worker = world.worker(slots=2)
    job = world.job()
    world.enqueue(job, 2)
    worker.poll()
    world.clock.step(seconds=3)
    world.enqueue(job, 3)
    world.clock.step(seconds=3)
    (run,) = world.enqueue(job)
    world.clock.step(seconds=10)
    explained = why(world, run)
    assert explained.cause is Cause.BACKLOG
    assert "3 due runs of queue main, priority default were there before it" in explained.headline
    assert "1 living worker of the queue with 2 slots, all of them taken." in said(explained)


def test_a_run_made_late_by_a_dispatcher_outage_names_the_dispatcher(world: World) -> None:
    """The row was made minutes after its instant, and is to start at once."""
    job = world.job(schedule=EverySpec(every=timedelta(hours=1)))
    world.clock.step(hours=1, minutes=12)
    world.worker().poll()
    world.dispatcher().tick()
    late = world.runs(job)[-1]
    explained = why(world, late)
    assert explained.cause is Cause.DISPATCHER_BEHIND
    assert "late, as no dispatcher had made its row before" in explained.headline


def test_a_run_that_has_just_come_due_is_not_made_a_riddle(world: World) -> None:
    """A worker takes it within the second."""
    world.worker().poll()
    assert why(world, enqueued(world)).cause is Cause.JUST_DUE


def test_a_run_that_is_taken_while_it_is_asked_about_is_told_as_running(world: World) -> None:
    """The answer is about one moment, not about two."""
    worker = world.worker()
    worker.poll()
    run = enqueued(world)
    world.clock.step(seconds=9)
    world.people.wire.before(lambda call: call.query is not None and call.query.index, worker.poll)
    assert why(world, run).cause is Cause.RUNNING


def test_what_nothing_explains_is_told_with_all_that_was_looked_at(world: World) -> None:
    """No guess: a worker with free slots and the handler did not take it."""
    world.worker().poll()
    run = enqueued(world)
    world.clock.step(seconds=15)
    explained = why(world, run)
    assert explained.cause is Cause.CANNOT_TELL
    assert "cannot tell why no worker has taken it" in explained.headline
    assert explained.sentences[0].startswith("Looked at: its job, the living workers")


def test_a_run_of_a_damaged_job_says_so(world: World) -> None:
    """Workers put it back; the explanation names the damage and does not fail on it."""
    job = world.job(schedule=EVERY_MINUTE)
    (run,) = world.enqueue(job)
    engine, key = world.people.wire, job_key(job.job_id)
    row = engine.get(key)
    assert row is not None
    body = {**row.body, "g": "nonsense"}
    token = world.store.token()
    damaged = replace(row, body=body, token=token, version=row.version + 1)
    assert isinstance(engine.write(Replace(damaged, row.version)), Applied)
    explained = why(world, run)
    assert explained.cause is Cause.CANNOT_TELL
    assert "the row of its job is damaged" in explained.headline
    instant = why_at(world, job, at("10:00"))
    assert instant.cause is Cause.CANNOT_TELL
    assert "the job's row is damaged" in instant.headline


def test_the_rows_that_were_read_are_counted_and_bounded(world: World) -> None:
    """A long queue costs no more than the bound."""
    worker = world.worker(slots=1)
    job = world.job()
    run, *_ = world.enqueue(job, 1_500)[::-1]
    worker.poll()
    explained = why(world, run)
    assert explained.cause is Cause.BACKLOG
    assert explained.examined < 1_100
    assert "+ due runs" in explained.headline


def test_a_session_with_many_handlers_names_the_first_ten(world: World) -> None:
    """The sentence stays one that can be read."""
    app = App()
    for number in range(30):
        app.job(f"handler{number:02}")(lambda: None)
    world.worker(app=app).poll()
    explained = why(world, enqueued(world, handler="other"))
    assert "handler09, …" in said(explained)
    assert "handler10" not in said(explained)
