"""`dynsched next`: which instants a cron expression names, with their local offset."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from dynsched.cli.command import Command
from dynsched.cli.options import json_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import distance, print_json
from dynsched.cli.values import INSTANT
from dynsched.domain.instants import MILLISECOND, to_utc
from dynsched.domain.recurrence import Cron
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput

COUNT_MAX = 10_000


@click.command(
    "next",
    cls=Command,
    examples=(
        "next '30 2 * * *' --tz Europe/Berlin --count 3",
        "next '*/20 * * * * *' --seconds",
        "next 'H 3 * * *' --key nightly-report --json",
    ),
)
@click.argument("expr")
@click.option("--tz", metavar="ZONE", default="UTC", show_default=True, help="IANA zone.")
@click.option("--after", type=INSTANT, help="Strictly after this ISO instant; default now.")
@click.option("--count", type=int, default=5, show_default=True, help="How many, at most.")
@click.option(
    "--dst",
    metavar="RULE",
    default="vixie",
    show_default=True,
    help="Where clocks change: vixie, skip or both.",
)
@click.option("--seconds", is_flag=True, help="EXPR has a leading seconds field.")
@click.option("--key", default="", help="What H is hashed from: in a job, its id.")
@json_option
@pass_runtime
def next_command(
    runtime: Runtime,
    /,
    *,
    expr: str,
    tz: str,
    after: datetime | None,
    count: int,
    dst: str,
    seconds: bool,
    key: str,
    as_json: bool,
) -> None:
    """Show the next instants that the cron expression EXPR names.

    The JSON form is a list of ISO instants with the zone's offset. It needs no store.
    """
    if not 1 <= count <= COUNT_MAX:
        raise InvalidInput("count", f"{count} is out of range", f"give 1 to {COUNT_MAX}")
    cron = Cron.parse(expr, zone=tz, dst=dst, seconds=seconds, key=key)
    now = runtime.now()
    # What is truncated away must not let the instant itself in again.
    start = now if after is None else to_utc(after, "after")
    found = list(cron.instants(start + MILLISECOND, _LAST, count))
    zone = zone_clock(cron.zone).info
    if as_json:
        print_json([at.astimezone(zone).isoformat() for at in found])
        return
    click.echo(cron.describe())
    for at in found:
        local = at.astimezone(zone)
        click.echo(f"{local.isoformat()}  {local:%a}  {distance(at, now)}")
    if len(found) < count:
        click.echo("(no further ones)" if found else "(none)")


_LAST = datetime.fromisoformat("2199-12-31T23:59:59+00:00") + timedelta(seconds=1)
