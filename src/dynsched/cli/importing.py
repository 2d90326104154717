"""`dynsched import crontab`: take over a machine's own schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dynsched.cli.command import Group, print_error
from dynsched.cli.crontab_import import (
    Choices,
    Fate,
    Plan,
    carry_out,
    lines_of,
    machine_zone,
    plan_document,
    plan_import,
)
from dynsched.cli.lacks import warn_of_lack
from dynsched.cli.options import json_option, reason_option, tenant_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_table, when
from dynsched.cli.values import DURATION_OR_NONE, read_file
from dynsched.cli.visible import visible
from dynsched.domain.crontab import CrontabNote, parse_crontab
from dynsched.domain.job import CatchUp, Overlap, Policies
from dynsched.domain.masking import Masker
from dynsched.domain.retry import RetryPolicy
from dynsched.errors import InvalidInput
from dynsched.services.job_views import coming


@click.group("import", cls=Group, examples=("import crontab /etc/crontab --system --dry-run",))
def import_group() -> None:
    """Take over what another scheduler runs."""


@import_group.command(
    "crontab",
    examples=(
        "import crontab mine.cron --dry-run",
        "import crontab /etc/crontab --system --tenant ops",
        "import crontab - --skip-bad < mine.cron",
    ),
)
@click.argument("file")
@click.option("--system", is_flag=True, help="Lines have a user before the command.")
@click.option("--dry-run", is_flag=True, help="Only show what would be made.")
@click.option("--skip-bad", is_flag=True, help="Import the good lines in spite of bad ones.")
@click.option("--replace", "replaces", is_flag=True, help="Change jobs of that name that differ.")
@click.option("--tz", metavar="ZONE", help="Zone of lines without CRON_TZ; default this machine's.")
@tenant_option
@click.option("--queue", default="main", show_default=True, metavar="NAME")
@click.option("--max-attempts", type=int, default=1, show_default=True)
@click.option("--timeout", type=DURATION_OR_NONE, default="none", show_default=True)
@click.option("--overlap", type=click.Choice([one.value for one in Overlap]), default="skip")
@click.option("--catch-up", type=click.Choice([one.value for one in CatchUp]), default="latest")
@reason_option
@json_option
@pass_runtime
def crontab(
    runtime: Runtime, /, *, file: str, system: bool, dry_run: bool, skip_bad: bool, **given: Any
) -> None:
    """Make a job of each line of the crontab FILE (- reads standard input).

    All lines or none: a bad one is named with the reason and nothing is imported, unless
    --skip-bad. What cron itself silently misreads is refused or warned of. A second import makes
    no doubles: a job of the same name is left alone, or changed with --replace.

    As under cron, a command has no time limit and is not repeated when it fails; other than under
    cron, it is not started while its last run still goes on, and after an outage it runs once.
    Workers run the commands only when started with --allow-commands.
    """
    plan = _plan(runtime, file, _choices(file, given), system=system)
    refused = bool(plan.problems) and not skip_bad
    if not dry_run and not refused:
        plan = replace(plan, planned=tuple(carry_out(plan, runtime.operations, given["reason"])))
    imported = not dry_run and not refused
    plan = _masked(plan, runtime.views.masker)
    if given["as_json"]:
        print_json(plan_document(plan, runtime.now(), dry_run=dry_run, imported=imported))
    else:
        _print_plan(runtime, plan, dry_run=dry_run, refused=refused)
    _print_notes(plan, file, refused=refused)
    if plan.planned and not refused:
        warn_of_lack(runtime, given["queue"], "command")
    if refused:
        click.get_current_context().exit(InvalidInput.exit_code)


def _masked(plan: Plan, masker: Masker) -> Plan:
    """Return a plan to show: a crontab's commands often hold passwords."""
    return replace(
        plan,
        planned=tuple(
            replace(one, entry=replace(one.entry, command=masker.text(one.entry.command)))
            for one in plan.planned
        ),
    )


