"""Who is told of a run that has become ready, by which queue, and when it is only noted."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.instants import minute_of
from dynsched.domain.job import Priority
from dynsched.domain.run import RunState
from dynsched.storage.placement import REMIND_SORT
from dynsched.storage.runs import Attempt, RunApplied
from tests.unit.desk import HIGH, MAIN, Desk


@pytest.fixture
def desk() -> Desk:
    """Return a store whose main queue is handed off, but for bulk."""
    return Desk(MAIN, HIGH)


def test_a_run_that_is_made_is_told_of_where_its_priority_goes(desk: Desk) -> None:
    """With its share key, so that queues that are fair to groups are fair to tenants."""
    job = desk.job(tenant="acme")
    run = desk.operations.run_now(job.job_id)
    urgent = desk.operations.enqueue(job.job_id, None, priority=Priority.HIGH)
    assert [(queue, notice.run_id, notice.share) for queue, notice in desk.messages.sent] == [
        (MAIN, run.run_id, "acme"),
        (HIGH, urgent.run_id, "acme"),
    ]


def test_a_run_that_is_only_pulled_is_not_told_of(desk: Desk) -> None:
    """No queue of messages is named for bulk."""
    desk.operations.enqueue(desk.job().job_id, None, priority=Priority.BULK)
    assert desk.told() == []


def test_what_exists_already_is_not_told_of_again(desk: Desk) -> None:
    """A tick that repeats another's rows sends nothing: the other one has."""
    run = desk.operations.run_now(desk.job().job_id)
    desk.told()
    assert desk.store.runs.create_many([run]) == [False]
    assert desk.told() == []


def test_a_refused_move_tells_nobody(desk: Desk) -> None:
    """The row says what somebody else made of it."""
    run = desk.operations.run_now(desk.job().job_id)
    claimed = desk.store.runs.apply(lifecycle.claim(run, session="s"))
    assert isinstance(claimed, RunApplied)
    back = lifecycle.reclaim(claimed.run, now=desk.clock.now(), signature="x")
    desk.told()
    assert isinstance(desk.store.runs.apply(back), RunApplied)
    assert not isinstance(desk.store.runs.apply(back), RunApplied)
    assert desk.told() == [run.run_id]


def test_a_move_that_is_written_with_a_note_is_told_of_too(desk: Desk) -> None:
    """A replay is one transaction with what it leaves among the attempts."""
    run = desk.operations.run_now(desk.job().job_id)
    now = desk.clock.now()
    claim = lifecycle.claim(run, session="s")
    bury = lifecycle.bury(
        claim.after, now=now, reason="no", error="no", signature="x", started_at=now
    )
    for move in (claim, bury):
        assert isinstance(desk.store.runs.apply(move), RunApplied)
    desk.told()
    replay = lifecycle.replay(desk.stored(run), now=now, max_attempts=1)
    note = Attempt(
        run_id=run.run_id,
        number=1,
        fence=1,
        session="s",
        outcome="replayed",
        started_at=None,
        ended_at=now,
        expires_at_s=2_000_000_000,
    )
    assert isinstance(desk.store.runs.apply_noted(replay, note), RunApplied)
    assert desk.told() == [run.run_id]
    assert not isinstance(desk.store.runs.apply_noted(replay, note), RunApplied)
    assert desk.told() == []


def test_a_run_within_the_look_ahead_has_its_message_delayed(desk: Desk) -> None:
    """It is delivered at its second, however early its row was made."""
    desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(seconds=20.5))
    assert desk.messages.receive() == []
    desk.clock.step(seconds=20.5)
    assert desk.messages.receive() == []
    desk.clock.step(seconds=0.5)
    assert len(desk.messages.receive()) == 1


# runs far ahead


def test_a_run_far_ahead_is_told_of_when_its_time_is_near(desk: Desk) -> None:
    """A message waits for fifteen minutes at most, so a reminder waits for the rest."""
    run = desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(hours=2))
    assert desk.told() == []
    desk.clock.step(minutes=119)
    desk.tick()
    assert desk.told() == []
    desk.clock.step(seconds=40)
    desk.tick()
    assert desk.told() == [run.run_id]
    desk.tick()
    assert desk.told() == []
    desk.clock.step(seconds=20)
    assert [one.run_id for one in desk.messages.receive()] == [run.run_id]


def test_a_reminder_is_no_retry_and_no_attempt(desk: Desk) -> None:
    """It lies behind the retries of its minute, and behind the attempts of its run."""
    run = desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(hours=2))
    minute, later = minute_of(run.available_at), run.available_at + timedelta(minutes=1)
    (reminder,) = desk.store.reminders.due(minute, 0, later, most=10)
    assert (reminder.run_id, reminder.available_at) == (run.run_id, run.available_at)
    assert desk.store.runs.waiting(minute, 0, later, most=10) == []
    assert desk.store.runs.attempts(run.run_id) == []
    assert desk.store.runs.scan(100, None)[0] == [run]


def test_a_reminder_for_another_time_is_written_over(desk: Desk) -> None:
    """A run has one reminder, for the time that its row says."""
    run = desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(hours=2))
    later = run.changed(available_at=run.available_at + timedelta(hours=1))
    desk.store.reminders.put([later])
    desk.store.reminders.put([later])
    for one, count in ((run, 0), (later, 1)):
        end = one.available_at + timedelta(minutes=1)
        assert len(desk.store.reminders.due(minute_of(one.available_at), 0, end, most=9)) == count


def test_reminders_of_a_hand_off_that_ended_are_left_to_their_expiry(desk: Desk) -> None:
    """The dispatcher asks for none, so a store that is pulled pays nothing."""
    run = desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(hours=2))
    desk.hand_off()
    desk.clock.step(hours=2)
    desk.tick()
    assert desk.told() == []
    assert desk.stored(run).state is RunState.READY


def test_a_reminder_of_a_queue_that_is_no_longer_handed_off_goes_silently(desk: Desk) -> None:
    """Others still are, so the dispatcher meets it."""
    desk.operations.enqueue(desk.job().job_id, None, delay=timedelta(hours=2))
    desk.hand_off(HIGH)
    desk.clock.step(hours=2)
    desk.tick()
    assert desk.told() == []
    minute = minute_of(desk.clock.now())
    assert desk.store.reminders.due(minute, 0, desk.clock.now() + timedelta(hours=1), most=9) == []


# what it costs, and what a fault does


def test_telling_of_a_run_writes_nothing(desk: Desk) -> None:
    """A run near its time costs no unit more than without a hand-off."""
    job = desk.job()
    desk.operations.run_now(job.job_id)  # it reads the map
    desk.told()
    desk.engine.reset()
    desk.operations.run_now(job.job_id)
    told = desk.engine.by_method()
    assert len(desk.told()) == 1
    desk.hand_off()
    desk.engine.reset()
    desk.operations.run_now(job.job_id)
    assert told == desk.engine.by_method()


def test_a_reminder_that_cannot_be_written_is_no_failure_of_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The run is made and durable; it is told of when it has been due for a while."""
    desk = Desk(MAIN)
    job = desk.job()
    desk.fails = lambda call: any(key.sk == REMIND_SORT for key in call.keys)
    with caplog.at_level(logging.WARNING, "dynsched.handoff"):
        run = desk.operations.enqueue(job.job_id, None, delay=timedelta(hours=2))
    assert desk.stored(run).state is RunState.READY
    line = caplog.messages[-1]
    assert line.startswith(f"no reminder of run {run.run_id} and 0 more was left: ")
