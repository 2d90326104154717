"""Runs: the list, one run with all that is known of it, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from dynsched.domain.audit import AuditEntry
from dynsched.domain.explanation import Explanation
from dynsched.domain.filters import RUNS, Filter
from dynsched.domain.payload import Json, parse_payload
from dynsched.domain.run import Run
from dynsched.services.operations import Operations
from dynsched.services.run_views import RunDetail
from dynsched.services.search import Found
from dynsched.services.views import Views
from dynsched_web.desk import access, flash, operations, read, reason_of
from dynsched_web.pages.lists import EXAMINE, LIMIT, page_of, show_list
from dynsched_web.scope import check_seen
from dynsched_web.showing import pretty, show

pages = Blueprint("runs", __name__)

AUDITED = 20


def load_runs(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[Run], Mapping[str, str]]:
    """Read a page of runs with the names of their jobs."""
    found = views.find_runs(given, limit=LIMIT, cursor=cursor, examine=EXAMINE)
    return found, views.job_names([run.job_id for run in found.items])


@pages.get("/runs")
def show_runs() -> Any:
    """Show runs, newest first."""
    return show_list("runs.html", "_runs.html", page_of("runs", RUNS, load_runs))


def _load_run(views: Views, run_id: str) -> tuple[RunDetail, Explanation, list[AuditEntry]]:
    detail = views.show_run(run_id)
    return detail, views.why_run(run_id), views.audit_of(f"run:{run_id}", AUDITED)


def _seen_run(run_id: str) -> tuple[RunDetail, Explanation, list[AuditEntry]]:
    found = read(("run", run_id), lambda views: _load_run(views, run_id))
    check_seen(access(), found[0].run.tenant, "run", run_id)
    return found


@pages.get("/runs/<run_id>")
def show_run(run_id: str) -> Any:
    """Show one run."""
    detail, why, audit = _seen_run(run_id)
    return show(
        "run.html",
        "_run.html",
        detail=detail,
        run=detail.run,
        why=why,
        audit=audit,
        payload=pretty(detail.payload or (detail.job.payload if detail.job else None)),
        own_payload=detail.payload is not None,
    )


Act = Callable[[Operations, str, str], str]
"""Does something to a run for a reason; returns what to say."""


def _cancel(verbs: Operations, run_id: str, reason: str) -> str:
    run = verbs.cancel(run_id, reason=reason)
    asked = run.cancel_requested and not run.terminal
    return "the run was asked to stop" if asked else "the run is cancelled"


def _replay(verbs: Operations, run_id: str, reason: str) -> str:
    run = verbs.replay(run_id, reason=reason)
    return f"the run is {run.state.value} again: replay {run.replays}"


def _discard(verbs: Operations, run_id: str, reason: str) -> str:
    verbs.discard(run_id, reason=reason)
    return "the run is discarded; it can be restored until it expires"


def _restore(verbs: Operations, run_id: str, reason: str) -> str:
    verbs.restore(run_id, reason=reason)
    return "the run is in the dead-letter queue again"


ACTS: Mapping[str, Act] = {
    "cancel": _cancel,
    "replay": _replay,
    "discard": _discard,
    "restore": _restore,
}


@pages.post("/runs/<run_id>/<any(cancel, replay, discard, restore):act>")
def act_on_run(run_id: str, act: str) -> Response:
    """Cancel, replay, discard or restore one run."""
    flash(ACTS[act](operations(), run_id, reason_of(request.form.get("reason"))))
    return redirect(url_for("runs.show_run", run_id=run_id), 303)


@pages.post("/runs/<run_id>/as-new")
def replay_as_new(run_id: str) -> Response:
    """Make a new run of a dead one, with an idempotency key of its own."""
    new = operations().replay_as_new(run_id, reason=reason_of(request.form.get("reason")))
    flash("this is the new run; the dead one is discarded and names it")
    return redirect(url_for("runs.show_run", run_id=new.run_id), 303)


@pages.post("/runs/<run_id>/edit")
def replay_edited(run_id: str) -> Response:
    """Bring a dead run back with another payload."""
    payload: Json = parse_payload(request.form.get("payload", ""))
    operations().replay_edited(run_id, payload, reason=reason_of(request.form.get("reason")))
    flash("the run is ready again, with the payload that you gave")
    return redirect(url_for("runs.show_run", run_id=run_id), 303)


@pages.post("/runs/<run_id>/unmask")
def unmask_run(run_id: str) -> Any:
    """Show a run with nothing masked, once; the audit keeps who saw it and why."""
    detail = operations().unmask_run(run_id, reason_of(request.form.get("reason")))
    payload = detail.payload or (detail.job.payload if detail.job else None)
    return show("unmasked.html", "_unmasked.html", detail=detail, payload=pretty(payload))
