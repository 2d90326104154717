"""`dynsched job …`: define jobs, look at them, change, pause and run them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from dynsched.cli.command import Group
from dynsched.cli.filters import rows_examined, tenant_terms
from dynsched.cli.job_spec import (
    TARGETS,
    edited_schedule,
    edited_target,
    edits_schedule,
    job_spec,
    policy_changes,
)
from dynsched.cli.lacks import warn_of_lack
from dynsched.cli.options import (
    app_option,
    filter_argument,
    json_option,
    paging_options,
    policy_options,
    reason_option,
    schedule_options,
    tag_filter,
    target_options,
    tenant_filter,
    tenant_of_seen,
    tenant_option,
    typed_values,
)
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.show import print_changed, print_job, print_job_detail, print_jobs
from dynsched.cli.tables import print_json, print_status, when
from dynsched.cli.values import PAYLOAD, pairs
from dynsched.domain.filters import term_text
from dynsched.domain.job import Job, JobState, Priority
from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput
from dynsched.services.documents import instant, job_detail_document, job_document, run_document
from dynsched.services.operations import Changed
from dynsched.services.specs import make_schedule
from dynsched.targets.app import load_app


@click.group(
    "job",
    cls=Group,
    examples=(
        "job add ping --every 5m --http https://example.org/ping --method GET",
        "job list",
        "job show ping",
    ),
)
def job_group() -> None:
    """Define jobs, look at them, change, pause and run them."""


@job_group.command(
    "add",
    examples=(
        "job add nightly --cron '30 2 * * *' --tz Europe/Riga --command /opt/bin/backup",
        "job add report --every 1h --handler reports.hourly --app myapp:app --max-attempts 3",
        "job add remind --in 15m --http https://example.org/hook --payload '{\"order\": 7}'",
        "job add index --every 1h --lambda index --invocation callback --timeout 2h",
    ),
)
@click.argument("name")
@schedule_options
@target_options
@policy_options
@tenant_option
@app_option
@reason_option
@json_option
@pass_runtime
def add(runtime: Runtime, /, *, name: str, reason: str, as_json: bool, **_: Any) -> None:
    """Add the job NAME: when it runs, what it does, and how it is to be treated.

    With --app the handler must be in the App, and what its declaration says about jobs holds
    where no option says otherwise. Workers run commands only when started with --allow-commands.
    """
    typed = typed_values(click.get_current_context())
    app = load_app(typed["app"]) if "app" in typed else None
    made = runtime.operations.create(job_spec(name, typed, app), reason=reason)
    job = runtime.views.masked(made)
    if as_json:
        print_json(job_document(job, runtime.now()))
    else:
        print_job(job, runtime.now(), title="added")
    warn_of_lack(runtime, job.queue, job.needs, app_known=app is not None)


@job_group.command(
    "list",
    examples=(
        "job list",
        "job list --tenant acme --tag team=ops",
        "job list 'state:paused,parked -tag:team=ops next:<+1h'",
    ),
)
@filter_argument
@tenant_filter
@tag_filter
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState if state is not JobState.DELETED]),
    help="Only in this state; repeatable.",
)
@paging_options
@json_option
@pass_runtime
def list_(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    tenant: str | None,
    tag: tuple[tuple[str, str], ...],
    states: tuple[str, ...],
    limit: int,
    cursor: str | None,
    examine: int | None,
    as_json: bool,
) -> None:
    """List the jobs that fit FILTER, by tenant and name."""
    terms = [*words, *tenant_terms(tenant)]
    terms += [term_text("tag", f"{name}={value}") for name, value in pairs(tag, "--tag").items()]
    if states:
        terms.append(term_text("state", *states))
    found = runtime.views.find_jobs(
        " ".join(terms), limit=limit, cursor=cursor, examine=rows_examined(examine, limit)
    )
    now = runtime.now()
    if as_json:
        print_json([job_document(job, now) for job in found.items])
    else:
        more = found.cursor is not None
        print_jobs(found.items, now, filtered=bool(terms) or cursor is not None, more=more)
    print_status(found)


@job_group.command("show", examples=("job show nightly", "job show report --tenant acme --json"))
@click.argument("name", metavar="NAME")
@tenant_of_seen
@json_option
@pass_runtime
def show(runtime: Runtime, /, *, name: str, tenant: str | None, as_json: bool) -> None:
    """Show the job NAME (or its id): its definition, next instants and newest runs."""
    detail = runtime.views.show_job(runtime.views.find_job_of_any(name, tenant))
    lacks = runtime.views.lacks(detail.runs)
    if as_json:
        print_json(job_detail_document(detail, runtime.now(), lacks))
    else:
        print_job_detail(detail, runtime.now(), lacks)


@job_group.command(
    "edit",
    examples=(
        "job edit nightly --cron '0 3 * * *'",
        "job edit nightly --tz Europe/Berlin --max-attempts 2 --timeout none",
        "job edit report --tag team=ops --tag old=",
    ),
)
@click.argument("name")
@schedule_options
@target_options
@policy_options
@tenant_option
@app_option
@reason_option
@json_option
@pass_runtime
def edit(
    runtime: Runtime, /, *, name: str, tenant: str, reason: str, as_json: bool, **_: Any
) -> None:
    """Change the job NAME (or its id); what is not named stays as it is.

    A changed schedule holds from the instant that the answer names; no occurrence is lost or
    doubled. An empty tag value drops the tag.
    """
    typed = typed_values(click.get_current_context())
    for name_only in ("tenant", "as_json", "name", "reason"):
        typed.pop(name_only, None)
    job = runtime.find_job(name, tenant)
    given = frozenset(typed)
    changed = _shown(runtime, _edit(runtime, job, typed, reason))
    if as_json:
        print_json(_changed_document(changed, runtime.now()))
    else:
        print_changed(changed, runtime.now(), title="edited")
    if "queue" in typed or any(kind in typed for kind in TARGETS):
        warn_of_lack(runtime, changed.job.queue, changed.job.needs, app_known="app" in given)


def _shown(runtime: Runtime, changed: Changed) -> Changed:
    return replace(changed, job=runtime.views.masked(changed.job))


def _edit(runtime: Runtime, job: Job, typed: dict[str, Any], reason: str) -> Changed:
    """Check everything first, so that an edit of several things is made whole or not at all."""
    operations = runtime.operations
    app = load_app(typed.pop("app")) if "app" in typed else None
    if app is not None and "handler" in typed:
        app.get(typed["handler"])
    target = edited_target(typed, lambda: operations.target_of(operations.get_job(job.job_id)))
    schedule = None
    reschedules = edits_schedule(typed)
    if reschedules:
        schedule = edited_schedule(typed, job.schedule)
        make_schedule(schedule, job.job_id, runtime.now())
    tags = None
    if "tag" in typed:
        merged = {**job.tags, **pairs(typed["tag"], "--tag")}
        tags = {key: value for key, value in merged.items() if value}
    plain: dict[str, Any] = {
        "policies": policy_changes(typed, job.policies) or None,
        "target": target,
        "payload": typed.get("payload"),
        "queue": typed.get("queue"),
        "priority": Priority(typed["priority"]) if "priority" in typed else None,
        "tags": tags,
    }
    if not reschedules and all(value is None for value in plain.values()):
        raise InvalidInput("edit", "nothing to change was named", "see `dynsched job edit --help`")
    changed = Changed(job, None)
    if any(value is not None for value in plain.values()):
        changed = operations.edit(job.job_id, **plain, reason=reason)
    if reschedules:
        changed = operations.reschedule(job.job_id, schedule, reason=reason)
    return changed


def _changed_document(changed: Changed, now: datetime) -> dict[str, Json]:
    effective = instant(changed.effective_from)
    return {**job_document(changed.job, now), "effective_from": effective}


@job_group.command("pause", examples=("job pause nightly --reason 'disk is full'",))
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Told to whoever asks why.")
@click.option("--hold", is_flag=True, help="Earlier, manual and replayed runs wait too.")
@tenant_option
@json_option
@pass_runtime
def pause(
    runtime: Runtime, /, *, name: str, reason: str, hold: bool, tenant: str, as_json: bool
) -> None:
    """Pause the job NAME (or its id): no instant from the answer's on starts."""
    job = runtime.find_job(name, tenant)
    paused = runtime.operations.pause(job.job_id, reason=reason, hold=hold)
    changed = _shown(runtime, paused)
    if as_json:
        print_json(_changed_document(changed, runtime.now()))
    else:
        print_changed(changed, runtime.now(), title="paused")


