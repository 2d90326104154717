"""`dynsched replay …`: bring many dead runs back: previewed, confirmed once, at a pace."""

from __future__ import annotations

import sys

import click

from dynsched.cli.command import Group
from dynsched.cli.options import (
    cursor_option,
    filter_argument,
    json_option,
    limit_option,
    reason_option,
    together,
)
from dynsched.cli.replay_show import (
    UNATTENDED,
    print_batch,
    print_batches,
    print_entries,
    progress,
)
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_status
from dynsched.cli.values import PAYLOAD, ParamType, is_terminal
from dynsched.domain.batch import BREAKER, RATE, Batch, BatchState, needs_of
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.job import Priority
from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.batch_documents import (
    batch_detail_document,
    batch_document,
    batch_entry_document,
)
from dynsched.services.documents import run_document

WATCH_S = 1.0
NOT_DONE = 1  # exit code of a watch that ends otherwise than with everything moved or skipped
NO_LIMIT = "none"


@click.group(
    "replay",
    cls=Group,
    examples=(
        "replay preview 'group:3f2a91c0de11 dead:>-1d'",
        "replay confirm BATCH --reason 'the disk has room again' --count 240 --wait",
        "replay status BATCH --watch",
    ),
)
def replay_group() -> None:
    """Bring many dead runs back: what a preview has frozen, once, at a pace.

    `dlq replay` brings back single ones. The batch is moved by `up` or `reaper`, not by this
    program: it goes on when this one has ended.
    """


class RateType(ParamType):
    """Runs a second, or `none` for no limit."""

    name = "rate"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Return the number; None for no limit."""
        if value is None or isinstance(value, float):
            return value
        if value == NO_LIMIT:
            return None
        try:
            return float(str(value))
        except ValueError:
            self.fail(f"{value!r} is no number of runs a second, nor {NO_LIMIT}", param, ctx)


PACE = RateType()
pace_options = together(
    click.option(
        "--rate",
        type=PACE,
        default=str(RATE),
        show_default=True,
        metavar="N",
        help="Runs a second, below 1 too; none is as fast as the store takes them.",
    ),
    click.option(
        "--canary", type=int, default=0, metavar="K", help="First so many; others if they end well."
    ),
    click.option("--canary-hold", is_flag=True, help="Pause after the canary however it went."),
    click.option(
        "--breaker",
        type=float,
        default=BREAKER,
        show_default=True,
        metavar="PART",
        help="Pause when more than this part of the last 50 moved is dead again; 1 is never.",
    ),
    click.option(
        "--priority",
        type=click.Choice([one.value for one in Priority]),
        default=Priority.BULK.value,
        show_default=True,
        help="What moved runs get.",
    ),
)


@replay_group.command(
    "preview",
    examples=(
        "replay preview job:import",
        "replay preview 'group:3f2a91c0de11 tenant:acme' --rate 2 --canary 5",
        "replay preview 'dead:>-1h' --limit 100 --json",
    ),
)
@filter_argument
@click.option("--reason", metavar="TEXT", default="", help="Why; confirm takes it too.")
@click.option("--limit", type=int, metavar="N", help="At most so many, the earliest instants.")
@pace_options
@json_option
@pass_runtime
def preview(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    reason: str,
    limit: int | None,
    rate: float | None,
    canary: int,
    canary_hold: bool,
    breaker: float,
    priority: str,
    as_json: bool,
) -> None:
    """Freeze the dead runs that fit FILTER as a draft, and show what a confirm would do.

    Nothing is moved. What dies later is not included. The draft expires after some minutes.
    """
    batch = runtime.operations.preview_replay(
        " ".join(words),
        reason=reason,
        limit=limit,
        rate=rate,
        canary=canary,
        canary_hold=canary_hold,
        breaker=breaker,
        priority=Priority(priority),
    )
    _show_draft(runtime, batch, as_json=as_json)


def _show_draft(runtime: Runtime, batch: Batch, *, as_json: bool) -> None:
    if as_json:
        print_json(batch_detail_document(runtime.views.batch(batch.batch_id)))
        return
    _print(runtime, batch.batch_id)
    needs = needs_of(batch)
    words = ["dynsched replay confirm", batch.batch_id]
    words += ["--reason WHY"] if needs.reason and not batch.reason else []
    words += [f"--count {batch.planned}"] if needs.count else []
    click.echo(f"nothing is moved yet; to start it: {' '.join(words)}")


def _print(runtime: Runtime, batch_id: str) -> None:
    detail = runtime.views.batch(batch_id)
    names = runtime.views.job_names(list(detail.batch.counts.get("job", {})))
    print_batch(detail, names, runtime.now())


@replay_group.command(
    "confirm",
    examples=(
        "replay confirm BATCH --reason 'the disk has room again'",
        "replay confirm BATCH --reason 'bug 71 is fixed' --count 240 --wait",
    ),
)
@click.argument("batch_id", metavar="BATCH")
@reason_option
@click.option("--count", type=int, help="The number of runs, typed: from 100 runs or 2 tenants on.")
@click.option("--wait", is_flag=True, help="Show its progress until it ends or pauses.")
@json_option
@pass_runtime
def confirm(
    runtime: Runtime,
    /,
    *,
    batch_id: str,
    reason: str,
    count: int | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Start the draft BATCH, once: a second confirm is told who was first.

    A terminal is asked, the more the batch touches; anything else has to give --reason and, for
    many runs or several tenants, --count. With --wait the exit code is 1 unless all went well.
    """
    if count is None and not as_json and is_terminal() and sys.stdin.isatty():
        reason, count = _ask(runtime, batch_id, reason)
    batch = runtime.operations.confirm_replay(batch_id, reason=reason, count=count)
    if not as_json:
        click.echo(f"started {batch_id}: {batch.planned:,} dead runs")
    if wait:
        _watch(runtime, batch_id, as_json=as_json)
    elif as_json:
        print_json(batch_document(batch))


