"""The blueprint: checks each request against its route, asks who comes, calls, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from dynsched.bootstrap import Base, build_operations, build_views
from dynsched.domain.access import REPLAY_LIMIT, Access
from dynsched.domain.payload import read_json
from dynsched.errors import Forbidden, InvalidInput, NotFound
from dynsched.services.documents import Document
from dynsched.services.views import Views
from dynsched_web.api import dead, jobs, replays, runs, store
from dynsched_web.api.bearers import Bearers
from dynsched_web.api.openapi import openapi_document
from dynsched_web.api.problems import Refused, problem_response
from dynsched_web.api.route import PLACES, Call, Route, Routes
from dynsched_web.api.schema import Schema, check

NAME = "api"
ROOT = "/api/v1"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")
_DOCUMENT = Routes("about")
_NOBODY = Access(actor="nobody", read_only=True, via="api")


@_DOCUMENT.route("GET", "/openapi.json", answer={"type": "object"}, open=True)
def get_openapi(_: Call) -> Document:
    """Describe this API, as OpenAPI 3.1."""
    return _described(request.script_root + ROOT)


@lru_cache(maxsize=4)  # anybody may ask, and making it takes some milliseconds
def _described(root: str) -> Document:
    return openapi_document(ROUTES, root=root)


ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *runs.ROUTES,
    *dead.ROUTES,
    *replays.ROUTES,
    *store.ROUTES,
    *_DOCUMENT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request may cost.

    Attributes:
        body_bytes: of a body; a payload has 256 KB at most, and may be laid out with spaces.
        replay_runs: of a batch that a bearer who is no admin confirms.
        failures_max: requests of one address without a good token within the period.
        failures_period: after which they are forgotten.
    """

    body_bytes: int = 1_100_000
    replay_runs: int = REPLAY_LIMIT
    failures_max: int = 30
    failures_period: timedelta = timedelta(minutes=1)


def api_blueprint(
    base: Base, *, read_only: bool = False, limits: Limits | None = None
) -> Blueprint:
    """Return the API of a store, to be registered by an application.

    It needs nothing of that application: it looks at no cookie, answers what it does not know
    itself, and lets no error out.

    Args:
        base: the open store.
        read_only: refuse every change, whatever the token.
        limits: what a request may cost.
    """
    limits = limits or Limits()
    api = Blueprint(NAME, __name__, url_prefix=ROOT)
    views = build_views(base, read_only=read_only)
    bearers = Bearers(
        views,
        base.clock,
        read_only=read_only,
        replay_limit=limits.replay_runs,
        failures_max=limits.failures_max,
        period=limits.failures_period,
    )
    for route in ROUTES:
        api.add_url_rule(
            route.rule,
            route.name,
            _view(route, base, views, bearers, limits),
            methods=[route.method],
            provide_automatic_options=False,
        )
    for rule in ("/", "/<path:_rest>"):
        api.add_url_rule(
            rule, "unknown", _unknown, methods=METHODS, provide_automatic_options=False
        )
    api.register_error_handler(Exception, problem_response)
    api.after_request(_sealed)
    return api


def _view(
    route: Route, base: Base, views: Views, bearers: Bearers, limits: Limits
) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        access, address, shown = _NOBODY, request.remote_addr or "", False
        if route.run_token and not _has("Authorization"):
            access = bearers.of_run(address)
            shown = bool(_body(route, limits.body_bytes).get(route.run_token))
        if not route.open and not shown:
            access = bearers.access(request.headers.get("Authorization"), address)
        call = Call(
            access=access,
            views=views,
            operations=build_operations(base, access),
            clock=base.clock,
            path=_path(path),
            query=_query(route.query),
            headers={name: request.headers[name] for name in route.headers if _has(name)},
            body=_body(route, limits.body_bytes),
        )
        try:
            document = route.act(call)
        except Forbidden:
            if shown:
                bearers.note_wrong(address)
            raise
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        return Response(text.encode("utf-8", "backslashreplace"), route.status, _HEADERS)

    return view


_WHOLE = re.compile("-?[0-9]{1,12}")
_HEADERS = {"Content-Type": "application/json"}


def _has(name: str) -> bool:
    return name in request.headers


def _unknown(**_: str) -> Response:
    """Answer what no route is for.

    Raises:
        Refused: the path is none, or has no such method.
    """
    path = request.path.removeprefix(ROOT)
    methods = {route.method for route in ROUTES if route.pattern.fullmatch(path)}
    if not methods:
        raise Refused(404, "no_such_path", "there is no such path (GET /openapi.json has them all)")
    if "GET" in methods:
        methods.add("HEAD")
    allowed = ", ".join(sorted(methods))
    detail = f"{request.method} is not for this path (it takes {allowed})"
    raise Refused(405, "no_such_method", detail, {"Allow": allowed})


def no_route() -> Response:
    """Return the answer to a request that came to no route, for an application that caught it."""
    try:
        return _unknown()
    except Refused as error:
        return _sealed(problem_response(error))


def _path(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return what stands at the places of the path.

    Raises:
        NotFound: it has not the form of what could be there.
    """
    for name, text in given.items():
        if not PLACES[name].form.fullmatch(text):
            raise NotFound(PLACES[name].kind, text[:80])
    return given


def _query(declared: Mapping[str, Schema]) -> Mapping[str, Any]:
    """Return the query's parameters, with defaults.

    Raises:
        InvalidInput: one is unknown, given twice or wrong.
    """
    found = {name: schema["default"] for name, schema in declared.items() if "default" in schema}
    for name, texts in request.args.lists():
        if name not in declared:
            known = f"known are {', '.join(declared)}" if declared else "this path takes none"
            raise InvalidInput(name[:40], "the parameter is unknown", known)
        if len(texts) > 1:
            raise InvalidInput(name, "it is given twice", "give it once")
        found[name] = _value(texts[0], declared[name], name)
    return found


def _value(text: str, schema: Schema, name: str) -> object:
    value: object = text
    if schema.get("type") == "integer" and _WHOLE.fullmatch(text):
        value = int(text)
    check(value, schema, name)
    return value


def _body(route: Route, bytes_max: int) -> Mapping[str, Any]:
    """Return the fields of the body.

    Raises:
        RequestEntityTooLarge: it is too large.
        Refused: it is no JSON.
        InvalidInput: it is not what the route takes.
    """
    # A body in pieces says no length, and werkzeug cuts it off at the bound without a word: so one
    # byte more is read.
    request.max_content_length = bytes_max + 1
    if (request.content_length or 0) > bytes_max:
        raise RequestEntityTooLarge
    if route.body is None:
        return {}
    data = request.get_data(cache=bool(route.run_token))
    if len(data) > bytes_max:
        raise RequestEntityTooLarge
    if not data and not route.body_needed:
        return {}
    if request.mimetype != "application/json":
        raise Refused(415, "not_json", "the body must come as Content-Type: application/json")
    try:
        value = read_json(data, "body")
    except InvalidInput as error:
        raise Refused(400, "unreadable_body", str(error)) from None
    check(value, route.body, "body")
    assert isinstance(value, dict)
    return value


def _sealed(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
