"""Routes of runs: what ran, runs and will run, why, and what people do to one."""

from __future__ import annotations

from dynsched.domain.filters import RUNS, Filter
from dynsched.domain.run import Run
from dynsched.services.documents import (
    Document,
    explanation_document,
    run_detail_document,
    run_document,
)
from dynsched_web.api import answers, bodies
from dynsched_web.api.route import EXAMINED, FILTER, PAGING, WHY, Call, Routes, page_document
from dynsched_web.api.schema import ANYTHING, fields
from dynsched_web.api.scope import own_run, scoped

ROUTES = Routes("runs")


@ROUTES.route("GET", "/runs", answer=answers.RUNS, query={"filter": FILTER, **PAGING, **EXAMINED})
def list_runs(call: Call) -> Document:
    """List runs, newest first; without a filter what waits, runs and ended lately."""
    return runs_page(call, scoped(call, call.query.get("filter", ""), RUNS))


def runs_page(call: Call, given: Filter) -> Document:
    """Return the answer to a search for runs."""
    found = call.views.find_runs(given, **call.examined_page)
    names = call.views.job_names([run.job_id for run in found.items])
    lacks = call.views.lacks(found.items)
    documents = [
        run_document(run, job_name=names.get(run.job_id), lack=lacks.get(run.run_id, ""))
        for run in found.items
    ]
    return page_document(found, documents)


@ROUTES.route("GET", "/runs/{run}", answer=answers.RUN_DETAIL)
def get_run(call: Call) -> Document:
    """Show a run with its payload and each attempt with its error; secrets are masked."""
    return run_detail_document(own_run(call))


@ROUTES.route("GET", "/runs/{run}/why", answer=answers.EXPLANATION)
def why_run(call: Call) -> Document:
    """Explain where a run is and why."""
    return explanation_document(call.views.why_run(own_run(call).run.run_id))


def _changed(call: Call, run: Run) -> Document:
    """Return a run after a change."""
    names = call.views.job_names([run.job_id])
    return run_document(call.views.masked(run), job_name=names.get(run.job_id))


@ROUTES.route("POST", "/runs/{run}/cancel", answer=answers.RUN, body=bodies.REASON)
def cancel_run(call: Call) -> Document:
    """Cancel a run: at once if it waits; one that runs is asked to stop."""
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.cancel(run_id, reason=call.reason))


@ROUTES.route(
    "POST",
    "/runs/{run}/outcome",
    answer=answers.RUN,
    body=bodies.OUTCOME,
    run_token="token",  # noqa: S106  # a field's name
)
def answer_run(call: Call) -> Document:
    """Tell how a run ended that waits for its callback.

    Whoever has the `token` that its function was given needs no other one; an operator may end it
    without it.
    """
    answer, token = bodies.answer_of(call.body), call.body.get("token", "")
    if token:
        return _changed(call, call.operations.answer_run(call.path["run"], token, answer))
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.end_run(run_id, answer, reason=call.reason))


@ROUTES.route("POST", "/runs/{run}/replay", answer=answers.RUN, body=bodies.REASON)
def replay_run(call: Call) -> Document:
    """Bring a dead run back: the same run and idempotency key, its attempts kept."""
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.replay(run_id, reason=call.reason))


@ROUTES.route(
    "POST", "/runs/{run}/replay-as-new", answer=answers.RUN, body=bodies.NEEDED_REASON, status=201
)
def replay_run_as_new(call: Call) -> Document:
    """Make a new run of a dead one's job and payload, with an idempotency key of its own.

    What the dead run did may be done again. One death makes one new run, however often this is
    asked.
    """
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.replay_as_new(run_id, reason=call.reason))


@ROUTES.route(
    "POST",
    "/runs/{run}/replay-edited",
    answer=answers.RUN,
    body=fields("EditedReplay", {"payload": ANYTHING, "reason": WHY}),
)
def replay_run_edited(call: Call) -> Document:
    """Bring a dead run back with another payload; what it had is kept among its attempts."""
    run_id, payload = own_run(call).run.run_id, call.body["payload"]
    return _changed(call, call.operations.replay_edited(run_id, payload, reason=call.reason))


@ROUTES.route("POST", "/runs/{run}/discard", answer=answers.RUN, body=bodies.REASON)
def discard_run(call: Call) -> Document:
    """Hide a dead run from the dead-letter queue; it can be restored until it expires."""
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.discard(run_id, reason=call.reason))


@ROUTES.route("POST", "/runs/{run}/restore", answer=answers.RUN, body=bodies.REASON)
def restore_run(call: Call) -> Document:
    """Show a discarded run in the dead-letter queue again."""
    run_id = own_run(call).run.run_id
    return _changed(call, call.operations.restore(run_id, reason=call.reason))
