"""Jobs and runs for people to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import click

from dynsched.cli.tables import (
    distance,
    print_block,
    print_fields,
    print_table,
    span,
    stamp,
    when,
)
from dynsched.cli.visible import visible
from dynsched.domain.instants import from_ms
from dynsched.domain.job import Job, JobState
from dynsched.domain.job_words import policies_words, schedule_words
from dynsched.domain.lease_words import holder_words
from dynsched.domain.run import Run, RunState
from dynsched.services.capacity import why_words
from dynsched.services.job_views import JobDetail, coming
from dynsched.services.operations import Changed
from dynsched.services.run_views import RunDetail, moment
from dynsched.storage.runs import Attempt, ProgressNote

_NO_JOBS = "no jobs (`dynsched job add --help` shows how to make one)"
PAYLOAD_SHOWN = 2_000  # characters of a payload that people are shown


def print_jobs(
    jobs: Sequence[Job], now: datetime, *, filtered: bool = False, more: bool = False
) -> None:
    """Write a table of jobs; `filtered` if only some were asked for, `more` if there may be."""
    rows = []
    for job in jobs:
        ahead = coming(job, now, 1)
        what = job.target.describe() if job.target is not None else job.needs
        schedule = schedule_words(job.schedule, short=True)
        next_at = when(ahead[0], now) if ahead else "-"
        rows.append((job.state.value, job.tenant, job.name, next_at, schedule, what))
    print_table(
        ("STATE", "TENANT", "NAME", "NEXT", "SCHEDULE", "WHAT"),
        rows,
        empty="no jobs that fit" if filtered else _NO_JOBS,
        more=more,
    )


def print_job(job: Job, now: datetime, *, title: str) -> None:
    """Write the few lines that say what a job has become."""
    ahead = coming(job, now, 1)
    click.echo(f"{title} {visible(job.name)} ({job.job_id})")
    print_fields(
        (
            ("  tenant", job.tenant if job.tenant != "default" else ""),
            ("  state", _state_words(job)),
            ("  when", schedule_words(job.schedule)),
            ("  next", when(ahead[0], now) if ahead else ""),
            ("  what", job.target.describe() if job.target is not None else job.needs),
        )
    )


def _state_words(job: Job) -> str:
    """Return a job's state unless it says nothing: a job that runs once has soon `finished`."""
    if job.state in (JobState.ACTIVE, JobState.FINISHED):
        return ""
    return f"{job.state.value} ({job.reason})" if job.reason else job.state.value


def print_changed(changed: Changed, now: datetime, *, title: str) -> None:
    """Write a job after a change, and from when on that holds."""
    print_job(changed.job, now, title=title)
    if changed.effective_from is not None:
        click.echo(f"  in force from {when(changed.effective_from, now)}")


def print_job_detail(detail: JobDetail, now: datetime, lacks: Mapping[str, str]) -> None:
    """Write all that is known of a job."""
    job = detail.job
    ahead = [when(at, now) if number == 0 else stamp(at) for number, at in enumerate(detail.coming)]
    spans = (*detail.older_spans, *job.spans)
    print_fields(
        (
            ("name", job.name),
            ("job", job.job_id),
            ("tenant", job.tenant),
            ("state", job.state.value),
            ("reason", job.reason),
            ("schedule", schedule_words(job.schedule)),
            ("next", ", ".join(ahead)),
            ("does", "(its definition is gone)" if detail.target is None else ""),
            ("does", "" if detail.target is None else detail.target.describe()),
            ("queue", f"{job.queue}, priority {job.priority.value}"),
            ("policies", policies_words(job.policies)),
            ("tags", ", ".join(f"{name}={value}" for name, value in job.tags.items())),
            ("payload", _payload(detail.payload)),
            ("skipped", f"{job.skipped:,} occurrences" if job.skipped else ""),
            ("created", when(job.created_at, now)),
        )
    )
    for one in spans[-5:]:
        until = f" to {stamp(one.last)}" if one.last != one.first else ""
        click.echo(f"  {one.count:,} skipped ({one.reason.value}): {stamp(one.first)}{until}")
    click.echo("")
    print_runs(detail.runs, {job.job_id: job.name}, now, lacks)


