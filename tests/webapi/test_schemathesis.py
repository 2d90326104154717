"""Requests that schemathesis makes up of the OpenAPI document: no fault, no answer it forbids."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dynsched_web.api.blueprint import ROOT
from tests.unit.verb_calls import TENANT
from tests.webapi.stage import EXAMPLES, Example, Stage

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONFORMANCE = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class Theatre:
    """An application whose stage is set anew, so that there is something to change."""

    def __init__(self) -> None:
        self.stage = Stage()

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        return self.stage.app(environ, start)


THEATRE = Theatre()
SCHEMA = schemathesis.openapi.from_wsgi(f"{ROOT}/openapi.json", THEATRE)
GENERATED = schemathesis.openapi.from_wsgi(f"{ROOT}/openapi.json", THEATRE)
GENERATED.config.phases.coverage.enabled = False  # those are sent by the first test
FEW, SOME = (
    settings(
        max_examples=most,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for most in (3, 20)
)
TURNS = count()
NOWHERE = Example().path


def send(case: Any, checks: list[Any]) -> None:
    """Send a request as an admin and check the answer."""
    case.call_and_validate(
        headers={
            **(case.headers or {}),
            "Authorization": f"Bearer {THEATRE.stage.tokens['admin']}",
        },
        checks=checks,
    )


@SCHEMA.parametrize()
@FEW
def test_no_request_that_can_be_made_up_breaks_the_api(case: Any) -> None:
    """Good and bad ones; bad ones are refused, and nothing is answered that is not declared."""
    send(case, [*CONFORMANCE, negative_data_rejection])


@GENERATED.parametrize()
@SOME
def test_requests_about_things_that_exist_are_answered_as_declared(case: Any) -> None:
    """Made-up ids lead to nothing; with real ones the verbs are reached, and their answers."""
    example = EXAMPLES[case.operation.definition.raw["operationId"]]
    if case.path_parameters:
        name = next(iter(case.path_parameters))
        case.path_parameters[name] = example.path(THEATRE.stage.scene)
    if case.query and "tenant" in case.query:
        case.query["tenant"] = TENANT
    if isinstance(case.body, dict) and isinstance(example.body, dict):
        first, second = (example.body, case.body)[:: 1 if next(TURNS) % 2 else -1]
        case.body = {**first, **second}
        if "name" in example.body:
            case.body["name"] = f"job-{next(TURNS)}"
    send(case, CONFORMANCE)
    # What was done cannot be done again: some requests find it so, most find a new stage.
    if case.method != "GET" and example.path is not NOWHERE and not next(TURNS) % 4:
        THEATRE.stage = Stage()
