"""`dynsched why`: why a run, or an instant of a job, is where it is."""

from __future__ import annotations

import click

from dynsched.cli.command import Command
from dynsched.cli.options import json_option, tenant_of_seen
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import distance, print_json, print_sentence
from dynsched.cli.values import parse_instant
from dynsched.cli.visible import visible
from dynsched.domain.explanation import Explanation
from dynsched.domain.run import RUN_ID
from dynsched.domain.time_words import number, stamp
from dynsched.errors import InvalidInput
from dynsched.services.documents import explanation_document

EXAMPLE = "2026-03-01T09:00:00Z"


@click.command(
    "why",
    cls=Command,
    examples=(
        "why RUN_ID",
        f"why nightly {EXAMPLE}",
        f"why report {EXAMPLE} --tenant acme --json",
    ),
)
@click.argument("subject", metavar="RUN_ID|JOB")
@click.argument("instant", required=False)
@tenant_of_seen
@json_option
@pass_runtime
def why_command(
    runtime: Runtime, /, *, subject: str, instant: str | None, tenant: str | None, as_json: bool
) -> None:
    """Explain where a run is and why: RUN_ID, or JOB with an ISO INSTANT of it.

    It names the cause, what was seen, what happened when, and the commands that mend it. It reads
    a bounded number of rows, changes nothing, and says so where it cannot tell.
    """
    explained = _explained(runtime, subject, instant, tenant)
    if as_json:
        print_json(explanation_document(explained))
    else:
        _print(explained)


def _explained(
    runtime: Runtime, subject: str, instant: str | None, tenant: str | None
) -> Explanation:
    """Return the explanation that was asked for.

    Raises:
        InvalidInput: it is neither a run nor a job with an instant.
    """
    is_run = RUN_ID.fullmatch(subject) is not None
    if instant is None:
        if not is_run and "@" not in subject:
            raise InvalidInput(
                "INSTANT",
                f"{subject!r} is no run id, and a job needs an instant too",
                f"dynsched why {subject} {EXAMPLE}, or a run id of `dynsched run list`",
            )
        return runtime.views.why_run(subject)
    if is_run:
        raise InvalidInput("INSTANT", "a run id has its instant already", f"dynsched why {subject}")
    return runtime.views.why_instant(subject, parse_instant(instant, "INSTANT"), tenant)


def _print(explained: Explanation) -> None:
    """Write an explanation for people: the headline first."""
    print_sentence(explained.headline)
    for sentence in explained.sentences:
        print_sentence(sentence, indent=2)
    click.echo(f"\n{visible(explained.subject)}")
    for at, what in explained.timeline:
        away = distance(at, explained.at)
        head = f"  {stamp(at)}  "
        ago = "" if away == "now" else f" ({away})"
        print_sentence(what + ago, head=head, indent=len(head))
    if explained.hints:
        click.echo("\ntry")
        for hint in explained.hints:
            click.echo(f"  {visible(hint)}")
    click.echo(f"\ncause: {explained.cause.value} ({number(explained.examined, 'row')} read)")
