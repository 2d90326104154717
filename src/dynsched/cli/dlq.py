"""`dynsched dlq …`: the dead-letter queue: look, replay, discard, restore."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import click

from dynsched.cli.command import Group, as_typed, print_error
from dynsched.cli.filters import rows_examined, run_terms
from dynsched.cli.options import (
    filter_argument,
    json_option,
    paging_options,
    reason_option,
    tenant_filter,
)
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.show import print_dead, print_run_detail
from dynsched.cli.tables import print_json, print_status
from dynsched.domain.filters import GROUPS, parse, term_text
from dynsched.domain.run import Run, RunState
from dynsched.errors import DynschedError, IllegalTransition, InvalidInput, StoreError
from dynsched.services.documents import run_detail_document, run_document

TERM = re.compile(r"@|-?[a-z][a-z_.]*:")  # how a filter's term begins, and no id of a run


@click.group(
    "dlq",
    cls=Group,
    examples=("dlq list", "dlq show RUN_ID", "dlq replay RUN_ID"),
)
def dlq_group() -> None:
    """Triage dead runs: look at them, replay, discard or restore them."""


@dlq_group.command(
    "list",
    examples=(
        "dlq list",
        "dlq list 'dead:>-1h err:timeout'",
        "dlq list group:3f2a91c0de11",
        "dlq list --discarded",
    ),
)
@filter_argument
@tenant_filter
@click.option("--job", metavar="NAME", help="Only this job's; a name or an id.")
@click.option(
    "--group", "--signature", "group", metavar="GROUP", help="Only of this group of errors."
)
@click.option("--discarded", is_flag=True, help="Those that were discarded, instead.")
@paging_options
@json_option
@pass_runtime
def list_(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    tenant: str | None,
    job: str | None,
    group: str | None,
    discarded: bool,
    limit: int,
    cursor: str | None,
    examine: int | None,
    as_json: bool,
) -> None:
    """List the dead runs that fit FILTER, newest first; equal errors have the same group."""
    terms = [*words, *run_terms(runtime, job=job, tenant=tenant)]
    if group:
        terms.append(term_text("group", group))
    if discarded:
        terms.append(term_text("is", "discarded"))
    found = runtime.views.find_runs(
        parse(" ".join(terms), GROUPS),
        limit=limit,
        cursor=cursor,
        examine=rows_examined(examine, limit),
    )
    names = runtime.views.job_names([run.job_id for run in found.items])
    if as_json:
        print_json([run_document(run, job_name=names.get(run.job_id)) for run in found.items])
    else:
        print_dead(found.items, names, runtime.now(), more=found.cursor is not None)
    print_status(found)


@dlq_group.command("show", examples=("dlq show RUN_ID",))
@click.argument("run_id")
@json_option
@pass_runtime
def show(runtime: Runtime, /, *, run_id: str, as_json: bool) -> None:
    """Show the dead run RUN_ID with the error of each attempt."""
    detail = runtime.views.show_run(run_id)
    if detail.run.state is not RunState.DEAD:
        state = detail.run.state.value
        raise IllegalTransition(f"run {run_id} is not dead: it is {state} (`dynsched run show`)")
    if as_json:
        print_json(run_detail_document(detail))
    else:
        print_run_detail(detail, runtime.now())


@dlq_group.command(
    "replay",
    examples=("dlq replay RUN_ID --reason 'the disk has room'", "dlq replay RUN_ID RUN_ID --json"),
)
@click.argument("run_ids", nargs=-1, required=True, metavar="RUN_ID...")
@reason_option
@json_option
@pass_runtime
def replay(runtime: Runtime, /, *, run_ids: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Bring dead runs back: the same row and idempotency key, earlier attempts kept.

    Many, or all that fit a filter, are better brought back at a pace: see `replay preview`.
    """
    _refuse_filter(run_ids, "`dynsched replay preview FILTER` replays what fits")
    verb = partial(runtime.operations.replay, reason=reason)
    _each(runtime, run_ids, verb, "replayed", as_json=as_json)


@dlq_group.command("discard", examples=("dlq discard RUN_ID",))
@click.argument("run_ids", nargs=-1, required=True, metavar="RUN_ID...")
@reason_option
@json_option
@pass_runtime
def discard(runtime: Runtime, /, *, run_ids: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Hide dead runs; they can be restored until they expire."""
    _refuse_filter(run_ids, "`dynsched dlq list FILTER` shows the ids")
    verb = partial(runtime.operations.discard, reason=reason)
    _each(runtime, run_ids, verb, "discarded", as_json=as_json)


@dlq_group.command("restore", examples=("dlq restore RUN_ID",))
@click.argument("run_ids", nargs=-1, required=True, metavar="RUN_ID...")
@reason_option
@json_option
@pass_runtime
def restore(runtime: Runtime, /, *, run_ids: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Show discarded runs again."""
    verb = partial(runtime.operations.restore, reason=reason)
    _each(runtime, run_ids, verb, "restored", as_json=as_json)


def _refuse_filter(words: tuple[str, ...], mend: str) -> None:
    """Say what to do instead to somebody who gave a filter where ids are wanted.

    Raises:
        InvalidInput: one of the words is a term of a filter.
    """
    for word in words:
        if TERM.match(word):
            raise InvalidInput("run", f"{word!r} is a filter and no run id", mend)


def _each(
    runtime: Runtime,
    run_ids: tuple[str, ...],
    verb: Callable[[str], Run],
    done: str,
    *,
    as_json: bool,
) -> None:
    """Do it to one run after the other; a refused one stops no other and makes the call fail.

    A failing store does: the others would only wait for it one by one.
    """
    ctx = click.get_current_context()
    runs: list[Run] = []
    code = 0
    for run_id in dict.fromkeys(run_ids):
        try:
            runs.append(runtime.views.masked(verb(run_id)))
        except StoreError:
            raise
        except DynschedError as error:
            print_error(str(as_typed(error, ctx.command.params)))
            code = code or error.exit_code
            continue
        if not as_json:
            click.echo(f"{done} {run_id}")
    if as_json:
        print_json([run_document(run) for run in runs])
    ctx.exit(code)
