"""Problems: every failure as `application/problem+json`, from the one tree of errors."""

from __future__ import annotations

import json
import logging

from flask import Response
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from dynsched.errors import DynschedError, FilterError, InvalidInput

log = logging.getLogger("dynsched.web.api")

TYPE = "application/problem+json"
PREFIX = "urn:problem:dynsched:"
NAMES = {
    "key": "Idempotency-Key", "run": "run_id", "in": "delay_s", "delay": "delay_s",
    "retry_after": "retry_after_s", "queue_url": "url",
}  # fmt: skip
"""Fields of the domain's errors that have another name here."""


class Refused(DynschedError):
    """The request itself cannot be read, or is none of this API's.

    Args:
        status: of HTTP.
        code: which of the ways.
        detail: one sentence.
        headers: that go with the status.
    """

    def __init__(
        self, status: int, code: str, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        self.status, self.refusal, self.headers = status, code, headers or {}
        super().__init__(detail)


def problem_response(error: Exception) -> Response:
    """Return the answer to a request that failed; what nobody foresaw is logged and not told."""
    headers: dict[str, str] = {}
    if isinstance(error, RequestEntityTooLarge):
        document = _document(413, "too_large", "the body is too large")
    elif isinstance(error, Refused):
        document = _document(error.status, error.refusal, str(error))
        headers = error.headers
    elif isinstance(error, DynschedError):
        document = _of_error(error)
        if error.http_status == 401:
            headers = {"WWW-Authenticate": 'Bearer realm="dynsched"'}
        if error.http_status in (429, 503):
            headers = {"Retry-After": "1"}
    elif isinstance(error, HTTPException):
        document = _document(error.code or 400, "bad_request", "the request cannot be read")
    else:
        log.error("a request failed: %r", error, exc_info=error)
        document = _document(500, "internal", "this is a fault of dynsched; its log has the trace")
    response = Response(json.dumps(document), int(str(document["status"])), mimetype=TYPE)
    response.headers.update(headers)
    return response


def _document(status: int, code: str, detail: str) -> dict[str, object]:
    title = code.replace("_", " ").capitalize()
    return {
        "type": f"{PREFIX}{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }


def _of_error(error: DynschedError) -> dict[str, object]:
    document = _document(error.http_status, error.code, str(error))
    if isinstance(error, InvalidInput):
        document["field"] = NAMES.get(error.field, error.field)
        if error.mend:
            document["mend"] = error.mend
    if isinstance(error, FilterError):
        document["column"] = error.column
    return document
