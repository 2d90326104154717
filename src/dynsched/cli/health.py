"""`dynsched health` and `dynsched groups`: what a triage looks at first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import click

from dynsched.cli.command import Command
from dynsched.cli.options import cursor_option, filter_argument, json_option, limit_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import (
    coloured,
    distance,
    print_fields,
    print_json,
    print_sentence,
    print_status,
    print_table,
    span,
)
from dynsched.cli.values import DURATION, is_terminal
from dynsched.domain.filters import GROUPS, parse
from dynsched.domain.health import Beat, Delay, ErrorGroup, Grade, Health
from dynsched.errors import InvalidInput
from dynsched.services.health_documents import group_document, health_document

BAD = 1
WATCH_LEAST = timedelta(seconds=1)
COLOURS = {Grade.OK: "green", Grade.WARN: "yellow", Grade.BAD: "red"}
NAMES_SHOWN = 3


@click.command("health", cls=Command, examples=("health", "health --watch 2s", "health --json"))
@click.option("--watch", type=DURATION, help="Show it again so often, until Ctrl-C.")
@json_option
@pass_runtime
def health_command(runtime: Runtime, /, *, watch: timedelta | None, as_json: bool) -> int:
    """Say whether runs are late, stuck or failing, and for whom, then the figures.

    All who look share one look at the store in five seconds; what is counted by the minute (tries,
    starts, deaths) may trail the lists by some seconds. Exits with 1 if anything is bad; a
    warning is no failure. DYNSCHED_HEALTH_… (docs/settings.md) say what is a warning and what bad.
    """
    if watch is not None and watch < WATCH_LEAST:
        raise InvalidInput("watch", "too often", "give 1s or more")
    while True:
        health = runtime.views.health()
        if watch is not None and is_terminal() and not as_json:
            click.clear()
        if as_json:
            print_json(health_document(health))
        else:
            _print_health(health)
        if watch is None:
            return BAD if health.worst is Grade.BAD else 0
        runtime.clock.wait(watch.total_seconds())


@click.command(
    "groups",
    cls=Command,
    examples=("groups", "groups 'tenant:acme dead:>-1h'", "groups err:timeout --json"),
)
@filter_argument
@limit_option
@cursor_option
@json_option
@pass_runtime
def groups_command(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List the errors that runs died of, those with most runs first.

    Runs whose errors differ only in numbers, ids, quoted texts, addresses and paths are one group.
    With FILTER the groups are those of the dead runs that fit. `dlq list group:GROUP` lists a
    group's runs, `replay preview group:GROUP` is the way to bring them all back.
    """
    given = parse(" ".join(words), GROUPS)
    found = runtime.views.groups(given, limit=limit, cursor=cursor)
    if as_json:
        print_json([group_document(group) for group in found.items])
    else:
        _print_groups(runtime, found.items, more=found.cursor is not None)
    print_status(found)


def _print_health(health: Health) -> None:
    for verdict in health.verdicts:
        level = f"{verdict.level.value:<4}"
        shown = click.style(level, fg=COLOURS[verdict.level]) if coloured() else level
        head = f"{verdict.topic.value:<6}  "
        print_sentence(verdict.sentence, head=f"{shown}  {head}", indent=len(level) + 2 + len(head))
    click.echo("")
    depth = ", ".join(f"{level} {name}" for name, level in health.depth.items() if level.count)
    jobs = [f"{count:,} {state}" for state, count in health.jobs_by_state.items()]
    print_fields(
        [
            ("delay", _delay_words(health.delay)),
            ("waiting", f"{depth or 'none'}; {health.ready} in all, due later ones included"),
            ("leased", f"{health.leased} in {health.slots:,} slots{_functions(health)}"),
            ("retries", str(health.failed)),
            ("dead", f"{health.dead}, {health.dead_per_hour:,} of them in the last hour"),
            ("discarded", str(health.discarded)),
            ("workers", _worker_words(health)),
            ("dispatch", _beat_words(health, health.dispatchers)),
            ("reaper", _beat_words(health, health.reapers)),
            ("jobs", ", ".join(jobs) + (" or more" if health.jobs_at_least else "") or "none"),
        ]
    )
    _print_tenants(health)
    if health.top_groups:
        click.echo("")
        rows = [
            (group.signature, str(group.count), _ago(health, group), group.error)
            for group in health.top_groups
        ]
        print_table(("GROUP", "DEAD", "LAST", "ERROR"), rows, empty="")
    click.echo("")
    click.echo(
        f"looked {span(health.age)} ago: {health.cost.requests:,} requests,"
        f" {health.cost.rows:,} rows, {span(health.cost.took)}"
    )


def _print_tenants(health: Health) -> None:
    if not health.top_tenants:
        return
    click.echo("")
    rows = [
        (
            line.tenant,
            str(line.waiting),
            f"{line.running:,}" + ("" if line.cap is None else f" of {line.cap:,}"),
            f"{line.started:,}",
            f"{line.dead:,}",
        )
        for line in health.top_tenants
    ]
    print_table(("TENANT", "WAITING", "RUNNING", "TRIES 5m", "DIED 1h"), rows, empty="")


def _delay_words(delay: Delay) -> str:
    if delay.p50 is None or delay.p95 is None or delay.max is None:
        return "no run started in the last 5 min"
    return (
        f"p50 {span(delay.p50)}, p95 {span(delay.p95)}, longest {span(delay.max)}"
        f" ({delay.samples:,} first tries in the last 5 min)"
    )


def _functions(health: Health) -> str:
    functions = health.leased_by_functions
    return f", {functions} of them by functions" if functions.count else ""


def _worker_words(health: Health) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in health.sessions.items())


def _beat_words(health: Health, beats: Iterable[Beat]) -> str:
    listed = [
        f"{beat.name} {distance(beat.at, health.at)}" + (f" ({beat.note})" if beat.note else "")
        for beat in beats
    ]
    return "; ".join(listed) or "never heard"


def _ago(health: Health, group: ErrorGroup) -> str:
    return distance(group.last_seen, health.at)


def _print_groups(runtime: Runtime, groups: Iterable[ErrorGroup], *, more: bool) -> None:
    found, now = list(groups), runtime.now()
    names = runtime.views.job_names(
        list({job_id for group in found for job_id in list(group.jobs)[:NAMES_SHOWN]})
    )
    rows = [
        (
            group.signature,
            str(group.count),
            distance(group.first_seen, now),
            distance(group.last_seen, now),
            f"{group.again:,}" if group.again else "-",
            _most(group.tenants),
            _most({names.get(job_id, job_id): count for job_id, count in group.jobs.items()}),
            group.error,
        )
        for group in found
    ]
    headers = ("GROUP", "DEAD", "FIRST", "LAST", "AGAIN", "TENANTS", "JOBS", "ERROR")
    print_table(headers, rows, empty="no dead runs", more=more)


def _most(counts: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    listed = list(counts)
    more = len(listed) - NAMES_SHOWN
    shown = ", ".join(listed[:NAMES_SHOWN])
    return f"{shown} +{more}" if more > 0 else shown