def _ask(runtime: Runtime, batch_id: str, reason: str) -> tuple[str, int | None]:
    """Show the draft to whoever sits at the terminal, and ask for what its size calls for."""
    batch = runtime.views.batch(batch_id).batch
    if batch.state is not BatchState.DRAFT:
        return reason, None  # the verb says what is wrong
    _print(runtime, batch_id)
    needs = needs_of(batch)
    if needs.reason and not (reason or batch.reason):
        reason = click.prompt("why")
    if not needs.count:
        click.confirm(f"replay {batch.planned:,} dead runs now?", abort=True)
        return reason, None
    whose = f"{batch.tenants:,} tenants' " if batch.tenants > 1 else ""
    typed = click.prompt(f"type the number of {whose}runs to replay them", type=int)
    return reason, int(typed)


@replay_group.command(
    "status",
    examples=("replay status", "replay status BATCH --watch", "replay status BATCH --json"),
)
@click.argument("batch_id", metavar="[BATCH]", required=False)
@click.option("--watch", is_flag=True, help="Show its progress until it ends or pauses.")
@json_option
@pass_runtime
def status(runtime: Runtime, /, *, batch_id: str | None, watch: bool, as_json: bool) -> None:
    """Show BATCH, by default the newest: what it moved, skipped and left, and what died again.

    With --watch the exit code is 1 unless all went well.
    """
    if batch_id is None:
        found = runtime.views.batches(limit=1).items
        if not found:
            raise NotFound("batch", "newest", "`dynsched replay preview` makes one")
        batch_id = found[0].batch_id
    if watch:
        _watch(runtime, batch_id, as_json=as_json)
    elif as_json:
        print_json(batch_detail_document(runtime.views.batch(batch_id)))
    else:
        _print(runtime, batch_id)


def _watch(runtime: Runtime, batch_id: str, *, as_json: bool) -> None:
    """Show progress until a batch ends or pauses, then end with an exit code.

    One line is written over and over on a terminal; elsewhere a line for each change.
    """
    over = is_terminal() and not as_json
    shown, told = "", False
    while True:
        detail = runtime.views.batch(batch_id, sample=0)
        state = detail.batch.state
        line = progress(detail, bar=True)
        if over:
            click.echo(f"\r\x1b[2K{line}", nl=False)
        elif line != shown and not as_json:
            click.echo(line)
        shown = line
        if detail.unattended and not told:
            told = True
            click.echo(f"{chr(10) * over}warning: {UNATTENDED}", err=True)
        if state is not BatchState.RUNNING and (detail.batch.settled or not detail.batch.ended):
            break
        runtime.clock.wait(WATCH_S)
    if over:
        click.echo("")
    if as_json:
        print_json(batch_detail_document(runtime.views.batch(batch_id)))
    elif detail.batch.why:
        click.echo(f"{state.value}: {detail.batch.why}")
    well = state is BatchState.FINISHED and not detail.batch.failed
    click.get_current_context().exit(0 if well else NOT_DONE)


@replay_group.command("list", examples=("replay list", "replay list --limit 5 --json"))
@limit_option
@cursor_option
@json_option
@pass_runtime
def list_(runtime: Runtime, /, *, limit: int, cursor: str | None, as_json: bool) -> None:
    """List replay batches, newest first."""
    found = runtime.views.batches(limit=limit, cursor=cursor)
    if as_json:
        print_json([batch_document(batch) for batch in found.items])
    else:
        print_batches(found.items, runtime.now())
    print_status(found)


