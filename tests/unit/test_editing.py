"""Edits: generations, pointers, and what a pause counts."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.editing import count_paused, pointed_from, with_generation
from dynsched.domain.job import JobState, SkipReason, in_force, names_instant
from dynsched.domain.recurrence import Interval, Once
from tests.unit.builders import MINUTELY, NOW, job_of

MINUTE = timedelta(minutes=1)


def test_a_generation_is_in_force_from_its_instant_on() -> None:
    """What lies before belongs to the one before."""
    job = with_generation(job_of(), NOW, enabled=False, schedule=MINUTELY)
    before, after = job.generations
    assert in_force(job.generations, NOW - timedelta(milliseconds=1)) == before
    assert in_force(job.generations, NOW) == after
    assert in_force(job.generations, before.effective_from - MINUTE) is None


def test_an_instant_is_named_by_the_generation_in_force_at_it() -> None:
    """A disabled one names nothing, and so does a job without a schedule."""
    job = with_generation(job_of(), NOW, enabled=False, schedule=MINUTELY)
    assert names_instant(job.generations, NOW - MINUTE)
    assert not names_instant(job.generations, NOW)
    assert not names_instant(job_of(schedule=None).generations, NOW)


def test_a_pointer_moves_to_the_first_instant_at_or_after() -> None:
    """The very instant from which an edit holds is the new schedule's."""
    assert pointed_from(job_of(), NOW).next_at == NOW
    assert pointed_from(job_of(), NOW + timedelta(milliseconds=1)).next_at == NOW + MINUTE


def test_a_schedule_that_is_over_finishes_its_job() -> None:
    """A job that only runs by hand stays active."""
    over = pointed_from(job_of(schedule=Once(at=NOW - MINUTE)), NOW)
    assert (over.state, over.next_at) == (JobState.FINISHED, None)
    assert pointed_from(job_of(schedule=None), NOW).state is JobState.ACTIVE


def test_a_pause_counts_what_it_left_out() -> None:
    """From the pointer up to the instant, which itself is not counted."""
    job = count_paused(job_of(next_at=NOW), NOW + 5 * MINUTE)
    (span,) = job.spans
    assert (span.first, span.last, span.count) == (NOW, NOW + 4 * MINUTE, 5)
    assert (span.reason, job.skipped) == (SkipReason.PAUSED, 5)


def test_a_pause_that_left_out_nothing_counts_nothing() -> None:
    """Neither a pointer ahead nor a job without a schedule makes a span."""
    assert count_paused(job_of(next_at=NOW), NOW).spans == ()
    assert count_paused(job_of(schedule=None, next_at=None), NOW).spans == ()


@given(st.integers(1, 500), st.integers(0, 2_000), st.integers(0, 2_000))
def test_a_resumed_job_has_each_instant_once(every: int, pointer: int, resumed: int) -> None:
    """Counted as skipped up to the resumption, due from there on: no gap, no overlap."""
    schedule = Interval(every=timedelta(seconds=every), anchor=NOW)
    first = schedule.next_after(NOW + timedelta(seconds=pointer))
    at = NOW + timedelta(seconds=resumed)
    job = pointed_from(count_paused(job_of(schedule=schedule, next_at=first), at), at)
    assert first is not None
    assert job.next_at is not None
    counted = schedule.count(first, at) if first < at else 0
    assert job.skipped == counted
    assert job.next_at >= at
    assert schedule.count(at, job.next_at) == 0
