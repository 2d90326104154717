"""Bounds of a job's policies, and runs of stored jobs that are out of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynsched.domain.job import Policies
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.errors import InvalidInput
from dynsched.services.specs import AfterSpec, EverySpec, JobSpec, ScheduleSpec, check_policies
from dynsched.storage.jobs import JobApplied
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler

DAY = timedelta(days=1)


@pytest.mark.parametrize("name", ["timeout", "soft_timeout", "start_deadline", "catch_up_window"])
@pytest.mark.parametrize("value", [timedelta(microseconds=400), 367 * DAY, timedelta.max])
def test_a_duration_below_a_millisecond_or_above_a_year_is_refused(
    name: str, value: timedelta
) -> None:
    """It is stored in whole milliseconds, so it is judged in them."""
    fields: dict[str, Any] = {"timeout": None, name: value}
    with pytest.raises(InvalidInput, match=f"^{name}:"):
        check_policies(Policies(**fields))


@pytest.mark.parametrize("value", [3661 * DAY, timedelta.max])
def test_a_retention_above_ten_years_is_refused(value: timedelta) -> None:
    """The message names the bound."""
    with pytest.raises(InvalidInput, match="retention: longer than 3660 days"):
        check_policies(Policies(retention=value))


@pytest.mark.parametrize(
    "fields", [{"start_deadline": DAY}, {"retention": 2 * DAY}, {"flex": timedelta.max}]
)
def test_a_flex_window_that_makes_runs_late_by_itself_is_refused(fields: dict[str, Any]) -> None:
    """It must be shorter than the start deadline, and than the retention less a day."""
    with pytest.raises(InvalidInput, match=r"^flex:"):
        check_policies(Policies(**{"flex": DAY, **fields}))


@pytest.mark.parametrize(
    "schedule", [AfterSpec(delay=timedelta.max), EverySpec(every=timedelta.max)]
)
def test_a_delay_beyond_the_calendar_is_bad_input(schedule: ScheduleSpec) -> None:
    """Nobody can act on an arithmetic error."""
    with ManualScheduler(App()) as manual, pytest.raises(InvalidInput, match="9999"):
        manual.operations.create(JobSpec(name="a", target=HandlerTarget("h"), schedule=schedule))


def test_a_stored_job_out_of_bounds_fails_its_own_runs_only() -> None:
    """A row of an earlier release must not keep a worker from all its other work."""
    app = App()
    for name in ("bad", "good"):
        app.job(name)(lambda: None)
    with ManualScheduler(app) as manual:
        bad, good = manual.enqueue("bad"), manual.enqueue("good")
        job = manual.operations.find("bad")
        policies = replace(job.policies, timeout=timedelta(0))
        broken = replace(job, policies=policies, version=job.version + 1)
        assert isinstance(manual.store.jobs.replace(broken, job.version), JobApplied)
        manual.run_due()
        assert manual.operations.get_run(good.run_id).state is RunState.DONE
        ended = manual.operations.get_run(bad.run_id)
        assert (ended.state, "InvalidInput" in (ended.error or "")) == (RunState.DEAD, True)
