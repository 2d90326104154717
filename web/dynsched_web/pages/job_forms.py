"""The pages with the form of a job: to make one, to edit one, and to see what a schedule means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from dynsched.errors import InvalidInput
from dynsched.services.specs import make_schedule
from dynsched_web import htmx
from dynsched_web.desk import access, flash, now, operations, reason_of
from dynsched_web.forms import Form
from dynsched_web.job_form import (
    CHOICES,
    DEFAULTS,
    DOES,
    KINDS,
    SCHEDULE,
    Preview,
    differs,
    edits_of,
    fields_of,
    preview,
    schedule_of,
    spec_of,
)
from dynsched_web.pages.jobs import seen_job

pages = Blueprint("job_forms", __name__)


def _show_form(
    fields: Mapping[str, str],
    *,
    job_id: str = "",
    meant: Preview | None = None,
    fault: InvalidInput | None = None,
) -> Any:
    page = render_template(
        "job_form.html",
        fields=fields,
        job_id=job_id,
        meant=meant,
        fault=fault,
        choices=CHOICES,
        kinds=KINDS,
        does=DOES,
    )
    return page if fault is None else (page, fault.http_status)


def _meant(form: Form, job_id: str) -> tuple[Preview | None, InvalidInput | None]:
    try:
        return preview(schedule_of(form), job_id, now()), None
    except InvalidInput as fault:
        return None, fault


@pages.get("/jobs/new")
def new_job() -> Any:
    """Show an empty form."""
    return _show_form({**DEFAULTS, "tenant": access().tenant or "default"})


@pages.post("/jobs/preview")
def preview_job() -> Any:
    """Say what the schedule in a form means; nothing is written."""
    form, job_id = Form(request.form), request.form.get("job_id", "")
    meant, fault = _meant(form, job_id)
    if htmx.wants_part():
        return htmx.part(render_template("_preview.html", meant=meant, fault=fault))
    return _show_form(request.form, job_id=job_id, meant=meant, fault=fault)


@pages.post("/jobs")
def create_job() -> Any:
    """Make a job; a form that is wrong comes back as it was typed."""
    form = Form(request.form)
    try:
        job = operations().create(spec_of(form), reason=reason_of(form.text("reason")))
    except InvalidInput as fault:
        return _show_form(request.form, meant=_meant(form, "")[0], fault=fault)
    flash(f"{job.name} is made")
    return redirect(url_for("jobs.show_job", job_id=job.job_id), 303)


@pages.get("/jobs/<job_id>/edit")
def edit_job(job_id: str) -> Any:
    """Show the form of a job."""
    fields = fields_of(seen_job(job_id).detail)
    return _show_form(fields, job_id=job_id, meant=_meant(Form(fields), job_id)[0])


@pages.post("/jobs/<job_id>/edit")
def change_job(job_id: str) -> Any:
    """Change what differs from the job as it is; a form that is wrong comes back as typed."""
    form = Form(request.form)
    try:
        return _changed(job_id, form)
    except InvalidInput as fault:
        return _show_form(request.form, job_id=job_id, meant=_meant(form, job_id)[0], fault=fault)


def _changed(job_id: str, form: Form) -> Response:
    detail = seen_job(job_id).detail
    before, reason = fields_of(detail), reason_of(form.text("reason"))
    edits = edits_of(form, before, detail.job.policies)
    verbs, moved = operations(), differs(form, before, SCHEDULE)
    spec = schedule_of(form) if moved else None
    make_schedule(spec, job_id, now())
    # The schedule is known to be good by now, and comes last: a field that is refused leaves all
    # as it was.
    if edits or not moved:
        verbs.edit(job_id, **edits, reason=reason)
    if moved:
        verbs.reschedule(job_id, spec, reason=reason)
    flash("the job is changed" if edits or moved else "nothing was to be changed")
    return redirect(url_for("jobs.show_job", job_id=job_id), 303)
