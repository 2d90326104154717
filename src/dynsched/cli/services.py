"""The long-running commands: `up`, `dispatcher`, `worker` and `reaper`."""

from __future__ import annotations

import logging
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import click

from dynsched.bootstrap import (
    DEFAULT_STORE,
    Base,
    WorkerParts,
    build_dispatcher,
    build_reaper,
    build_stepper,
    build_worker,
    init_store,
)
from dynsched.cli import demo as demo_jobs
from dynsched.cli.command import Command
from dynsched.cli.options import app_option, for_option, log_options, together
from dynsched.cli.process import Process
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.visible import visible
from dynsched.cli.web import PORT_MAX, try_console
from dynsched.client import Client
from dynsched.domain.access import Action
from dynsched.errors import InvalidInput
from dynsched.services.loops import (
    run_dispatcher,
    run_reaper,
    run_stepper,
    run_worker,
    run_worker_once,
)
from dynsched.services.stepper import BatchStepper
from dynsched.targets.app import App, load_app

log = logging.getLogger("dynsched.process")

SLOTS_MAX = 10_000

worker_options = together(
    app_option,
    click.option(
        "--queue",
        "queues",
        multiple=True,
        metavar="NAME",
        help="Serve this queue; repeatable; default main.",
    ),
    click.option("--allow-commands", is_flag=True, help="Run jobs with shell commands."),
    click.option("--slots", type=int, help="Handlers that run at once; default 32."),
)
once_option = click.option("--once", is_flag=True, help="Do what is to be done now, then end.")


@click.command("dispatcher", cls=Command, examples=("dispatcher", "dispatcher --once"))
@once_option
@for_option
@log_options
@pass_runtime
def dispatcher_command(
    runtime: Runtime, /, *, once: bool, limit: timedelta | None, log_json: bool
) -> None:
    """Make runs of what is due, and put back runs whose back-off ends.

    Any number may run at once. With --once it makes one tick.
    """
    del log_json
    runtime.may(Action.STORE_SERVE)
    base = runtime.base
    dispatcher = build_dispatcher(base)
    base.store.refresh()
    if once:
        report = dispatcher.tick()
        served = report.served
        click.echo(
            f"one tick: {served.jobs} jobs served, {served.created} runs made,"
            f" {served.skipped} skipped, {report.promoted} retries due"
            + (", more to do" if report.behind else "")
        )
        return
    process = Process(base.clock, grace=timedelta(0))
    process.add("dispatcher", lambda: run_dispatcher(dispatcher, base.clock, process.stopper))
    process.run(limit)


@click.command("reaper", cls=Command, examples=("reaper", "reaper --once"))
@once_option
@for_option
@log_options
@pass_runtime
def reaper_command(
    runtime: Runtime, /, *, once: bool, limit: timedelta | None, log_json: bool
) -> None:
    """Take back the runs of workers that are gone, and move replay batches.

    Any number may run at once. With --once it makes one sweep, and moves of running batches what
    their rates allow now.
    """
    del log_json
    runtime.may(Action.STORE_SERVE)
    base = runtime.base
    reaper, stepper = build_reaper(base), build_stepper(base)
    base.store.refresh()
    if once:
        report = reaper.sweep()
        click.echo(
            f"one sweep: {report.closed} sessions closed, {report.returned} runs returned,"
            f" {report.failed} failed, {report.purged} expired rows deleted"
        )
        _step_once(stepper)
        return
    process = Process(base.clock, grace=timedelta(0))
    process.add("reaper", lambda: run_reaper(reaper, base.clock, base.settings, process.stopper))
    process.add("stepper", lambda: run_stepper(stepper, base.clock, base.settings, process.stopper))
    process.run(limit)


@click.command(
    "worker",
    cls=Command,
    examples=(
        "worker --app myapp:app",
        "worker --app myapp:app --queue main --queue reports --slots 8",
        "worker --allow-commands --once",
    ),
)
@worker_options
@once_option
@for_option
@log_options
@pass_runtime
def worker_command(
    runtime: Runtime,
    /,
    *,
    app: str | None,
    queues: tuple[str, ...],
    allow_commands: bool,
    slots: int | None,
    once: bool,
    limit: timedelta | None,
    log_json: bool,
) -> None:
    """Run what is due in the queues that it serves.

    SIGTERM and Ctrl-C drain: what runs gets 20 seconds, the rest is handed back. With --once it
    runs what can be claimed now, and ends when that has ended.
    """
    del log_json
    runtime.may(Action.STORE_SERVE)
    base = _with_slots(runtime.base, slots)
    handlers = load_app(app) if app is not None else None
    base.store.refresh()
    _declare(base, handlers)
    parts = _build_worker(base, handlers, queues, allow_commands=allow_commands)
    process = Process(base.clock, grace=base.settings.drain_grace)
    if once:
        _add_worker_once(process, base, parts)
    else:
        _add_worker(process, base, parts)
    try:
        process.run(limit)
    finally:
        parts.runner.close()


