"""Who may not: every route that changes something, by every wrong bearer; and GETs that write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from dynsched.domain.access import WHOLE_STORE
from dynsched.storage.engine import Row
from dynsched_web.api import Limits
from dynsched_web.api.problems import TYPE
from dynsched_web.api.route import PAGING
from dynsched_web.api.schema import check
from tests.unit.verb_calls import TENANT, verbs
from tests.webapi.stage import BY_NAME, CHANGING, EXAMPLES, READING, STRANGER, Stage

WHOLE = {"get_health", "list_workers"}
"""What tells of all tenants."""
each_change = pytest.mark.parametrize("name", CHANGING)
each_look = pytest.mark.parametrize("name", READING)


@pytest.fixture(scope="module")
def stage() -> Stage:
    """Return a stage on which nothing is changed."""
    return Stage()


@pytest.fixture(scope="module")
def closed() -> Stage:
    """Return a stage in read-only mode."""
    return Stage(read_only=True)


def without_audit(stage: Stage) -> Mapping[str, Row]:
    """Return all rows but the audit's, which keeps refusals."""
    return stage.scene.rows()


def problem(answer: Any, status: int) -> dict[str, Any]:
    """Return the problem in an answer, after checking its form."""
    assert (answer.status_code, answer.mimetype) == (status, TYPE), answer.text
    found = answer.json
    assert found["status"] == status
    assert found["type"].endswith(found["code"])
    assert found["detail"]
    return dict(found)


def test_every_route_has_an_example_that_succeeds_and_is_answered_as_it_declares() -> None:
    """What the refusals below refuse would otherwise be done; and no answer breaks its schema."""
    assert EXAMPLES.keys() == BY_NAME.keys()
    for name, route in BY_NAME.items():
        answer = Stage().call(name)
        assert answer.status_code == route.status, answer.text
        check(answer.json, route.answer, name)


@each_change
def test_a_change_is_refused_to_a_viewer(stage: Stage, name: str) -> None:
    """By the gate, so that no route can forget it."""
    before = without_audit(stage)
    assert "is viewer" in problem(stage.call(name, who="viewer"), 403)["detail"]
    assert without_audit(stage) == before


@each_change
def test_a_change_is_refused_in_read_only_mode(closed: Stage, name: str) -> None:
    """Whatever the role; not even the refusal is written."""
    before = closed.scene.rows(audit=True)
    assert "read-only" in problem(closed.call(name), 403)["detail"]
    assert closed.scene.rows(audit=True) == before


@each_change
def test_a_change_is_refused_without_a_good_token(stage: Stage, name: str) -> None:
    """No token, one that nobody made, and a password of another kind."""
    before = stage.scene.rows(audit=True)
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer dynsched_admin_{'0' * 64}"},
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Cookie": "session=1"},
    ):
        answer = stage.call(name, who=None, headers=headers)
        assert problem(answer, 401)["code"] == "unauthenticated"
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert stage.scene.rows(audit=True) == before


@each_change
def test_a_change_is_refused_across_tenants(stage: Stage, name: str) -> None:
    """What is another tenant's is not there; what is new there, or whole, is forbidden."""
    before = without_audit(stage)
    status = {"create_job": 403, "set_tenant": 403, "preview_replay": 403}.get(name, 404)
    found = problem(stage.call(name, who="stranger"), status)
    assert "default" not in found["detail"]
    assert without_audit(stage) == before


@each_change
def test_a_bearer_of_one_tenant_changes_what_is_its_own(name: str) -> None:
    """But not its own cap, which concerns the neighbours."""
    route = BY_NAME[name]
    answer = Stage().call(name, who="own")
    if name == "set_tenant":
        problem(answer, 403)
    else:
        assert answer.status_code == route.status, answer.text
    assert len(WHOLE_STORE & {verb.action for verb in verbs().values()}) > 1


@each_look
def test_no_get_writes_anything(stage: Stage, closed: Stage, name: str) -> None:
    """But the shared look at the store's health, which is a cache; in read-only mode nothing."""
    for there, rows in ((stage, stage.rows), (closed, lambda: closed.scene.rows(audit=True))):
        before = rows()
        for who in ("viewer", "admin", "own", "stranger"):
            for method in ("GET", "HEAD"):
                route = BY_NAME[name]
                query = {"filter": "state:dead"} if "filter" in route.query else {}
                there(method, route.path.replace("{", "").replace("}", ""), who=who)
                there(method, route.path, who=who, query_string=query)
            there.call(name, who=who)
        assert rows() == before


@each_look
def test_a_look_needs_a_token_and_shows_a_stranger_nothing_of_others(
    stage: Stage, name: str
) -> None:
    """Objects are not there, lists are empty, what is whole is forbidden."""
    if name == "get_openapi":
        assert stage.call(name, who=None).status_code == 200
        return
    problem(stage.call(name, who=None), 401)
    answer = stage.call(name, who="stranger")
    if name in WHOLE:
        problem(answer, 403)
    elif BY_NAME[name].places:
        problem(answer, 404)
    else:
        assert answer.json is not None
        assert answer.json["items"] == []
        assert TENANT not in answer.text


@each_look
def test_a_bearer_of_one_tenant_sees_its_own_and_nothing_else(stage: Stage, name: str) -> None:
    """The same as a bearer of all, in a store where all is one tenant's."""
    if name in WHOLE:
        return
    answer = stage.call(name, who="own")
    assert answer.status_code == 200
    if name not in ("list_audit", "list_replays"):  # some entries there are of the whole store
        assert answer.json == stage.call(name).json


