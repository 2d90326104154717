"""`dynsched tenant …`: caps of tenants."""

from __future__ import annotations

import click

from dynsched.cli.command import Group
from dynsched.cli.options import json_option, reason_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_notes, print_table
from dynsched.cli.values import CAP
from dynsched.domain.filters import term_text
from dynsched.services.documents import tenant_document


@click.group("tenant", cls=Group, examples=("tenant list", "tenant set acme --max-running 5"))
def tenant_group() -> None:
    """See tenants and cap them."""


@tenant_group.command(
    "set", examples=("tenant set acme --max-running 5", "tenant set acme --max-running none")
)
@click.argument("tenant", metavar="NAME")
@click.option(
    "--max-running", type=CAP, required=True, help="Most of its runs leased at once, or none."
)
@reason_option
@json_option
@pass_runtime
def set_(
    runtime: Runtime, /, *, tenant: str, max_running: int | None, reason: str, as_json: bool
) -> None:
    """Cap how many runs of the tenant NAME run at once; workers follow within five seconds."""
    found = runtime.operations.set_tenant(tenant, max_running=max_running, reason=reason)
    if as_json:
        print_json(tenant_document(found))
    else:
        cap = "no cap" if found.max_running is None else f"at most {found.max_running} running"
        click.echo(f"{found.name}: {cap}")
    if not runtime.views.find_jobs(term_text("tenant", found.name), limit=1).items:
        click.echo(f"note: no job of tenant {found.name} was found; is it its name?", err=True)


@tenant_group.command("list", examples=("tenant list", "tenant list --json"))
@json_option
@pass_runtime
def list_(runtime: Runtime, /, *, as_json: bool) -> None:
    """List the tenants that have jobs or settings."""
    found = runtime.views.list_tenants()
    if as_json:
        print_json([tenant_document(tenant) for tenant in found.items])
    else:
        rows = [
            (one.name, "none" if one.max_running is None else str(one.max_running))
            for one in found.items
        ]
        print_table(("TENANT", "MAX RUNNING"), rows, empty="no tenants")
    print_notes(found.notes, more=found.more)
