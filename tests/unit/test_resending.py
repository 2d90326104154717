"""Runs whose messages were lost are told of again: in time, and without making a storm."""

from __future__ import annotations

import itertools
import logging
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.bootstrap import build_reaper
from dynsched.domain import lifecycle
from dynsched.domain.job import Priority
from dynsched.domain.resending import LONGEST, crossed
from dynsched.domain.run import Run
from dynsched.services.resending import PAGE, PAGES_MAX, TRICKLE, Resending
from dynsched.storage.handoff import MessageQueue
from dynsched.testing.faults import Call
from tests.unit.desk import HIGH, MAIN, Desk

MINUTE = timedelta(minutes=1)
DUE = datetime(2026, 1, 1, tzinfo=UTC)


def look(desk: Desk) -> list[str]:
    """Let a reaper look; return the ids of the runs that are told of again."""
    desk.told()
    Resending(desk.store, settings=desk.base.settings).resend(desk.clock.now())
    return desk.told()


def lost(desk: Desk, count: int, *, tenant: str = "default", ahead_s: float = 0) -> list[Run]:
    """Make ready runs whose messages are lost."""
    job = desk.job(f"job-{tenant}-{count}", tenant=tenant)
    desk.messages.down = True
    runs = desk.operations.enqueue_many(
        job.job_id,
        [None] * count,
        priority=Priority.DEFAULT,
        at=desk.clock.now() + timedelta(seconds=ahead_s),
    )
    desk.messages.down = False
    return runs


def ids(runs: list[Run]) -> set[str]:
    """Return the ids of runs."""
    return {run.run_id for run in runs}


@pytest.fixture
def desk() -> Desk:
    """Return a store whose main queue is handed off; nobody has looked yet."""
    return Desk(MAIN, HIGH, lanes=2)


# when a run is told of again


def test_ages_double_and_then_recur() -> None:
    """At one, two, four ... 1,024 minutes, then each 1,024: a lost message is not forgotten."""
    told = [
        age
        for age in range(1, 3_500)
        if crossed(DUE, DUE + MINUTE * (age - 1), DUE + MINUTE * age, MINUTE)
    ]
    assert told == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072]


@given(
    since=st.integers(0, 20_000),
    length=st.integers(0, 20_000),
    cuts=st.lists(st.integers(0, 20_000), max_size=5),
)
def test_no_age_falls_between_two_looks(since: int, length: int, cuts: list[int]) -> None:
    """However a stretch of time is cut into looks, one of them sees what the whole would have."""
    second = timedelta(seconds=1)
    ends = sorted({since, since + length, *(since + cut % (length + 1) for cut in cuts)})
    pairs = itertools.pairwise(ends)
    parts = [crossed(DUE, DUE + a * second, DUE + b * second, MINUTE) for a, b in pairs]
    whole = crossed(DUE, DUE + since * second, DUE + (since + length) * second, MINUTE)
    assert any(parts) == whole


@given(since=st.integers(60, 100_000))
def test_no_run_waits_longer_than_twice_its_age(since: int) -> None:
    """And never longer than the longest stretch."""
    second = timedelta(seconds=1)
    most = min(2 * since, since + 60 * LONGEST)
    assert crossed(DUE, DUE + since * second, DUE + most * second, MINUTE)


def test_a_lost_message_is_sent_again_after_a_minute_and_once(desk: Desk) -> None:
    """The run is ready the whole time, and can be pulled as well."""
    (run,) = lost(desk, 1)
    told = []
    for seconds in range(15, 241, 15):
        desk.clock.step(seconds=15)
        told += [(seconds, name) for name in look(desk)]
    assert told == [(60, run.run_id), (120, run.run_id), (240, run.run_id)]


def test_a_run_that_waits_for_another_is_told_of_when_its_message_must_be_lost(
    desk: Desk,
) -> None:
    """A visit puts it off from now; only if no visit has come for long its message is lost."""
    (run,) = lost(desk, 1)
    now = desk.clock.now()
    claim = lifecycle.claim(desk.stored(run), session="s", now=now)
    desk.store.runs.apply(claim)
    back = lifecycle.step_back(claim.after, available_at=now, now=now, reason="waits", waits=1)
    desk.store.runs.apply(back)
    told = []
    for minutes in range(1, 21):
        desk.clock.step(minutes=1)
        told += [minutes for _ in look(desk)]
    assert told == [10, 20]


