"""`dynsched audit`: who did what, when and why."""

from __future__ import annotations

import re

import click

from dynsched.cli.command import Command
from dynsched.cli.filters import rows_examined
from dynsched.cli.options import filter_argument, json_option, paging_options
from dynsched.cli.runtime import Runtime, pass_runtime
from dynsched.cli.tables import print_json, print_status, print_table, when
from dynsched.cli.values import since_instant
from dynsched.domain.audit import AuditEntry, check_target
from dynsched.domain.filters import term_text
from dynsched.domain.run import RUN_ID
from dynsched.errors import NotFound
from dynsched.services.documents import audit_document
from dynsched.services.views import AuditQuery

JOB_ID = re.compile(r"[0-9a-z]{13}")


@click.command(
    "audit",
    cls=Command,
    examples=(
        "audit",
        "audit 'ann action:run.replay,run.discard' --since 7d",
        "audit --of RUN_ID",
        "audit --of job:nightly",
        "audit 'outcome:begun,refused' --json",
    ),
)
@filter_argument
@click.option(
    "--of", metavar="TARGET", help="About run:ID, job:NAME or ID, batch:ID, tenant:NAME or store."
)
@click.option("--since", metavar="WHEN", help="A duration back (6h) or an ISO instant.")
@paging_options
@json_option
@pass_runtime
def audit_command(
    runtime: Runtime,
    /,
    *,
    words: tuple[str, ...],
    of: str | None,
    since: str | None,
    limit: int,
    cursor: str | None,
    examine: int | None,
    as_json: bool,
) -> None:
    """Show who changed what, when, why and how it ended, newest first.

    FILTER has the terms actor, action, target, tenant, outcome, via and at. `actor:` wants the
    whole name, as in `actor:ann@host`; a word alone is looked for anywhere in actors, targets,
    reasons and notes. An entry is written before its change: `begun` says
    that nobody came back to tell how it ended. Entries are kept for 400 days.
    """
    terms = list(words)
    if of is not None:
        terms.append(term_text("target", check_target(_target(runtime, of))))
    query = AuditQuery(
        filter=" ".join(terms),
        since=None if since is None else since_instant(since, runtime.now(), "--since"),
        limit=limit,
        cursor=cursor,
        examine=rows_examined(examine, limit),
    )
    found = runtime.views.audit(query)
    if as_json:
        print_json([audit_document(entry) for entry in found.items])
    else:
        _print_entries(runtime, found.items, more=found.cursor is not None)
    print_status(found)


def _target(runtime: Runtime, of: str) -> str:
    """Return a target as the audit names it: a job by its id, though people know its name.

    Raises:
        NotFound: it is a job's name, and none or more than one tenant has such a job.
    """
    if RUN_ID.fullmatch(of):
        return f"run:{of}"
    kind, _, name = of.partition(":")
    if kind != "job" or not name:
        return of
    try:
        return f"job:{runtime.find_any_job(name, None).job_id}"
    except NotFound:
        if JOB_ID.fullmatch(name):
            return of  # the audit is kept longer than a job that was deleted
        raise


def _target_words(entry: AuditEntry) -> str:
    """Return what was acted on, with its job's name where that is known."""
    job = entry.details.get("job")
    return f"{entry.target} ({job})" if job else entry.target


def _print_entries(runtime: Runtime, entries: tuple[AuditEntry, ...], *, more: bool) -> None:
    now = runtime.now()
    rows = [
        (
            when(entry.at, now),
            entry.actor,
            entry.action.value,
            entry.outcome.value,
            _target_words(entry),
            "; ".join(filter(None, (entry.note, entry.reason and f"reason: {entry.reason}"))),
        )
        for entry in entries
    ]
    print_table(
        ("AT", "ACTOR", "ACTION", "OUTCOME", "TARGET", "WHAT"),
        rows,
        empty="no entries that fit",
        more=more,
    )
