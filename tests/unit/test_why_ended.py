"""Why a run ended as it did: done late, dead, cancelled or skipped, by name and with figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.bootstrap import build_stepper
from dynsched.domain.explanation import Cause, Explanation
from dynsched.domain.job import Job, Overlap
from dynsched.domain.retry import ErrorRule, RuleAction
from dynsched.domain.run import Run, RunState
from dynsched.services.documents import explanation_document
from dynsched.services.specs import CronSpec
from dynsched.targets.app import App
from tests.rules.small_world import EVERY_MINUTE, World, policies
from tests.unit.asking_why import said, why


@pytest.fixture
def world() -> World:
    """Return a world that begins at 09:00:10."""
    return World()


def ended(world: World, **options: object) -> Run:
    """Return a run of a new job that a worker has run once."""
    (run,) = world.enqueue(world.job(**options))  # type: ignore[arg-type]
    worker = world.worker()
    worker.poll()
    worker.finish()
    return run


def spent(**choices: object) -> dict[str, object]:
    """Return the options of a job whose handler fails for good at its first attempt."""
    return {"handler": "fail", "retry": replace(policies().retry, max_attempts=1), **choices}


def test_a_run_that_went_well_says_so_in_one_sentence(world: World) -> None:
    """No riddle where there is none."""
    explained = why(world, ended(world))
    assert explained.cause is Cause.DONE
    assert "started in time and is done" in explained.headline
    assert explained.sentences == ()
    assert [what for _, what in explained.timeline][-2:] == ["first started", "done"]


def test_a_run_made_late_and_done_names_the_dispatcher(world: World) -> None:
    """Its row was made twelve minutes after its instant."""
    job = world.job(schedule=CronSpec(expr="0 * * * *"))
    world.clock.step(hours=1, minutes=12)
    world.dispatcher().tick()
    worker = world.worker()
    worker.poll()
    worker.finish()
    explained = why(world, world.runs(job)[-1])
    assert explained.cause is Cause.DONE_LATE
    assert "no dispatcher had made its row before 2026-03-02 10:12:10Z, 12m" in explained.headline


def test_a_run_that_workers_left_waiting_says_what_cannot_be_told(world: World) -> None:
    """The row keeps no record of slots or caps; that is said, and nothing is guessed."""
    (run,) = world.enqueue(world.job())
    world.clock.step(seconds=90)
    worker = world.worker()
    worker.poll()
    worker.finish()
    explained = why(world, run)
    assert explained.cause is Cause.DONE_LATE
    assert "started 1m 30s late: no worker took it for 1m 30s" in explained.headline
    assert "Cannot tell whether the workers had no free slot" in said(explained)


def test_a_run_that_waited_for_another_is_late_for_its_sake(world: World) -> None:
    """How often it was put back is in its row."""
    job = world.job(overlap=Overlap.QUEUE_ONE)
    worker = world.worker()
    world.enqueue(job)
    worker.poll()
    (second,) = world.enqueue(job)
    worker.poll()
    world.leave_alone(worker, seconds=20)
    worker.finish()
    worker.poll()
    worker.finish()
    explained = why(world, second)
    assert explained.cause is Cause.DONE_LATE
    assert "for another run of its job" in explained.headline


def test_a_dead_run_names_its_attempts_and_the_last_error(world: World) -> None:
    """And how to replay it."""
    run = ended(world, **spent())
    explained = why(world, run)
    assert explained.cause is Cause.SPENT
    assert "1 of 1 attempts have failed, the last with RuntimeError: no luck" in explained.headline
    assert explained.hints[0] == f"dynsched dlq replay {run.run_id}"
    assert any("attempt 1 failed" in what for _, what in explained.timeline)


def test_a_permanent_error_is_told_apart_from_spent_attempts(world: World) -> None:
    """A rule of the job made it final at the first failure."""
    rule = ErrorRule(pattern="RuntimeError", action=RuleAction.PERMANENT)
    run = ended(world, handler="fail", retry=replace(policies().retry, rules=(rule,)))
    explained = why(world, run)
    assert explained.cause is Cause.PERMANENT
    assert "permanent" in explained.headline
    assert "It was failure 1 of 5; no other try was made." in explained.sentences


def test_a_poison_run_names_the_leases_that_were_lost(world: World) -> None:
    """Three sessions in a row were lost with it; each is in the timeline."""
    (run,) = world.enqueue(world.job())
    for _ in range(3):
        world.lose_handler()
    explained = why(world, run)
    assert explained.cause is Cause.POISON
    assert "3 leases in a row were lost" in explained.headline
    assert sum(" lost in session" in what for _, what in explained.timeline) == 3


def test_a_run_whose_handler_stayed_unknown_names_the_handler(world: World) -> None:
    """After a day without a worker that has it; the hint starts one."""
    (run,) = world.enqueue(world.job(handler="gone"))
    world.clock.step(hours=25)
    worker = world.worker()
    worker.poll()
    worker.poll()
    explained = why(world, run)
    assert explained.cause is Cause.UNKNOWN_HANDLER
    assert "no worker of queue main had handler:gone" in explained.headline
    assert "dynsched worker --queue main --app MODULE:APP" in explained.hints


def test_a_discarded_run_is_told_how_to_restore_it(world: World) -> None:
    """Why it had died is still told."""
    run = ended(world, **spent())
    world.operations.discard(run.run_id)
    explained = why(world, run)
    assert explained.cause is Cause.DISCARDED
    assert explained.hints == (f"dynsched dlq restore {run.run_id}",)
    assert "no luck" in said(explained)


def test_a_run_that_died_again_after_its_replay_says_so(world: World) -> None:
    """The second time is another case than the first."""
    run = ended(world, **spent())
    world.operations.replay(run.run_id)
    worker = world.worker()
    worker.poll()
    worker.finish()
    assert "It was replayed 1 time before, and is dead again." in why(world, run).sentences


def test_a_replayed_run_that_is_done_tells_its_past(world: World) -> None:
    """The failure stays in its timeline."""
    (run,) = world.enqueue(world.job(**spent()))  # type: ignore[arg-type]
    worker = world.worker()
    worker.poll()
    worker.finish()
    world.operations.replay(run.run_id)
    mended = App()
    mended.job("fail")(lambda: None)
    other = world.worker(app=mended)
    other.poll()
    other.finish()
    explained = why(world, run)
    assert explained.cause is Cause.REPLAYED
    assert "was replayed 1 time, and is done" in explained.headline
    assert any("attempt 1 failed" in what for _, what in explained.timeline)


def test_a_run_that_a_batch_replayed_names_the_batch_once(world: World) -> None:
    """The batch's audit is not the run's, so the run's history tells of it, as a deed, no try."""
    run = ended(world, **spent())
    draft = world.operations.preview_replay(f"id:{run.run_id}", reason="the disk has room")
    world.operations.confirm_replay(draft.batch_id, reason="the disk has room")
    build_stepper(world.people.base).step()
    told = [what for _, what in why(world, run).timeline if "replayed" in what]
    assert len(told) == 1
    assert told[0].startswith("replayed by program on ")
    assert told[0].endswith(f" in batch {draft.batch_id}: the disk has room")


