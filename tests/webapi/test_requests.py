"""Requests: what is wrong with one is said by field, nothing of it is done, and nothing breaks."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from werkzeug.test import TestResponse

from dynsched_web.api import Limits
from dynsched_web.api.answers import PROBLEM
from dynsched_web.api.problems import TYPE, problem_response
from dynsched_web.api.schema import check
from tests.unit.verb_calls import TENANT
from tests.webapi.stage import EXAMPLES, Stage

HANDLER = {"kind": "handler", "name": "boom"}
OF_TENANT = {"tenant": TENANT}


@pytest.fixture(scope="module")
def stage() -> Stage:
    """Return a stage on which nothing is changed."""
    return Stage()


@pytest.fixture
def fresh() -> Stage:
    """Return a stage of one's own."""
    return Stage()


def problem(answer: TestResponse, status: int) -> dict[str, Any]:
    """Return the problem in an answer, after checking its form."""
    assert (answer.status_code, answer.mimetype) == (status, TYPE), answer.text
    found = answer.json
    check(found, PROBLEM, "problem")
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("data", "kind", "status", "code"),
    [
        (b"", "application/json", 415, "not_json"),
        (b"{}", "", 415, "not_json"),
        (b"name=x", "application/x-www-form-urlencoded", 415, "not_json"),
        (b"{}", "text/plain", 415, "not_json"),
        (b" ", "application/json", 400, "unreadable_body"),
        (b"{", "application/json", 400, "unreadable_body"),
        (b"\xff", "application/json", 400, "unreadable_body"),
        (b'{"name":1,"name":2}', "application/json", 400, "unreadable_body"),
        (b"[" * 50_000, "application/json", 400, "unreadable_body"),
        (b"[]", "application/json", 422, "invalid_input"),
        (b"null", "application/json", 422, "invalid_input"),
        (b"NaN", "application/json", 422, "invalid_input"),
        (b"9" * 5_000, "application/json", 422, "invalid_input"),
        (b"{}", "application/json", 422, "invalid_input"),
        (b"{}" + b" " * 1_200_000, "application/json", 413, "too_large"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_before_anything_is_asked(
    stage: Stage, data: bytes, kind: str, status: int, code: str
) -> None:
    """By its type, its size, its text, and then by what it says."""
    before = stage.rows()
    answer = stage("POST", "/jobs", data=data, content_type=kind or None)
    if data == b"":
        assert answer.status_code in (415, 400)
    else:
        assert problem(answer, status)["code"] == code
    assert stage.rows() == before


def test_a_body_in_pieces_is_bounded_too() -> None:
    """A client that does not say how much it sends is stopped at the bound."""
    stage = Stage(limits=Limits(body_bytes=100))
    answer = stage(
        "POST",
        "/jobs",
        input_stream=io.BytesIO(b" " * 10_000),
        content_type="application/json",
        environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )
    assert problem(answer, 413)["code"] == "too_large"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "no name"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"extra": 1}, "extra"),
        ({"target": None}, "target.kind"),
        ({"target": {"kind": "rocket"}}, "target.kind"),
        ({"target": {"kind": "handler"}}, "target.name"),
        ({"target": {**HANDLER, "url": "x"}}, "target.url"),
        ({"target": {"kind": "http", "url": "ftp://example.org"}}, "url"),
        ({"target": {"kind": "http", "url": "http://a", "headers": {"a": 1}}}, "target.headers.a"),
        ({"schedule": {"kind": "cron"}}, "schedule.cron"),
        ({"schedule": {"kind": "cron", "cron": "61 * * * *"}}, "cron"),
        ({"schedule": {"kind": "cron", "cron": "0 * * * *", "tz": "Mars/Olympus"}}, "tz"),
        ({"schedule": {"kind": "once", "at": "soon"}}, "schedule.at"),
        ({"schedule": {"kind": "once", "at": "2001-01-01T00:00:00Z"}}, "at"),
        ({"schedule": {"kind": "interval", "every_ms": 1.5}}, "schedule.every_ms"),
        ({"schedule": {"kind": "interval", "every_ms": True}}, "schedule.every_ms"),
        ({"schedule": {"kind": "interval", "every_ms": 999}}, "schedule.every_ms"),
        ({"priority": "urgent"}, "priority"),
        ({"policies": {"timeout_s": -1}}, "policies.timeout_s"),
        ({"policies": {"timeout_s": float("inf")}}, "policies.timeout_s"),
        ({"policies": {"timeout_s": 10**400}}, "policies.timeout_s"),
        ({"policies": {"retention_s": 1}}, "retention"),
        ({"policies": {"retry": {"factor": 0}}}, "policies.retry.factor"),
        ({"policies": {"retry": {"rules": [{"pattern": "x"}]}}}, "policies.retry.rules[0].action"),
        ({"payload": "\ud800"}, "payload"),
        ({"payload": {"a": 10**127}}, "payload.a"),
        ({"payload": ["x" * 300_000]}, "payload"),
        ({"tags": {"team": 1}}, "tags.team"),
        ({"tags": {"no tag": "x"}}, "tag"),
        ({"reason": "a\nb"}, "reason"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_made(
    stage: Stage, change: dict[str, Any], field: str
) -> None:
    """With what to give instead, where there is something to say."""
    before = stage.scene.rows()
    body = {**EXAMPLES["create_job"].body, **change}
    found = problem(stage("POST", "/jobs", json=body), 422)
    assert found["field"] == field, found
    assert stage.scene.rows() == before


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/runs", {"limit": "0"}, "limit"),
        ("/runs", {"limit": "1001"}, "limit"),
        ("/runs", {"limit": "many"}, "limit"),
        ("/runs", {"limit": "--5"}, "limit"),
        ("/runs", {"limit": "1.0"}, "limit"),
        ("/runs", {"limit": " 1"}, "limit"),
        ("/runs", {"limit": "\u0661"}, "limit"),
        ("/runs", {"limit": "9" * 5_000}, "limit"),
        ("/runs", {"limit": ["1", "2"]}, "limit"),
        ("/runs", {"examine": "-1"}, "examine"),
        ("/runs", {"cursor": "x"}, "cursor"),
        ("/runs", {"cursor": "W10"}, "cursor"),
        ("/runs", {"page": "2"}, "page"),
        ("/replays", {"cursor": "x"}, "cursor"),
        ("/groups", {"cursor": "-"}, "cursor"),
        ("/audit", {"since": "yesterday"}, "since"),
        ("/audit", {"since": "0001-01-01T00:00:00+01:00"}, "since"),
        ("/jobs/active/next", {"tenant": TENANT, "count": "201"}, "count"),
        ("/jobs/active/next", {"tenant": TENANT, "after": "2026-01-01T00:00:00"}, "after"),
        ("/jobs/active/why", {"tenant": TENANT, "at": "x"}, "at"),
    ],
)
def test_a_wrong_parameter_is_named(
    stage: Stage, path: str, query: dict[str, Any], field: str
) -> None:
    """A misspelt one is never silently nothing."""
    assert problem(stage("GET", path, query_string=query), 422)["field"] == field


