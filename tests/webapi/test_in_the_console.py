"""The API within the web console: tokens open it, logins do not, and it answers in its own form."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from dynsched.bootstrap import build_operations
from dynsched.domain.access import Access, Role
from dynsched_web.api.blueprint import ROOT
from dynsched_web.api.problems import TYPE
from dynsched_web.app import create_app
from dynsched_web.config import WebConfig
from tests.unit.verb_calls import Scene
from tests.webapi.stage import REASON


@pytest.fixture
def scene() -> Scene:
    """Return a store."""
    return Scene()


def console(scene: Scene, **access: Any) -> Flask:
    """Return a console in which every visitor is an admin without logging in."""
    return create_app(scene.base, WebConfig(access=Access(actor="ann", via="web", **access)))


def bearer(scene: Scene, name: str = "ci") -> dict[str, str]:
    """Return the headers of an admin's token."""
    made = build_operations(scene.base).create_token(name, role=Role.ADMIN)
    scene.clock.step(seconds=1)  # entries of one millisecond lie in no order
    return {"Authorization": f"Bearer {made.text}"}


def test_a_visitor_of_the_console_needs_a_token_for_the_api_all_the_same(scene: Scene) -> None:
    """No cookie and no open console is a token, so no other site's page can use one."""
    client = console(scene).test_client()
    assert client.get("/").status_code == 200
    for method, path in (("GET", "/jobs"), ("DELETE", f"/jobs/{scene.active.job_id}")):
        answer = client.open(ROOT + path, method=method)
        assert (answer.status_code, answer.mimetype) == (401, TYPE)


def test_a_token_opens_the_api_without_a_forms_token_and_no_page(scene: Scene) -> None:
    """A change by it is made, in the bearer's name."""
    client, headers = console(scene).test_client(), bearer(scene)
    path = f"{ROOT}/jobs/{scene.active.job_id}/pause"
    assert client.post(path, headers=headers, json=REASON).status_code == 200
    assert scene.audit()[0].actor == "ci"


def test_the_consoles_read_only_mode_holds_for_every_bearer(scene: Scene) -> None:
    """It is a mode of the whole process."""
    client, headers = console(scene, read_only=True).test_client(), bearer(scene)
    path = f"{ROOT}/jobs/{scene.active.job_id}/pause"
    answer = client.post(path, headers=headers, json=REASON)
    assert (answer.status_code, answer.mimetype) == (403, TYPE)


def test_what_is_wrong_with_a_request_of_the_api_is_never_answered_with_a_page(
    scene: Scene,
) -> None:
    """And what is wrong with one of a page is never answered with a problem."""
    client, headers = console(scene).test_client(), bearer(scene)
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("POST", "/health", 405),
        ("GET", "/runs?filter=stat:x", 422),
        ("GET", "/runs/x", 404),
    ):
        answer = client.open(ROOT + path, method=method, headers=headers)
        assert (answer.status_code, answer.mimetype) == (status, TYPE), path
    assert client.get("/nothing").mimetype == "text/html"


@pytest.mark.parametrize(("path", "status"), [("/jobs", 405), ("/nothing", 404)])
def test_a_method_that_nobody_knows_is_answered_in_the_apis_form_too(
    scene: Scene, path: str, status: int
) -> None:
    """A program that reads problems can read this one, and what the path takes."""
    answer = console(scene).test_client().open(ROOT + path, method="PROPFIND")
    assert (answer.status_code, answer.mimetype) == (status, TYPE)
    assert answer.headers.get("Allow") == ("GET, HEAD, POST" if status == 405 else None)
    assert answer.headers["Cache-Control"] == "no-store"
