"""A small store and one call of every verb that changes it, for tests of what holds for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from dynsched.bootstrap import build_operations, build_stepper, build_worker, init_store, open_base
from dynsched.domain import lifecycle
from dynsched.domain.access import Access, Role
from dynsched.domain.audit import AuditEntry
from dynsched.domain.batch import Batch
from dynsched.domain.job import Priority
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.domain.target_aws import Invocation, LambdaTarget
from dynsched.services.callbacks import Answer, CallbackOpener
from dynsched.services.hand import InHand
from dynsched.services.operations import Operations
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import CronSpec, JobSpec, default_policies
from dynsched.storage.engine import Engine, Row, Table
from dynsched.storage.runs import RunApplied
from dynsched.targets.app import App
from dynsched.targets.stop import Stop
from dynsched.targets.ticket import Ticket
from dynsched.testing import SettableClock, memory_store

TENANT = "acme"
REASON = "the disk is full"
ROWS_MAX = 1_000


def boom() -> None:
    """Fail."""
    raise ValueError("boom")


class Scene:
    """A store of one tenant with an active and a paused job, and a run in each state of interest.

    Attributes:
        engine: the rows themselves, behind no fault.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or memory_store()
        self.clock = SettableClock()
        self.base = open_base(environment={}, engine=self.engine, clock=self.clock, rng=Random(1))
        init_store(self.base)
        self.owner = build_operations(self.base)
        self.owner.set_message_queue("mail", priority=Priority.BULK, url="https://sqs/1/mail")
        self.active = self.owner.create(self.spec("active"))
        self.paused = self.owner.create(self.spec("paused"))
        self.owner.pause(self.paused.job_id, reason="holiday")
        self.dead, self.hidden = self._kill(), self._kill()
        self.owner.discard(self.hidden.run_id)
        self.handed, self.handed_token = self._open_callback()
        self.ready = self.owner.enqueue(self.active.job_id, delay=timedelta(days=1))
        self.draft, self.running, self.resting, self.over = (self._batch() for _ in range(4))
        self.owner.confirm_replay(self.over.batch_id)
        self.owner.abort_replay(self.over.batch_id)
        build_stepper(self.base).step()
        for batch in (self.running, self.resting):
            self.owner.confirm_replay(batch.batch_id)
        self.owner.pause_replay(self.resting.batch_id)
        self.owner.create_token("graphs")
        self.clock.step(seconds=1)  # entries of one millisecond lie in no order

    def spec(self, name: str) -> JobSpec:
        """Return a job whose only attempt fails."""
        schedule = CronSpec(expr="0 3 * * *")
        policies = replace(default_policies(schedule), retry=RetryPolicy(max_attempts=1))
        return JobSpec(
            name=name,
            tenant=TENANT,
            target=HandlerTarget("boom"),
            schedule=schedule,
            policies=policies,
            payload={"password": "hush", "n": 1},
        )

    def _batch(self) -> Batch:
        return self.owner.preview_replay(f"tenant:{TENANT}")

    def _kill(self) -> Run:
        app = App()
        app.job("boom")(boom)
        run = self.owner.enqueue(self.active.job_id)
        worker = build_worker(self.base, app, slots=InlineSlots()).worker
        worker.poll()
        worker.poll()
        dead = self.owner.get_run(run.run_id)
        assert dead.state is RunState.DEAD
        return dead

    def _open_callback(self) -> tuple[Run, str]:
        spec = replace(self.spec("calls"), target=LambdaTarget("f", invocation=Invocation.CALLBACK))
        job = self.owner.create(spec)
        made, now = self.owner.enqueue(job.job_id), self.clock.now()
        outcome = self.base.store.runs.apply(lifecycle.claim(made, session="s1", now=now))
        assert isinstance(outcome, RunApplied)
        item = InHand(outcome.run, "s1", Stop(), job=job, started_at=now)
        opener = CallbackOpener(self.base.store, clock=self.clock, rng=Random(3))
        ticket = opener.open(item)
        assert isinstance(ticket, Ticket)
        return item.run, ticket.token

    def operations(self, access: Access, engine: Engine | None = None) -> Operations:
        """Return the verbs for an actor; through another connection if one is given."""
        if engine is None:
            return build_operations(self.base, access)
        base = open_base(environment={}, engine=engine, clock=self.clock, rng=Random(2))
        return build_operations(base, access)

    def rows(self, *, audit: bool = False) -> Mapping[str, Row]:
        """Return all rows of the store by their keys, those of the audit only if asked for."""
        pages = [self.engine.scan(table, ROWS_MAX) for table in Table]
        assert all(page.cursor is None for page in pages)
        return {
            f"{row.key}": row
            for page in pages
            for row in page.rows
            if audit or not row.key.pk.startswith("audit#")
        }

    def audit(self) -> list[AuditEntry]:
        """Return the entries of the present day, newest first."""
        day = self.clock.now().date()
        return list(self.base.store.audit.of_day(day, most=ROWS_MAX))

    def audit_of(self, target: str) -> list[AuditEntry]:
        """Return the entries about a target, newest first."""
        return list(self.base.store.audit.of_target(target, most=ROWS_MAX))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb.

    Attributes:
        make: calls it.
        target: what its audit entry names, given the scene and the verb's answer.
        fail: a call of it that the present state refuses; None if nothing can.
    """

    make: Callable[[Operations, Scene], Any]
    target: Callable[[Scene, Any], str]
    fail: Callable[[Operations, Scene], Any] | None = None


def _job(name: str) -> Callable[[Scene, Any], str]:
    return lambda scene, _: f"job:{getattr(scene, name).job_id}"


def _run(name: str) -> Callable[[Scene, Any], str]:
    return lambda scene, _: f"run:{getattr(scene, name).run_id}"


def _batch(name: str) -> Callable[[Scene, Any], str]:
    return lambda scene, _: f"batch:{getattr(scene, name).batch_id}"


CALLS: dict[str, Call] = {
    "create": Call(
        lambda verbs, scene: verbs.create(scene.spec("new"), reason=REASON),
        lambda _, job: f"job:{job.job_id}",
        lambda verbs, scene: verbs.create(scene.spec("active")),
    ),
    "pause": Call(
        lambda verbs, scene: verbs.pause(scene.active.job_id, reason=REASON),
        _job("active"),
        lambda verbs, scene: verbs.pause(scene.paused.job_id, reason="again"),
    ),
    "resume": Call(
        lambda verbs, scene: verbs.resume(scene.paused.job_id, reason=REASON),
        _job("paused"),
        lambda verbs, scene: verbs.resume(scene.active.job_id),
    ),
    "reschedule": Call(
        lambda verbs, scene: verbs.reschedule(
            scene.active.job_id, CronSpec(expr="0 4 * * *"), reason=REASON
        ),
        _job("active"),
        lambda verbs, scene: verbs.reschedule(scene.active.job_id, CronSpec(expr="nonsense")),
    ),
    "edit": Call(
        lambda verbs, scene: verbs.edit(scene.active.job_id, queue="slow", reason=REASON),
        _job("active"),
        lambda verbs, scene: verbs.edit(scene.active.job_id, queue="no queue"),
    ),
    "delete": Call(
        lambda verbs, scene: verbs.delete(scene.active.job_id, reason=REASON), _job("active")
    ),
    "run_now": Call(
        lambda verbs, scene: verbs.run_now(scene.active.job_id, reason=REASON),
        lambda _, run: f"run:{run.run_id}",
        lambda verbs, scene: verbs.run_now(scene.active.job_id, payload=float("nan")),
    ),
    "enqueue": Call(
        lambda verbs, scene: verbs.enqueue(scene.active.job_id), lambda _, run: f"run:{run.run_id}"
    ),
    "enqueue_many": Call(
        lambda verbs, scene: verbs.enqueue_many(scene.active.job_id, [1, 2]), _job("active")
    ),
    "cancel": Call(
        lambda verbs, scene: verbs.cancel(scene.ready.run_id, reason=REASON),
        _run("ready"),
        lambda verbs, scene: verbs.cancel(scene.dead.run_id),
    ),
    "answer_run": Call(
        lambda verbs, scene: verbs.answer_run(
            scene.handed.run_id, scene.handed_token, Answer.done()
        ),
        _run("handed"),
    ),
    "end_run": Call(
        lambda verbs, scene: verbs.end_run(scene.handed.run_id, Answer.done(), reason=REASON),
        _run("handed"),
        lambda verbs, scene: verbs.end_run(scene.ready.run_id, Answer.done()),
    ),
    "replay": Call(
        lambda verbs, scene: verbs.replay(scene.dead.run_id, reason=REASON),
        _run("dead"),
        lambda verbs, scene: verbs.replay(scene.ready.run_id),
    ),
    "discard": Call(
        lambda verbs, scene: verbs.discard(scene.dead.run_id, reason=REASON),
        _run("dead"),
        lambda verbs, scene: verbs.discard(scene.ready.run_id),
    ),
    "restore": Call(
        lambda verbs, scene: verbs.restore(scene.hidden.run_id, reason=REASON),
        _run("hidden"),
        lambda verbs, scene: verbs.restore(scene.ready.run_id),
    ),
    "resize": Call(
        lambda verbs, _: verbs.resize(lanes=4, reason=REASON),
        lambda *_: "store",
        lambda verbs, _: verbs.resize(lanes=0),
    ),
    "set_message_queue": Call(
        lambda verbs, _: verbs.set_message_queue(
            "main", priority=Priority.HIGH, url="https://sqs/1/high", reason=REASON
        ),
        lambda *_: "store",
        lambda verbs, _: verbs.set_message_queue("main", priority=Priority.HIGH, url="no URL"),
    ),
    "drop_message_queues": Call(
        lambda verbs, _: verbs.drop_message_queues("mail", reason=REASON),
        lambda *_: "store",
        lambda verbs, _: verbs.drop_message_queues("nobody"),
    ),
    "set_tenant": Call(
        lambda verbs, _: verbs.set_tenant(TENANT, max_running=3, reason=REASON),
        lambda *_: f"tenant:{TENANT}",
        lambda verbs, _: verbs.set_tenant(TENANT, max_running=0),
    ),
    "replay_as_new": Call(
        lambda verbs, scene: verbs.replay_as_new(scene.dead.run_id, reason=REASON),
        _run("dead"),
        lambda verbs, scene: verbs.replay_as_new(scene.ready.run_id, reason=REASON),
    ),
    "replay_edited": Call(
        lambda verbs, scene: verbs.replay_edited(scene.dead.run_id, {"n": 2}, reason=REASON),
        _run("dead"),
        lambda verbs, scene: verbs.replay_edited(scene.ready.run_id, {"n": 2}, reason=REASON),
    ),
    "preview_replay": Call(
        lambda verbs, _: verbs.preview_replay(f"tenant:{TENANT}", reason=REASON),
        lambda _, batch: f"batch:{batch.batch_id}",
        lambda verbs, _: verbs.preview_replay("tenant:nobody"),
    ),
    "confirm_replay": Call(
        lambda verbs, scene: verbs.confirm_replay(scene.draft.batch_id, reason=REASON),
        _batch("draft"),
        lambda verbs, scene: verbs.confirm_replay(scene.draft.batch_id, count=7),
    ),
    "pause_replay": Call(
        lambda verbs, scene: verbs.pause_replay(scene.running.batch_id, reason=REASON),
        _batch("running"),
        lambda verbs, scene: verbs.pause_replay(scene.draft.batch_id),
    ),
    "resume_replay": Call(
        lambda verbs, scene: verbs.resume_replay(scene.resting.batch_id, reason=REASON),
        _batch("resting"),
        lambda verbs, scene: verbs.resume_replay(scene.draft.batch_id),
    ),
    "abort_replay": Call(
        lambda verbs, scene: verbs.abort_replay(scene.running.batch_id, reason=REASON),
        _batch("running"),
        lambda verbs, scene: verbs.abort_replay(scene.draft.batch_id),
    ),
    "pace_replay": Call(
        lambda verbs, scene: verbs.pace_replay(scene.running.batch_id, 3, reason=REASON),
        _batch("running"),
        lambda verbs, scene: verbs.pace_replay(scene.running.batch_id, -1),
    ),
    "rest_of_replay": Call(
        lambda verbs, scene: verbs.rest_of_replay(scene.over.batch_id, reason=REASON),
        lambda _, batch: f"batch:{batch.batch_id}",
        lambda verbs, scene: verbs.rest_of_replay(scene.draft.batch_id),
    ),
    "create_token": Call(
        lambda verbs, scene: verbs.create_token("ci", role=Role.OPERATOR, reason=REASON),
        lambda _, made: f"token:{made.token.name}",
        lambda verbs, scene: verbs.create_token("graphs"),
    ),
    "revoke_token": Call(
        lambda verbs, scene: verbs.revoke_token("graphs", reason=REASON),
        lambda _, token: f"token:{token.name}",
        lambda verbs, scene: verbs.revoke_token("nobody"),
    ),
    "unmask_run": Call(
        lambda verbs, scene: verbs.unmask_run(scene.dead.run_id, reason=REASON),
        _run("dead"),
        lambda verbs, scene: verbs.unmask_run(scene.dead.run_id, reason=" "),
    ),
}
"""By the verb's name."""

LOOKS = frozenset({"unmask_run"})
"""Verbs that change nothing but the audit."""

READERS = frozenset(
    {"access", "target_of", "check", "find", "find_id", "get_batch", "get_job", "get_run"}
)
"""What else Operations shows; it writes nothing."""


def verbs() -> dict[str, Any]:
    """Return every public name of `Operations` that is no reader."""
    return {
        name: getattr(Operations, name)
        for name in dir(Operations)
        if not name.startswith("_") and name not in READERS
    }
