"""The message worker: what becomes of the runs that messages name, and of the messages."""

from __future__ import annotations

import json
import logging
import threading
from datetime import timedelta

import pytest

from dynsched.bootstrap import build_message_worker, build_reaper, open_base
from dynsched.domain import lifecycle
from dynsched.domain.job import Job, JobState, Overlap
from dynsched.domain.minutes import summed
from dynsched.domain.run import Run, RunKey, RunKind, RunState
from dynsched.services.message_worker import Message
from dynsched.settings import Settings
from dynsched.storage.runs import RunApplied
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.targets.stop import StopReason
from tests.functions.stage import HeldSlots, OneThread, Stage, message_about

SECOND = timedelta(seconds=1)


def lease(stage: Stage, run: Run, session: str = "somebody") -> Run:
    """Let somebody else hold a run."""
    outcome = stage.store.runs.apply(
        lifecycle.claim(stage.now(run), session=session, now=stage.clock.now())
    )
    assert isinstance(outcome, RunApplied)
    return outcome.run


# fates


def test_a_run_is_started_and_its_message_is_done_with(stage: Stage) -> None:
    """The plain case: claimed, called, ended; one visit."""
    run = stage.run()
    (fate,) = stage.visit()
    assert (fate.keep, fate.why) == (False, "its run is done")
    assert stage.now(run).state is RunState.DONE
    assert stage.messages.messages() == []


def test_a_message_that_comes_twice_starts_its_run_once(stage: Stage) -> None:
    """The second one finds the row ended."""
    run = stage.run()
    received = stage.receive()
    worker = stage.worker()
    stage.work(worker, received)
    (fate,) = worker.work([message_about(run)], ends_at=stage.clock.now() + SECOND, invocation="j")
    assert (fate.keep, len(stage.calls)) == (False, 1)


@pytest.mark.parametrize("state", ["leased", "failed", "done", "cancelled", "dead"])
def test_a_message_whose_run_is_not_ready_is_dropped(stage: Stage, state: str) -> None:
    """Whoever makes the row ready again sends another message."""
    run = stage.run()
    received = stage.receive()
    now = stage.clock.now()
    leased = lease(stage, run)
    moves = {
        "failed": lambda: lifecycle.retry(
            leased,
            started_at=now,
            now=now,
            at=now + timedelta(hours=1),
            look_ahead=SECOND,
            error="e",
            signature="s",
        ),
        "done": lambda: lifecycle.succeed(leased, started_at=now, now=now),
        "cancelled": lambda: lifecycle.cancel(leased, now=now, reason="r"),
        "dead": lambda: lifecycle.bury(
            leased, now=now, reason="r", error="e", signature="s", started_at=None
        ),
    }
    if state in moves:
        stage.store.runs.apply(moves[state]())
    (fate,) = stage.work(stage.worker(), received)
    assert (fate.keep, fate.why) == (False, f"its run is {state}")
    assert stage.calls == []


def test_a_message_whose_run_is_gone_is_dropped(stage: Stage) -> None:
    """Its row has expired, or never was."""
    run = stage.run()
    absent = message_about(run.changed(key=RunKey("gone", run.scheduled_for, RunKind.CRON)))
    (fate,) = stage.worker().work([absent], ends_at=stage.clock.now() + SECOND, invocation="i")
    assert (fate.keep, fate.why) == (False, "its run is gone")


