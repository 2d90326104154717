"""Edits that ask for what is there already, and names that look like keys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.domain.target import HandlerTarget
from dynsched.services.operations import Operations
from dynsched.services.specs import CronSpec, EverySpec, JobSpec, ScheduleSpec
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler


@pytest.fixture
def scheduler() -> ManualScheduler:
    """An empty store with virtual time."""
    return ManualScheduler(App())


def make(operations: Operations, name: str, schedule: ScheduleSpec | None = None) -> str:
    """Make a job; return its id."""
    return operations.create(
        JobSpec(name=name, target=HandlerTarget("h"), schedule=schedule)
    ).job_id


@pytest.mark.parametrize(
    "schedule", [EverySpec(every=timedelta(seconds=20)), CronSpec(expr="H 3 * * *")]
)
def test_an_edit_to_the_present_schedule_changes_nothing(
    scheduler: ManualScheduler, schedule: ScheduleSpec
) -> None:
    """A deployment that repeats it more often than the interval must not starve the job."""
    job_id = make(scheduler.operations, "a", schedule)
    before = scheduler.store.jobs.get(job_id)
    assert scheduler.operations.reschedule(job_id, schedule).effective_from is None
    assert scheduler.store.jobs.get(job_id) == before


def test_an_edit_to_another_interval_makes_a_generation(scheduler: ManualScheduler) -> None:
    """The new one holds from an instant on that the answer names."""
    job_id = make(scheduler.operations, "a", EverySpec(every=timedelta(seconds=20)))
    other = EverySpec(every=timedelta(seconds=30))
    assert scheduler.operations.reschedule(job_id, other).effective_from is not None


def test_a_job_may_be_called_job(scheduler: ManualScheduler) -> None:
    """The row that guards its name has the sort key that jobs have."""
    job_id = make(scheduler.operations, "job")
    rows, _ = scheduler.store.jobs.scan(100, None)
    assert [row.key.pk for row in rows] == [job_id]


def test_the_reason_of_a_cancel_is_kept_by_a_running_run(scheduler: ManualScheduler) -> None:
    """Who asked why a run was cancelled finds it in its row."""
    app = App()
    reasons: list[str] = []

    @app.job("h")
    def handler() -> None:
        run = running.runs("h")[0]
        reasons.append(running.operations.cancel(run.run_id, reason="wrong customer").reason)

    with ManualScheduler(app) as running:
        running.enqueue("h")
        running.run_due()
    assert reasons == ["wrong customer"]
