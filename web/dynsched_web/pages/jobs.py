"""Jobs: the list, one job with its past and coming occurrences, and all that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from dynsched.domain.audit import AuditEntry
from dynsched.domain.explanation import Explanation
from dynsched.domain.filters import JOBS, Filter
from dynsched.domain.job import Job
from dynsched.domain.payload import parse_payload
from dynsched.domain.run import Run
from dynsched.errors import InvalidInput
from dynsched.services.job_views import JobDetail, coming
from dynsched.services.search import Found
from dynsched.services.views import Views
from dynsched_web.desk import access, flash, now, operations, read, reason_of
from dynsched_web.forms import Form
from dynsched_web.pages.lists import EXAMINE, LIMIT, page_of, show_list
from dynsched_web.scope import check_seen
from dynsched_web.showing import pretty, show

pages = Blueprint("jobs", __name__)

PAST = 40
COMING = 10
AUDITED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One occurrence in the strip of a job.

    Attributes:
        at: its instant.
        run: its run; None for one that is still to come.
    """

    at: datetime
    run: Run | None = None


def _load_jobs(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[Job], Mapping[str, str]]:
    return views.find_jobs(given, limit=LIMIT, cursor=cursor, examine=EXAMINE), {}


@pages.get("/jobs")
def show_jobs() -> Any:
    """Show jobs by tenant and name."""
    page = page_of("jobs", JOBS, _load_jobs)
    found = () if page.found is None else page.found.items
    ahead = {job.job_id: next(iter(coming(job, now(), 1)), None) for job in found}
    return show_list("jobs.html", "_jobs.html", page, ahead=ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    detail: JobDetail
    runs: Sequence[Run]
    audit: Sequence[AuditEntry]


def _load_job(views: Views, job_id: str) -> _Seen:
    job = views.find_job(job_id, deleted=True)
    detail = views.show_job(job)
    found = views.find_runs(f"job:{job.job_id}", limit=PAST, examine=EXAMINE)
    return _Seen(
        detail=detail,
        runs=found.items,
        audit=views.audit_of(f"job:{job.job_id}", AUDITED),
    )


def seen_job(job_id: str) -> _Seen:
    """Return a job that the present visitor may see.

    Raises:
        NotFound: there is none.
    """
    found = read(("job", job_id), lambda views: _load_job(views, job_id))
    check_seen(access(), found.detail.job.tenant, "job", job_id)
    return found


@pages.get("/jobs/<job_id>")
def show_job(job_id: str) -> Any:
    """Show one job."""
    found = seen_job(job_id)
    job = found.detail.job
    made = {run.scheduled_for for run in found.runs}
    ahead = coming(job, now(), COMING)
    boxes = [Box(at=run.scheduled_for, run=run) for run in found.runs]
    boxes += [Box(at=at) for at in ahead if at not in made]
    return show(
        "job.html",
        "_job.html",
        detail=found.detail,
        job=job,
        runs=found.runs[:20],
        audit=found.audit,
        payload=pretty(found.detail.payload),
        boxes=sorted(boxes, key=lambda box: box.at),
        ahead=ahead,
    )


@pages.get("/jobs/<job_id>/why")
def why_instant(job_id: str) -> Any:
    """Explain what became, or is to become, of an instant of a job."""
    job = seen_job(job_id).detail.job
    at = Form(request.args).instant("at")
    why: Explanation = read(
        ("why", job.job_id, at), lambda views: views.why_instant(job.job_id, at, job.tenant)
    )
    return show("why.html", "_why_page.html", why=why, job=job, at=at)


@pages.post("/jobs/<job_id>/pause")
def pause_job(job_id: str) -> Response:
    """Pause a job; the reason is told to whoever asks why.

    Raises:
        InvalidInput: there is no reason.
    """
    form = Form(request.form)
    reason = reason_of(form.text("reason"))
    if not reason:
        raise InvalidInput("reason", "it is empty", "say why: whoever asks is told")
    changed = operations().pause(job_id, reason=reason, hold=form.ticked("hold"))
    flash(f"{changed.job.name} is paused")
    return _to_job(job_id)


@pages.post("/jobs/<job_id>/resume")
def resume_job(job_id: str) -> Response:
    """Resume a paused job."""
    changed = operations().resume(job_id, reason=reason_of(request.form.get("reason")))
    flash(f"{changed.job.name} goes on; what was named meanwhile is counted as skipped")
    return _to_job(job_id)


@pages.post("/jobs/<job_id>/run")
def run_job(job_id: str) -> Response:
    """Make a run of a job now."""
    form = Form(request.form)
    text = form.text("payload")
    run = operations().run_now(
        job_id,
        payload=parse_payload(text) if text else None,
        force=form.ticked("force"),
        reason=reason_of(form.text("reason")),
    )
    flash("the run is made; a free worker takes it within a second or two")
    return redirect(url_for("runs.show_run", run_id=run.run_id), 303)


@pages.post("/jobs/<job_id>/delete")
def delete_job(job_id: str) -> Response:
    """Delete a job whose name was typed.

    Raises:
        InvalidInput: another name was typed.
    """
    form = Form(request.form)
    if form.text("name") != seen_job(job_id).detail.job.name:
        raise InvalidInput("name", "it is not the job's", "type the job's name to delete it")
    changed = operations().delete(job_id, reason=reason_of(form.text("reason")))
    flash(f"{changed.job.name} is deleted; its runs are kept until their retention is over")
    return redirect(url_for("jobs.show_jobs"), 303)


def _to_job(job_id: str) -> Response:
    return redirect(url_for("jobs.show_job", job_id=job_id), 303)
