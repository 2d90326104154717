"""The OpenAPI document, made from the routes' declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dynsched.version import VERSION
from dynsched_web.api.answers import PROBLEM
from dynsched_web.api.problems import TYPE
from dynsched_web.api.route import PLACES, Route
from dynsched_web.api.schema import Schema

DESCRIPTION = """The operations core of dynsched over HTTP: the same questions, filters and verbs as
on the command line, with the same documents. Every request shows a token that
`dynsched token create` made, and sees and changes what its role and tenant allow."""
FAILURES: Mapping[int, str] = {
    400: "The body cannot be read.",
    401: "No good token was shown.",
    403: "The token's role, its tenant or read-only mode forbids it.",
    404: "There is no such thing, or none that the token may see.",
    409: "The present state forbids it.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A value is wrong; `field` says which, `mend` what to give instead.",
    429: "Too much at once, or too many requests without a good token.",
    503: "The store failed; a change may have been made or not.",
}
OF_BODIES = frozenset({400, 413, 415})


def openapi_document(routes: Iterable[Route], *, root: str) -> dict[str, Any]:
    """Return the whole document.

    Args:
        routes: all of them.
        root: the path under which they lie.
    """
    components: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, components)
    problem = {TYPE: {"schema": _printed(PROBLEM, components)}}
    failures = {
        str(status): {"description": words, "content": problem}
        for status, words in FAILURES.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dynsched",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": failures,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "responses": _responses(route, components),
    }
    if route.description:
        operation["description"] = route.description
    parameters = _parameters(route, components)
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": _printed(route.body, components)}}
        operation["requestBody"] = {"required": route.body_needed, "content": content}
    if route.open:
        operation["security"] = []
    if route.run_token:
        operation["security"] = [{"token": []}, {}]
    return operation


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PLACES[name].description,
            "schema": {"type": "string", "pattern": f"^{PLACES[name].form.pattern}$"},
        }
        for name in route.places
    ]
    for kind, declared in (("query", route.query), ("header", route.headers)):
        for name, schema in declared.items():
            shown = {key: value for key, value in schema.items() if key != "description"}
            found.append(
                {
                    "name": name,
                    "in": kind,
                    "required": False,
                    "description": schema.get("description", ""),
                    "schema": _printed(shown, components),
                }
            )
    return found


def _responses(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    answer = {"application/json": {"schema": _printed(route.answer, components)}}
    good = {"description": "Done." if route.changes else "Found.", "content": answer}
    failures = {
        str(status): {"$ref": f"#/components/responses/{status}"}
        for status in FAILURES
        if route.body is not None or status not in OF_BODIES
    }
    return {str(route.status): good, **failures}


def _printed(schema: Schema, components: dict[str, Any]) -> Any:
    """Return a schema with its titled parts put among the components."""
    printed = {name: _part(name, value, components) for name, value in schema.items()}
    title = printed.get("title")
    if not isinstance(title, str):
        return printed
    components[title] = printed
    return {"$ref": f"#/components/schemas/{title}"}


def _part(name: str, value: Any, components: dict[str, Any]) -> Any:
    if name in ("oneOf", "anyOf"):
        return [_printed(one, components) for one in value]
    if name == "properties":
        return {key: _printed(one, components) for key, one in value.items()}
    if name in ("items", "additionalProperties") and isinstance(value, dict):
        return _printed(value, components)
    return value