def test_a_mistake_in_a_filter_is_pointed_at(stage: Stage) -> None:
    """In the text as it was written, for a bearer of one tenant too."""
    for who in ("admin", "own"):
        answer = stage("GET", "/runs", who=who, query_string={"filter": "state:dead stat:x"})
        found = problem(answer, 422)
        assert (found["code"], found["column"], found["field"]) == ("bad_filter", 11, "filter")
        assert "did you mean" in found["mend"]


@pytest.mark.parametrize("kind", ["jobs", "runs", "replays", "groups"])
@pytest.mark.parametrize(
    "name",
    [
        "x",
        "..",
        "%00",
        "%2e%2e",
        "name%23acme",
        "a" * 3_000,
        "%F0%9F%92%A9",
        "%ff",
        "'--",
        "%0d%0a",
    ],
)
def test_a_strange_name_leads_to_nothing(stage: Stage, kind: str, name: str) -> None:
    """404 or, where it could be one, 422: never a fault, never another row."""
    answer = stage("GET", f"/{kind}/{name}")
    assert answer.status_code in (404, 422)
    check(answer.json, PROBLEM, "problem")
    assert "\n" not in answer.headers.get("Location", "")


def test_a_hostile_text_comes_back_as_the_same_text(fresh: Stage) -> None:
    """As JSON that no browser takes for a page."""
    text = "<script>alert(1)</script>\u2028\x7f'\";--"
    answer = fresh.call("enqueue_run", json={"payload": {"note": text}})
    run = fresh.get(f"/runs/{answer.json['run_id']}")  # type: ignore[index]
    assert run["payload"] == {"note": text}
    shown = fresh("GET", f"/runs/{run['run_id']}")
    assert shown.mimetype == "application/json"
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert shown.headers["Cache-Control"] == "no-store"


