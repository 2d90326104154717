"""Logging in by OIDC: to the provider, and back.

The session's cookie is Strict, so a browser that comes from the provider does not send it. What was
begun is therefore in a cookie of its own, which is sent then (Lax), to these two pages only, for
ten minutes; and who is let in is led on by a page of this console instead of a redirect.
"""

from __future__ import annotations

import hmac
import logging
from typing import Any

from flask import (
    Blueprint,
    abort,
    current_app,
    make_response,
    redirect,
    render_template,
    request,
    session,
    url_for,
)
from itsdangerous import BadData, URLSafeSerializer
from werkzeug.wrappers import Response

from dynsched.domain.instants import from_ms, to_ms
from dynsched.errors import DynschedError, Forbidden
from dynsched_web.desk import desk, now
from dynsched_web.login import access_for, log_in
from dynsched_web.oidc import OidcConfig, claimed
from dynsched_web.pages.session import home

log = logging.getLogger("dynsched.web")

pages = Blueprint("oidc", __name__)

COOKIE = "dynsched-oidc"
BEGUN_S = 600
NEXT_MAX = 1_500  # browsers keep cookies of four thousand bytes
OVER = "the login was not begun in this browser, or ten minutes ago: log in again"


@pages.get("/login/oidc")
def start() -> Any:
    """Lead to the provider; what was begun is kept in the browser, signed."""
    provider, config = _provider()
    goes_on = request.args.get("next", "")[:NEXT_MAX]
    back = _back()
    try:
        _check_limit()
        begun = provider.begin(back)
    except DynschedError as error:
        return _failed(error, goes_on)
    kept = {
        "state": begun.state,
        "nonce": begun.nonce,
        "verifier": begun.verifier,
        "back": back,
        "next": goes_on,
        "at": to_ms(now()),
        "mark": config.mark,
    }
    answer = redirect(begun.url, 303)
    answer.set_cookie(
        COOKIE,
        str(_signer().dumps(kept)),
        max_age=BEGUN_S,
        path=_path(),
        secure=desk().config.secure,
        httponly=True,
        samesite="Lax",
    )
    return answer


@pages.get("/login/oidc/return")
def come_back() -> Any:
    """Let in whom the provider names; whatever happens, what was begun is over."""
    _, config = _provider()
    goes_on = ""
    try:
        _check_limit()
        begun = _begun(config)
        goes_on = begun["next"]
        person = _person(config, begun)
    except DynschedError as error:
        if not isinstance(error, TooMany):
            desk().limit.note_failure(None, request.remote_addr or "")
        return _failed(error, goes_on)
    log_in(person, clock=desk().base.clock, rng=desk().base.rng)
    session["oidc"] = [person.role.value, person.tenant]
    allowed = access_for(person, desk().config)
    page = render_template("oidc_in.html", goes_on=home(goes_on), person=allowed)
    return _over(make_response(page))


class TooMany(DynschedError):
    """Somebody has failed to log in too often."""

    code = "too_many_logins"
    http_status = 429


def _provider() -> tuple[Any, OidcConfig]:
    here = desk()
    if here.provider is None or here.config.oidc is None:
        abort(404)
    return here.provider, here.config.oidc


def _person(config: OidcConfig, begun: dict[str, Any]) -> Any:
    """Return who has come back.

    Raises:
        DynschedError: nobody who may come in.
    """
    provider, _ = _provider()
    fault = request.args.get("error")
    if fault is not None:
        raise Forbidden(f"the login provider has let nobody in: {fault[:100]!r}")
    named = request.args.get("iss")
    if named is not None and named.rstrip("/") != config.issuer.rstrip("/"):
        raise Forbidden("another login provider has answered than was asked")
    claims = provider.finish(
        code=request.args.get("code", ""),
        nonce=begun["nonce"],
        verifier=begun["verifier"],
        back=begun["back"],
    )
    return claimed(claims, config)


def _begun(config: OidcConfig) -> dict[str, Any]:
    """Return the login that this browser has begun.

    Raises:
        Forbidden: none, another one, or too long ago.
    """
    try:
        found: dict[str, Any] = _signer().loads(request.cookies.get(COOKIE, ""))
    except BadData:
        raise Forbidden(OVER) from None
    given = request.args.get("state", "")
    same = hmac.compare_digest(str(found["state"]).encode(), given.encode())
    late = (now() - from_ms(found["at"])).total_seconds() >= BEGUN_S
    if not same or late or found["mark"] != config.mark:
        raise Forbidden(OVER)
    return found


def _check_limit() -> None:
    wait_s = desk().limit.wait_s(None, request.remote_addr or "")
    if wait_s:
        raise TooMany(f"too many logins have failed: wait {wait_s:.0f} seconds")


def _failed(error: DynschedError, goes_on: str) -> Response:
    """Say on the login's page why nobody came in, where another try is one press away."""
    log.warning("nobody was let in by OIDC: %s", error)
    words = str(error)
    fault = f"{words[:1].upper()}{words[1:]}."
    page = render_template("login.html", next=goes_on, fault=fault, name="")
    return _over(make_response(page, error.http_status))


def _over(answer: Response) -> Response:
    config = desk().config
    answer.delete_cookie(COOKIE, path=_path(), secure=config.secure, httponly=True, samesite="Lax")
    return answer


def _path() -> str:
    return f"{desk().config.base_path}/login/oidc"


def _back() -> str:
    """Return this console's own address for the answer, as the provider has it registered."""
    scheme = "https" if desk().config.secure else None
    return url_for("oidc.come_back", _external=True, _scheme=scheme)


def _signer() -> URLSafeSerializer:
    return URLSafeSerializer(str(current_app.secret_key), salt="dynsched.oidc")
