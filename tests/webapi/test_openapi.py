"""The OpenAPI document says what the routes are, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynsched_web.api.answers import PROBLEM
from dynsched_web.api.blueprint import NAME, ROOT, ROUTES
from dynsched_web.api.schema import check
from tests.webapi.stage import Stage

METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture(scope="module")
def stage() -> Stage:
    """Return a stage on which nothing is changed."""
    return Stage()


@pytest.fixture(scope="module")
def document(stage: Stage) -> Mapping[str, Any]:
    """Return the document as it is served."""
    found = stage.get("/openapi.json", who=None)
    assert isinstance(found, dict)
    return found


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, method and operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert method in METHODS
            yield path, method, operation


def schemas(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a document."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from schemas(item)
    elif isinstance(value, list):
        for item in value:
            yield from schemas(item)


def test_the_document_has_the_routes_of_the_application_and_no_other(
    stage: Stage, document: Mapping[str, Any]
) -> None:
    """By the router itself: method by method, place by place."""
    served = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule.removeprefix(ROOT)), method.lower())
        for rule in stage.app.url_map.iter_rules()
        if rule.endpoint.startswith(f"{NAME}.") and rule.endpoint != f"{NAME}.unknown"
        for method in (rule.methods or set()) - {"HEAD"}
    }
    assert {(path, method) for path, method, _ in operations(document)} == served
    assert len(served) == len(ROUTES)


def test_every_operation_says_what_it_takes_gives_and_is_for(document: Mapping[str, Any]) -> None:
    """A name of its own, a sentence, each place of its path, each failure."""
    names = [operation["operationId"] for *_, operation in operations(document)]
    assert len(names) == len(set(names))
    for path, method, operation in operations(document):
        assert operation["summary"].endswith("."), path
        places = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"]
        assert places == re.findall(r"{(\w+)}", path)
        assert {"401", "403", "404", "409", "422", "503"} <= operation["responses"].keys()
        assert ("requestBody" in operation) == (method in {"put", "post", "patch"}), path
        assert all(one["description"] for one in operation.get("parameters", ())), path


def test_every_reference_leads_to_a_component_and_every_title_means_one_schema(
    document: Mapping[str, Any],
) -> None:
    """Two schemas of one title would overwrite each other without a word."""
    components = document["components"]["schemas"]
    named = {one["$ref"] for one in schemas(document) if "$ref" in one}
    failures = document["components"]["responses"]
    assert named == {
        *(f"#/components/schemas/{name}" for name in components),
        *(f"#/components/responses/{name}" for name in failures),
    }
    titled: dict[str, Any] = {}
    for route in ROUTES:
        for schema in schemas([route.answer, route.body, dict(route.query)]):
            title = schema.get("title")
            if isinstance(title, str):
                assert titled.setdefault(title, schema) == schema, title
    assert titled.keys() | {"Problem"} == components.keys()


def test_the_document_is_as_large_as_it_must_be_and_json(document: Mapping[str, Any]) -> None:
    """Clients are made of it."""
    assert document["openapi"].startswith("3.1")
    assert 20_000 < len(json.dumps(document)) < 100_000


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "", 404, "no_such_path"),
        ("GET", "/", 404, "no_such_path"),
        ("GET", "/nothing", 404, "no_such_path"),
        ("GET", "/jobs/", 404, "no_such_path"),
        ("GET", "/runs/a/b/c", 404, "no_such_path"),
        ("POST", "/openapi.json", 405, "no_such_method"),
        ("DELETE", "/jobs", 405, "no_such_method"),
        ("OPTIONS", "/jobs", 405, "no_such_method"),
        ("TRACE", "/runs", 405, "no_such_method"),
        ("GET", "/runs/a/cancel", 405, "no_such_method"),
    ],
)
def test_what_is_no_route_is_a_problem_too(
    stage: Stage, method: str, path: str, status: int, code: str
) -> None:
    """Never a page of the framework's."""
    answer = stage(method, path, who=None)
    if path == "":
        assert answer.status_code in (308, 404)  # the application's affair
        return
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert answer.json is not None
    assert answer.json["code"] == code
    check(answer.json, PROBLEM, "problem")
    assert ("Allow" in answer.headers) == (status == 405)
