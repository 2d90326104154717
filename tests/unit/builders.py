"""Builders: jobs and runs with everything at its default but what a test is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dynsched.domain.instants import EPOCH
from dynsched.domain.job import Generation, Job, Policies, Priority
from dynsched.domain.recurrence import Cron, Schedule
from dynsched.domain.run import TERMINAL, Run, RunKey, RunKind, RunState
from dynsched.domain.target import HandlerTarget

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTELY = Cron.parse("* * * * *")


def run_of(state: RunState = RunState.READY, **fields: Any) -> Run:
    """Return a cron run in a state, with what goes with it."""
    leased, ended = state is RunState.LEASED, state in TERMINAL
    run = Run(
        key=RunKey("j", fields.pop("at", NOW), RunKind.CRON),
        tenant="t",
        queue="main",
        priority=Priority.DEFAULT,
        share="t",
        state=state,
        available_at=NOW,
        generation=NOW - timedelta(days=1),
        needs="handler:x",
        fence=3,
        attempt=2,
        spent=1,
        limit=5,
        session="s" if leased else None,
        ended_at=NOW if ended else None,
        expires_at_s=int((NOW - EPOCH).total_seconds()) + 99 if ended else None,
        created_at=NOW,
        version=7,
    )
    return replace(run, **fields)


def manual_of(state: RunState = RunState.READY, **fields: Any) -> Run:
    """Return a run made by hand, in a state."""
    return run_of(state, key=RunKey("j", NOW, RunKind.MANUAL, "0-abc"), **fields)


def job_of(schedule: Schedule | None = MINUTELY, **fields: Any) -> Job:
    """Return an active job that was made a day ago."""
    begin = NOW - timedelta(days=1)
    policies = fields.pop("policies", {})
    job = Job(
        job_id="j",
        tenant="t",
        name="n",
        needs="handler:x",
        target=HandlerTarget("x"),
        policies=Policies(**policies),
        next_at=NOW,
        generations=(Generation(effective_from=begin, enabled=True, schedule=schedule),),
        created_at=begin,
        version=4,
    )
    return replace(job, **fields)