def test_a_run_cancelled_by_hand_gives_the_reason_that_was_given(world: World) -> None:
    """Whether it had begun matters to whoever cleans up."""
    (run,) = world.enqueue(world.job())
    world.operations.cancel(run.run_id, reason="wrong month")
    explained = why(world, run)
    assert explained.cause is Cause.CANCELLED
    assert "wrong month" in explained.headline
    assert any(what.startswith("run.cancel by program on ") for _, what in explained.timeline)
    assert "It was never started." in explained.sentences


def test_a_run_stopped_under_way_says_whether_it_had_begun(world: World) -> None:
    """Whoever cleans up has to know whether there is anything to clean."""
    (begun,) = world.enqueue(world.job(name="begun"))
    world.lose_handler()
    world.operations.cancel(begun.run_id)
    assert "It had 1 attempt before." in why(world, begun).sentences


def test_a_death_for_an_unknown_reason_is_told_as_it_is_stored(world: World) -> None:
    """A newer version may bury for reasons that this one does not know."""
    (run,) = world.enqueue(world.job())
    dead = run.changed(
        key=replace(run.key, nonce="0-x"),
        state=RunState.DEAD,
        reason="a reason of tomorrow",
        error="E: of tomorrow",
        ended_at=world.now,
    )
    assert world.store.runs.create_many([dead]) == [True]
    explained = why(world, dead)
    assert explained.cause is Cause.CANNOT_TELL
    assert "'a reason of tomorrow'" in explained.headline
    assert "The last error: E: of tomorrow" in explained.sentences


def overlapping(world: World, policy: Overlap) -> tuple[Run, Run]:
    """Return two cron runs of a job, the first of which went on over the second's instant."""
    job = world.job(schedule=EVERY_MINUTE, overlap=policy)
    dispatcher, worker = world.dispatcher(), world.worker()
    world.tick_for(dispatcher, 50)
    worker.poll()
    world.leave_alone(worker, seconds=60)
    dispatcher.tick()
    worker.poll()
    worker.finish()
    first, second = world.runs(job)[:2]
    return first, second


def test_a_run_skipped_by_overlap_names_the_run_that_ran(world: World) -> None:
    """And the policy that forbade it."""
    first, second = overlapping(world, Overlap.SKIP)
    explained = why(world, second)
    assert explained.cause is Cause.SKIPPED_OVERLAP
    assert f"{first.run_id} was running" in explained.headline
    assert "(skip)" in explained.headline
    assert explained.hints[0] == f"dynsched why {first.run_id}"