def _origin(file: str) -> str:
    name = "" if file == "-" else Path(file).name
    return name if name.isprintable() and len(name) <= 128 else ""


def _choices(file: str, given: Mapping[str, Any]) -> Choices:
    return Choices(
        tenant=given["tenant"],
        queue=given["queue"],
        zone=given["tz"],
        policies=Policies(
            retry=RetryPolicy(max_attempts=given["max_attempts"]),
            timeout=given["timeout"],
            overlap=Overlap(given["overlap"]),
            catch_up=CatchUp(given["catch_up"]),
        ),
        origin=_origin(file),
        replace=given["replaces"],
    )


def _plan(runtime: Runtime, file: str, choices: Choices, *, system: bool) -> Plan:
    # A byte that is no UTF-8 makes a lone surrogate, which refuses its own line only.
    text = read_file(file, "FILE").decode("utf-8", "surrogateescape")
    crontab_file = parse_crontab(text, system=system, filename=file)
    if choices.zone is None:
        zone = machine_zone(runtime.environment)
        choices = replace(choices, zone=zone or "UTC")
        if zone is None:
            reason = "this machine's zone is unknown; UTC is used (--tz)"
            note = CrontabNote(line=1, field="zone", reason=reason)
            crontab_file = replace(crontab_file, warnings=(note, *crontab_file.warnings))
    return plan_import(crontab_file, choices, operations=runtime.operations)


def _print_plan(runtime: Runtime, plan: Plan, *, dry_run: bool, refused: bool) -> None:
    """Write a table of what was, or would be, imported."""
    if refused and not dry_run:
        return
    now = runtime.now()
    rows = []
    for planned in plan.planned:
        ahead = coming(planned.job, now, 1)
        user = f" (as {planned.entry.user})" if planned.entry.user else ""
        rows.append(
            (
                str(planned.entry.line),
                planned.fate.value,
                planned.spec.name,
                when(ahead[0], now) if ahead else "-",
                planned.entry.expr,
                planned.entry.command + user,
            )
        )
    print_table(
        ("LINE", "JOB IS", "NAME", "NEXT", "SCHEDULE", "COMMAND"), rows, empty="no lines to import"
    )
    click.echo(_summary(plan, dry_run=dry_run))


def _summary(plan: Plan, *, dry_run: bool) -> str:
    """Return what became of the lines, or would.

    >>> _summary(Plan(planned=(), problems=()), dry_run=False)
    '0 imported'
    """
    fates = Counter(planned.fate for planned in plan.planned)
    counts = (
        ("would be imported" if dry_run else "imported", fates[Fate.NEW]),
        ("would be changed" if dry_run else "changed", fates[Fate.REPLACED]),
        ("there already", fates[Fate.UNCHANGED]),
        ("left alone", fates[Fate.EXISTS]),
        ("left out", len(plan.problems)),
    )
    shown = [
        f"{count:,} {word}" for number, (word, count) in enumerate(counts) if count or number == 0
    ]
    return ", ".join(shown)


def _print_notes(plan: Plan, file: str, *, refused: bool) -> None:
    for text in lines_of(plan.warnings):
        click.echo(f"warning: {visible(text)}", err=True)
    left = [planned for planned in plan.planned if planned.fate is Fate.EXISTS]
    for planned in left:
        text = (
            f"line {planned.entry.line}: job {planned.spec.name} has another"
            f" {' and '.join(planned.differs)} and was left alone (--replace changes it)"
        )
        click.echo(f"warning: {visible(text)}", err=True)
    for text in lines_of(plan.problems):
        click.echo(f"bad {visible(text)}", err=True)
    if refused:
        count = len(plan.problems)
        lines = "1 line" if count == 1 else f"{count} lines"
        name = "standard input" if file == "-" else file
        print_error(
            f"{name}: {lines} cannot be imported, so nothing was (mend them, or --skip-bad leaves"
            " them out)"
        )
