"""Two dispatchers, two reapers and four workers on one store, with a clock that runs faster."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import time
from urllib.parse import quote

import pytest

from dynsched.bootstrap import CLOCK_VARIABLE
from dynsched.domain.instants import minute_of, minute_start
from dynsched.domain.job import Overlap, Policies
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import CronSpec, JobSpec
from tests.contract.dynamo_backends import (
    REGION,
    dummy_credentials,
    fresh_prefix,
    ministack_url,
)
from tests.processes.conftest import Figure, NewStage
from tests.processes.stage import Stage, wait_until

JOBS, BOUNDARIES = 500, 3
ROLES = ("dispatcher",) * 2 + ("reaper",) * 2 + ("worker",) * 4
CREATION = timedelta(minutes=5)  # more than it takes to create the jobs
LEAD_S = 12.0  # for the processes to start, and for the look-ahead


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a rehearsal goes.

    Attributes:
        factor: seconds of the store's clock in one second.
        within_s: real seconds after the last boundary until all runs have ended.
        overlap: of the jobs. A store that takes longer than a minute of its clock for a boundary
            needs `allow`, else a run is skipped while the one before it is still leased.
    """

    factor: float
    within_s: float
    overlap: Overlap


def create_jobs(stage: Stage, first: datetime, overlap: Overlap) -> set[tuple[str, datetime]]:
    """Create minutely jobs with three instants each; return each job and instant."""
    instants = [first + timedelta(minutes=number) for number in range(BOUNDARIES)]
    schedule = CronSpec(expr="* * * * *", start=first, end=instants[-1])

    def create(number: int) -> str:
        spec = JobSpec(
            name=f"m{number}",
            target=HandlerTarget("touch"),
            schedule=schedule,
            policies=Policies(overlap=overlap),
        )
        return stage.operations.create(spec).job_id

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(create, range(JOBS)))
    return {(job_id, instant) for job_id in made for instant in instants}


def jump_to(stage: Stage, instant: datetime, factor: float) -> None:
    """Let the services' clock show an instant now, and run faster from here."""
    # The clock is since + (now - since) * factor; solved for since.
    now_s, shown_s = time(), instant.timestamp()
    since_s = (now_s * factor - shown_s) / (factor - 1)
    stage.environment[CLOCK_VARIABLE] = f"{factor:g}@{since_s:.3f}"


def rehearse(stage: Stage, pace: Pace) -> set[tuple[str, datetime]]:
    """Run a cluster over the boundaries; return what is to be run."""
    stage.init(shards=2, lanes=4)
    first = minute_start(minute_of(stage.base.clock.now() + CREATION) + 1)
    expected = create_jobs(stage, first, pace.overlap)
    jump_to(stage, first - timedelta(seconds=LEAD_S * pace.factor), pace.factor)
    for role in ROLES:
        stage.start(role)
    lasts_s = LEAD_S + (BOUNDARIES - 1) * 60 / pace.factor
    wait_until(
        lambda: len(stage.journal("end")) >= len(expected),
        lasts_s + pace.within_s,
        "the end of all runs",
    )
    assert stage.stop_all() == [0] * len(ROLES)
    return expected


def delays_s(stage: Stage, factor: float) -> list[float]:
    """Return how long after its instant each handler was called, in real seconds, sorted."""
    instants = {run.run_id: run.scheduled_for for run in stage.runs()}
    starts = stage.journal("start")
    return sorted((line.at - instants[line.run_id]).total_seconds() / factor for line in starts)


def check(stage: Stage, expected: set[tuple[str, datetime]]) -> None:
    """Assert that each instant has one row, done by one start."""
    rows = stage.runs()
    assert sorted((run.job_id, run.scheduled_for) for run in rows) == sorted(expected)
    assert {(run.state, run.attempt, run.fence) for run in rows} == {(RunState.DONE, 1, 1)}
    starts = Counter(line.run_id for line in stage.journal("start"))
    assert starts == Counter({run.run_id: 1 for run in rows})


def report(name: str, delays: list[float]) -> str:
    """Return the percentiles of start delays in one line."""
    p50, p99 = (delays[int(len(delays) * share)] for share in (0.5, 0.99))
    return (
        f"{name}: {len(delays)} runs at {BOUNDARIES} boundaries by {len(ROLES)} processes,"
        f" start delay p50 {p50:.2f} s, p99 {p99:.2f} s, max {delays[-1]:.2f} s"
    )


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_each_occurrence_is_one_row_and_one_start_on_sqlite(
    new_stage: NewStage, figure: Figure
) -> None:
    """Eight processes share one file through three boundaries, and end with exit code 0."""
    pace = Pace(factor=6, within_s=60, overlap=Overlap.SKIP)
    stage = new_stage(DYNSCHED_LEASE_S="120")
    check(stage, rehearse(stage, pace))
    figure(report("SQLite", delays_s(stage, pace.factor)))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_occurrence_is_one_row_and_one_start_on_dynamodb(
    new_stage: NewStage, figure: Figure
) -> None:
    """The same processes on an emulator of DynamoDB, by another URL only."""
    pace = Pace(factor=3, within_s=90, overlap=Overlap.ALLOW)
    with dummy_credentials():
        url = f"dynamodb://{fresh_prefix()}?region={REGION}&endpoint_url={quote(ministack_url())}"
        # The emulator's clock is the machine's, so the services' faster one is far off.
        stage = new_stage(url, DYNSCHED_SKEW_STOP_S="100000", DYNSCHED_LEASE_S="120")
        check(stage, rehearse(stage, pace))
        figure(report("ministack", delays_s(stage, pace.factor)))