@replay_group.command(
    "entries", examples=("replay entries BATCH", "replay entries BATCH --outcome skipped --json")
)
@click.argument("batch_id", metavar="BATCH")
@click.option(
    "--outcome", type=click.Choice([one.value for one in Outcome]), help="Only these entries."
)
@limit_option
@cursor_option
@json_option
@pass_runtime
def entries(
    runtime: Runtime,
    /,
    *,
    batch_id: str,
    outcome: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List the entries of BATCH in the order of their moving: what became of each, and why."""
    found = runtime.views.batch_entries(
        batch_id, Outcome(outcome) if outcome else None, limit=limit, cursor=cursor
    )
    runs = [entry.run for entry in found.items if entry.run is not None]
    names = runtime.views.job_names([run.job_id for run in runs])
    if as_json:
        print_json(
            [
                batch_entry_document(
                    entry, job_name=None if entry.run is None else names.get(entry.run.job_id)
                )
                for entry in found.items
            ]
        )
    else:
        print_entries(found.items, names, runtime.now())
    print_status(found)


@replay_group.command("pause", examples=("replay pause BATCH --reason 'errors again'",))
@click.argument("batch_id", metavar="BATCH")
@reason_option
@json_option
@pass_runtime
def pause(runtime: Runtime, /, *, batch_id: str, reason: str, as_json: bool) -> None:
    """Stop moving entries of BATCH until it is resumed."""
    _changed(runtime.operations.pause_replay(batch_id, reason=reason), as_json=as_json)


@replay_group.command("resume", examples=("replay resume BATCH --reason 'the fix is out'",))
@click.argument("batch_id", metavar="BATCH")
@reason_option
@json_option
@pass_runtime
def resume(runtime: Runtime, /, *, batch_id: str, reason: str, as_json: bool) -> None:
    """Go on with the paused BATCH; after its breaker only with a reason."""
    _changed(runtime.operations.resume_replay(batch_id, reason=reason), as_json=as_json)


@replay_group.command("abort", examples=("replay abort BATCH", "replay abort BATCH --pull-back"))
@click.argument("batch_id", metavar="BATCH")
@click.option(
    "--pull-back",
    is_flag=True,
    help="Make moved runs dead again that nobody has tried yet; for ended batches too.",
)
@reason_option
@json_option
@pass_runtime
def abort(
    runtime: Runtime, /, *, batch_id: str, pull_back: bool, reason: str, as_json: bool
) -> None:
    """End BATCH: what was not moved stays dead, untouched."""
    batch = runtime.operations.abort_replay(batch_id, reason=reason, pull_back=pull_back)
    _changed(batch, as_json=as_json)


@replay_group.command("pace", examples=("replay pace BATCH 50", "replay pace BATCH none"))
@click.argument("batch_id", metavar="BATCH")
@click.argument("rate", type=PACE, metavar="RATE")
@reason_option
@json_option
@pass_runtime
def pace(
    runtime: Runtime, /, *, batch_id: str, rate: float | None, reason: str, as_json: bool
) -> None:
    """Move RATE runs of BATCH a second from now on; `none` is no limit."""
    _changed(runtime.operations.pace_replay(batch_id, rate, reason=reason), as_json=as_json)


def _changed(batch: Batch, *, as_json: bool) -> None:
    if as_json:
        print_json(batch_document(batch))
    else:
        click.echo(
            f"{batch.batch_id} is {batch.state.value}: {batch.moved:,} of {batch.planned:,} moved,"
            f" {batch.left:,} left"
        )


@replay_group.command("rest", examples=("replay rest BATCH",))
@click.argument("batch_id", metavar="BATCH")
@click.option("--reason", metavar="TEXT", default="", help="Why; default that of BATCH.")
@json_option
@pass_runtime
def rest(runtime: Runtime, /, *, batch_id: str, reason: str, as_json: bool) -> None:
    """Freeze what the ended BATCH did not move as a new draft."""
    _show_draft(
        runtime, runtime.operations.rest_of_replay(batch_id, reason=reason), as_json=as_json
    )


@replay_group.command("as-new", examples=("replay as-new RUN --reason 'the receipt was lost'",))
@click.argument("run_id", metavar="RUN")
@reason_option
@json_option
@pass_runtime
def as_new(runtime: Runtime, /, *, run_id: str, reason: str, as_json: bool) -> None:
    """Make a new run of the dead RUN's job and payload, with an idempotency key of its own.

    What RUN did may be done again. RUN is discarded; each of the two names the other.
    """
    run = runtime.views.masked(runtime.operations.replay_as_new(run_id, reason=reason))
    if as_json:
        print_json(run_document(run))
    else:
        click.echo(f"made {run.run_id}; {run_id} is discarded")


@replay_group.command(
    "edit", examples=("replay edit RUN --payload '{\"order\": 7}' --reason 'wrong order'",)
)
@click.argument("run_id", metavar="RUN")
@click.option("--payload", type=PAYLOAD, required=True, help="The new one; @file or @- reads it.")
@reason_option
@json_option
@pass_runtime
def edit(runtime: Runtime, /, *, run_id: str, payload: Json, reason: str, as_json: bool) -> None:
    """Bring the dead RUN back with another payload: same row, same idempotency key.

    The payload that it had is kept; `run show` has the difference.
    """
    if payload is None:
        raise InvalidInput("payload", "null is no payload", "give a JSON value")
    run = runtime.views.masked(runtime.operations.replay_edited(run_id, payload, reason=reason))
    if as_json:
        print_json(run_document(run))
    else:
        click.echo(f"replayed {run_id} with another payload")