@job_group.command("resume", examples=("job resume nightly",))
@click.argument("name")
@tenant_option
@reason_option
@json_option
@pass_runtime
def resume(runtime: Runtime, /, *, name: str, tenant: str, reason: str, as_json: bool) -> None:
    """Resume the paused job NAME (or its id); what was missed is counted as skipped."""
    job = runtime.find_job(name, tenant)
    changed = _shown(runtime, runtime.operations.resume(job.job_id, reason=reason))
    if as_json:
        print_json(_changed_document(changed, runtime.now()))
    else:
        print_changed(changed, runtime.now(), title="resumed")


@job_group.command("run-now", examples=("job run-now nightly", "job run-now report --payload '7'"))
@click.argument("name")
@click.option("--payload", type=PAYLOAD, help="Other than the job's; @file or @- reads it.")
@click.option("--force", is_flag=True, help="Do not wait for other runs of the job.")
@tenant_option
@reason_option
@json_option
@pass_runtime
def run_now(
    runtime: Runtime,
    /,
    *,
    name: str,
    payload: Json,
    force: bool,
    tenant: str,
    reason: str,
    as_json: bool,
) -> None:
    """Make a manual run of the job NAME (or its id), now."""
    job = runtime.find_job(name, tenant)
    run = runtime.operations.run_now(job.job_id, payload=payload, force=force, reason=reason)
    if as_json:
        print_json(run_document(run, job_name=job.name))
    else:
        click.echo(f"made run {run.run_id}")


@job_group.command("delete", examples=("job delete nightly",))
@click.argument("name")
@tenant_option
@reason_option
@json_option
@pass_runtime
def delete(runtime: Runtime, /, *, name: str, tenant: str, reason: str, as_json: bool) -> None:
    """Delete the job NAME (or its id).

    Its name is free at once, its runs stay until they expire.
    """
    job = runtime.find_job(name, tenant)
    changed = _shown(runtime, runtime.operations.delete(job.job_id, reason=reason))
    if as_json:
        print_json(_changed_document(changed, runtime.now()))
    else:
        effective = when(changed.effective_from, runtime.now())
        click.echo(f"deleted {job.name} ({job.job_id}); nothing starts from {effective} on")
