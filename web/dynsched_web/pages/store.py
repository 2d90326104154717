"""Pages about the store: tenants, workers, the audit, the system itself."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from dynsched.domain.audit import AuditEntry
from dynsched.domain.filters import AUDIT, TENANTS, WORKERS, Filter
from dynsched.domain.health import WorkerLine
from dynsched.domain.time_words import span
from dynsched.services.search import Found
from dynsched.services.views import AuditQuery, TenantShare, Views
from dynsched.services.worker_views import worker_state
from dynsched.settings import Settings
from dynsched.version import VERSION
from dynsched_web.desk import access, desk, flash, health, now, operations, reason_of
from dynsched_web.forms import Form
from dynsched_web.pages.lists import EXAMINE, LIMIT, page_of, show_list
from dynsched_web.scope import check_whole
from dynsched_web.showing import show

pages = Blueprint("store", __name__)


def _load_tenants(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[TenantShare], Mapping[str, str]]:
    return views.find_tenants(given, limit=LIMIT, cursor=cursor), {}


@pages.get("/tenants")
def show_tenants() -> Any:
    """Show the tenants with their caps, and what of theirs waits, runs and has died."""
    page = page_of("tenants", TENANTS, _load_tenants)
    return show_list("tenants.html", "_tenants.html", page)


@pages.post("/tenants/<name>/cap")
def cap_tenant(name: str) -> Response:
    """Cap how many runs of a tenant run at once; an empty field lifts the cap."""
    form = Form(request.form)
    tenant = operations().set_tenant(
        name, max_running=form.whole("max_running"), reason=reason_of(form.text("reason"))
    )
    cap = "no cap" if tenant.max_running is None else f"a cap of {tenant.max_running}"
    flash(f"{name} has {cap}; it holds within five seconds")
    return redirect(url_for("store.show_tenants"), 303)


def _load_workers(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[WorkerLine], Mapping[str, str]]:
    del cursor  # there are a hundred at most
    return views.find_workers(given), {}


@pages.get("/workers")
def show_workers() -> Any:
    """Show the worker sessions."""
    check_whole(access())
    page = page_of("workers", WORKERS, _load_workers)
    found = () if page.found is None else page.found.items
    states = {one.session: worker_state(one, now()) for one in found}
    return show_list("workers.html", "_workers.html", page, states=states)


def _load_audit(
    views: Views, given: Filter, cursor: str | None
) -> tuple[Found[AuditEntry], Mapping[str, str]]:
    query = AuditQuery(filter=given.text, limit=LIMIT, cursor=cursor, examine=EXAMINE)
    return views.audit(query), {}


@pages.get("/audit")
def show_audit() -> Any:
    """Show who did what, newest first."""
    return show_list("audit.html", "_audit.html", page_of("audit", AUDIT, _load_audit))


@pages.get("/system")
def show_system() -> Any:
    """Show the parts of the scheduler, and how this console was started."""
    check_whole(access())
    here = desk()
    return show(
        "system.html",
        "_system.html",
        health=health(),
        settings=_settings(here.base.settings),
        versions={"dynsched": VERSION, "python": platform.python_version()},
        console={
            "store": here.config.url or "–",
            "environment": here.config.environment or "–",
            "login": _login_words(),
            "read-only": "yes" if here.config.access.read_only else "no",
            "path": here.config.base_path or "/",
            "htmx": "there" if here.htmx else "missing: pages do not refresh by themselves",
        },
    )


def _login_words() -> str:
    config = desk().config
    if not config.login:
        return "none: this machine only"
    ways = ["password file"] if config.people is not None else []
    return ", ".join([*ways, *([f"proxy header {config.proxy_header}"] if config.proxies else [])])


def _settings(settings: Settings) -> Mapping[str, str]:
    """Return the settings in force in words, without those that name secrets."""
    usual, found = Settings(), {}
    for one in fields(Settings):
        value = getattr(settings, one.name)
        words = ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
        words = span(value) if isinstance(value, timedelta) else words
        found[one.name] = words if value == getattr(usual, one.name) else f"{words} (changed)"
    return found
