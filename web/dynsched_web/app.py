"""The application: pages, guard and words put together for one store."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from flask import Flask, Response, g, make_response, render_template, request
from werkzeug.exceptions import HTTPException

from dynsched.bootstrap import Base
from dynsched.domain.time_words import number
from dynsched.errors import DynschedError, NotFound, StoreError
from dynsched_web import guard, htmx, showing
from dynsched_web.api import ROOT, Limits, api_blueprint, no_route
from dynsched_web.config import WebConfig
from dynsched_web.desk import NAME, desk, make_desk
from dynsched_web.guard import API, SAFE_METHODS
from dynsched_web.login import TOKEN_BYTES
from dynsched_web.pages import (
    dlq,
    job_forms,
    jobs,
    oidc,
    overview,
    probes,
    replays,
    runs,
    session,
    store,
)
from dynsched_web.proxies import BasePath, Proxies

log = logging.getLogger("dynsched.web")

SCRIPT = "vendor/htmx.min.js"
NOT_LET_IN = frozenset({401, 429})
FORM_BYTES_MAX = 2 * 1024 * 1024
PAGES = (overview, runs, jobs, job_forms, dlq, replays, store, probes, session, oidc)


def create_app(base: Base, config: WebConfig) -> Flask:
    """Return the web console of a store as a WSGI application."""
    app = Flask("dynsched_web")
    there = Path(app.static_folder or "", SCRIPT).is_file()
    app.extensions[NAME] = make_desk(base, config, htmx=there)
    app.config.update(
        SECRET_KEY=config.secret or base.rng.randbytes(TOKEN_BYTES).hex(),
        SESSION_COOKIE_NAME="dynsched",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_COOKIE_SECURE=config.secure,
        SESSION_COOKIE_PATH=config.base_path or "/",
        PERMANENT_SESSION_LIFETIME=config.session,
        SESSION_REFRESH_EACH_REQUEST=False,
        MAX_CONTENT_LENGTH=FORM_BYTES_MAX,
        MAX_FORM_MEMORY_SIZE=FORM_BYTES_MAX,
        SEND_FILE_MAX_AGE_DEFAULT=3_600,
    )
    htmx.init(app)
    guard.init(app)
    showing.init(app)
    for module in PAGES:
        app.register_blueprint(module.pages)
    limits = Limits(replay_runs=config.access.replay_limit)
    app.register_blueprint(api_blueprint(base, read_only=config.access.read_only, limits=limits))
    app.register_error_handler(DynschedError, _refused)
    app.register_error_handler(HTTPException, _unknown)
    app.register_error_handler(Exception, _broken)
    app.after_request(_forget)
    inner = BasePath(app.wsgi_app, config.base_path)
    app.wsgi_app = Proxies(  # type: ignore[method-assign]
        inner, trusted=config.proxies, user_header=config.proxy_header
    )
    return app


def _forget(response: Response) -> Response:
    """Let nobody see an answer from before a change.

    Who was not let in has changed nothing, and shall not make the store be read again for all.
    """
    let_in = g.get("access") is not None or request.blueprint == API
    if request.method not in SAFE_METHODS and let_in and response.status_code not in NOT_LET_IN:
        desk().reading.forget()
    return response


def _page(status: int, title: str, sentence: str) -> Any:
    g.setdefault("troubles", [])
    g.setdefault("access", None)
    if htmx.wants_part():
        return Response(sentence, status, mimetype="text/plain")
    return render_template("error.html", title=title, sentence=sentence, status=status), status


TITLES = {
    401: "Log in again",
    403: "This is refused",
    404: "There is no such thing",
    409: "Somebody was first",
    422: "Something is wrong with what was given",
    429: "Too much at once",
    503: "The store does not answer",
}


def _refused(error: DynschedError) -> Any:
    if isinstance(error, StoreError):
        log.warning("%s %s: %s", request.method, request.path, error)
    sentence = str(error)
    asker = g.get("access")
    if isinstance(error, NotFound) and asker is not None and asker.tenant is not None:
        # The advice may name other tenants, and tells what is theirs from what is nowhere.
        sentence = str(NotFound(error.kind, error.name))
    return _page(error.http_status, TITLES.get(error.http_status, "It failed"), sentence)


def _unknown(error: HTTPException) -> Any:
    status = error.code or 500
    if status < 400:
        return error
    if request.path.startswith(f"{ROOT}/"):
        return no_route()  # a method of which the API's blueprint does not hear
    title = TITLES.get(status, error.name)
    words = error.description or f"The request ended with {number(status, 'x')}"
    answer = make_response(_page(status, title, words))
    answer.headers.extend(one for one in error.get_headers() if one[0] != "Content-Type")
    return answer


def _broken(error: Exception) -> Any:
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return _page(500, "The console has a fault", "It is written down in the console's log.")