def test_secrets_are_masked_and_an_edit_that_gives_the_mask_back_keeps_them(fresh: Stage) -> None:
    """A client may read a job, change a field of its payload and send all of it."""
    job = fresh.get("/jobs/active", **OF_TENANT)
    assert job["payload"] == {"password": "***", "n": 1}
    body = {
        "payload": {**job["payload"], "n": 2},
        "schedule": job["schedule"],
        "target": job["target"],
    }
    answer = fresh("PATCH", "/jobs/active", query_string=OF_TENANT, json=body)
    assert answer.status_code == 200, answer.text
    stored = fresh.scene.owner.get_job(job["job_id"]).payload
    assert json.loads(stored or "") == {"n": 2, "password": "hush"}
    assert fresh.get("/jobs/active", **OF_TENANT)["schedule"] == job["schedule"]


def test_an_edit_of_several_things_is_made_whole_or_not_at_all(fresh: Stage) -> None:
    """A wrong schedule leaves the queue as it was; an edit of nothing is refused."""
    body = {"queue": "slow", "schedule": {"kind": "cron", "cron": "never"}}
    assert problem(fresh.call("edit_job", json=body), 422)["field"] == "cron"
    assert fresh.get("/jobs/active", **OF_TENANT)["queue"] == "main"
    assert problem(fresh.call("edit_job", json={"reason": "x"}), 422)["field"] == "body"
    both = {"queue": "slow", "schedule": None, "policies": {"retry": {"max_attempts": 7}}}
    changed = fresh.call("edit_job", json=both).json
    assert changed is not None
    assert (changed["queue"], changed["schedule"]) == ("slow", None)
    assert changed["policies"]["retry"]["max_attempts"] == 7
    assert changed["effective_from"] is not None


def test_a_key_makes_one_run_however_often_it_is_sent(fresh: Stage) -> None:
    """The same answer each time; another payload under it, and a malformed one, are refused."""
    key = {"Idempotency-Key": "order-7"}
    answers = [fresh.call("enqueue_run", headers=key).json for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    other = fresh.call("enqueue_run").json
    assert other is not None
    assert answers[0] is not None
    assert other["run_id"] != answers[0]["run_id"]
    refused = fresh.call("enqueue_run", headers=key, json={"payload": {"order": 99}})
    assert problem(refused, 409)["code"] == "conflict"
    for wrong in ("", "x" * 513):
        refused = fresh.call("enqueue_run", headers={"Idempotency-Key": wrong})
        assert problem(refused, 422)["field"] == "Idempotency-Key"


def test_what_was_done_before_is_a_conflict_that_says_so(fresh: Stage) -> None:
    """A create, a confirm, a replay, a pause that is sent twice."""
    for name in ("create_job", "confirm_replay", "replay_run", "pause_job", "abort_replay"):
        assert fresh.call(name).status_code in (200, 201)
        problem(fresh.call(name), 409)


def test_a_fault_of_ours_is_logged_and_not_told(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asks learns that it is one, and nothing of the inside."""
    with caplog.at_level(logging.ERROR, "dynsched.web.api"), stage.app.app_context():
        answer = problem_response(RuntimeError("inside"))
    assert (answer.status_code, answer.mimetype) == (500, TYPE)
    assert "inside" not in answer.get_data(as_text=True)
    assert "inside" in caplog.text