def _payload(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= PAYLOAD_SHOWN else text[:PAYLOAD_SHOWN] + "… (--json shows all)"


def print_runs(
    runs: Sequence[Run],
    names: Mapping[str, str],
    now: datetime,
    lacks: Mapping[str, str],
    *,
    more: bool = False,
) -> None:
    """Write a table of runs; a leased one with the attempt that is under way.

    Args:
        runs: the runs.
        names: of their jobs, by id.
        now: the present instant.
        lacks: what no living worker has, by run.
        more: not all that was searched was looked at.
    """
    rows = [
        (
            run.state.value,
            run.tenant,
            names.get(run.job_id, run.job_id),
            stamp(run.scheduled_for),
            _moment_words(run, now),
            str(run.attempt + (run.state is RunState.LEASED)),
            run.run_id,
            why_words(run, lacks.get(run.run_id, "")),
        )
        for run in runs
    ]
    print_table(
        ("STATE", "TENANT", "JOB", "SCHEDULED FOR", "WHEN", "ATTEMPT", "RUN", "WHY"),
        rows,
        empty="no runs",
        more=more,
    )


def print_dead(
    runs: Sequence[Run], names: Mapping[str, str], now: datetime, *, more: bool = False
) -> None:
    """Write a table of dead runs with the group of their errors; `more` as in `print_runs`."""
    rows = [
        (
            run.signature or "-",
            run.tenant,
            names.get(run.job_id, run.job_id),
            _moment_words(run, now),
            str(run.attempt),
            run.run_id,
            why_words(run),
        )
        for run in runs
    ]
    print_table(
        ("GROUP", "TENANT", "JOB", "DIED", "ATTEMPT", "RUN", "WHY"),
        rows,
        empty="no dead runs",
        more=more,
    )


def _moment_words(run: Run, now: datetime) -> str:
    """Return when a run ended, or may start, or since when it runs."""
    if run.state is not RunState.LEASED:
        return distance(moment(run), now)
    leased_at = _leased_at(run)
    if leased_at is None:
        return f"running, due {distance(moment(run), now)}"
    return f"running for {span(max(now - leased_at, timedelta(0)))}"


def _leased_at(run: Run) -> datetime | None:
    """Return since when a run is leased, if its row says so."""
    leased_at: datetime | None = run.leased_at
    return leased_at


def _attempt_words(run: Run) -> str:
    """Return how many tries there were, or which one is under way."""
    failures = f"({run.spent} of {run.limit} failures)"
    if run.state is RunState.LEASED:
        return f"{run.attempt + 1}, running {failures}"
    return f"{run.attempt} {failures}"


def print_run_detail(detail: RunDetail, now: datetime) -> None:
    """Write all that is known of a run, its attempts from the oldest on."""
    run = detail.run
    running = run.state is RunState.LEASED
    expiry = "" if run.expires_at_s is None else stamp(from_ms(run.expires_at_s * 1000))
    print_fields(
        (
            ("run", run.run_id),
            ("job", run.job_id if detail.job is None else f"{detail.job.name} ({run.job_id})"),
            ("tenant", run.tenant),
            ("state", run.state.value),
            ("why", why_words(run, detail.lack)),
            ("scheduled for", when(run.scheduled_for, now)),
            ("available", "" if run.terminal or running else when(run.available_at, now)),
            ("attempt", _attempt_words(run)),
            ("running since", when(_leased_at(run), now) if running else ""),
            ("fence", ", ".join(filter(None, (f"{run.fence}", holder_words(run))))),
            ("progress", _progress_words(detail.progress, now)),
            ("lost leases", f"{run.losses} in a row" if run.losses else ""),
            ("replays", _replay_words(run)),
            ("made from", run.origin),
            ("queue", f"{run.queue}, priority {run.priority.value}, needs {run.needs}"),
            ("payload", _payload(detail.payload)),
            ("key", run.idempotency_key),
            ("created", when(run.created_at, now)),
            ("first started", when(run.first_started_at, now)),
            ("started", when(run.started_at, now)),
            ("ended", when(run.ended_at, now)),
            ("kept until", expiry),
            ("group", run.signature),
        )
    )
    for attempt in detail.attempts:
        _print_attempt(attempt)


def _replay_words(run: Run) -> str:
    """Return how often a run was brought back, and by which batch last."""
    if not run.replays:
        return ""
    return f"{run.replays}, last by batch {run.batch}" if run.batch else str(run.replays)


def _progress_words(note: ProgressNote | None, now: datetime) -> str:
    """Return what a handler reported last."""
    if note is None:
        return ""
    total = "" if note.total is None else f" of {note.total:g}"
    words = f"{note.done:g}{total} on attempt {note.attempt}, {distance(note.at, now)}"
    return f"{words}: {note.note}" if note.note else words


def _print_attempt(attempt: Attempt) -> None:
    """Write one try."""
    started = "" if attempt.started_at is None else f", started {stamp(attempt.started_at)}"
    error = ": ".join(filter(None, (attempt.error_type, attempt.message)))
    click.echo("")
    if attempt.by_people:
        _print_deed(attempt)
        return
    click.echo(
        f"attempt {attempt.number}: {attempt.outcome}{started}, ended {stamp(attempt.ended_at)},"
        f" fence {attempt.fence}, session {attempt.session}"
    )
    if error:
        click.echo(f"  {visible(error)}")
    if attempt.detail:
        _print_output("detail", attempt.detail)
    if attempt.output:
        _print_output("output", attempt.output)


def _print_deed(attempt: Attempt) -> None:
    """Write what people did to the run after an attempt."""
    batch = f" in batch {attempt.batch}" if attempt.batch else ""
    click.echo(
        f"after attempt {attempt.number}: {attempt.outcome} by {visible(attempt.by)}{batch}"
        f" at {stamp(attempt.ended_at)}"
    )
    if attempt.message:
        click.echo(f"  reason: {visible(attempt.message)}")
    if attempt.detail:
        print_block("  difference" if attempt.output else "  by", attempt.detail)
    if attempt.output:
        print_block("  payload before", attempt.output)


def _print_output(title: str, text: str) -> None:
    """Write JSON output laid out for people, each of its texts as a block; other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a tail may be nothing but brackets
        value = None
    if not isinstance(value, dict):
        print_block(f"  {title}", text)
        return
    for name, part in value.items():
        if isinstance(part, str):
            print_block(f"  {name}", part)
        else:
            click.echo(f"  {visible(name)}: {visible(json.dumps(part))}")
