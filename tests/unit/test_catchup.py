"""Catch-up: which missed occurrences get runs, and how many are counted as skipped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.catchup import (
    MISSED_GRACE,
    SERVED_MAX,
    SPANS_IN_ROW,
    Plan,
    plan_service,
)
from dynsched.domain.instants import MILLISECOND
from dynsched.domain.job import (
    CatchUp,
    Generation,
    Job,
    JobState,
    Policies,
    Priority,
    SkipReason,
    Span,
)
from dynsched.domain.recurrence import Cron, Interval, Once, Schedule
from dynsched.domain.target import HandlerTarget

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PACE = SECOND
AHEAD = 30 * SECOND
DAY = timedelta(days=1)


def job_of(schedule: Schedule, *, next_at: datetime = BEGIN, **policies: object) -> Job:
    """Return a job whose pointer stands at an instant."""
    return Job(
        job_id="j",
        tenant="t",
        name="n",
        needs="handler:x",
        target=HandlerTarget("x"),
        policies=Policies(**policies),  # type: ignore[arg-type]
        next_at=next_at,
        generations=(Generation(effective_from=BEGIN, enabled=True, schedule=schedule),),
        created_at=BEGIN,
        version=1,
    )


def plan(job: Job, now: datetime) -> Plan:
    """Plan as a tick at that instant does."""
    return plan_service(job, now=now, before=now + AHEAD, pace=PACE)


MINUTELY = Cron.parse("* * * * *")
OUTAGE = BEGIN + 40 * DAY + timedelta(seconds=20)  # 57,600 minutes and a bit later
# Missed is what is older than the grace: up to 59 minutes past 23; the last one is still fresh.
MISSED = 40 * 24 * 60


@pytest.mark.parametrize(
    ("catch_up", "late", "skipped"),
    [(CatchUp.LATEST, 1, MISSED - 1), (CatchUp.ALL, 100, MISSED - 100), (CatchUp.SKIP, 0, MISSED)],
)
def test_an_outage_of_forty_days_is_one_bounded_plan(
    catch_up: CatchUp, late: int, skipped: int
) -> None:
    """57,600 missed minutes become the runs that the policy says, and one counted span."""
    made = plan(job_of(MINUTELY, catch_up=catch_up), OUTAGE)
    missed = [item for item in made.occurrences if item.scheduled_for < OUTAGE - MISSED_GRACE]
    assert len(missed) == late
    assert len(made.occurrences) == late + 1
    assert [span.count for span in made.after.spans] == [skipped] == [made.after.skipped]


def test_all_makes_the_newest_runs_paced_and_at_bulk_priority() -> None:
    """Caught-up runs must not push aside what is due now."""
    made = plan(job_of(MINUTELY, catch_up=CatchUp.ALL, catch_up_max=3), OUTAGE)
    late, fresh = made.occurrences[:3], made.occurrences[3:]
    assert [item.available_at - OUTAGE for item in late] == [0 * PACE, PACE, 2 * PACE]
    assert {item.priority for item in late} == {Priority.BULK}
    assert [item.priority for item in fresh] == [Priority.DEFAULT]
    assert late[-1].scheduled_for == OUTAGE.replace(second=0) - timedelta(minutes=1)


def test_all_leaves_out_what_is_older_than_its_window() -> None:
    """A window of ten minutes makes ten runs, although the count would allow a hundred."""
    job = job_of(MINUTELY, catch_up=CatchUp.ALL, catch_up_window=timedelta(minutes=10))
    made = plan(job, OUTAGE)
    assert len(made.occurrences) == 10 + 1
    assert made.after.skipped == MISSED - 10


@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_a_single_occurrence_is_made_up_for_whatever_the_policy(catch_up: CatchUp) -> None:
    """There is no later one that would do its work."""
    made = plan(job_of(Once(at=BEGIN), catch_up=catch_up), BEGIN + 3 * DAY)
    assert [item.scheduled_for for item in made.occurrences] == [BEGIN]
    assert made.after.state is JobState.FINISHED
    assert made.after.skipped == 0


def test_what_is_late_within_the_grace_is_not_missed() -> None:
    """A minute of delay is a slow minute, and no reason to drop anything."""
    made = plan(job_of(MINUTELY, catch_up=CatchUp.SKIP), BEGIN + MISSED_GRACE)
    assert [item.scheduled_for for item in made.occurrences] == [BEGIN, BEGIN + MISSED_GRACE]
    assert made.after.spans == ()


def test_a_job_that_is_not_due_yet_is_left_as_it_is() -> None:
    """A stale index entry costs no write."""
    job = job_of(MINUTELY, next_at=BEGIN + timedelta(minutes=5))
    assert plan(job, BEGIN).after is job


def test_a_job_finishes_with_its_last_occurrence() -> None:
    """Its pointer is gone, so that no dispatcher looks at it again."""
    schedule = Interval(every=60 * SECOND, anchor=BEGIN, end=BEGIN + 60 * SECOND)
    made = plan(job_of(schedule), BEGIN + 40 * SECOND)
    assert len(made.occurrences) == 2
    assert (made.after.next_at, made.after.state) == (None, JobState.FINISHED)


def test_spans_beyond_the_row_are_kept_apart() -> None:
    """Nothing that was counted is forgotten when the row holds no more."""
    job = job_of(MINUTELY, catch_up=CatchUp.SKIP)
    apart: list[Span] = []
    for outage in range(1, 5):
        made = plan(job, BEGIN + outage * timedelta(hours=1))
        apart += made.apart
        job = made.after
    assert len(job.spans) == SPANS_IN_ROW
    assert job.older_spans
    assert sum(span.count for span in (*apart, *job.spans)) == job.skipped


def test_flexible_runs_are_spread_and_keep_their_instant() -> None:
    """The window moves the start, never what the run is for."""
    made = plan(job_of(MINUTELY, flex=timedelta(seconds=20)), BEGIN)
    (item,) = made.occurrences
    assert item.scheduled_for == BEGIN
    assert timedelta(0) <= item.available_at - BEGIN < timedelta(seconds=20)


def test_one_serve_is_bounded_and_the_next_goes_on() -> None:
    """A secondly job with a long look-ahead is served in parts, without a gap between them."""
    job = job_of(Interval(every=SECOND, anchor=BEGIN))
    ahead = BEGIN + 3_000 * SECOND
    seen: list[datetime] = []
    while job.next_at is not None and job.next_at < ahead:
        made = plan_service(job, now=BEGIN, before=ahead, pace=PACE)
        assert 0 < len(made.occurrences) <= SERVED_MAX
        seen += [item.scheduled_for for item in made.occurrences]
        job = made.after
    assert seen == [BEGIN + number * SECOND for number in range(3_000)]


# Against a naive enumeration.

schedules = st.one_of(
    st.builds(
        lambda every, offset: Interval(every=every * SECOND, anchor=BEGIN + offset * SECOND),
        st.integers(1, 400),
        st.integers(0, 400),
    ),
    st.sampled_from(["* * * * *", "*/7 * * * *", "3,4 * * * *"]).map(Cron.parse),
    st.integers(0, 1_200).map(lambda offset: Once(at=BEGIN + offset * SECOND)),
)
policies = st.fixed_dictionaries(
    {
        "catch_up": st.sampled_from(list(CatchUp)),
        "catch_up_max": st.integers(1, 6),
        "catch_up_window": st.integers(1, 1_500).map(lambda seconds: seconds * SECOND),
    }
)


def naive(schedule: Schedule, first: datetime, before: datetime) -> list[datetime]:
    """Return every instant in [first, before), one by one."""
    found = []
    at = schedule.next_after(first - MILLISECOND)
    while at is not None and at < before:
        found.append(at)
        at = schedule.next_after(at)
    return found


def kept_of(missed: list[datetime], job: Job, end: datetime) -> list[datetime]:
    """Return which missed instants get runs, by the words of the policies."""
    if isinstance(job.schedule, Once) or job.policies.catch_up is CatchUp.LATEST:
        return missed[-1:]
    if job.policies.catch_up is CatchUp.SKIP:
        return []
    recent = [at for at in missed if at >= end - job.policies.catch_up_window]
    return recent[-job.policies.catch_up_max :]


@given(schedules, policies, st.integers(0, 1_300))
def test_a_plan_is_what_counting_one_by_one_gives(
    schedule: Schedule, chosen: dict[str, object], elapsed: int
) -> None:
    """Rows, counts and the pointer agree with the definition, for any schedule and policy."""
    first = schedule.next_after(BEGIN - MILLISECOND)
    assert first is not None
    job, now = job_of(schedule, next_at=first, **chosen), BEGIN + elapsed * SECOND
    made = plan(job, now)
    end = min(max(first, now - MISSED_GRACE), now + AHEAD)
    missed, fresh = naive(schedule, first, end), naive(schedule, end, now + AHEAD)
    kept = kept_of(missed, job, end)
    assert [item.scheduled_for for item in made.occurrences] == kept + fresh
    assert made.after.skipped == len(missed) - len(kept)
    if first < now + AHEAD:
        assert made.after.next_at == schedule.next_after(now + AHEAD - MILLISECOND)


@given(schedules, policies, st.lists(st.integers(1, 900), min_size=1, max_size=5))
def test_every_instant_is_a_row_or_a_counted_skip_over_many_ticks(
    schedule: Schedule, chosen: dict[str, object], steps: list[int]
) -> None:
    """Invariant 2: nothing between the first pointer and the last one is lost or doubled."""
    first = schedule.next_after(BEGIN - MILLISECOND)
    assert first is not None
    job, now = job_of(schedule, next_at=first, **chosen), BEGIN
    rows: list[datetime] = []
    spans = []
    for step in steps:
        now += step * SECOND
        if not job.due:
            break
        made = plan(job, now)
        rows += [item.scheduled_for for item in made.occurrences]
        spans += [span for span in (*made.apart, *made.after.spans) if span not in spans]
        job = made.after
    end = job.next_at or now + 10 * DAY
    named = naive(schedule, first, end)
    skipped = [at for at in named if any(span.covers(at) for span in spans)]
    assert sorted(rows + skipped) == named
    assert len(skipped) == sum(span.count for span in spans) == job.skipped
    assert {span.reason for span in spans} <= {SkipReason.CATCH_UP}


@given(schedules, policies, st.integers(0, 1_300), st.integers(1, 60))
def test_two_replicas_lose_nothing_whoever_advances(
    schedule: Schedule, chosen: dict[str, object], elapsed: int, apart: int
) -> None:
    """Each makes rows by its own clock; those of the loser are rows that the winner counts."""
    first = schedule.next_after(BEGIN - MILLISECOND)
    assert first is not None
    job = job_of(schedule, next_at=first, **chosen)
    early = plan(job, BEGIN + elapsed * SECOND)
    late = plan(job, BEGIN + (elapsed + apart) * SECOND)
    rows = {item.scheduled_for for item in (*early.occurrences, *late.occurrences)}
    for winner in (early, late):
        after = replace(winner.after)
        for at in naive(schedule, first, after.next_at or first + DAY):
            assert at in rows or any(span.covers(at) for span in after.spans)
