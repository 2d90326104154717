"""The guard: what every request passes before a page sees it, and every answer on its way out."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from flask import Flask, Response, g, redirect, request, session, url_for
from werkzeug.wrappers import Response as AnyResponse

from dynsched.errors import DynschedError, Forbidden
from dynsched_web import htmx
from dynsched_web.desk import desk
from dynsched_web.login import who_asks

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOGIN = {"session.login", "session.enter", "oidc.start", "oidc.come_back"}
OPEN = frozenset({"static", "probes.healthz", "probes.readyz"} | LOGIN)
API = "api"  # a blueprint that checks tokens itself; no cookie opens it
OWN_SITES = frozenset({"same-origin", "none"})
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class MustLogIn(DynschedError):
    """Nobody has logged in, or the session is over."""

    code = "must_log_in"
    http_status = 401


def init(app: Flask) -> None:
    """Put the guard before an application's pages."""
    app.before_request(_admit)
    app.after_request(_seal)


def _admit() -> AnyResponse | None:
    """Refuse what may not come in; say who asks.

    Raises:
        MustLogIn: a script or a form asks without a session.
        Forbidden: the request comes from another site, or under another name.
    """
    g.troubles = []
    config = desk().config
    g.access = None
    _check_host(config.hosts)
    if request.blueprint == API:
        return None
    g.access = who_asks(request, config, desk().base.clock, desk().ended)
    if request.endpoint is None:
        return None
    if request.method not in SAFE_METHODS:
        _check_origin()
    if g.access is None and not _is_open():
        if request.method == "GET" and not htmx.wants_part():
            return redirect(url_for("session.login", next=request.full_path.rstrip("?")))
        raise MustLogIn("your session is over: log in again")
    return None


def _is_open() -> bool:
    metrics = request.endpoint == "probes.metrics" and desk().config.open_metrics
    return request.endpoint in OPEN or metrics


def _check_host(hosts: tuple[str, ...]) -> None:
    """Refuse a name that a stranger may have turned to this machine."""
    if not hosts:
        return
    name = urlsplit(f"//{request.host}").hostname or ""
    if name not in {host.strip("[]") for host in hosts}:
        raise Forbidden(f"this console does not answer to the name {name!r}")


def _check_origin() -> None:
    """Refuse a form that this console has not sent to this visitor."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in OWN_SITES:
        raise Forbidden("the form comes from another site")
    token = request.headers.get("X-CSRF-Token") or request.form.get("csrf", "")
    known = session.get("csrf")
    if not isinstance(known, str) or not hmac.compare_digest(token.encode(), known.encode()):
        raise Forbidden("the form is too old or not from here: open the page again, and send it")


def _seal(response: Response) -> Response:
    """Say what browsers may do with an answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.endpoint != "static":
        response.headers.setdefault("Cache-Control", "no-store")
    response.vary.update(("HX-Request", "Cookie"))
    return response
