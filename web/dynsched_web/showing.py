"""Showing: turns values into what templates print; nothing of a stranger's text acts on a page."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from flask import Flask, g, render_template, request, session, url_for
from markupsafe import Markup

from dynsched.domain.access import Action
from dynsched.domain.health import Grade
from dynsched.domain.instants import to_text
from dynsched.domain.lease_words import session_words
from dynsched.domain.run import Run, RunState
from dynsched.domain.time_words import distance, span
from dynsched.domain.visible import visible
from dynsched_web import charts, htmx
from dynsched_web.desk import access, desk, now, refusal
from dynsched_web.login import csrf_token
from dynsched_web.wishes import REFRESHES, THEMES, Wishes, wishes_of

TEXT_MAX = 20_000  # characters of one text on a page
SHORT_MAX = 160
QUERY_SAFE = "!$'()*,/:;?@"  # what an address may hold as it is, so that a filter stays readable
NEAR = timedelta(hours=20)
MARKS = {
    "ready": "◦", "leased": "▸", "failed": "↻", "done": "✓", "dead": "✕", "cancelled": "⊘",
    "skipped": "–", "active": "▸", "paused": "‖", "finished": "✓", "parked": "!", "deleted": "✕",
    "draft": "◦", "running": "▸", "aborted": "⊘", "expired": "–", "ok": "✓", "warn": "!",
    "bad": "✕", "begun": "▸", "refused": "⊘", "moved": "✓", "left": "◦", "closed": "–",
    "alive": "✓",
}  # fmt: skip
"""Shapes beside the words of states, so that no state is told by its colour alone."""


def shown(value: object, most: int = SHORT_MAX) -> str:
    """Return a text on one line, cut, with what would not show made visible."""
    text = str(value)
    return visible(text[:most]) + ("…" if len(text) > most else "")


def lines(value: object) -> str:
    """Return a text with its lines, cut, and all else that would not show made visible."""
    text = str(value)
    kept = "\n".join(visible(line) for line in text[:TEXT_MAX].splitlines())
    cut = len(text) - TEXT_MAX
    return kept if cut <= 0 else f"{kept}\n… {cut:,} more characters"


def pretty(text: str | None) -> str:
    r"""Return JSON text laid out, with what would not show escaped as JSON does; it means the same.

    >>> pretty('{"a":"x\u202ey"}').splitlines()[1]
    '  "a": "x\\u202ey"'
    """
    if text is None:
        return ""
    try:
        laid_out = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
    if laid_out.isascii():
        return laid_out
    return "".join(
        one if one == "\n" or visible(one) == one else json.dumps(one)[1:-1] for one in laid_out
    )


def wishes() -> Wishes:
    """Return what the present visitor wishes."""
    found: Wishes | None = g.get("wishes")
    if found is None:
        found = g.wishes = wishes_of(request)
    return found


def stamp(instant: datetime | None, *, near: bool = True) -> str | Markup:
    """Return an instant in the visitor's zone, and how far it is from now."""
    if instant is None:
        return "–"
    local = wishes().local(instant)
    zone = "Z" if wishes().zone == "UTC" else local.strftime("%z")
    words = f"{local:%Y-%m-%d %H:%M:%S}{zone}"
    shown_time = Markup('<time datetime="{}">{}</time>').format(to_text(instant), words)
    if not near:
        return shown_time
    return shown_time + Markup(" <small>{}</small>").format(distance(instant, now()))


def ago(instant: datetime | None) -> str | Markup:
    """Return how far an instant is from now; the instant itself is its title."""
    if instant is None:
        return "–"
    local = wishes().local(instant)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        to_text(instant), f"{local:%Y-%m-%d %H:%M:%S %z}", distance(instant, now())
    )


def moment(instant: datetime | None) -> str | Markup:
    """Return an instant for a cell: the time of a day near, the date of one further off."""
    if instant is None:
        return "–"
    local, today = wishes().local(instant), wishes().local(now())
    near = abs(today - local) < NEAR and local.date() == today.date()
    form = "%H:%M:%S" if near else "%m-%d %H:%M" if local.year == today.year else "%Y-%m-%d"
    return Markup('<time datetime="{}" title="{}">{}</time> <small>{}</small>').format(
        to_text(instant),
        f"{local:%Y-%m-%d %H:%M:%S %z}",
        local.strftime(form),
        distance(instant, now()),
    )


def trouble_of(run: Run) -> str:
    """Return what a list says is wrong with a run: the error if it failed, else why it is so."""
    failed = run.state in (RunState.DEAD, RunState.FAILED) or not run.terminal
    return (run.error if failed else "") or run.reason


def lasting(duration: timedelta | None) -> str:
    """Return a duration in words."""
    return "–" if duration is None else span(duration)


def state(word: object, text: str = "") -> Markup:
    """Return a state as a shape and a word."""
    name = str(getattr(word, "value", word))
    return Markup('<span class="state s-{}"><i aria-hidden="true">{}</i>{}</span>').format(
        name, MARKS.get(name, "·"), text or name
    )


def delay_of(run: Run) -> timedelta | None:
    """Return how late a run started, or is by now; None for what never starts."""
    if run.first_started_at is not None:
        return max(run.first_started_at - run.scheduled_for, timedelta(0))
    if run.terminal:
        return None
    return max(now() - run.scheduled_for, timedelta(0))


def lasted(run: Run) -> timedelta | None:
    """Return how long the last try of a run took, or has taken by now."""
    if run.started_at is None or (run.ended_at is None and run.leased_at is None):
        return None
    return max((run.ended_at or now()) - run.started_at, timedelta(0))


def page_url(**changes: object) -> str:
    """Return the present page's address with other arguments; None takes one away."""
    arguments: dict[str, Any] = {name: request.args.getlist(name) for name in request.args}
    arguments.pop("run", None)  # what is ticked belongs to the page, not to its address
    arguments |= changes
    kept = {name: value for name, value in arguments.items() if value not in (None, "", [])}
    if request.endpoint is None or request.method != "GET":
        return url_for("overview.show_overview")
    # Names in an address are a stranger's: to `url_for` some would mean something else.
    path = url_for(request.endpoint, **(request.view_args or {}))
    query = urlencode(kept, doseq=True, safe=QUERY_SAFE)
    return f"{path}?{query}" if query else path


def show(template: str, part: str, **values: object) -> Any:
    """Return a page, or only the part of it that changes if the browser asks for that."""
    if htmx.wants_part():
        return htmx.part(render_template(part, **values))
    return render_template(template, part=part, **values)


def _context() -> dict[str, Any]:
    here = desk()
    asker = g.get("access")
    asks = here.config
    return {
        "access": asker,
        "config": asks,
        "csrf": csrf_token(here.base.rng),
        "wishes": wishes(),
        "refreshes": REFRESHES,
        "themes": THEMES,
        "has_htmx": here.htmx,
        "said": session.pop("said", []) if not htmx.wants_part() else [],
        "troubles": g.get("troubles", []),
        "now": now(),
        "Action": Action,
    }


def init(app: Flask) -> None:
    """Give templates their words."""
    app.context_processor(_context)
    app.jinja_env.filters |= {
        "v": shown,
        "lines": lines,
        "stamp": stamp,
        "ago": ago,
        "moment": moment,
        "lasting": lasting,
        "state": state,
    }
    app.jinja_env.globals |= {
        "page_url": page_url,
        "refusal": refusal,
        "session_words": session_words,
        "delay_of": delay_of,
        "lasted": lasted,
        "trouble_of": trouble_of,
        "charts": charts,
        "Grade": Grade,
        "who": access,
    }
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
