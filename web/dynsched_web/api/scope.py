"""Scope: what a bearer of one tenant is shown. Views show everything, so every look asks here."""

from __future__ import annotations

from dataclasses import replace

from dynsched.domain.batch import Batch
from dynsched.domain.filters import RUNS, Filter, parse, term_text
from dynsched.domain.health import ErrorGroup, Level
from dynsched.domain.job import Job
from dynsched.domain.vocabulary import Vocabulary
from dynsched.errors import Forbidden, NotFound
from dynsched.services.run_views import RunDetail
from dynsched.services.views import BatchDetail
from dynsched_web.api.route import Call

LOOK = "GET /api/v1/{} lists them"


def scoped(call: Call, text: str, vocabulary: Vocabulary) -> Filter:
    """Return a filter that a bearer wrote: of its own tenant only, if it has one.

    Raises:
        FilterError: it cannot be read; its column counts in the text as it was written.
    """
    given = parse(text, vocabulary)
    own = call.access.tenant
    # Behind what was written, so that the columns of errors stay those of the writer.
    return given if own is None else parse(f"{text} {term_text('tenant', own)}", vocabulary)


def own_job(call: Call) -> Job:
    """Return the job that the path names.

    Raises:
        NotFound: there is none that this bearer may see.
    """
    name, own = call.path["job"], call.access.tenant
    tenant = call.query.get("tenant") or own or "default"
    nowhere = NotFound("job", name, LOOK.format("jobs"))
    if own not in (None, tenant):
        raise nowhere
    try:
        job = call.views.find_job(name, tenant)
    except NotFound:
        raise nowhere from None  # the view's advice names other tenants
    if own not in (None, job.tenant):
        raise nowhere
    return job


def own_run(call: Call) -> RunDetail:
    """Return the run that the path names.

    Raises:
        NotFound: there is none that this bearer may see.
    """
    run_id = call.path["run"]
    detail = call.views.show_run(run_id)
    if call.access.tenant not in (None, detail.run.tenant):
        raise NotFound("run", run_id, "it never was, or its retention is over")
    return detail


def own_group(call: Call) -> ErrorGroup:
    """Return the error group that the path names, of the bearer's own runs.

    Raises:
        NotFound: none of them has it.
    """
    signature = call.path["signature"]
    if call.access.tenant is None:
        return call.views.group(signature)
    found = call.views.groups(
        f"{term_text('group', signature)} {term_text('tenant', call.access.tenant)}"
    )
    if not found.items:
        raise NotFound("error group", signature, LOOK.format("groups"))
    return found.items[0]


def sees(call: Call, batch: Batch) -> bool:
    """Return whether all runs of a batch are the bearer's."""
    return call.access.tenant in (None, batch.tenant)


def own_batch(call: Call) -> BatchDetail:
    """Return the batch that the path names.

    Raises:
        NotFound: there is none of which all runs are this bearer's.
    """
    batch_id = call.path["batch"]
    detail = call.views.batch(batch_id)
    if not sees(call, detail.batch):
        raise NotFound("batch", batch_id, LOOK.format("replays"))
    own = call.access.tenant
    asked = {
        word for term in parse(detail.batch.filter, RUNS).asking("tenant") for word in term.words
    }
    if own is not None and asked != {own}:
        # Its filter looks at other tenants too, and counts what died there since.
        detail = replace(detail, newer=Level(0, at_least=True))
    return detail


def whole_store(call: Call) -> None:
    """Refuse what tells of all tenants to a bearer of one.

    Raises:
        Forbidden: it may see one tenant only.
    """
    if call.access.tenant is not None:
        raise Forbidden(
            f"this is about the whole store, and {call.access.actor} may see tenant"
            f" {call.access.tenant} only"
        )
