"""A stage for the web console: a store in memory, a clock that is set, visitors with browsers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from dynsched.bootstrap import build_operations, build_stepper, open_base
from dynsched.domain.access import Access, Role
from dynsched.domain.payload import Json
from dynsched.domain.target import HandlerTarget
from dynsched.errors import Unavailable
from dynsched.services.specs import EverySpec, JobSpec
from dynsched.settings import Settings
from dynsched.storage.engine import Key, Outcome, Page, Query, Row, Write
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler, SettableClock
from dynsched_web.app import create_app
from dynsched_web.config import WebConfig
from dynsched_web.people import People, add_person

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'>\x1b[2J \u202egnp.exe {{7*7}} <img src=x onerror=alert(1)>"
PASSWORD = "a long password"  # noqa: S105  # of nobody
CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class BadAddress(Exception):
    """What the staged handler fails with."""


class Recorded(SqliteEngine):
    """A store in memory that remembers which rows were written, and can be stopped."""

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.written: list[str] = []
        self.stopped = False

    def get(self, key: Key) -> Row | None:
        """Return a row, unless the store is stopped."""
        self._answer()
        return super().get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Return rows, unless the store is stopped."""
        self._answer()
        return super().get_many(keys)

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Return rows of a partition, unless the store is stopped."""
        self._answer()
        return super().query(query, cursor)

    def _answer(self) -> None:
        if self.stopped:
            raise Unavailable("there is no line")

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Write one row, and remember it."""
        self.written.append(write.key.pk)
        return super().write(write, durable=durable)

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Write rows, and remember them."""
        self.written += [write.key.pk for write in writes]
        return super().write_many(writes, durable=durable)

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Write rows together, and remember them."""
        self.written += [write.key.pk for write in writes]
        return super().transact(writes, durable=durable)


class Stage:
    """A store with a job of each of two tenants, and a console on it.

    Args:
        config: how the console is started; the defaults let everybody in as an admin.
    """

    def __init__(self, **config: Any) -> None:
        handlers = App()

        @handlers.job("mail", max_attempts=1)
        def mail(ctx: object) -> Json:
            payload = getattr(ctx, "payload", None)
            if payload != "good":
                raise BadAddress(f"the address {payload!r} bounced")
            return {"sent": True}

        self.clock = SettableClock(NOW)
        self.engine = Recorded(None)
        self.scheduler = ManualScheduler(handlers, clock=self.clock, engine=self.engine)
        self.base = open_base(
            environment={}, engine=self.engine, clock=self.clock, rng=Random(7), settings=Settings()
        )
        self.stepper = build_stepper(self.base)
        self.operations = build_operations(self.base, Access(actor="ann@desk", via="cli"))
        config.setdefault("access", Access(actor="ada@desk", via="web"))
        self.app = create_app(self.base, WebConfig(**config))

    def close(self) -> None:
        """Drop the store."""
        self.engine.stopped = False
        self.app.extensions["dynsched"].reading.close()
        self.scheduler.close()

    def run(self, payload: Json = "good", *, tenant: str = "acme") -> str:
        """Make a run and let it end; return its id."""
        run_id = self.scheduler.enqueue("mail", payload, tenant=tenant).run_id
        self.scheduler.run_due()
        self.clock.step(seconds=2)
        return run_id

    def wait(self, *, tenant: str = "acme") -> str:
        """Make a run that waits for a day; return its id."""
        delay = timedelta(days=1)
        return self.scheduler.enqueue("mail", "good", tenant=tenant, delay=delay).run_id

    def job(self, tenant: str = "acme") -> str:
        """Return the id of a job with a schedule, made when it is first asked for."""
        found = self.operations.find_id(tenant, "hourly")
        if found is not None:
            return found
        spec = JobSpec(
            name="hourly",
            tenant=tenant,
            target=HandlerTarget("mail"),
            schedule=EverySpec(every=timedelta(hours=1)),
            payload={"who": "x", "password": "hunter2"},
        )
        return self.operations.create(spec).job_id

    def draft(self, filter: str = "state:dead") -> str:
        """Preview a replay; return its id."""
        return self.operations.preview_replay(filter, reason="mended", rate=None).batch_id

    def step(self) -> None:
        """Let replay batches move, and what they moved run."""
        self.stepper.step()
        self.clock.step(seconds=2)
        self.scheduler.run_due()
        self.clock.step(seconds=2)

    def visitor(self) -> Visitor:
        """Return somebody with a new browser."""
        return Visitor(self.app.test_client())


class Visitor:
    """Somebody with a browser."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def get(self, path: str, **headers: str) -> TestResponse:
        """Open a page."""
        return self.client.get(path, headers=_named(headers))

    def part(self, path: str, **headers: str) -> TestResponse:
        """Ask for the part of a page that changes, as its script does."""
        return self.get(path, HX_Request="true", **headers)

    def token(self) -> str:
        """Return what forms have to send back."""
        found = CSRF.search(self.get("/login").text) or CSRF.search(self.get("/help").text)
        assert found is not None
        return found[1]

    def post(self, path: str, *, csrf: str | None = None, **fields: object) -> TestResponse:
        """Send a form."""
        token = self.token() if csrf is None else csrf
        return self.client.post(path, data={"csrf": token, **fields})

    def log_in(self, name: str, password: str = PASSWORD) -> TestResponse:
        """Log in."""
        return self.post("/login", name=name, password=password)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@contextmanager
def staged(**config: Any) -> Iterator[Stage]:
    """Set a stage, and strike it."""
    stage = Stage(**config)
    try:
        yield stage
    finally:
        stage.close()


def people_file(folder: Path) -> Path:
    """Return a password file with one person of each kind."""
    path = folder / "people"
    add_person(path, "ada", PASSWORD, role=Role.ADMIN)
    add_person(path, "otto", PASSWORD, role=Role.OPERATOR)
    add_person(path, "vera", PASSWORD, role=Role.VIEWER)
    add_person(path, "tom", PASSWORD, role=Role.ADMIN, tenant="acme")
    return path


def people(folder: Path) -> People:
    """Return one person of each kind, who may log in."""
    return People(people_file(folder))