def test_a_run_that_made_way_names_the_newer_one(world: World) -> None:
    """`cancel_running` asks the older run to stop; its worker died before it could."""
    job = world.job(schedule=EVERY_MINUTE, overlap=Overlap.CANCEL_RUNNING)
    dispatcher, worker = world.dispatcher(), world.worker()
    world.tick_for(dispatcher, 50)
    worker.poll()
    world.leave_alone(worker, seconds=60)
    dispatcher.tick()
    worker.poll()
    first, second = world.runs(job)[:2]
    assert why(world, first).cause is Cause.STOPPING
    worker.die()
    world.reap()
    explained = why(world, first)
    assert explained.cause is Cause.MADE_WAY
    assert f"to make way for {second.run_id}" in explained.headline
    assert explained.hints == (f"dynsched why {second.run_id}",)


def test_a_run_behind_its_start_deadline_gives_both_figures(world: World) -> None:
    """How late it was, and how late it might have been."""
    job = world.job(schedule=EVERY_MINUTE, start_deadline=timedelta(seconds=20))
    world.tick_for(world.dispatcher(), 50)
    world.clock.step(seconds=45)
    world.worker().poll()
    explained = why(world, world.runs(job)[0])
    assert explained.cause is Cause.MISSED_DEADLINE
    assert "45s after its instant, behind a start deadline of 20s" in explained.headline
    assert "dynsched job edit job --start-deadline none" in explained.hints


def test_a_run_skipped_because_its_job_was_paused_tells_how_to_resume(world: World) -> None:
    """Its row was made ahead, the pause came before its instant."""
    job = world.job(schedule=EVERY_MINUTE)
    world.clock.step(seconds=30)
    world.dispatcher().tick()
    world.operations.pause(job.job_id, reason="night")
    world.clock.step(seconds=25)
    world.worker().poll()
    explained = why(world, world.runs(job)[0])
    assert explained.cause is Cause.PAUSED
    assert "dynsched job resume job" in explained.hints


def skipped_after(world: World, job: Job) -> Explanation:
    """Let the minute come that was served ahead; explain its run."""
    world.clock.step(seconds=25)
    world.worker().poll()
    return why(world, world.runs(job)[0])


def test_a_run_whose_instant_was_edited_away_says_so(world: World) -> None:
    """Its row was made under the old schedule."""
    job = world.job(schedule=EVERY_MINUTE)
    world.clock.step(seconds=30)
    world.dispatcher().tick()
    world.operations.reschedule(job.job_id, CronSpec(expr="30 3 * * *"))
    assert skipped_after(world, job).cause is Cause.EDITED


def test_a_run_whose_job_was_deleted_says_so_and_offers_nothing(world: World) -> None:
    """There is nothing to replay or to resume."""
    job = world.job(schedule=EVERY_MINUTE)
    world.clock.step(seconds=30)
    world.dispatcher().tick()
    world.operations.delete(job.job_id)
    explained = skipped_after(world, job)
    assert explained.cause is Cause.JOB_DELETED
    assert explained.hints == ()


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("catch-up", Cause.CAUGHT_UP),
        ("expired", Cause.EXPIRED),
        ("a reason of tomorrow", Cause.CANNOT_TELL),
    ],
)
def test_every_skip_reason_has_words_of_its_own(world: World, reason: str, cause: Cause) -> None:
    """An unknown one is told as it is stored, with no guess."""
    (run,) = world.enqueue(world.job())
    key = replace(run.key, nonce="0-x")
    skipped = run.changed(key=key, state=RunState.SKIPPED, reason=reason, ended_at=world.now)
    assert world.store.runs.create_many([skipped]) == [True]
    assert why(world, skipped).cause is cause


def test_the_document_carries_the_cause_as_a_code(world: World) -> None:
    """Scripts compare codes, people read sentences."""
    run = ended(world, **spent())
    document = explanation_document(why(world, run))
    assert document["cause"] == "spent"
    assert document["alarm"] is False
    assert document["run_id"] == run.run_id
    timeline = document["timeline"]
    assert isinstance(timeline, list)
    assert timeline[0] == {"at": "2026-03-02T09:00:10.000Z", "what": "its instant"}


def test_a_run_that_its_job_spreads_over_a_window_is_not_late(world: World) -> None:
    """Spreading is what the job asked for, and no lateness."""
    job = world.job(schedule=EVERY_MINUTE, flex=timedelta(minutes=2))
    world.tick_for(world.dispatcher(), 50)
    run = world.runs(job)[0]
    world.clock.step(run.available_at - world.now)
    worker = world.worker()
    worker.poll()
    worker.finish()
    assert run.available_at - run.scheduled_for > timedelta(seconds=5)
    assert why(world, run).cause is Cause.DONE