def test_a_run_that_is_not_due_is_not_told_of_again(desk: Desk) -> None:
    """Its message, delayed, is in the queue."""
    lost(desk, 1, ahead_s=600)
    desk.clock.step(seconds=600)
    assert look(desk) == []


def test_looks_that_follow_at_once_cost_one_read(desk: Desk) -> None:
    """Several replicas may sweep each few seconds."""
    lost(desk, 1)
    desk.clock.step(seconds=61)
    assert len(look(desk)) == 1
    desk.engine.reset()
    desk.clock.step(seconds=14)
    assert look(desk) == []
    assert desk.engine.by_method() == {"get": 1}


def test_a_store_that_is_pulled_is_not_asked() -> None:
    """Nobody pays for a hand-off that is not there."""
    desk = Desk()
    lost(desk, 1)
    desk.clock.step(seconds=61)
    desk.engine.reset()
    assert look(desk) == []
    assert not desk.engine.by_method()


def test_a_reaper_looks_and_says_how_many(desk: Desk) -> None:
    """Each sweep."""
    lost(desk, 3)
    desk.clock.step(seconds=61)
    reaper = build_reaper(desk.base)
    assert [reaper.sweep().resent, reaper.sweep().resent] == [3, 0]


# bounds


def test_one_look_sends_no_more_than_its_bound_and_the_next_goes_on(desk: Desk) -> None:
    """What is left over is not forgotten, and nothing is sent twice meanwhile."""
    runs = lost(desk, 450)
    desk.clock.step(seconds=61)
    told = []
    for most in (200, 200, 50, 0):
        found = look(desk)
        assert len(found) == most
        told += found
        desk.clock.step(seconds=15)
    assert sorted(told) == sorted(ids(runs))


def test_a_reaper_goes_on_behind_a_look_that_used_up_its_bound(desk: Desk) -> None:
    """As a function it is woken once a minute: an outage's messages would else take hours."""
    lost(desk, 450)
    desk.clock.step(seconds=61)
    reaper = build_reaper(desk.base)
    assert [reaper.sweep().resent, reaper.sweep().resent] == [450, 0]


def test_a_reaper_goes_on_until_a_queue_is_deep() -> None:
    """Then functions have enough to do, and the runs that are left have not lost their turn."""
    desk = Desk(MAIN, resend_depth=300)
    runs = lost(desk, 450)
    desk.clock.step(seconds=61)
    reaper = build_reaper(desk.base)
    assert reaper.sweep().resent == 200 + 200 + 200 // TRICKLE
    while desk.messages.receive():
        pass
    for one in desk.messages.messages():
        desk.messages.delete(one)
    desk.clock.step(seconds=15)
    assert reaper.sweep().resent == 40
    assert set(desk.told()) == ids(runs)


def test_a_reaper_does_not_go_on_with_a_trickle() -> None:
    """Where the bound is so small that a trickle uses it up, a deep queue gets no stream of it."""
    desk = Desk(MAIN, resend_depth=1, resend_most=1)
    lost(desk, 5)
    job = desk.job("deep")
    desk.operations.enqueue_many(job.job_id, [None] * 9, priority=Priority.DEFAULT)
    desk.clock.step(seconds=61)
    assert build_reaper(desk.base).sweep().resent == 1


def test_a_reaper_ends_between_two_looks_when_its_time_is_over(desk: Desk) -> None:
    """The next one goes on behind what was sent."""
    lost(desk, 450)
    desk.clock.step(seconds=61)
    reaper = build_reaper(desk.base)
    assert reaper.sweep(until=desk.clock.now()).resent == 200


def test_no_queue_of_messages_takes_the_bound_of_another() -> None:
    """A queue that has much to send again does not starve those behind it."""
    mail = MessageQueue(queue="mail", priority=Priority.DEFAULT, url="http://sqs/mail")
    desk = Desk(MAIN, mail, resend_most=10)
    runs = lost(desk, 50)
    other = desk.job("other", queue="mail")
    desk.messages.down = True
    late = desk.operations.run_now(other.job_id)
    desk.messages.down = False
    desk.clock.step(seconds=61)
    found = look(desk)
    assert late.run_id in found
    assert len(found) == 10
    assert ids(runs) >= set(found) - {late.run_id}