def test_a_strange_message_is_dropped_and_told(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost by it: it names no run."""
    strange = Message(id="m", body=json.dumps({"hello": "world"}))
    with caplog.at_level(logging.ERROR):
        (fate,) = stage.worker().work([strange], ends_at=stage.clock.now() + SECOND, invocation="i")
    assert not fate.keep
    assert "hello" in caplog.text


def test_an_early_message_is_visible_again_when_its_run_is_due(stage: Stage) -> None:
    """Its delay was cut, or the clocks differ: the row says when."""
    run = stage.enqueue(stage.job(), delay=timedelta(seconds=40))
    (fate,) = stage.worker().work(
        [message_about(run)], ends_at=stage.clock.now() + 60 * SECOND, invocation="i"
    )
    assert (fate.keep, fate.again_in) == (True, 40 * SECOND)
    assert stage.now(run).version == run.version


def test_a_message_far_too_early_is_hidden_for_as_long_as_sqs_allows(stage: Stage) -> None:
    """Twelve hours from when it was received; less what the visit may have taken."""
    run = stage.enqueue(stage.job(), delay=timedelta(days=3))
    (fate,) = stage.worker().work(
        [message_about(run)], ends_at=stage.clock.now() + 60 * SECOND, invocation="i"
    )
    assert fate.again_in == timedelta(hours=11)


def test_a_run_that_is_due_in_a_moment_is_waited_for(stage: Stage) -> None:
    """Another visit would come a second later at best."""
    run = stage.enqueue(stage.job(), delay=timedelta(seconds=0.4))
    (fate,) = stage.worker().work(
        [message_about(run)], ends_at=stage.clock.now() + 60 * SECOND, invocation="i"
    )
    assert not fate.keep
    assert stage.calls[0].run_id == run.run_id
    assert stage.now(run).started_at == run.available_at


def test_a_retry_that_is_ready_again_has_a_message_of_its_own(stage: Stage) -> None:
    """The one that brought the failed try is done with."""
    run = stage.run("fail")
    (fate,) = stage.visit()
    assert not fate.keep
    assert stage.now(run).state is RunState.READY
    assert [one.run_id for one in stage.messages.messages()] == [run.run_id]


def test_a_snoozed_run_waits_for_the_dispatcher(stage: Stage) -> None:
    """It is beyond the look-ahead: no message until then."""
    run = stage.run("snooze")
    (fate,) = stage.visit()
    assert not fate.keep
    assert stage.now(run).state is RunState.FAILED
    assert stage.messages.messages() == []


def test_a_run_of_a_deleted_job_is_skipped(stage: Stage) -> None:
    """The look after the claim says so."""
    job = stage.job()
    run = stage.enqueue(job)
    stage.operations.delete(job.job_id)
    (fate,) = stage.visit()
    assert (fate.keep, stage.now(run).state) == (False, RunState.SKIPPED)


# the lease


def test_a_lease_names_its_invocation_and_ends_with_it(stage: Stage) -> None:
    """It has no session and nobody renews it."""
    run = stage.run()
    seen: list[Run] = []
    stage.meanwhile = lambda: seen.append(stage.now(run))
    ends_at = stage.clock.now() + timedelta(minutes=1)
    stage.visit(invocation="1f2e")
    (leased,) = seen
    assert leased.session is not None
    assert leased.session.startswith("~1f2e-")
    assert leased.lease_ends_at == ends_at


def test_a_time_limit_shortens_the_lease(stage: Stage) -> None:
    """So a run whose process died is back soon, and not at the end of a long invocation."""
    run = stage.run(timeout=timedelta(seconds=30))
    seen: list[Run] = []
    stage.meanwhile = lambda: seen.append(stage.now(run))
    began = stage.clock.now()
    stage.visit(lasts=timedelta(minutes=10))
    assert seen[0].lease_ends_at == began + timedelta(seconds=35)
    assert stage.now(run).state is RunState.DONE


@pytest.mark.parametrize(("limit_s", "deadline_s"), [(None, 60), (3_600, 60), (10, 9)])
def test_a_handler_is_told_when_its_function_ends(
    stage: Stage, limit_s: int | None, deadline_s: int
) -> None:
    """It plans by its deadline; its job's limit is an hour by default, the function's less."""
    stage.run(timeout=None if limit_s is None else limit_s * SECOND)
    began = stage.clock.now()
    stage.visit()
    assert stage.calls[0].deadline == began + deadline_s * SECOND


def test_nothing_is_begun_when_there_is_no_time_to_end_it(stage: Stage) -> None:
    """A batch was long in coming: its runs are left to other invocations."""
    run = stage.run()
    (fate,) = stage.visit(lasts=-SECOND)
    assert (fate.keep, fate.again_in) == (True, SECOND)
    assert stage.now(run).version == run.version


def test_handlers_are_told_to_stop_before_the_end(stage: Stage) -> None:
    """One that listens is back in time with what it has done."""
    run = stage.run()
    slots, begun = OneThread(), threading.Event()

    def listens() -> None:
        begun.set()
        assert stage.calls[0].stop.wait(10)
        stage.give_in()

    stage.meanwhile = listens
    stage.clock.after(1, lambda: begun.wait(10))
    stage.clock.after(51, lambda: slots.returned.wait(10))
    (fate,) = stage.work(stage.worker(slots), stage.receive())
    after = stage.now(run)
    assert (fate.keep, after.attempt, after.spent, after.losses) == (False, 1, 1, 0)
    assert stage.calls[0].stop.reason is StopReason.FUNCTION_LIMIT
    assert slots.replaced == 0


def test_what_still_runs_before_the_end_has_failed_for_want_of_time(stage: Stage) -> None:
    """It is no loss; and it is counted, else it would begin anew and be cut off for ever."""
    run = stage.run()
    slots = HeldSlots()
    began = stage.clock.now()
    (fate,) = stage.work(stage.worker(slots), stage.receive())
    after = stage.now(run)
    assert (fate.keep, after.attempt, after.spent, after.losses) == (False, 1, 1, 0)
    assert after.error.startswith("TimeLimit: it was not done within the function's time")
    assert stage.clock.now() - began < timedelta(minutes=1)


def test_a_result_that_comes_after_the_hand_back_is_late(stage: Stage) -> None:
    """The sandbox thaws for another message; the handler of the first returns into it."""
    run = stage.run()
    slots = HeldSlots()
    worker = stage.worker(slots)
    stage.work(worker, stage.receive())
    slots.release()
    stage.work(worker, [])
    assert [one.outcome for one in stage.store.runs.attempts(run.run_id)][-1] == "late"
    assert stage.now(run).state is RunState.READY


# refusals


def test_a_run_whose_handler_is_unknown_here_is_left_to_others(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not even claimed; the message comes again, ever more rarely, and the log says why."""
    run = stage.run("nobody")
    stage.clock.step(seconds=100)
    (fate,) = stage.visit()
    assert (fate.keep, fate.again_in) == (True, 25 * SECOND)
    assert stage.now(run).version == run.version
    assert f"run {run.run_id} waits, as this process has no handler:nobody" in caplog.messages


def test_a_lacking_handler_is_told_once_by_a_process(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A message that comes back for a day is no reason for a line each time."""
    worker = stage.worker()
    stage.run("nobody")
    for _ in range(2):
        stage.clock.step(seconds=60)
        assert [fate.keep for fate in stage.work(worker, stage.receive())] == [True]
    assert sum("has no handler:nobody" in line for line in caplog.messages) == 1


def test_a_run_whose_handler_nobody_knew_for_a_day_is_dead(stage: Stage) -> None:
    """It says so in the dead-letter queue."""
    run = stage.run("nobody")
    stage.clock.step(hours=25)
    (fate,) = stage.visit()
    after = stage.now(run)
    assert (fate.keep, after.state, after.reason) == (False, RunState.DEAD, "no handler")


def test_a_run_of_a_held_job_is_not_claimed(stage: Stage) -> None:
    """Its message comes again, at the latest each quarter of an hour."""
    job = stage.job()
    run = stage.enqueue(job)
    stage.operations.pause(job.job_id, reason="r", hold=True)
    stage.clock.step(hours=9)
    (fate,) = stage.visit()
    assert (fate.keep, fate.again_in) == (True, timedelta(minutes=15))
    assert stage.now(run).version == run.version
    assert paused(stage, job)


def test_a_run_that_waits_for_another_keeps_its_message_until_it_is_due(stage: Stage) -> None:
    """The step back wrote when; it sends no message, as the one it came by is kept."""
    job = stage.job(overlap=Overlap.QUEUE_ONE)
    stage.enqueue(job)
    first = stage.receive()
    later: list[object] = []

    def meanwhile() -> None:
        stage.meanwhile = lambda: None
        second = stage.enqueue(job)
        stage.messages.sent.clear()
        (fate,) = stage.visit(invocation="second")
        later.extend([fate.keep, fate.again_in, stage.now(second).state, stage.messages.sent[:]])

    stage.meanwhile = meanwhile
    stage.work(stage.worker(), first)
    assert later == [True, SECOND, RunState.READY, []]


def test_a_run_at_its_tenants_cap_steps_back_and_is_not_claimed_again_at_once(
    stage: Stage,
) -> None:
    """What refused is remembered for a moment: the next visit costs no write."""
    stage.operations.set_tenant("t", max_running=1)
    stage.enqueue(stage.job("a"))
    first = stage.receive()
    second = stage.enqueue(stage.job("b"))
    versions: list[int] = []
    worker = stage.worker()

    def meanwhile() -> None:
        stage.meanwhile = lambda: None
        for _ in range(2):
            (fate,) = stage.work(worker, stage.receive())
            versions.append(stage.now(second).version)
            assert (fate.keep, fate.again_in) == (True, SECOND)
            stage.clock.step(seconds=1)

    stage.meanwhile = meanwhile
    stage.work(stage.worker(), first)
    assert versions == [3, 3]  # claimed and put back once, then not claimed


def test_a_suspect_run_is_alone_in_its_invocation(stage: Stage) -> None:
    """It may kill the process; the others of its batch come again at once."""
    suspect, other = stage.run(), stage.enqueue(stage.job("b"))
    current = stage.now(suspect)
    for _ in range(2):
        leased = lifecycle.claim(current, session="x").after
        stage.store.runs.apply(lifecycle.claim(current, session="x"))
        stage.store.runs.apply(lifecycle.reclaim(leased, now=stage.clock.now(), signature="s"))
        current = stage.now(suspect)
    fates = stage.worker().work(
        [
            Message(id="o", body=message_about(other).body),
            Message(id="s", body=message_about(suspect).body),
        ],
        ends_at=stage.clock.now() + timedelta(minutes=1),
        invocation="i",
    )
    assert [fate.keep for fate in fates] == [True, False]
    assert [ctx.run_id for ctx in stage.calls] == [suspect.run_id]


# while a handler runs


def test_a_cancel_is_seen_while_the_handler_runs(stage: Stage) -> None:
    """No heartbeat brings it: the row is looked at each ten seconds."""
    run = stage.run()
    slots = HeldSlots()
    stage.meanwhile = stage.give_in
    stage.clock.after(5, lambda: stage.operations.cancel(run.run_id))
    stage.clock.after(12, slots.release)
    (fate,) = stage.work(stage.worker(slots), stage.receive())
    assert (fate.keep, stage.now(run).state) == (False, RunState.CANCELLED)


def test_a_run_that_was_taken_away_is_stopped(stage: Stage) -> None:
    """Somebody reclaimed it under a false clock: whatever it reports would be refused."""
    run = stage.run()
    slots = HeldSlots()

    def take_away() -> None:
        move = lifecycle.reclaim(stage.now(run), now=stage.clock.now(), signature="s")
        assert isinstance(stage.store.runs.apply(move), RunApplied)

    stage.clock.after(5, take_away)
    stage.clock.after(12, slots.release)
    stage.work(stage.worker(slots), stage.receive())
    assert stage.calls == []  # the stop came before the thread
    assert stage.now(run).losses == 1


def test_progress_is_written_while_the_handler_runs(stage: Stage) -> None:
    """It is seen by people before the end."""
    run = stage.run()
    slots, seen = OneThread(), []
    reported, goes_on = threading.Event(), threading.Event()

    def meanwhile() -> None:
        stage.calls[0].progress(3, 10)
        reported.set()
        goes_on.wait(10)

    stage.meanwhile = meanwhile
    stage.clock.after(1, lambda: reported.wait(10))
    stage.clock.after(20, lambda: seen.append(stage.store.runs.progress(run.run_id)))
    stage.clock.after(20, goes_on.set)
    stage.clock.after(21, lambda: slots.returned.wait(10))
    stage.work(stage.worker(slots), stage.receive())
    assert [(note.done, note.total) for note in seen if note is not None] == [(3, 10)]


def test_the_minutes_statistics_are_written(stage: Stage) -> None:
    """At most each ten seconds, so one visit among many pays for it."""
    stage.run()
    stage.visit()
    tallies, _ = stage.store.minutes.read(0, 10**9, most=10)
    assert summed(tallies).total().started == 1


def paused(stage: Stage, job: Job) -> bool:
    """Return whether a job is paused."""
    found = stage.store.jobs.get(job.job_id)
    assert found is not None
    return found.state is JobState.PAUSED


# time limits and a sandbox that thaws


def test_a_handler_that_ignores_its_time_limit_has_failed(stage: Stage) -> None:
    """It is given up a second after the limit, long before the invocation ends."""
    run = stage.run(timeout=timedelta(seconds=30))
    slots = HeldSlots()
    worker = stage.worker(slots)

    def limit() -> None:
        (item,) = worker._exits.running()
        item.stop.set(StopReason.HARD_LIMIT)  # as the runner's watch does

    stage.clock.after(30, limit)
    began = stage.clock.now()
    (fate,) = stage.work(worker, stage.receive(), lasts=timedelta(minutes=10))
    after = stage.now(run)
    assert (fate.keep, after.spent, after.losses) == (False, 1, 0)
    assert after.error.startswith("TimeLimit")
    assert stage.clock.now() - began < timedelta(seconds=35)


def test_a_handler_whose_sandbox_was_frozen_past_its_end_is_told_that_it_lost(
    stage: Stage,
) -> None:
    """It wakes when the reaper has returned the run: whatever it reports is refused."""
    run = stage.run()
    slots = HeldSlots()
    reaper = build_reaper(stage.base())

    def frozen() -> None:
        stage.clock.step(seconds=120)
        assert reaper.sweep().returned == 1

    stage.clock.after(5, frozen)
    (fate,) = stage.work(stage.worker(slots), stage.receive())
    after = stage.now(run)
    assert (fate.keep, after.state, after.losses) == (False, RunState.READY, 1)
    slots.release()
    assert stage.calls == []


def test_a_real_time_limit_ends_a_handler_that_listens(stage: Stage) -> None:
    """By the machine's clock: the watch, the thread and the wait are the real ones."""
    app = App()

    @app.job("ok")
    def _ok(ctx: AnyContext) -> None:
        assert ctx.stop.wait(10)
        ctx.raise_if_cancelled()

    run = stage.run(timeout=timedelta(seconds=0.3), soft_timeout=timedelta(seconds=0.2))
    (kept,) = stage.receive()
    base = open_base(
        engine=stage.engine, handoff=stage.messages, settings=Settings(), environment={}
    )
    worker = build_message_worker(base, app)
    ends_at = base.clock.now() + timedelta(minutes=1)
    message = Message(id=kept.message_id, body=kept.body)
    (fate,) = worker.work([message], ends_at=ends_at, invocation="i")
    assert (fate.keep, stage.now(run).spent) == (False, 1)
