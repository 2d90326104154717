"""Warnings about jobs that no living worker can run, on standard error."""

from __future__ import annotations

import click

from dynsched.cli.runtime import Runtime
from dynsched.cli.visible import visible
from dynsched.errors import DynschedError
from dynsched.services.capacity import Capacity


def warn_of_lack(runtime: Runtime, queue: str, needs: str, *, app_known: bool = False) -> None:
    """Say what a worker must have to run a new job, unless a living one has it.

    Args:
        runtime: the call.
        queue: the job's queue.
        needs: what its runs need.
        app_known: the handler was found in an App, so a worker for it may be about to start.
    """
    kind = needs.partition(":")[0]
    if kind == "http" or (kind == "handler" and app_known):
        return
    try:
        capacity = runtime.views.capacity()
    except DynschedError:  # no store yet, or it fails: what was to be written is written
        capacity = Capacity(())
    lack = capacity.lack(queue, needs)
    if not lack:
        return
    if kind == "command":
        click.echo(
            "note: commands only run on workers started with --allow-commands; queue"
            f" {visible(queue)} has no such worker now",
            err=True,
        )
    elif not capacity.empty:
        click.echo(f"warning: {visible(lack)}", err=True)