def test_a_deep_queue_is_sent_a_trickle() -> None:
    """Most old runs there wait their turn; yet one whose message is lost has its turn as well."""
    desk = Desk(MAIN, resend_depth=5, resend_most=40)
    (missing,) = lost(desk, 1, tenant="z")
    job = desk.job("deep")
    runs = desk.operations.enqueue_many(job.job_id, [None] * 9, priority=Priority.DEFAULT)
    desk.clock.step(seconds=61)
    told = []
    for _ in range(10):
        found = look(desk)
        assert len(found) <= 40 // TRICKLE
        told += found
        desk.clock.step(seconds=15)
    assert missing.run_id in told
    assert set(told) == ids([*runs, missing])


def test_a_look_reads_no_more_than_its_bound(desk: Desk) -> None:
    """However many runs are ready; the next look goes on behind them."""
    for number in range(3):
        lost(desk, PAGE * PAGES_MAX // 2, tenant=f"t{number}")
    look(desk)
    desk.clock.step(seconds=45)
    desk.engine.reset()
    assert look(desk) == []
    assert desk.engine.by_method()["query"] <= 2 * PAGES_MAX
    assert desk.engine.rows["", "query"] <= 2 * PAGE * PAGES_MAX


def test_runs_that_are_young_are_stepped_over_by_their_share_key(desk: Desk) -> None:
    """A tenant with much to do soon does not hide another's lost message, nor make it dear."""
    lost(desk, 400, tenant="a", ahead_s=300)
    runs = lost(desk, 1, tenant="b")
    desk.clock.step(seconds=61)
    desk.engine.reset()
    assert look(desk) == [runs[0].run_id]
    assert desk.engine.rows["", "query"] <= 3 * PAGE


# what goes wrong


def test_an_outage_of_the_transport_is_made_good_when_it_ends(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """As long as nobody answers, the ages that runs reach meanwhile are not passed over."""
    runs = lost(desk, 3)
    desk.messages.down = True
    with caplog.at_level(logging.WARNING, "dynsched.handoff"):
        for _ in range(100):
            desk.clock.step(seconds=15)
            assert look(desk) == []
    assert caplog.messages[0].startswith("nothing is sent again to http://sqs/main: ")
    desk.messages.down = False
    desk.clock.step(seconds=15)
    assert set(look(desk)) == ids(runs)


def test_a_replica_that_was_overtaken_sends_nothing(desk: Desk) -> None:
    """Two have read the same laps; the one that writes first sends."""
    lost(desk, 2)
    desk.clock.step(seconds=61)
    desk.told()
    other = Resending(desk.store, settings=desk.base.settings)
    sent: list[int] = []

    def overtake(call: Call) -> bool:
        if call.method == "write" and not sent:
            sent.append(-1)
            sent.append(other.resend(desk.clock.now()))
        return False

    desk.fails = overtake
    assert Resending(desk.store, settings=desk.base.settings).resend(desk.clock.now()) == 0
    assert sent == [-1, 2]
    assert len(desk.told()) == 2


def test_a_queue_that_was_named_anew_is_told_of_all_that_is_old(desk: Desk) -> None:
    """What was sent to the old one may lie there for ever."""
    runs = lost(desk, 3)
    desk.clock.step(seconds=61)
    look(desk)
    desk.clock.step(seconds=20)
    other = MessageQueue(queue="main", priority=Priority.DEFAULT, url="http://sqs/other")
    desk.hand_off(other)
    assert set(look(desk)) == ids(runs)
    assert [queue.url for queue, _ in desk.messages.sent] == []
    assert {one.queue_url for one in desk.messages.messages()} >= {other.url}


def test_a_hand_off_that_begins_tells_of_all_runs_that_are_ready() -> None:
    """A store that was pulled until now may have many."""
    desk = Desk()
    runs = lost(desk, 5)
    desk.clock.step(minutes=500)
    desk.hand_off(MAIN)
    assert set(look(desk)) == ids(runs)
