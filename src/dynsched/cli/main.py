"""The program `dynsched`: one group, a module for each noun."""

from __future__ import annotations

import click

from dynsched import __version__
from dynsched.cli.audit import audit_command
from dynsched.cli.command import Program
from dynsched.cli.console import tui_command
from dynsched.cli.dlq import dlq_group
from dynsched.cli.handoff import handoff_group
from dynsched.cli.health import groups_command, health_command
from dynsched.cli.importing import import_group
from dynsched.cli.job import job_group
from dynsched.cli.logs import configure_logging
from dynsched.cli.next_instants import next_command
from dynsched.cli.replay import replay_group
from dynsched.cli.run import run_group
from dynsched.cli.services import dispatcher_command, reaper_command, up_command, worker_command
from dynsched.cli.store import init_command, resize_command, stats_command
from dynsched.cli.tenant import tenant_group
from dynsched.cli.token import token_group
from dynsched.cli.web import web_command, web_user_command
from dynsched.cli.why import why_command


@click.group(
    "dynsched",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "up --demo",
        "health",
        "job add ping --every 5m --http https://example.org/ping --method GET",
        "run list job:ping",
        "why RUN_ID",
    ),
    sections={
        "See what is going on": ("health", "groups", "run", "why", "stats", "tui", "web"),
        "Mend it": ("dlq", "replay", "audit"),
        "Say what is to run": ("job", "import", "next", "tenant"),
        "Run the scheduler": ("up", "dispatcher", "worker", "reaper", "init", "resize", "handoff"),
        "Let others in": ("web-user", "token"),
    },
)
@click.version_option(__version__, prog_name="dynsched")
def main() -> None:
    """Schedule jobs: cron, interval, delayed and one-off, with retries and a dead-letter queue.

    Everything lies in one store: a SQLite file in the working directory, or DynamoDB. Something is
    wrong? Begin with `dynsched health`.
    """
    configure_logging("warning")


for command in (
    next_command,
    init_command,
    resize_command,
    handoff_group,
    up_command,
    dispatcher_command,
    worker_command,
    reaper_command,
    web_command,
    web_user_command,
    job_group,
    run_group,
    dlq_group,
    groups_command,
    health_command,
    why_command,
    replay_group,
    stats_command,
    tenant_group,
    token_group,
    audit_command,
    import_group,
    tui_command,
):
    main.add_command(command)
