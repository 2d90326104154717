"""A store with something for every route, an application with nothing but the API, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from flask import Flask
from werkzeug.test import TestResponse

from dynsched.domain.access import Role
from dynsched.storage.engine import Row
from dynsched_web.api import Limits, api_blueprint
from dynsched_web.api.blueprint import ROOT, ROUTES
from dynsched_web.api.route import Route
from tests.unit.verb_calls import TENANT, Scene

REASON = {"reason": "the disk is full"}
STRANGER = "globex"
PATIENT = Limits(failures_max=100_000)
BY_NAME: Mapping[str, Route] = {route.name: route for route in ROUTES}
CHANGING = sorted(route.name for route in ROUTES if route.changes)
READING = sorted(route.name for route in ROUTES if not route.changes)


def application(scene: Scene, *, read_only: bool = False, limits: Limits | None = None) -> Flask:
    """Return the smallest application that has the API."""
    app = Flask("stage")
    app.register_blueprint(api_blueprint(scene.base, read_only=read_only, limits=limits))
    return app


class Stage:
    """A scene behind the API.

    Args:
        read_only: the application refuses every change.
        limits: what a request may cost.
    """

    def __init__(self, *, read_only: bool = False, limits: Limits | None = None) -> None:
        self.scene = Scene()
        owner = self.scene.owner
        self.tokens = {
            "viewer": owner.create_token("viewer").text,
            "operator": owner.create_token("operator", role=Role.OPERATOR).text,
            "admin": owner.create_token("admin", role=Role.ADMIN).text,
            "stranger": owner.create_token("stranger", role=Role.ADMIN, tenant=STRANGER).text,
            "own": owner.create_token("own", role=Role.ADMIN, tenant=TENANT).text,
        }
        self.app = application(self.scene, read_only=read_only, limits=limits or PATIENT)
        self.client = self.app.test_client()

    def __call__(
        self, method: str, path: str, *, who: str | None = "admin", **options: Any
    ) -> TestResponse:
        """Send a request as the bearer of one of the tokens, or of none."""
        headers = dict(options.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        return self.client.open(ROOT + path, method=method, headers=headers, **options)

    def get(self, path: str, *, who: str | None = "admin", **query: Any) -> Any:
        """Return the document of a good answer."""
        answer = self("GET", path, who=who, query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json

    def call(self, name: str, *, who: str | None = "admin", **options: Any) -> TestResponse:
        """Call a route by its name, with what it needs to succeed."""
        example, route = EXAMPLES[name], BY_NAME[name]
        path = route.path
        for place in route.places:
            path = path.replace(f"{{{place}}}", quote(example.path(self.scene), safe=""))
        query = {"tenant": TENANT} if "tenant" in route.query and who != "own" else {}
        if example.body is not None:
            options.setdefault("json", example.body)
        return self(route.method, path, who=who, query_string=query, **options)

    def rows(self) -> Mapping[str, Row]:
        """Return all rows but those of the shared look at the store's health, which is a cache."""
        rows = self.scene.rows(audit=True)
        return {key: row for key, row in rows.items() if row.key.pk != "health"}


@dataclass(frozen=True, slots=True)
class Example:
    """A call of a route that succeeds for an admin.

    Attributes:
        path: what stands at the place of its path.
        body: what is sent; None sends nothing.
    """

    path: Callable[[Scene], str] = lambda _: ""
    body: Any = None


_ACTIVE = Example(lambda scene: scene.active.job_id)
_DEAD = Example(lambda scene: scene.dead.run_id)
_RUNNING = Example(lambda scene: scene.running.batch_id)
EXAMPLES: Mapping[str, Example] = {
    "list_jobs": Example(),
    "create_job": Example(
        body={
            "name": "new",
            "tenant": TENANT,
            "target": {"kind": "handler", "name": "boom"},
            "schedule": {"kind": "cron", "cron": "0 4 * * *", "tz": "Europe/Riga"},
            "policies": {"timeout_s": 60, "retry": {"max_attempts": 2}},
            "payload": {"order": 7},
            "tags": {"team": "ops"},
            **REASON,
        }
    ),
    "get_job": _ACTIVE,
    "edit_job": Example(_ACTIVE.path, {"queue": "slow", **REASON}),
    "delete_job": _ACTIVE,
    "pause_job": Example(_ACTIVE.path, {"hold": True, **REASON}),
    "resume_job": Example(lambda scene: scene.paused.job_id, REASON),
    "run_job": Example(_ACTIVE.path, REASON),
    "enqueue_run": Example(_ACTIVE.path, {"payload": {"order": 8}, "delay_s": 60}),
    "next_times": _ACTIVE,
    "why_instant": _ACTIVE,
    "list_runs": Example(),
    "get_run": _DEAD,
    "why_run": _DEAD,
    "cancel_run": Example(lambda scene: scene.ready.run_id, REASON),
    "answer_run": Example(
        lambda scene: scene.handed.run_id, {"outcome": "done", "output": {"rows": 3}, **REASON}
    ),
    "replay_run": Example(_DEAD.path, REASON),
    "replay_run_as_new": Example(_DEAD.path, REASON),
    "replay_run_edited": Example(_DEAD.path, {"payload": {"order": 9}, **REASON}),
    "discard_run": Example(_DEAD.path, REASON),
    "restore_run": Example(lambda scene: scene.hidden.run_id, REASON),
    "list_dead_runs": Example(),
    "list_groups": Example(),
    "get_group": Example(lambda scene: scene.dead.signature),
    "list_replays": Example(),
    "preview_replay": Example(body={"filter": f"tenant:{TENANT}", **REASON}),
    "get_replay": _RUNNING,
    "list_replay_entries": _RUNNING,
    "confirm_replay": Example(lambda scene: scene.draft.batch_id, REASON),
    "pause_replay": Example(_RUNNING.path, REASON),
    "resume_replay": Example(lambda scene: scene.resting.batch_id, REASON),
    "abort_replay": Example(_RUNNING.path, REASON),
    "pace_replay": Example(_RUNNING.path, {"rate": 3, **REASON}),
    "rest_of_replay": Example(lambda scene: scene.over.batch_id, REASON),
    "list_tenants": Example(),
    "set_tenant": Example(lambda _: TENANT, {"max_running": 3, **REASON}),
    "list_workers": Example(),
    "list_audit": Example(),
    "get_health": Example(),
    "get_openapi": Example(),
}
"""By the route's name."""
