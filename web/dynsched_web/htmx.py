"""The one place that knows of htmx on the server: what a request asks for, and how to answer it."""

from __future__ import annotations

import hashlib

from flask import Flask, Response, make_response
from htmx_flask import Htmx
from htmx_flask import request as htmx_request

SEEN = "X-Seen"


def init(app: Flask) -> None:
    """Teach an application's requests about htmx."""
    Htmx(app)


def wants_part() -> bool:
    """Return whether the present request asks for the part of a page that changes."""
    return bool(htmx_request.htmx)


def part(html: str) -> Response:
    """Return a part of a page, or nothing if the browser shows the same already.

    htmx leaves a page alone at 204.
    """
    mark = hashlib.blake2b(html.encode("utf-8", "replace"), digest_size=9).hexdigest()
    if htmx_request.headers.get(SEEN) == mark:
        response = make_response("", 204)
    else:
        response = make_response(html)
    response.headers[SEEN] = mark
    return response
