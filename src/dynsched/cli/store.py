"""`dynsched init` and `dynsched stats`: make a store, and see how it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import click

from dynsched.bootstrap import init_store
from dynsched.cli.command import Command
from dynsched.cli.options import json_option, reason_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_fields, print_json, print_table, span, when
from dynsched.cli.values import DURATION
from dynsched.cli.visible import visible
from dynsched.domain.access import Action
from dynsched.domain.instants import minute_start, to_text
from dynsched.domain.run import RunState
from dynsched.errors import InvalidInput
from dynsched.services.documents import stats_document
from dynsched.services.store_views import QueueLevel
from dynsched.services.views import Stats

COUNT_MAX = 1_024
LAG_HEALTHY = timedelta(minutes=4)
LOOK_AHEAD_MAX = timedelta(minutes=15)


@click.command(
    "init",
    cls=Command,
    examples=(
        "init",
        "init --store sqlite:////var/lib/dynsched/jobs.db",
        "init --store 'dynamodb://prod?region=eu-central-1' --lanes 4",
    ),
)
@click.option("--shards", type=int, default=1, show_default=True, help="Parts of a minute.")
@click.option("--lanes", type=int, default=2, show_default=True, help="Parts of a queue.")
@click.option("--spread", type=int, default=1, show_default=True, help="Parts of a job's runs.")
@click.option(
    "--look-ahead",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How far ahead runs are made.",
)
@click.option(
    "--ended-index/--no-ended-index",
    default=True,
    show_default=True,
    help="Find ended runs by time too.",
)
@json_option
@pass_runtime
def init_command(
    runtime: Runtime,
    /,
    *,
    shards: int,
    lanes: int,
    spread: int,
    look_ahead: timedelta,
    ended_index: bool,
    as_json: bool,
) -> None:
    """Make the store's tables if they are missing; safe to repeat."""
    for name, count in (("shards", shards), ("lanes", lanes), ("spread", spread)):
        if not 1 <= count <= COUNT_MAX:
            raise InvalidInput(name, f"{count} is out of range", f"give 1 to {COUNT_MAX}")
    if not timedelta(seconds=1) <= look_ahead <= LOOK_AHEAD_MAX:
        raise InvalidInput("look_ahead", f"{span(look_ahead)} is out of range", "give 1s to 15m")
    runtime.may(Action.STORE_INIT)
    made = init_store(
        runtime.base,
        shards=shards,
        lanes=lanes,
        spread=spread,
        look_ahead=look_ahead,
        keep_ended=ended_index,
    )
    if as_json:
        print_json({"store": runtime.url, "made": made})
    else:
        state = "made" if made else "was there already; nothing changed"
        click.echo(f"{visible(runtime.url)}: {state}")


@click.command(
    "resize",
    cls=Command,
    examples=("resize --lanes 8", "resize --shards 4 --lanes 8 --store 'dynamodb://prod'"),
)
@click.option("--shards", type=int, help="Parts of a minute; docs/capacity.md has the formula.")
@click.option("--lanes", type=int, help="Parts of a queue.")
@click.option("--spread", type=int, help="Parts of a job's runs that are not of its schedule.")
@reason_option
@json_option
@pass_runtime
def resize_command(
    runtime: Runtime,
    /,
    *,
    shards: int | None,
    lanes: int | None,
    spread: int | None,
    reason: str,
    as_json: bool,
) -> None:
    """Raise or lower the store's counts while everything runs; nothing strands.

    They hold from a minute some minutes ahead, when every process has read the map again.
    Readers look at the larger count until the daily sweep has moved the last row.
    """
    if shards is None and lanes is None and spread is None:
        raise InvalidInput("shards", "nothing is to change", "give --shards, --lanes or --spread")
    resized = runtime.operations.resize(shards=shards, lanes=lanes, spread=spread, reason=reason)
    entry = resized.entries[-1]
    begins = minute_start(entry.from_minute)
    if as_json:
        print_json(
            {
                "shards": entry.shards,
                "lanes": entry.lanes,
                "spread": entry.spread,
                "holds_from": to_text(begins),
            }
        )
    else:
        counts = f"shards {entry.shards}, lanes {entry.lanes}, spread {entry.spread}"
        click.echo(f"{counts} from {when(begins, runtime.now())} on")


@click.command("stats", cls=Command, examples=("stats", "stats --json"))
@json_option
@pass_runtime
def stats_command(runtime: Runtime, /, *, as_json: bool) -> None:
    """Count what waits in each queue, who serves it, and how far the dispatcher is.

    Each level is counted up to 10,000; more shows as 10,000+.
    """
    stats = runtime.views.stats()
    if as_json:
        print_json(stats_document(stats))
    else:
        _print_stats(stats)


def _print_stats(stats: Stats) -> None:
    jobs = [f"{count:,} {state}" for state, count in stats.jobs.items()]
    sessions = stats.sessions
    print_fields(
        [
            ("jobs", ", ".join(jobs) + (" or more" if stats.jobs_at_least else "") or "none"),
            *((name, str(level)) for name, level in stats.runs.items()),
            (
                "workers",
                f"{sessions['alive']:,} alive with {stats.slots:,} slots,"
                f" {sessions['expired']:,} expired, {sessions['closed']:,} closed",
            ),
            ("dispatch", _dispatch_words(stats.cursor_lags)),
            ("tenants", f"{stats.tenants:,}"),
        ]
    )
    click.echo("")
    rows = [
        (
            queue.queue,
            str(queue.ready),
            "-" if queue.oldest_due_at is None else when(queue.oldest_due_at, stats.now),
            _served_by(queue),
        )
        for queue in stats.queues
    ]
    print_table(("QUEUE", "READY", "OLDEST DUE", "WORKERS"), rows, empty="no queues in use")
    for queue in stats.queues:
        for lack, count in sorted(queue.lacks.items()):
            runs = "1 run waits" if count == 1 else f"{count:,} runs wait"
            click.echo(f"at least {runs}: {visible(lack)}")


def _served_by(queue: QueueLevel) -> str:
    """Return how many workers serve a queue, or that functions do."""
    if not queue.sessions:
        return "functions" if queue.handed_off else "none: nobody serves it"
    return f"{queue.sessions:,}" + (" and functions" if queue.handed_off else "")


def _dispatch_words(lags: Mapping[str, timedelta | None]) -> str:
    """Return whether dispatchers keep up; a minute is closed only when nothing can come late."""
    known = {
        kind: lag for kind, lag in lags.items() if lag is not None and kind != RunState.LEASED.value
    }
    if not known:
        return "not begun: no dispatcher has run yet"
    words = ", ".join(f"{kind} {span(lag)} ago" for kind, lag in known.items())
    if max(known.values()) <= LAG_HEALTHY:
        return f"keeps up; every minute is closed up to: {words}"
    return f"behind, minutes closed only up to: {words}; does a dispatcher run?"
