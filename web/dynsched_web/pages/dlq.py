"""The dead-letter queue: groups of errors first, then entries; from both to a replay's preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from dynsched.domain.filters import GROUPS, RUNS, Filter, term_text
from dynsched.domain.health import ErrorGroup
from dynsched.errors import DynschedError, InvalidInput
from dynsched.services.search import Found
from dynsched.services.views import Views
from dynsched_web.desk import flash, operations, reason_of
from dynsched_web.pages.lists import LIMIT, asked, job_labels, page_of, show_list
from dynsched_web.pages.runs import load_runs

pages = Blueprint("dlq", __name__)

DISCARD_MAX = 50
JOBS_SHOWN = 3  # of a group
ONLY_DEAD = "state:dead"


def _load_groups(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[ErrorGroup], Mapping[str, str]]:
    found = views.groups(given, limit=LIMIT, cursor=cursor)
    shown = [job for group in found.items for job in list(group.jobs)[:JOBS_SHOWN]]
    return found, job_labels(views, shown)


@pages.get("/dlq")
def show_dlq() -> Any:
    """Show dead runs by group, or as entries."""
    if request.args.get("by") == "entries":
        page = page_of("entries", RUNS, load_runs, more=ONLY_DEAD)
        return show_list("dlq_entries.html", "_runs.html", page, replay=True)
    groups = page_of("groups", GROUPS, _load_groups)
    return show_list("dlq.html", "_groups.html", groups)


@pages.post("/dlq/discard")
def discard_runs() -> Response:
    """Hide the ticked dead runs.

    Raises:
        InvalidInput: none are ticked, too many, or their number was not typed.
        DynschedError: one was refused; those before it are discarded, and the page says so.
    """
    run_ids = list(dict.fromkeys(request.form.getlist("run")))
    if not run_ids:
        raise InvalidInput("run", "none is ticked", "tick the runs to discard")
    if len(run_ids) > DISCARD_MAX:
        raise InvalidInput("run", f"{len(run_ids)} are ticked", f"tick at most {DISCARD_MAX}")
    if request.form.get("count", "").strip() != str(len(run_ids)):
        raise InvalidInput("count", f"it is not {len(run_ids)}", "type how many you discard")
    reason = reason_of(request.form.get("reason"))
    verbs = operations()
    for done, run_id in enumerate(run_ids):
        try:
            verbs.discard(run_id, reason=reason)
        except DynschedError:
            if done:
                flash(f"{done} of {len(run_ids)} runs are discarded, then it stopped", "bad")
            raise
    flash(f"{len(run_ids)} runs are discarded; each can be restored until it expires")
    return redirect(url_for("dlq.show_dlq", by="entries", q=asked() or None), 303)


def chosen(form_filter: str, run_ids: list[str]) -> str:
    """Return the filter of a preview: of the ticked runs if there are any, else as given."""
    return term_text("id", *dict.fromkeys(run_ids)) if run_ids else form_filter.strip()
