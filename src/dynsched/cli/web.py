"""`dynsched web`: starts the web console, which is a package of its own; and who may log in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from dynsched.cli.command import Command
from dynsched.cli.console import find_console
from dynsched.cli.options import for_option, log_options
from dynsched.cli.process import Process
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.domain.access import Role
from dynsched.errors import InvalidInput

PORT = 8420
PORT_MAX = 65_535

OIDC_OPTIONS = (
    click.option(
        "--oidc-issuer",
        metavar="URL",
        default="",
        help="People log in by this OIDC provider; the secret is DYNSCHED_OIDC_CLIENT_SECRET.",
    ),
    click.option(
        "--oidc-client-id", metavar="ID", default="", help="This console, as the provider calls it."
    ),
    click.option(
        "--oidc-role",
        "oidc_roles",
        metavar="VALUE=ROLE",
        multiple=True,
        help="Whoever has VALUE in the role claim has ROLE here; repeatable, the highest holds.",
    ),
    click.option(
        "--oidc-role-claim",
        metavar="NAME",
        default="",
        help="The claim that holds such values (roles); dots lead into objects.",
    ),
    click.option(
        "--oidc-name-claim",
        metavar="NAME",
        default="",
        help="The claim that names people in the audit (preferred_username); without it, sub.",
    ),
    click.option(
        "--oidc-tenant-claim",
        metavar="NAME",
        default="",
        help="The claim that names the only tenant that somebody may see; * is all.",
    ),
)


def open_console(runtime: Runtime, base: Any, **typed: Any) -> Any:
    """Return a web console at an open port: `url`, `run()` until `stop()`.

    Raises:
        InvalidInput: it is not installed, or what was typed does not go together.
    """
    return find_console("web")(
        base, runtime.access, url=runtime.url, environment=runtime.environment, **typed
    )


def oidc_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for logins by OIDC to a command."""
    for option in reversed(OIDC_OPTIONS):
        command = option(command)
    return command


@click.command(
    "web",
    cls=Command,
    examples=(
        "web",
        "web --port 9000 --read-only",
        "web --host 0.0.0.0 --password-file /etc/dynsched/people --https",
        "web --oidc-issuer https://login.example.com --oidc-client-id dynsched"
        " --oidc-role ops=operator",
        "web --trusted-proxy 10.0.0.7 --proxy-header X-Forwarded-User --base-path /jobs",
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=PORT,
    show_default=True,
    help="The port; 0 takes any that is free.",
)
@click.option(
    "--password-file",
    metavar="FILE",
    default="",
    help="Those who may log in; `dynsched web-user` writes it.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    metavar="ADDRESS",
    multiple=True,
    help="Believe the forwarded headers of this proxy; repeatable.",
)
@click.option(
    "--proxy-header",
    metavar="NAME",
    default="",
    help="The header in which a trusted proxy says whom it has let in.",
)
@oidc_options
@click.option("--base-path", metavar="PATH", default="", help="The path under which it is shown.")
@click.option("--https", "secure", is_flag=True, help="It is reached by HTTPS only.")
@click.option("--open-metrics", is_flag=True, help="/metrics needs no login.")
@for_option
@log_options
@pass_runtime
def web_command(
    runtime: Runtime, /, *, limit: timedelta | None, log_json: bool, **typed: Any
) -> None:
    """Serve the web console: watch, understand and replay, in a browser.

    Without a login it listens on this machine's loopback address only, and whoever reaches that
    acts as the one who started it. Any other address demands a login: a password file, an OIDC
    provider (its client's secret in DYNSCHED_OIDC_CLIENT_SECRET), or a reverse proxy that says
    whom it has let in. The global --read-only holds for everybody.
    """
    del log_json
    base = runtime.base
    base.store.refresh()
    server = open_console(runtime, base, **typed)
    click.echo(f"web      {server.url}")
    process = Process(base.clock, grace=timedelta(0))
    process.add("web", server.run, on_stop=server.stop)
    process.run(limit)


@click.command(
    "web-user",
    cls=Command,
    examples=(
        "web-user ann --as admin --password-file people",
        "web-user bob --as operator --tenant acme --password-file people",
    ),
)
@click.argument("name")
@click.option(
    "--as",
    "role",
    type=click.Choice([role.value for role in Role]),
    default=Role.VIEWER.value,
    show_default=True,
    help="What the person is trusted with.",
)
@click.option("--tenant", metavar="NAME", default="", help="The only tenant that is shown.")
@click.option("--password-file", metavar="FILE", required=True, help="The file; made if missing.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def web_user_command(
    name: str, *, role: str, tenant: str, password_file: str, password_stdin: bool
) -> None:
    """Let NAME log in to the web console; the password is asked for, and kept hashed (scrypt).

    A running console takes the change at once; whoever was there under that name must log in again.
    """
    add = find_console("web-user")
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    person = add(Path(password_file), name, password, role=Role(role), tenant=tenant or None)
    click.echo(f"{person.name} may log in as {person.role.value}")


def try_console(runtime: Runtime, base: Any, *, port: int | None) -> Any:
    """Return a web console for `up`; None, with a line that says why, if it is not installed.

    Args:
        runtime: the call.
        base: the store.
        port: the one that was typed; None is the usual one, or another if that is taken.
    """
    typed: Mapping[str, Any] = {"port": PORT, "any_port": True} if port is None else {"port": port}
    try:
        return open_console(runtime, base, **typed)
    except InvalidInput as error:
        if port is not None:
            raise
        click.echo(f"web      not there: {error}")
        return None
