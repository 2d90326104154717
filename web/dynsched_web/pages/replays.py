"""Replay batches: preview, confirm, progress, result; each is a page that can be shared."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flask import Blueprint, Response, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from dynsched.domain.audit import AuditEntry
from dynsched.domain.batch import BREAKER, Batch
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.filters import RUNS, parse
from dynsched.domain.instants import to_text
from dynsched.domain.job import Priority
from dynsched.domain.visible import visible
from dynsched.errors import InvalidInput
from dynsched.services.operations import Operations
from dynsched.services.search import Found
from dynsched.services.views import BatchDetail, BatchEntry, Views
from dynsched_web.desk import access, desk, flash, operations, read, reason_of
from dynsched_web.forms import Form
from dynsched_web.pages.dlq import chosen
from dynsched_web.pages.lists import job_labels
from dynsched_web.scope import check_seen, scoped, seen_batches
from dynsched_web.showing import show

pages = Blueprint("replays", __name__)

LIMIT = 50
EXPORT_PAGE = 1_000
AUDITED = 20
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@pages.get("/replays")
def show_replays() -> Any:
    """Show replay batches, newest first."""
    cursor, tenant = request.args.get("cursor") or None, access().tenant
    found = read(
        ("replays", tenant, cursor),
        lambda views: seen_batches(views, tenant, limit=LIMIT, cursor=cursor),
    )
    return show("replays.html", "_replays.html", batches=found.items, cursor=found.cursor)


@pages.post("/replays")
def preview_replay() -> AnyResponse:
    """Freeze what is to be replayed as a draft, and show it."""
    form = Form(request.form)
    text = scoped(chosen(form.text("filter"), request.form.getlist("run")), RUNS, access()).text
    priority = form.text("priority")
    draft = operations().preview_replay(
        text,
        reason=reason_of(form.text("reason")),
        limit=form.whole("limit"),
        rate=form.rate("rate"),
        canary=form.whole("canary") or 0,
        canary_hold=form.ticked("canary_hold"),
        breaker=_part(form.number("breaker_percent")),
        priority=Priority(priority) if priority in {one.value for one in Priority} else None,
    )
    return redirect(url_for("replays.show_replay", batch_id=draft.batch_id), 303)


def _part(percent: float | None) -> float:
    return BREAKER if percent is None else percent / 100


Loaded = tuple[BatchDetail, Found[BatchEntry], Mapping[str, str], list[AuditEntry]]


def _outcome(text: str | None) -> Outcome | None:
    known = {one.value: one for one in Outcome}
    if text and text not in known:
        raise InvalidInput("outcome", f"{text!r} is unknown", f"give {', '.join(known)}")
    return known.get(text or "")


def _load_replay(
    views: Views, batch_id: str, outcome: Outcome | None, cursor: str | None
) -> Loaded:
    detail = views.batch(batch_id)
    entries = views.batch_entries(batch_id, outcome, limit=LIMIT, cursor=cursor)
    jobs = list(detail.batch.counts.get("job", {}))
    jobs += [entry.run.job_id for entry in entries.items if entry.run is not None]
    return detail, entries, job_labels(views, jobs), views.audit_of(f"batch:{batch_id}", AUDITED)


@pages.get("/replays/<batch_id>")
def show_replay(batch_id: str) -> Any:
    """Show one batch: a draft to be confirmed, one that runs, or its result."""
    outcome, cursor = _outcome(request.args.get("outcome")), request.args.get("cursor") or None
    detail, entries, names, audit = read(
        ("replay", batch_id, outcome, cursor),
        lambda views: _load_replay(views, batch_id, outcome, cursor),
    )
    batch = detail.batch
    check_seen(access(), batch.tenant, "batch", batch_id)
    return show(
        "replay.html",
        "_replay.html",
        detail=detail,
        batch=batch,
        entries=entries,
        names=names,
        audit=audit,
        outcome=outcome,
        outcomes=tuple(Outcome),
        newer=detail.newer if _tells_newer(batch) else None,
    )


def _tells_newer(batch: Batch) -> bool:
    """Return whether the count of newer dead runs is of what the visitor may see."""
    return access().tenant is None or bool(parse(batch.filter, RUNS).asking("tenant"))


@pages.post("/replays/<batch_id>/confirm")
def confirm_replay(batch_id: str) -> AnyResponse:
    """Start a draft; whoever comes second is shown who was first."""
    form = Form(request.form)
    batch = operations().confirm_replay(
        batch_id, reason=reason_of(form.text("reason")), count=form.whole("count")
    )
    flash(f"the replay of {batch.planned:,} runs has begun")
    return redirect(url_for("replays.show_replay", batch_id=batch_id), 303)


def _pause(verbs: Operations, batch_id: str, reason: str) -> str:
    verbs.pause_replay(batch_id, reason=reason)
    return "the replay is paused"


def _resume(verbs: Operations, batch_id: str, reason: str) -> str:
    verbs.resume_replay(batch_id, reason=reason)
    return "the replay goes on"


def _abort(verbs: Operations, batch_id: str, reason: str) -> str:
    batch = verbs.abort_replay(batch_id, reason=reason)
    return f"the replay is aborted; {batch.left:,} runs stay dead"


def _pull_back(verbs: Operations, batch_id: str, reason: str) -> str:
    verbs.abort_replay(batch_id, reason=reason, pull_back=True)
    return "the replay is aborted; what was moved and not tried yet is made dead again"


ACTS: Mapping[str, Callable[[Operations, str, str], str]] = {
    "pause": _pause,
    "resume": _resume,
    "abort": _abort,
    "pull-back": _pull_back,
}


@pages.post("/replays/<batch_id>/<any(pause, resume, abort, 'pull-back'):act>")
def act_on_replay(batch_id: str, act: str) -> AnyResponse:
    """Pause, resume or abort a batch."""
    flash(ACTS[act](operations(), batch_id, reason_of(request.form.get("reason"))))
    return redirect(url_for("replays.show_replay", batch_id=batch_id), 303)


@pages.post("/replays/<batch_id>/pace")
def pace_replay(batch_id: str) -> AnyResponse:
    """Change the rate of a batch."""
    form = Form(request.form)
    operations().pace_replay(batch_id, form.rate("rate"), reason=reason_of(form.text("reason")))
    flash("the rate is changed")
    return redirect(url_for("replays.show_replay", batch_id=batch_id), 303)


@pages.post("/replays/<batch_id>/rest")
def rest_of_replay(batch_id: str) -> AnyResponse:
    """Freeze what a batch has not moved as a new draft."""
    draft = operations().rest_of_replay(batch_id, reason=reason_of(request.form.get("reason")))
    return redirect(url_for("replays.show_replay", batch_id=draft.batch_id), 303)


@pages.get("/replays/<batch_id>/entries.csv")
def export_replay(batch_id: str) -> Response:
    """Return all entries of a batch with what became of them."""
    views = desk().views
    check_seen(access(), views.batch(batch_id).batch.tenant, "batch", batch_id)
    answer = Response(_csv(views, batch_id), mimetype="text/csv")
    answer.headers["Content-Disposition"] = f'attachment; filename="replay-{batch_id}.csv"'
    return answer


def _csv(views: Views, batch_id: str) -> Iterator[str]:
    yield _line("run_id", "died_at", "outcome", "why", "state", "error")
    cursor: str | None = None
    while True:
        found = views.batch_entries(batch_id, limit=EXPORT_PAGE, cursor=cursor)
        for entry in found.items:
            run = entry.run
            yield _line(
                entry.run_id,
                to_text(entry.died_at),
                entry.outcome.value,
                entry.why,
                "" if run is None else run.state.value,
                "" if run is None else visible(run.error),
            )
        cursor = found.cursor
        if cursor is None:
            return


def _line(*cells: str) -> str:
    """Return a line of CSV in which no cell is a formula to a spreadsheet."""
    written = io.StringIO()
    csv.writer(written).writerow(
        [f"'{cell}" if cell.startswith(FORMULA) else cell for cell in cells]
    )
    return written.getvalue()
