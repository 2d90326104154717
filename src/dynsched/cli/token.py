"""`dynsched token …`: what programs show to the JSON API."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from dynsched.cli.command import Group
from dynsched.cli.options import cursor_option, json_option, limit_option, reason_option
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_status, print_table, when
from dynsched.cli.values import DURATION
from dynsched.domain.access import Role
from dynsched.domain.durations import duration_text
from dynsched.domain.token import LIFE, Token
from dynsched.services.documents import token_document


@click.group(
    "token",
    cls=Group,
    examples=("token create ci --grants operator --tenant acme", "token list", "token revoke ci"),
)
def token_group() -> None:
    """Make, list and revoke the tokens that programs show to the JSON API."""


@token_group.command(
    "create",
    examples=(
        "token create graphs",
        "token create ci --grants operator --tenant acme --expires 30d",
    ),
)
@click.argument("name")
@click.option(
    "--grants",
    type=click.Choice([role.value for role in Role]),
    default=Role.VIEWER.value,
    show_default=True,
    help="What the bearer is trusted with (--role says with what role you make it).",
)
@click.option("--tenant", metavar="NAME", help="The one tenant that the bearer sees; default all.")
@click.option(
    "--expires",
    type=DURATION,
    default=duration_text(LIFE),
    show_default=True,
    help="How long it is good for.",
)
@reason_option
@json_option
@pass_runtime
def create(
    runtime: Runtime,
    /,
    *,
    name: str,
    grants: str,
    tenant: str | None,
    expires: timedelta,
    reason: str,
    as_json: bool,
) -> None:
    """Make the token NAME and show it, once: the store keeps no more than its hash.

    The audit names who shows it by NAME, so a name is never given twice.
    """
    made = runtime.operations.create_token(
        name, role=Role(grants), tenant=tenant, life=expires, reason=reason
    )
    if as_json:
        print_json({**token_document(made.token), "token": made.text})
    else:
        click.echo(made.text)
        click.echo(f"shown this once; {_words(made.token, runtime.now())}", err=True)


def _words(token: Token, now: datetime) -> str:
    whose = "all tenants" if token.tenant is None else f"tenant {token.tenant}"
    return f"{token.name} is {token.role.value} of {whose} until {when(token.expires_at, now)}"


@token_group.command("list", examples=("token list", "token list --json"))
@limit_option
@cursor_option
@json_option
@pass_runtime
def list_(runtime: Runtime, /, *, limit: int, cursor: str | None, as_json: bool) -> None:
    """List tokens, those too that have expired or were revoked; never their secrets."""
    found = runtime.views.tokens(limit=limit, cursor=cursor)
    now = runtime.now()
    if as_json:
        print_json([token_document(token) for token in found.items])
    else:
        rows = [
            (
                one.name,
                one.role.value,
                one.tenant or "all",
                when(one.expires_at, now),
                one.why_not(now) or "good",
                one.created_by,
            )
            for one in found.items
        ]
        heads = ("NAME", "ROLE", "TENANT", "EXPIRES", "STATE", "MADE BY")
        print_table(heads, rows, empty="no tokens")
    print_status(found)


@token_group.command("revoke", examples=("token revoke ci --reason 'it was in a log'",))
@click.argument("name")
@reason_option
@json_option
@pass_runtime
def revoke(runtime: Runtime, /, *, name: str, reason: str, as_json: bool) -> None:
    """Revoke the token NAME: the next request that shows it is refused."""
    token = runtime.operations.revoke_token(name, reason=reason)
    if as_json:
        print_json(token_document(token))
    else:
        click.echo(f"revoked {token.name}")
