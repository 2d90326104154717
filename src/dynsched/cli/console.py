"""`dynsched tui`: starts the terminal console, which is a package of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any

import click

from dynsched.cli.command import Command
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.values import DURATION
from dynsched.errors import InvalidInput

GROUP = "dynsched.consoles"
REFRESH = timedelta(seconds=2)


@click.command(
    "tui",
    cls=Command,
    examples=(
        "tui",
        "tui --read-only --screen runs --filter 'state:dead tenant:acme'",
        "tui --store 'dynamodb://prod?region=eu-west-1' --refresh 10s --theme light",
    ),
)
@click.option(
    "--refresh",
    type=DURATION,
    default=REFRESH,
    show_default="2s",
    help="How often what is shown is read again.",
)
@click.option("--screen", default="overview", show_default=True, help="The first screen.")
@click.option("--filter", "filter_", default="", metavar="TEXT", help="Its filter.")
@click.option("--theme", type=click.Choice(["dark", "light", "ansi"]), help="Colours.")
@pass_runtime
def tui_command(
    runtime: Runtime,
    /,
    *,
    refresh: timedelta,
    screen: str,
    filter_: str,
    theme: str | None,
) -> int:
    """Open the terminal console: see what is late, stuck or broken, and mend it by keyboard.

    `?` in it shows the keys, and so does docs/console.md.
    """
    start = find_console("tui")
    code: int = start(
        runtime.base,
        replace(runtime.access, via="tui"),
        url=runtime.url,
        refresh=refresh,
        screen=screen,
        filter=filter_,
        theme=theme or "",
        environment=runtime.environment,
    )
    return code


def find_console(name: str) -> Callable[..., Any]:
    """Return the function behind a name of the consoles: mostly what runs one.

    Raises:
        InvalidInput: it is not installed, or a part of it is missing.
    """
    mend = "install dynsched with its console packages"
    for entry in entry_points(group=GROUP, name=name):
        try:
            found: Callable[..., Any] = entry.load()
        except ImportError as error:
            raise InvalidInput(name, f"the console cannot be loaded: {error}", mend) from error
        return found
    raise InvalidInput(name, "the console is not installed", mend)