@click.command(
    "up",
    cls=Command,
    examples=(
        "up --demo",
        "up --app myapp:app --queue main --queue reports",
        "up --allow-commands --store sqlite:////var/lib/dynsched/jobs.db",
    ),
)
@click.option("--demo", is_flag=True, help="Add a handful of demo jobs, if they are not there.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    help="The web console's port; default 8420, or any free one.",
)
@click.option("--no-web", is_flag=True, help="Without the web console.")
@worker_options
@for_option
@log_options
@pass_runtime
def up_command(
    runtime: Runtime,
    /,
    *,
    demo: bool,
    port: int | None,
    no_web: bool,
    app: str | None,
    queues: tuple[str, ...],
    allow_commands: bool,
    slots: int | None,
    limit: timedelta | None,
    log_json: bool,
) -> None:
    """Run everything in one process: dispatcher, worker, reaper and the web console.

    Makes the store if it is missing, and takes back at once what an `up` that was killed on this
    machine left. Several may run on one store.
    """
    del log_json
    runtime.may(Action.STORE_SERVE)
    base = _with_slots(runtime.base, slots)
    # Handlers of an earlier --demo stay known, so that its jobs do not wait for one for ever.
    own = load_app(app) if app is not None else None
    made = init_store(base)
    base.store.refresh()
    _declare(base, own)
    handlers = demo_jobs.with_handlers(own or App())
    if demo:
        demo_jobs.add_jobs(runtime.operations)
    parts = _build_worker(base, handlers, queues, allow_commands=allow_commands)
    process = Process(base.clock, grace=base.settings.drain_grace)
    web = None if no_web else try_console(runtime, base, port=port)
    shown = "" if web is None else web.url
    _greet(runtime.url, made=made, demo=demo, queues=queues or ("main",), web=shown)
    if web is not None:
        process.add("web", web.run, on_stop=web.stop)
    _add_services(process, base)
    _add_worker(process, base, parts)
    try:
        process.run(limit)
    finally:
        parts.runner.close()
    click.echo("stopped; everything is kept")


def _add_services(process: Process, base: Base) -> None:
    """Add what may run anywhere and any number of times."""
    stopper = process.stopper
    reaper, dispatcher, stepper = build_reaper(base), build_dispatcher(base), build_stepper(base)
    process.add("reaper", lambda: run_reaper(reaper, base.clock, base.settings, stopper))
    process.add("stepper", lambda: run_stepper(stepper, base.clock, base.settings, stopper))
    process.add("dispatcher", lambda: run_dispatcher(dispatcher, base.clock, stopper))


def _step_once(stepper: BatchStepper) -> None:
    """Move what may be moved now, and say so if there was anything."""
    moved = skipped = 0
    again = True
    while again:
        report = stepper.step()
        moved, skipped = moved + report.moved, skipped + report.skipped + report.failed
        again = report.again
    stepper.close()
    if moved or skipped:
        click.echo(f"replay batches: {moved} dead runs moved, {skipped} skipped")


def _with_slots(base: Base, slots: int | None) -> Base:
    if slots is None:
        return base
    if not 1 <= slots <= SLOTS_MAX:
        raise InvalidInput("slots", f"{slots} is out of range", f"give 1 to {SLOTS_MAX}")
    return replace(base, settings=replace(base.settings, slots=slots))


def _declare(base: Base, app: App | None) -> None:
    """Make the jobs that the app's handlers declare and that are not there yet."""
    for job in Client(base, app).declare():
        log.info("declared job %s of tenant %s", job.name, job.tenant)


def _hear_of_children() -> None:
    """Undo an inherited deafness to the ends of children: commands could not be told apart."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _build_worker(
    base: Base, app: App | None, queues: Sequence[str], *, allow_commands: bool
) -> WorkerParts:
    names = tuple(dict.fromkeys(queues)) or ("main",)
    _hear_of_children()
    return build_worker(base, app, queues=names, allow_commands=allow_commands)


def _add_worker(process: Process, base: Base, parts: WorkerParts) -> None:
    def loop() -> None:
        run_worker(parts.worker, parts.keeper, base.clock, base.settings, process.stopper)

    process.add("worker", loop, on_stop=parts.worker.wake.set)


def _add_worker_once(process: Process, base: Base, parts: WorkerParts) -> None:
    def loop() -> None:
        report = run_worker_once(
            parts.worker, parts.keeper, base.clock, base.settings, process.stopper
        )
        click.echo(f"{report.claimed} runs claimed, {report.started} started, {report.ended} ended")

    process.add("worker", loop, on_stop=parts.worker.wake.set)


def _greet(url: str, *, made: bool, demo: bool, queues: Sequence[str], web: str) -> None:
    """Say where everything lies, and what to try next."""
    store = "" if url == DEFAULT_STORE else f" --store {shlex.quote(url)}"
    click.echo(f"store    {visible(url)}{_place(url)}{', made just now' if made else ''}")
    click.echo(f"running  dispatcher, worker (queues: {', '.join(queues)}) and reaper")
    if web:
        click.echo(f"web      {web}")
    click.echo("try      in another terminal; Ctrl-C here stops it and keeps everything")
    add = "job add hello --every 10s --http http://localhost:8000/"
    tries = ("tui", "health", "dlq list" if demo else add)
    for command in tries:
        click.echo(f"         dynsched {command}{store}")
    sys.stdout.flush()


def _place(url: str) -> str:
    """Return where a SQLite file lies, for URLs that name it relative to the working directory."""
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    if parts.scheme != "sqlite" or not name or name.startswith((":", "/")):
        return ""
    return f" ({visible(str(Path(name).absolute()))})"
