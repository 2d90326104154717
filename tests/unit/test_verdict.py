"""The look's verdict: may a claimed run start, by its job as it is now?"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.domain.editing import with_generation
from dynsched.domain.job import Generation, Job, JobState, SkipReason, Span
from dynsched.domain.recurrence import Cron
from dynsched.domain.run import Run, RunState
from dynsched.domain.verdict import (
    START,
    Verdict,
    judge,
    needs_old_generations,
    needs_old_spans,
    untouched,
)
from tests.unit.builders import MINUTELY, NOW, job_of, manual_of, run_of

MINUTE = timedelta(minutes=1)
HOURLY = Cron.parse("0 * * * *")


def skip(reason: SkipReason) -> Verdict:
    """Return the verdict that skips for a reason."""
    return Verdict(skip=reason)


def fresh(**fields: object) -> Run:
    """Return a leased cron run that nobody has tried."""
    return run_of(RunState.LEASED, attempt=0, spent=0, **fields)


def look(run: Run, job: Job | None, **how: object) -> Verdict:
    """Judge now."""
    return judge(run, job, now=NOW, **how)  # type: ignore[arg-type]


def span(first: int, last: int) -> Span:
    """Return a span of minutes before now."""
    return Span(
        first=NOW - first * MINUTE, last=NOW - last * MINUTE, count=1, reason=SkipReason.CATCH_UP
    )


def paused(job: Job, minutes_ago: float) -> Job:
    """Return a job that was paused some minutes ago."""
    at = NOW - minutes_ago * MINUTE
    changed = with_generation(job, at, enabled=False, schedule=job.schedule)
    return replace(changed, state=JobState.PAUSED)


def test_a_named_instant_starts() -> None:
    """Nothing stands in its way."""
    assert look(fresh(), job_of()) == START


def test_a_run_without_its_job_is_skipped() -> None:
    """Whether its row is gone or a tombstone."""
    for job in (None, job_of(state=JobState.DELETED)):
        assert look(fresh(), job) == skip(SkipReason.DELETED)
        assert look(manual_of(RunState.LEASED), job) == skip(SkipReason.DELETED)


def test_a_pause_stops_instants_from_its_beginning_on() -> None:
    """Earlier ones go on; the one at the very instant does not."""
    job = paused(job_of(), 2)
    assert look(fresh(at=NOW - 2 * MINUTE), job) == skip(SkipReason.PAUSED)
    assert look(fresh(at=NOW - 3 * MINUTE), job) == START


def test_a_pause_with_hold_keeps_everything_waiting() -> None:
    """Manual runs and replays too; nothing is skipped by it."""
    job = job_of(state=JobState.PAUSED, policies={"hold": True})
    assert look(fresh(), job) == look(manual_of(RunState.LEASED), job) == Verdict(hold=True)


def test_an_edit_skips_what_the_new_schedule_does_not_name() -> None:
    """A row made ahead under the old schedule is judged by the one in force at its instant."""
    job = with_generation(job_of(), NOW - 5 * MINUTE, enabled=True, schedule=HOURLY)
    assert look(fresh(at=NOW - 4 * MINUTE), job) == skip(SkipReason.EDITED)
    assert look(fresh(at=NOW - 6 * MINUTE), job) == START
    assert look(fresh(at=NOW), job) == START


def test_an_instant_before_the_first_generation_is_not_named() -> None:
    """A job has no past."""
    assert look(fresh(at=NOW - timedelta(days=2)), job_of()) == skip(SkipReason.EDITED)


def test_generations_kept_apart_are_looked_at() -> None:
    """The schedule in force at an old instant is known, however many edits came since."""
    old = Generation(effective_from=NOW - timedelta(days=3), enabled=True, schedule=MINUTELY)
    job = job_of(older_generations=True)
    run = fresh(at=NOW - timedelta(days=2))
    assert needs_old_generations(run, job)
    assert look(run, job, old_generations=[old]) == START
    assert not needs_old_generations(fresh(), job)


def test_an_instant_that_was_counted_as_skipped_does_not_run() -> None:
    """A row that a slow dispatcher made stays out, with the span's reason."""
    job = job_of(spans=(span(9, 5),))
    assert look(fresh(at=NOW - 5 * MINUTE), job) == skip(SkipReason.CATCH_UP)
    assert look(fresh(at=NOW - 4 * MINUTE), job) == START


def test_a_span_kept_apart_counts_as_well() -> None:
    """Only instants older than the row's spans ask for it."""
    job = job_of(spans=(span(9, 5),), older_spans=True)
    run = fresh(at=NOW - 20 * MINUTE)
    assert needs_old_spans(run, job)
    assert look(run, job, old_span=span(30, 15)) == skip(SkipReason.CATCH_UP)
    assert not needs_old_spans(fresh(at=NOW - 7 * MINUTE), job)


@pytest.mark.parametrize("changes", [{"reported": True}, {"replays": 1}])
def test_what_was_tried_or_replayed_is_not_skipped_by_a_span(changes: dict[str, object]) -> None:
    """A retry of a run that had begun is no double of a counted skip."""
    run = fresh(at=NOW - 5 * MINUTE, **changes)
    assert not untouched(run)
    assert look(run, job_of(spans=(span(9, 5),))) == START


def test_a_lost_lease_alone_leaves_a_run_untouched() -> None:
    """It raises the attempt, although nothing may have started."""
    assert untouched(run_of(attempt=1, losses=1))


def test_a_run_that_starts_too_late_is_skipped() -> None:
    """By its job's deadline; a run made by hand has none."""
    job = job_of(policies={"start_deadline": MINUTE})
    assert look(fresh(at=NOW - 2 * MINUTE), job) == skip(SkipReason.DEADLINE)
    assert look(fresh(at=NOW - MINUTE), job) == START
    assert look(manual_of(RunState.LEASED), job) == START


def test_an_instant_near_the_end_of_its_retention_is_not_brought_back() -> None:
    """Its first row may have expired: a late dispatcher would make it a second time."""
    begin = Generation(effective_from=NOW - timedelta(days=99), enabled=True, schedule=MINUTELY)
    job = job_of(policies={"retention": timedelta(days=4)}, generations=(begin,))
    assert look(fresh(at=NOW - timedelta(days=3, minutes=1)), job) == skip(SkipReason.EXPIRED)
    assert look(fresh(at=NOW - timedelta(days=3)), job) == START
    assert look(fresh(at=NOW - timedelta(days=9), replays=1), job) == START
