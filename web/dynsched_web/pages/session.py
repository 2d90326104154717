"""The visitor's own pages: log in, log out, how pages shall look, the help."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from dynsched_web.desk import desk, flash
from dynsched_web.forms import Form
from dynsched_web.login import log_in
from dynsched_web.showing import wishes
from dynsched_web.wishes import REFRESHES, THEMES, Wishes, known_zone, remember

pages = Blueprint("session", __name__)


def local_path(text: str, default: str) -> str:
    r"""Return a path of this console, or the default for anything that leads elsewhere.

    >>> local_path("/runs?q=x", "/"), local_path("//evil.example/", "/"), local_path("/\\x", "/")
    ('/runs?q=x', '/', '/')
    """
    try:
        parts = urlsplit(text)
    except ValueError:  # half of an address in brackets
        return default
    strange = "\\" in text or any(ord(letter) < 33 for letter in text)
    if parts.scheme or parts.netloc or strange or not text.startswith("/") or text[:2] == "//":
        return default
    return text


def home(text: str) -> str:
    """Return where to go on, under the path that a proxy shows this console at."""
    path = local_path(text, "/")
    base = request.script_root
    return path if base and path.startswith(f"{base}/") else f"{base}{path}"


@pages.get("/login")
def login() -> Any:
    """Ask who it is."""
    return render_template("login.html", next=request.args.get("next", ""), fault="", name="")


@pages.post("/login")
def enter() -> Any:
    """Let somebody in who knows the password."""
    here, form = desk(), Form(request.form)
    name, address = form.text("name"), request.remote_addr or ""
    people, goes_on = here.config.people, form.text("next")
    wait_s = here.limit.wait_s(name, address)
    if wait_s:
        fault = f"Too many wrong passwords: wait {wait_s:.0f} seconds."
        page = render_template("login.html", next=goes_on, fault=fault, name=name)
        return page, 429, {"Retry-After": f"{wait_s:.0f}"}
    person = None if people is None else people.check(name, request.form.get("password", ""))
    if person is None:
        here.limit.note_failure(name, address)
        fault = "The name or the password is wrong."
        return render_template("login.html", next=goes_on, fault=fault, name=name), 401
    here.limit.forgive(name, address)
    log_in(person, clock=here.base.clock, rng=here.base.rng)
    return redirect(home(goes_on), 303)


@pages.post("/logout")
def leave() -> Response:
    """End the session, for whoever has a copy of its cookie too."""
    if "who" in session:
        desk().ended.add(session.get("csrf"))
    session.clear()
    return redirect(url_for("session.login"), 303)


@pages.post("/wishes")
def wish() -> Response:
    """Remember in the browser how pages shall look; the store is not touched."""
    form, before = Form(request.form), wishes()
    zone = form.text("zone") or before.zone
    if known_zone(zone) != zone:
        flash(f"there is no zone {zone!r}: times stay in {before.zone}", "bad")
        zone = before.zone
    refresh, theme = form.text("refresh"), form.text("theme")
    after = Wishes(
        zone=zone,
        theme=theme if theme in THEMES else before.theme,
        refresh_s=int(refresh) if refresh in map(str, REFRESHES) else before.refresh_s,
        keys=form.ticked("keys"),
    )
    answer = redirect(home(form.text("next")), 303)
    remember(answer, after, desk().config)
    return answer


@pages.get("/help")
def show_help() -> Any:
    """Show the keys, and how filters are written."""
    return render_template("help.html")