def test_a_list_of_one_tenant_goes_on_past_what_is_others(stage: Stage) -> None:
    """Pages of batches, of which only some are the bearer's, lose and repeat none."""
    own = Stage()
    wanted = [one["batch_id"] for one in own.get("/replays")["items"]]
    found: list[str] = []
    cursor: str | None = None
    while True:
        query: dict[str, Any] = {"limit": 1} | ({} if cursor is None else {"cursor": cursor})
        page = own.get("/replays", who="own", **query)
        found += [one["batch_id"] for one in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == wanted
    assert own.get("/replays", who="stranger", limit=1) | {"examined": 0} == {
        "items": [],
        "matched": 0,
        "examined": 0,
        "cursor": None,
        "notes": [],
    }


def test_a_refusal_and_a_change_are_in_the_audit_under_the_tokens_name(stage: Stage) -> None:
    """Through the door `api`."""
    stage.scene.clock.step(seconds=1)  # entries of one millisecond lie in no order
    stage.call("discard_run", who="viewer")
    entry = stage.get("/audit", filter="actor:viewer via:api outcome:refused", limit=1)["items"][0]
    assert (entry["action"], entry["role"]) == ("run.discard", "viewer")


def test_an_address_that_shows_many_wrong_tokens_is_not_looked_at_for_a_while() -> None:
    """Another address is, and so is a token that was good before."""
    stage = Stage(limits=Limits(failures_max=3, failures_period=timedelta(seconds=60)))
    stage.get("/jobs", who="viewer")
    wrong = {"Authorization": f"Bearer dynsched_admin_{'0' * 64}"}
    for _ in range(3):
        problem(stage("GET", "/jobs", who=None, headers=wrong), 401)
    answer = stage("GET", "/jobs", who=None, headers=wrong)
    assert problem(answer, 429)["code"] == "too_many_failures"
    assert int(answer.headers["Retry-After"]) == 61
    problem(stage("GET", "/jobs", who="admin"), 429)
    stage.get("/jobs", who="viewer")
    other = {"REMOTE_ADDR": "192.0.2.7"}
    assert stage("GET", "/jobs", who="admin", environ_base=other).status_code == 200
    stage.scene.clock.step(seconds=61)
    stage.get("/jobs", who="admin")


def test_a_batch_over_the_limit_is_for_an_admin_to_confirm() -> None:
    """The limit is the process's, the same for every bearer who is none."""
    stage = Stage(limits=Limits(replay_runs=1, failures_max=100))
    stage.call("restore_run")
    draft = stage.call("preview_replay").json
    assert draft is not None
    assert draft["planned"] == 2
    path, reason = f"/replays/{draft['batch_id']}/confirm", {"reason": "mended"}
    found = problem(stage("POST", path, who="operator", json=reason), 403)
    assert "an admin can confirm" in found["detail"]
    assert stage("POST", path, json=reason).status_code == 200


def test_a_revoked_token_is_refused_at_once_though_it_was_good_before(stage: Stage) -> None:
    """Nothing of it is cached."""
    own = Stage()
    own.get("/jobs", who="viewer")
    own.scene.owner.revoke_token("viewer")
    assert "revoked" in problem(own("GET", "/jobs", who="viewer"), 401)["detail"]


def test_a_name_in_another_tenant_is_no_way_around_the_scope(stage: Stage) -> None:
    """Neither by the parameter, nor by a filter, nor in the words of the error."""
    for query in ({"tenant": TENANT}, {"tenant": STRANGER}, {}):
        found = problem(stage("GET", "/jobs/active", who="stranger", query_string=query), 404)
        assert TENANT not in found["detail"]
    for path in ("/runs", "/dlq", "/jobs", "/groups", "/audit"):
        page = stage.get(path, who="stranger", filter=f"tenant:{TENANT}")
        assert page["items"] == []
    assert PAGING.keys() <= BY_NAME["list_jobs"].query.keys()


def test_a_runs_own_token_ends_it_without_another() -> None:
    """A function needs no token of the API, and no operator's rights."""
    stage = Stage()
    path = f"/runs/{stage.scene.handed.run_id}/outcome"
    body = {"token": stage.scene.handed_token, "outcome": "failed", "error_type": "Oops"}
    answer = stage("POST", path, who=None, json=body)
    assert (answer.status_code, answer.json and answer.json["error"]) == (200, "Oops: ")
    again = problem(stage("POST", path, who=None, json=body), 409)
    assert "has been answered or called off" in again["detail"]


def test_a_wrong_run_token_is_refused_and_counted_as_any_wrong_token() -> None:
    """It tells nothing of the run, and an address cannot go on guessing."""
    stage = Stage(limits=Limits(failures_max=3, failures_period=timedelta(seconds=60)))
    path = f"/runs/{stage.scene.handed.run_id}/outcome"
    for _ in range(3):
        problem(stage("POST", path, who=None, json={"token": "0" * 64, "outcome": "done"}), 403)
    good = {"token": stage.scene.handed_token, "outcome": "done"}
    problem(stage("POST", path, who=None, json=good), 429)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"outcome": "done", "message": "well"}, "message"),
        ({"outcome": "failed", "output": 1}, "output"),
        ({"outcome": "failed", "permanent": True, "retry_after_s": 1}, "retry_after_s"),
        ({"outcome": "failed", "error_type": ""}, "error_type"),
    ],
)
def test_an_outcome_that_contradicts_itself_names_the_field(
    stage: Stage, body: dict[str, Any], field: str
) -> None:
    """Before anything is written."""
    path = f"/runs/{stage.scene.handed.run_id}/outcome"
    assert problem(stage("POST", path, json=body), 422)["field"] == field
