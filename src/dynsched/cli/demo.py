"""The demo: a few handlers and jobs that show, within a minute, what there is to see."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from dynsched.domain.job import Overlap, Policies
from dynsched.domain.payload import Json
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.target import HandlerTarget
from dynsched.errors import AlreadyExists
from dynsched.services.operations import Operations
from dynsched.services.specs import AfterSpec, CronSpec, EverySpec, JobSpec, ScheduleSpec
from dynsched.targets.app import App, Handler
from dynsched.targets.context import AnyContext

STEPS = 8
STEP_S = 1.0


class BadAddress(Exception):
    """What the demo's failing job fails with."""


def greet(ctx: AnyContext) -> Json:
    """Return a greeting; the run keeps it as its output."""
    who = ctx.payload.get("who", "world") if isinstance(ctx.payload, dict) else "world"
    return {"said": f"hello {who}", "for": ctx.scheduled_for.isoformat()}


def fail(ctx: AnyContext) -> Json:
    """Fail each time, so that the run ends in the dead-letter queue."""
    raise BadAddress(f"the address {ctx.payload!r} bounced (try {ctx.attempt})")


def work_slowly(ctx: AnyContext) -> Json:
    """Take some seconds, tell how far it is, and end early when asked to."""
    for step in range(1, STEPS + 1):
        ctx.progress(step, STEPS, f"step {step} of {STEPS}")
        ctx.stop.wait(STEP_S)
        ctx.raise_if_cancelled()
    return {"steps": STEPS}


HANDLERS: dict[str, Handler] = {"demo.greet": greet, "demo.fail": fail, "demo.slow": work_slowly}


def with_handlers(app: App) -> App:
    """Return an app with the handlers of another one and those of the demo."""
    both = App()
    for name, registration in app.handlers.items():
        both.job(name, **registration.defaults)(registration.function)
    for name, function in HANDLERS.items():
        if name not in app.handlers:
            both.job(name)(function)
    return both


def add_jobs(operations: Operations) -> list[str]:
    """Add the demo's jobs; those that are there stay as they are. Return the names of the new."""
    added = []
    for spec in jobs():
        if operations.find_id(spec.tenant, spec.name) is not None:
            continue
        try:
            operations.create(spec, reason="up --demo")
        except AlreadyExists:
            continue
        added.append(spec.name)
    return added


def jobs() -> Sequence[JobSpec]:
    """Return the demo's jobs, of three tenants."""
    soon = RetryPolicy(
        max_attempts=3,
        base=timedelta(seconds=5),
        factor=2,
        cap=timedelta(minutes=1),
        jitter=Jitter.NONE,
    )
    queue_one = Policies(overlap=Overlap.QUEUE_ONE)
    every = timedelta(seconds=10)
    return (
        _job("demo-heartbeat", "acme", greet, EverySpec(every=every), payload={"who": "acme"}),
        _job("demo-each-minute", "acme", greet, CronSpec(expr="* * * * *")),
        _job("demo-delayed", "globex", greet, AfterSpec(delay=timedelta(seconds=15))),
        _job(
            "demo-fails",
            "globex",
            fail,
            AfterSpec(delay=timedelta(seconds=3)),
            payload="nobody@example.org",
            policies=Policies(retry=soon, overlap=Overlap.ALLOW),
        ),
        _job("demo-slow", "initech", work_slowly, EverySpec(every=timedelta(seconds=30))),
        _job("demo-queue-one", "initech", work_slowly, EverySpec(every=every), policies=queue_one),
    )


def _job(
    name: str,
    tenant: str,
    handler: Handler,
    schedule: ScheduleSpec,
    *,
    payload: Json = None,
    policies: Policies | None = None,
) -> JobSpec:
    names = {function: registered for registered, function in HANDLERS.items()}
    return JobSpec(
        name=name,
        target=HandlerTarget(names[handler]),
        schedule=schedule,
        tenant=tenant,
        policies=policies,
        payload=payload,
        tags={"demo": "yes"},
    )
