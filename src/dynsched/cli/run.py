"""`dynsched run …`: what ran, runs and will run, and why it did not."""

from __future__ import annotations

from datetime import timedelta

import click

from dynsched.cli.command import Group
from dynsched.cli.filters import rows_examined, run_terms
from dynsched.cli.options import (
    filter_argument,
    json_option,
    paging_options,
    reason_option,
    tenant_filter,
)
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.show import print_run_detail, print_runs
from dynsched.cli.tables import print_json, print_status
from dynsched.cli.values import DURATION, PAYLOAD, since_instant
from dynsched.domain.filters import term_text
from dynsched.domain.instants import to_text
from dynsched.domain.run import RunState
from dynsched.errors import InvalidInput
from dynsched.services.callbacks import Answer
from dynsched.services.documents import run_detail_document, run_document


@click.group(
    "run",
    cls=Group,
    examples=("run list --job nightly", "run list --state dead --since 2d", "run show RUN_ID"),
)
def run_group() -> None:
    """See what ran, runs and will run, and why it did not."""


@run_group.command(
    "list",
    examples=(
        "run list",
        "run list --job nightly --tenant acme",
        "run list 'state:dead err:timeout -tenant:acme ended:>-2d'",
        "run list @late",
        "run list --state skipped --state cancelled --since 6h --json",
    ),
)
@filter_argument
@click.option(
    "--job",
    "job",
    metavar="NAME",
    help="This job's history; a name, or an id (of a deleted job too).",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in RunState]),
    help="Only in this state; repeatable.",
)
@tenant_filter
@click.option(
    "--since",
    metavar="WHEN",
    help="Leave out what ended before: a duration back (6h) or an ISO instant; "
    "default 1h without --job.",
)
@paging_options
@json_option
@pass_runtime
def list_(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    job: str | None,
    states: tuple[str, ...],
    tenant: str | None,
    since: str | None,
    limit: int,
    cursor: str | None,
    examine: int | None,
    as_json: bool,
) -> None:
    """List the runs that fit FILTER, newest first; without one what waits, runs and ended lately.

    With --job its history. What a filter may say is in docs/filters.md.
    """
    now = runtime.now()
    terms = [*words, *run_terms(runtime, job=job, tenant=tenant)]
    if states:
        terms.append(term_text("state", *states))
    if since is not None:
        instant = since_instant(since, now, "--since")
        terms.append(f"-ended:<{to_text(instant)}")
    found = runtime.views.find_runs(
        " ".join(terms), limit=limit, cursor=cursor, examine=rows_examined(examine, limit)
    )
    names = runtime.views.job_names([run.job_id for run in found.items])
    lacks = runtime.views.lacks(found.items)
    if as_json:
        documents = [
            run_document(run, job_name=names.get(run.job_id), lack=lacks.get(run.run_id, ""))
            for run in found.items
        ]
        print_json(documents)
    else:
        print_runs(found.items, names, now, lacks, more=found.cursor is not None)
    print_status(found)


@run_group.command(
    "show",
    examples=("run show RUN_ID", "run show RUN_ID --unmask --reason 'order 7 is missing' --json"),
)
@click.argument("run_id")
@click.option("--unmask", is_flag=True, help="Show secrets too; needs admin and a --reason.")
@click.option("--reason", metavar="TEXT", default="", help="With --unmask: why; kept in the audit.")
@json_option
@pass_runtime
def show(runtime: Runtime, /, *, run_id: str, unmask: bool, reason: str, as_json: bool) -> None:
    """Show the run RUN_ID: its state, why, and each attempt with its error.

    What looks like a secret is shown as *** unless --unmask says why it must be seen.
    """
    if reason and not unmask:
        raise InvalidInput("reason", "nothing is unmasked", "give --unmask too")
    if unmask:
        detail = runtime.operations.unmask_run(run_id, reason)
    else:
        detail = runtime.views.show_run(run_id)
    if as_json:
        print_json(run_detail_document(detail))
    else:
        print_run_detail(detail, runtime.now())


token_option = click.option(
    "--token", metavar="TEXT", default="", help="The token that its work was given."
)


@run_group.command(
    "complete",
    examples=(
        "run complete RUN_ID --token TOKEN --output '{\"rows\": 3}'",
        "run complete RUN_ID --reason 'seen in the warehouse'",
    ),
)
@click.argument("run_id")
@token_option
@click.option("--output", type=PAYLOAD, help="What the work gave; JSON, @file or @- reads it.")
@reason_option
@json_option
@pass_runtime
def complete(
    runtime: Runtime, /, *, run_id: str, token: str, output: object, reason: str, as_json: bool
) -> None:
    """End the run RUN_ID, which waits for its callback, as done.

    Without --token by hand: the audit keeps who did it, and why.
    """
    _answered(runtime, run_id, token, Answer.done(output), reason, as_json=as_json)


@run_group.command(
    "fail",
    examples=(
        "run fail RUN_ID --token TOKEN --error-type OutOfStock --message 'no 7 left'",
        "run fail RUN_ID --permanent --reason 'its instance was terminated'",
    ),
)
@click.argument("run_id")
@token_option
@click.option(
    "--error-type", metavar="NAME", default="Failed", show_default=True, help="Kind of error."
)
@click.option("--message", metavar="TEXT", default="", help="What went wrong, in one line.")
@click.option("--permanent", is_flag=True, help="No try can succeed: the run is dead.")
@click.option("--retry-after", type=DURATION, help="Do not try again before so long.")
@reason_option
@json_option
@pass_runtime
def fail(
    runtime: Runtime,
    /,
    *,
    run_id: str,
    token: str,
    error_type: str,
    message: str,
    permanent: bool,
    retry_after: timedelta | None,
    reason: str,
    as_json: bool,
) -> None:
    """End the attempt of RUN_ID, which waits for its callback, as failed.

    Its retry policy says when it is tried again. Without --token by hand: the audit keeps who did
    it, and why.
    """
    answer = Answer.failed(error_type, message, permanent=permanent, retry_after=retry_after)
    _answered(runtime, run_id, token, answer, reason, as_json=as_json)


def _answered(
    runtime: Runtime, run_id: str, token: str, answer: Answer, reason: str, *, as_json: bool
) -> None:
    if token:
        run = runtime.operations.answer_run(run_id, token, answer)
    else:
        run = runtime.operations.end_run(run_id, answer, reason=reason)
    run = runtime.views.masked(run)
    if as_json:
        print_json(run_document(run))
    else:
        click.echo(f"{run.run_id} is {run.state.value}")


@run_group.command("cancel", examples=("run cancel RUN_ID", "run cancel RUN_ID --reason 'wrong'"))
@click.argument("run_id")
@reason_option
@json_option
@pass_runtime
def cancel(runtime: Runtime, /, *, run_id: str, reason: str, as_json: bool) -> None:
    """Cancel the run RUN_ID: at once if it waits; one that runs is asked to stop."""
    run = runtime.views.masked(runtime.operations.cancel(run_id, reason=reason))
    if as_json:
        print_json(run_document(run))
    elif run.terminal:
        click.echo(f"cancelled {run.run_id}")
    else:
        click.echo(f"asked the worker to stop {run.run_id}")
