"""The API on DynamoDB: tokens, jobs, runs and strange keys as on SQLite."""

from __future__ import annotations

from typing import Any

from flask import Flask

from dynsched.bootstrap import build_operations, build_views, init_store, open_base
from dynsched.domain.access import Role
from dynsched_web.api import api_blueprint
from dynsched_web.api.blueprint import ROOT
from dynsched_web.api.schema import check
from tests.contract.dynamo_backends import BACKENDS
from tests.webapi.stage import BY_NAME, EXAMPLES

STRANGE = ("/jobs/x", "/groups/x", "/replays/0000000000000", "/replays?cursor=", "/jobs?cursor=")


def test_a_store_on_dynamodb_is_asked_and_changed_by_the_api() -> None:
    """Tokens are rows there like any other, and no key is empty or too long for it."""
    with BACKENDS["moto"]() as engine:
        base = open_base(environment={}, engine=engine)
        init_store(base)
        owner, views = build_operations(base), build_views(base)
        texts = [owner.create_token(f"t{number}", role=Role.ADMIN).text for number in range(3)]
        app = Flask("stage")
        app.register_blueprint(api_blueprint(base))
        client = app.test_client()

        def call(method: str, path: str, token: int = 0, **options: Any) -> Any:
            headers = {"Authorization": f"Bearer {texts[token]}", **options.pop("headers", {})}
            return client.open(ROOT + path, method=method, headers=headers, **options)

        made = call("POST", "/jobs", json=EXAMPLES["create_job"].body)
        assert made.status_code == 201, made.text
        path, key = f"/jobs/{made.json['job_id']}", {"Idempotency-Key": "7"}
        runs = [call("POST", f"{path}/runs", json={"payload": 1}, headers=key) for _ in range(2)]
        assert runs[0].json == runs[1].json
        for name in ("list_runs", "list_jobs", "list_groups", "list_audit", "list_replays"):
            answer = call("GET", BY_NAME[name].path)
            check(answer.json, BY_NAME[name].answer, name)
        assert call("GET", "/runs").json["items"] == [runs[0].json]
        assert [call("GET", one).status_code for one in STRANGE] == [404, 404, 404, 422, 422]
        first = views.tokens(limit=2)
        rest = views.tokens(limit=2, cursor=first.cursor)
        assert [one.name for one in (*first.items, *rest.items)] == ["t0", "t1", "t2"]
        owner.revoke_token("t1")
        assert [call("GET", "/jobs", token).status_code for token in range(3)] == [200, 401, 200]
