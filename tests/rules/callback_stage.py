"""A store, a worker and a Lambda that is played by the test, for runs that are answered later."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from dynsched.bootstrap import (
    build_operations,
    build_reaper,
    build_views,
    build_worker,
    init_store,
    open_base,
)
from dynsched.client import Client
from dynsched.domain import lifecycle
from dynsched.domain.job import Job, Overlap, Policies
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run
from dynsched.domain.target_aws import Invocation, LambdaTarget
from dynsched.services.hand import InHand
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import JobSpec
from dynsched.storage.engine import Engine
from dynsched.storage.runs import RunApplied
from dynsched.targets.aws import AwsClients
from dynsched.targets.stop import Stop
from dynsched.testing import SettableClock, memory_store

LIMIT = timedelta(minutes=10)


class PlayedLambda:
    """What the SDK's client is to the worker.

    Attributes:
        events: what was invoked, as the function would see it.
        refusal: code of the error that invocations are refused with; None takes them.
        on_event: plays what the function does while the invocation is still to be answered.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.refusal: str | None = None
        self.on_event: Callable[[dict[str, Any]], None] = lambda _: None

    def make(self, _: str, __: str | None, ___: Config) -> Any:
        """Return itself as the client of any service."""
        return self

    def invoke(self, *, Payload: bytes, **_: object) -> dict[str, Any]:  # noqa: N803  # as AWS has it
        """Take an event, or refuse it."""
        if self.refusal is not None:
            raise ClientError({"Error": {"Code": self.refusal, "Message": "no"}}, "Invoke")
        self.events.append(json.loads(Payload))
        self.on_event(self.events[-1])
        return {"StatusCode": 202, "ResponseMetadata": {"RequestId": "r"}}

    def close(self) -> None:
        """Do nothing."""


class Stage:
    """A job whose function answers by callback, and a worker that invokes it.

    Args:
        engine: the store; None makes one.
        beside: another stage on the same store, whose clock and job it has.
    """

    def __init__(self, engine: Engine | None = None, beside: Stage | None = None) -> None:
        self.clock: SettableClock = beside.clock if beside else SettableClock()
        self.played = PlayedLambda()
        self.base = open_base(
            environment={},
            engine=engine or memory_store(),
            clock=self.clock,
            rng=Random(2 if beside else 1),
        )
        init_store(self.base)
        self.verbs, self.views = build_operations(self.base), build_views(self.base)
        self.client = Client(self.base)
        self.reaper = build_reaper(self.base)
        aws = AwsClients(self.clock, make=self.played.make)
        self.worker = build_worker(self.base, slots=InlineSlots(), aws=aws).worker
        self.job: Job = beside.job if beside else self.make_job()

    def make_job(self, name: str = "report", overlap: Overlap = Overlap.ALLOW) -> Job:
        """Make a job that is tried twice, each time for ten minutes at most."""
        retry = RetryPolicy(max_attempts=2, base=timedelta(seconds=1), jitter=Jitter.NONE)
        policies = replace(Policies(), timeout=LIMIT, retry=retry, overlap=overlap)
        target = LambdaTarget("report", invocation=Invocation.CALLBACK)
        return self.verbs.create(JobSpec(name=name, target=target, policies=policies))

    def work(self, polls: int = 3) -> None:
        """Let the worker do what there is to do."""
        self.worker.look_again()
        for _ in range(polls):
            self.worker.poll()

    def claimed(self, run: Run) -> InHand:
        """Return a run as a worker has it in hand that is about to start it."""
        now = self.clock.now()
        outcome = self.base.store.runs.apply(lifecycle.claim(run, session="s1", now=now))
        assert isinstance(outcome, RunApplied)
        return InHand(outcome.run, "s1", Stop(), job=self.job, started_at=now)

    def start(self, job: Job | None = None) -> tuple[Run, dict[str, Any]]:
        """Enqueue a run and let it wait for its callback; return it with its function's event."""
        run = self.verbs.enqueue((job or self.job).job_id, {"day": 7})
        self.work()
        return self.verbs.get_run(run.run_id), self.played.events[-1]
