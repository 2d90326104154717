"""`dynsched handoff …`: which ready runs are told of to functions, and by which queues."""

from __future__ import annotations

from collections.abc import Iterable

import click

from dynsched.cli.command import Group
from dynsched.cli.options import json_option, reason_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_table
from dynsched.cli.visible import visible
from dynsched.domain.job import Priority
from dynsched.errors import InvalidInput
from dynsched.services.documents import hand_off_document

PRIORITY = click.Choice([priority.value for priority in Priority])
EXAMPLE_URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-main-high"


@click.group(
    "handoff",
    cls=Group,
    examples=("handoff list --depth", f"handoff set main high {EXAMPLE_URL}", "handoff off main"),
)
def handoff_group() -> None:
    """Hand ready runs off to functions by messages; docs/aws.md tells how it works."""


@handoff_group.command(
    "list", examples=("handoff list", "handoff list --depth", "handoff list --json")
)
@click.option("--depth", is_flag=True, help="Ask each queue how many messages wait there.")
@json_option
@pass_runtime
def list_(runtime: Runtime, /, *, depth: bool, as_json: bool) -> None:
    """List the queues of messages; runs of a queue and priority without one are pulled only."""
    _print(runtime, as_json=as_json, depth=depth)


@handoff_group.command("set", examples=(f"handoff set main high {EXAMPLE_URL}",))
@click.argument("queue")
@click.argument("priority", type=PRIORITY)
@click.argument("url")
@reason_option
@json_option
@pass_runtime
def set_(
    runtime: Runtime, /, *, queue: str, priority: str, url: str, reason: str, as_json: bool
) -> None:
    """Send messages about the ready runs of QUEUE with PRIORITY to the SQS queue URL.

    Every process follows within half a minute. A deployed dispatcher sets its own queues again
    when it starts.
    """
    runtime.operations.set_message_queue(queue, priority=Priority(priority), url=url, reason=reason)
    if runtime.url.startswith("sqlite:"):
        click.echo("note: a function cannot reach this store, which is a file", err=True)
    _print(runtime, as_json=as_json)


@handoff_group.command(
    "off", examples=("handoff off main bulk", "handoff off main", "handoff off --all")
)
@click.argument("queue", required=False)
@click.argument("priority", type=PRIORITY, required=False)
@click.option("--all", "everything", is_flag=True, help="End the hand-off of all queues.")
@reason_option
@json_option
@pass_runtime
def off(
    runtime: Runtime,
    /,
    *,
    queue: str | None,
    priority: str | None,
    everything: bool,
    reason: str,
    as_json: bool,
) -> None:
    """End the hand-off of a QUEUE, or of one PRIORITY of it; its runs are only pulled then."""
    if everything == (queue is not None):
        raise InvalidInput("QUEUE", "it is not clear which", "name a queue, or give --all")
    runtime.operations.drop_message_queues(
        queue, priority=None if priority is None else Priority(priority), reason=reason
    )
    _print(runtime, as_json=as_json)


def _print(runtime: Runtime, *, as_json: bool, depth: bool = False) -> None:
    lines = runtime.views.hand_offs(depth=depth)
    if as_json:
        print_json([hand_off_document(line) for line in lines])
        return
    heads: tuple[str, ...] = ("QUEUE", "PRIORITY", "URL")
    rows: list[tuple[str, ...]] = [(one.queue, one.priority.value, one.url) for one in lines]
    if depth:
        heads = (*heads, "WAITING")
        counts = ["?" if one.waiting is None else f"{one.waiting:,}" for one in lines]
        rows = [(*row, count) for row, count in zip(rows, counts, strict=True)]
    print_table(heads, rows, empty="nothing is handed off; workers pull all runs")
    _print_problems(one.problem for one in lines)


def _print_problems(problems: Iterable[str]) -> None:
    for problem in dict.fromkeys(filter(None, problems)):
        click.echo(f"note: {visible(problem)}", err=True)
