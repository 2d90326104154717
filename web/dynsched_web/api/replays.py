"""Routes of replay batches: preview, confirm, pause, resume, abort, pace, what became of them."""

from __future__ import annotations

from dynsched.domain.batch import BREAKER, RATE
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.filters import GROUPS
from dynsched.domain.job import Priority
from dynsched.services.batch_documents import (
    batch_detail_document,
    batch_document,
    batch_entry_document,
)
from dynsched.services.documents import Document
from dynsched_web.api import answers, bodies
from dynsched_web.api.route import FILTER, PAGING, WHY, Call, Routes, page_document
from dynsched_web.api.schema import NUMBER, TRUTH, fields, orelse_null, whole, word
from dynsched_web.api.scope import own_batch, scoped
from dynsched_web.scope import seen_batches

ROUTES = Routes("replays")
BIG = 1_000_000
RATE_BODY = orelse_null({**NUMBER, "description": "Runs a second; null is no limit."})


@ROUTES.route("GET", "/replays", answer=answers.BATCHES, query=PAGING)
def list_replays(call: Call) -> Document:
    """List replay batches, newest first."""
    found = seen_batches(call.views, call.access.tenant, **call.page)
    return page_document(found, [batch_document(batch) for batch in found.items])


@ROUTES.route(
    "POST",
    "/replays",
    answer=answers.BATCH_DETAIL,
    status=201,
    body=fields(
        "ReplayPreview",
        {"filter": FILTER},
        {
            "reason": WHY,
            "limit": whole(1, BIG),
            "rate": RATE_BODY,
            "canary": whole(0, BIG),
            "canary_hold": TRUTH,
            "breaker": NUMBER,
            "priority": word(Priority),
        },
    ),
)
def preview_replay(call: Call) -> Document:
    """Freeze the dead runs that a filter chooses as a draft; nothing is moved.

    What dies later is not included. `needs_reason` and `needs_count` say what confirming it takes;
    it expires at `expires_at`.
    """
    body = call.body
    batch = call.operations.preview_replay(
        scoped(call, body["filter"], GROUPS).text,
        reason=call.reason,
        limit=body.get("limit"),
        rate=body.get("rate", RATE),
        canary=body.get("canary", 0),
        canary_hold=body.get("canary_hold", False),
        breaker=body.get("breaker", BREAKER),
        priority=Priority(body.get("priority", Priority.BULK.value)),
    )
    return batch_detail_document(call.views.batch(batch.batch_id))


@ROUTES.route("GET", "/replays/{batch}", answer=answers.BATCH_DETAIL)
def get_replay(call: Call) -> Document:
    """Show a batch: what it moved, skipped and left, and what died again."""
    return batch_detail_document(own_batch(call))


@ROUTES.route(
    "GET",
    "/replays/{batch}/entries",
    answer=answers.ENTRIES,
    query={**PAGING, "outcome": {**word(Outcome), "description": "Only these."}},
)
def list_replay_entries(call: Call) -> Document:
    """List a batch's entries with their runs, in the order in which they are moved."""
    batch_id = own_batch(call).batch.batch_id
    outcome = call.query.get("outcome")
    found = call.views.batch_entries(batch_id, Outcome(outcome) if outcome else None, **call.page)
    names = call.views.job_names([one.run.job_id for one in found.items if one.run is not None])
    documents = [
        batch_entry_document(one, job_name=None if one.run is None else names.get(one.run.job_id))
        for one in found.items
    ]
    return page_document(found, documents)


@ROUTES.route(
    "POST",
    "/replays/{batch}/confirm",
    answer=answers.BATCH,
    body=fields("Confirm", {}, {"reason": WHY, "count": whole(0, BIG)}),
)
def confirm_replay(call: Call) -> Document:
    """Start a draft, once: whoever comes second is answered 409 and told who was first.

    From two runs on it takes a reason, from a hundred or two tenants on the number of runs.
    """
    batch_id, count = own_batch(call).batch.batch_id, call.body.get("count")
    changed = call.operations.confirm_replay(batch_id, reason=call.reason, count=count)
    return batch_document(changed)


@ROUTES.route("POST", "/replays/{batch}/pause", answer=answers.BATCH, body=bodies.REASON)
def pause_replay(call: Call) -> Document:
    """Stop moving until it is resumed."""
    batch_id = own_batch(call).batch.batch_id
    return batch_document(call.operations.pause_replay(batch_id, reason=call.reason))


@ROUTES.route("POST", "/replays/{batch}/resume", answer=answers.BATCH, body=bodies.REASON)
def resume_replay(call: Call) -> Document:
    """Go on with a paused batch; after its breaker only with a reason."""
    batch_id = own_batch(call).batch.batch_id
    return batch_document(call.operations.resume_replay(batch_id, reason=call.reason))


@ROUTES.route(
    "POST",
    "/replays/{batch}/abort",
    answer=answers.BATCH,
    body=fields("Abort", {}, {"reason": WHY, "pull_back": TRUTH}),
)
def abort_replay(call: Call) -> Document:
    """End a batch: what was not moved stays dead, untouched.

    With `pull_back` what was moved and not tried yet is made dead again.
    """
    batch_id, pull_back = own_batch(call).batch.batch_id, call.body.get("pull_back", False)
    changed = call.operations.abort_replay(batch_id, reason=call.reason, pull_back=pull_back)
    return batch_document(changed)


@ROUTES.route(
    "POST",
    "/replays/{batch}/pace",
    answer=answers.BATCH,
    body=fields("Pace", {"rate": RATE_BODY}, {"reason": WHY}),
)
def pace_replay(call: Call) -> Document:
    """Change how many runs a second a batch moves."""
    batch_id, rate = own_batch(call).batch.batch_id, call.body["rate"]
    return batch_document(call.operations.pace_replay(batch_id, rate, reason=call.reason))


@ROUTES.route(
    "POST", "/replays/{batch}/rest", answer=answers.BATCH_DETAIL, status=201, body=bodies.REASON
)
def rest_of_replay(call: Call) -> Document:
    """Freeze what a batch that has ended did not move as a new draft."""
    batch_id = own_batch(call).batch.batch_id
    draft = call.operations.rest_of_replay(batch_id, reason=call.reason)
    return batch_detail_document(call.views.batch(draft.batch_id))
