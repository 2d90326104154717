"""Options that several commands share, each in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from dynsched.cli.logs import LEVELS, configure_logging
from dynsched.cli.runtime import Runtime
from dynsched.cli.values import (
    DURATION,
    DURATION_OR_NONE,
    HEADER,
    INSTANT,
    INSTANT_OR_NONE,
    PAYLOAD,
    TAG,
    VARIABLE,
)
from dynsched.domain.job import CatchUp, Overlap, Priority
from dynsched.domain.masking import Masker
from dynsched.domain.target import METHODS
from dynsched.domain.target_aws import Invocation
from dynsched.services.search import EXAMINE
from dynsched.settings import settings_from

F = TypeVar("F", bound=Callable[..., object])
Decorator = Callable[[F], F]

TYPED = frozenset({ParameterSource.COMMANDLINE, ParameterSource.PROMPT})


def typed_values(ctx: click.Context) -> dict[str, Any]:
    """Return the parameters that were typed; `none` is among them as None."""
    return {
        name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) in TYPED
    }


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return options as one decorator; the help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
filter_argument = click.argument("words", nargs=-1, metavar="[FILTER]...")
for_option = click.option("--for", "limit", type=DURATION, help="End by itself after so long.")
cursor_option = click.option(
    "--cursor", metavar="TEXT", help="Go on behind a page: what its last line gave."
)
examine_option = click.option(
    "--examine",
    type=int,
    metavar="N",
    help=f"Rows to look at before the page ends; default {EXAMINE}, or the limit if that is more.",
)
limit_option = click.option(
    "--limit", type=int, default=100, show_default=True, help="Show at most so many."
)
tenant_filter = click.option("--tenant", metavar="NAME", help="Only this tenant's.")
tenant_option = click.option(
    "--tenant", metavar="NAME", default="default", show_default=True, help="Whose job it is."
)
tenant_of_seen = click.option(
    "--tenant", metavar="NAME", help="Whose job it is; default the only tenant that has it."
)
tag_filter = click.option(
    "--tag", "tag", type=TAG, multiple=True, metavar="K=V", help="Only with this tag; repeatable."
)
reason_option = click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit.")
app_option = click.option(
    "--app", metavar="MODULE:APP", help="The App that holds the Python handlers."
)

paging_options = together(limit_option, cursor_option, examine_option)

schedule_options = together(
    click.option("--cron", metavar="EXPR", help="Cron expression, e.g. '*/5 * * * *'."),
    click.option("--every", type=DURATION, help="Fixed interval, e.g. 30s or 1h30m."),
    click.option("--at", type=INSTANT, help="Once at an ISO instant with an offset or Z."),
    click.option("--in", "after_delay", type=DURATION, help="Once, so long from now."),
    click.option("--now", is_flag=True, help="Once, now."),
    click.option("--manual", is_flag=True, help="No schedule: only `job run-now` makes runs."),
    click.option("--tz", metavar="ZONE", help="IANA zone of --cron; default UTC."),
    click.option(
        "--dst", metavar="RULE", help="Where clocks change: vixie (default), skip or both."
    ),
    click.option("--seconds", is_flag=True, help="--cron has a leading seconds field."),
    click.option("--start", type=INSTANT_OR_NONE, help="First instant that may be named."),
    click.option("--end", type=INSTANT_OR_NONE, help="Last instant that may be named."),
)

target_options = together(
    click.option("--handler", metavar="NAME", help="Call a Python handler of the worker's App."),
    click.option("--http", metavar="URL", help="Send an HTTP request."),
    click.option("--command", metavar="COMMAND", help="Run a shell command."),
    click.option(
        "--lambda", "lambda_", metavar="NAME", help="Invoke a Lambda function: its name or ARN."
    ),
    click.option("--sqs", metavar="URL", help="Send a message to an SQS queue."),
    click.option(
        "--method", metavar="METHOD", help=f"With --http: {', '.join(METHODS)}; default POST."
    ),
    click.option("--header", type=HEADER, multiple=True, help="With --http; repeatable."),
    click.option(
        "--body",
        metavar="TEMPLATE",
        help="With --http, --lambda or --sqs: what is sent instead of the payload.",
    ),
    click.option(
        "--invocation",
        type=click.Choice([one.value for one in Invocation]),
        help="With --lambda: wait (sync), queue it (async), or await its callback; default sync.",
    ),
    click.option("--group", metavar="NAME", help="With --sqs: the message group."),
    click.option(
        "--retry-status", type=int, multiple=True, help="With --http: also try again on it."
    ),
    click.option(
        "--permanent-status", type=int, multiple=True, help="With --http: never try again on it."
    ),
    click.option("--env", type=VARIABLE, multiple=True, help="With --command; repeatable."),
    click.option("--stdin", metavar="TEXT", help="With --command: input instead of the payload."),
    click.option("--shell", metavar="PATH", help="With --command; default /bin/sh."),
    click.option("--user", metavar="NAME", help="With --command: who runs it."),
    click.option("--cwd", metavar="PATH", help="With --command: where it runs."),
)

policy_options = together(
    click.option("--payload", type=PAYLOAD, help="What the run carries; @file or @- reads it."),
    click.option("--queue", metavar="NAME", help="Which workers may run it; default main."),
    click.option("--priority", type=click.Choice([one.value for one in Priority])),
    click.option("--tag", "tag", type=TAG, multiple=True, metavar="K=V", help="Repeatable."),
    click.option("--max-attempts", type=int, help="Failures until a run is dead; default 5."),
    click.option("--retry-base", type=DURATION, help="First back-off; default 5s."),
    click.option("--retry-factor", type=float, help="What each further one is multiplied by."),
    click.option("--retry-cap", type=DURATION, help="Longest back-off; default 1h."),
    click.option("--timeout", type=DURATION_OR_NONE, help="Hard limit of one attempt; default 1h."),
    click.option("--soft-timeout", type=DURATION_OR_NONE, help="When it is asked to end."),
    click.option(
        "--catch-up",
        type=click.Choice([one.value for one in CatchUp]),
        help="What becomes of runs that were missed; default latest.",
    ),
    click.option("--catch-up-max", type=int, help="With --catch-up all: at most so many."),
    click.option("--catch-up-window", type=DURATION, help="With --catch-up all: so far back."),
    click.option(
        "--overlap",
        type=click.Choice([one.value for one in Overlap]),
        help="When an earlier run still runs; default skip for recurring jobs.",
    ),
    click.option(
        "--start-deadline", type=DURATION_OR_NONE, help="Skip a run that would start later."
    ),
    click.option("--flex", type=DURATION, help="Spread starts over so long after the instant."),
    click.option("--retention", type=DURATION, help="How long ended runs are kept; default 14d."),
    click.option(
        "--share-by-job/--no-share-by-job",
        default=None,
        help="The tenant's jobs take turns among themselves too.",
    ),
)


def _set_level(ctx: click.Context, _: click.Parameter, value: str) -> str:
    if not ctx.resilient_parsing:
        masker = Masker(settings_from(ctx.ensure_object(Runtime).environment).mask_keys)
        configure_logging(value, as_json=bool(ctx.params.get("log_json")), masker=masker)
    return value


log_options = together(
    click.option(
        "--log-json",
        is_flag=True,
        is_eager=True,
        expose_value=True,
        help="Write logs as JSON lines.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        expose_value=False,
        callback=_set_level,
    ),
)
