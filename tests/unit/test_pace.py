"""Pace: how soon a worker looks again, and how soon it reads a lane again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dynsched.services.loops import IDLE_ENDED_S, IDLE_MIN_S, Pace
from dynsched.services.scan import FRESH, GAP_MAX, GAP_MIN, Lane
from dynsched.services.worker import PollReport

NOW = datetime(2026, 3, 2, 9, 0, 10, tzinfo=UTC)
IDLE_S = 0.5


def idled() -> Pace:
    """Return the pace of a worker that has been idle for long."""
    pace = Pace(IDLE_S)
    for _ in range(20):
        pace.after(PollReport(), NOW)
    return pace


def lane_read(*found: bool) -> Lane:
    """Return a lane after readings that found something or not, the last one just now."""
    lane = Lane(read_at=NOW)
    for one in found:
        lane.note_found(one)
    return lane


def test_an_idle_worker_looks_less_and_less_often_down_to_its_bound() -> None:
    """Idle polling is what an idle store costs."""
    pace = Pace(IDLE_S)
    pauses = [pace.after(PollReport(), NOW) for _ in range(12)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 2 * IDLE_MIN_S
    assert pauses[-1] == IDLE_S


def test_a_worker_that_claimed_looks_again_soon() -> None:
    """Where one run was, more may have come meanwhile."""
    assert idled().after(PollReport(claimed=1), NOW) == IDLE_MIN_S


def test_a_worker_that_claimed_and_saw_more_does_not_pause() -> None:
    """A backlog is worked off without waiting."""
    assert idled().after(PollReport(claimed=1, again=True), NOW) == 0


def test_an_end_is_followed_by_a_look_at_what_it_let_go() -> None:
    """The run that waited for it became available after the lane had been read."""
    assert idled().after(PollReport(ended=1), NOW) == IDLE_ENDED_S


def test_a_worker_looks_when_the_next_row_that_it_saw_is_due() -> None:
    """A run starts at its second and not at the next poll."""
    report = PollReport(next_at=NOW + timedelta(milliseconds=30))
    assert idled().after(report, NOW) == 0.03


def test_a_short_idle_bound_holds_after_a_claim_too() -> None:
    """The setting is the longest pause, whatever happened."""
    assert Pace(0.001).after(PollReport(claimed=1), NOW) == 0.001


def test_a_lane_that_gave_runs_is_read_again_at_once() -> None:
    """With ten runs in the queue at a time, a pause for each ten would set the throughput."""
    assert not lane_read(True).serves(1, NOW)


def test_a_lane_that_gives_nothing_is_read_less_and_less_often() -> None:
    """The lanes of other priorities are not read at each end of a handler."""
    assert lane_read(True, False).gap == GAP_MIN
    assert lane_read(False, False, False).gap == 4 * GAP_MIN
    assert lane_read(*[False] * 20).gap == GAP_MAX


def test_a_barren_lane_serves_until_its_gap_is_over() -> None:
    """What it has, nothing, is the answer until then, and not for longer."""
    lane = lane_read(*[False] * 20)
    assert lane.serves(1, NOW + GAP_MAX - timedelta(milliseconds=1))
    assert not lane.serves(1, NOW + GAP_MAX)


def test_a_lane_is_read_again_when_what_it_showed_is_due() -> None:
    """The gap does not hold back a row that was seen to be due now."""
    lane = lane_read(*[False] * 20)
    lane.next_at = NOW + timedelta(milliseconds=1)
    assert not lane.serves(1, NOW + timedelta(milliseconds=1))
    assert lane.serves(1, NOW)
    assert not lane.serves(1, NOW + FRESH)
