"""Lambda and SQS targets from end to end: a worker, an emulator's SQS, and functions that run."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from typing import Any, cast
from unittest.mock import patch

import boto3
import pytest

from dynsched.bootstrap import build_operations, build_views, build_worker, init_store, open_base
from dynsched.clock import SystemClock
from dynsched.domain.job import Overlap, Policies
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import Target
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import JobSpec
from dynsched.targets.context import AnyContext, Context
from dynsched.targets.result import Succeeded
from tests.contract.dynamo_backends import REGION, dummy_credentials, fresh_prefix, ministack_url

SOURCE = Path(__file__).resolve().parents[2] / "src"
SENDER = """
def handler(event, context):
    if event["payload"] == "fail":
        raise LookupError("no such order")
    return {"got": event["payload"], "key": event["dynsched"]["idempotency_key"]}
"""
CALLER = """
from dynsched import connect

client = connect()

def handler(event, context):
    with client.callback(event) as work:
        work.output = {"got": work.payload}
"""


class Stage:
    """A store on the emulator with a worker, and what AWS has of the test's."""

    def __init__(self, prefix: str) -> None:
        url = ministack_url()
        self.prefix = prefix
        self.store_url = f"dynamodb://{prefix}?region={REGION}&endpoint_url={url}"
        self.base = open_base(self.store_url, environment={}, rng=SystemRandom())
        init_store(self.base)
        self.verbs, self.views = build_operations(self.base), build_views(self.base)
        self.parts = build_worker(self.base, slots=InlineSlots())
        self.aws: Any = {name: boto3.client(cast(Any, name)) for name in ("lambda", "sqs")}

    def function(self, code: str) -> str:
        """Make a function of some code; return its ARN."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("main.py", code)
        made = self.aws["lambda"].create_function(
            FunctionName=self.prefix,
            Runtime="python3.13",
            Role="arn:aws:iam::000000000000:role/f",
            Handler="main.handler",
            Timeout=60,
            Code={"ZipFile": packed.getvalue()},
            Environment={
                "Variables": {"PYTHONPATH": str(SOURCE), "DYNSCHED_STORE": self.store_url}
            },
        )
        self.aws["lambda"].get_waiter("function_active_v2").wait(
            FunctionName=self.prefix, WaiterConfig={"Delay": 1}
        )
        return str(made["FunctionArn"])

    def run(self, target: Target, payload: Any) -> Run:
        """Enqueue a run of a job with a target, let the worker take it; return it afterwards."""
        policies = replace(
            Policies(),
            overlap=Overlap.ALLOW,
            timeout=timedelta(minutes=1),
            retry=RetryPolicy(max_attempts=1),
        )
        job = self.verbs.create(JobSpec(name="job", target=target, policies=policies))
        run = self.verbs.enqueue(job.job_id, payload)
        for _ in range(3):
            self.parts.worker.look_again()
            self.parts.worker.poll()
        return self.verbs.get_run(run.run_id)


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Give a store of its own, with credentials that only the emulator takes."""
    with dummy_credentials(), patch.dict("os.environ", {"AWS_ENDPOINT_URL": ministack_url()}):
        one = Stage(fresh_prefix())
        with closing(one.parts.runner):
            yield one
            one.parts.worker.close()


def test_a_function_that_runs_is_answered_and_one_that_raises_fails(stage: Stage) -> None:
    """What it returns is kept, and what it raises is the attempt's error."""
    target = LambdaTarget(stage.function(SENDER))
    done = stage.run(target, {"order": 7})
    (attempt,) = stage.views.show_run(done.run_id).attempts
    assert (done.state, json.loads(attempt.detail)) == (
        RunState.DONE,
        {"got": {"order": 7}, "key": done.idempotency_key},
    )
    stage.verbs.delete(done.job_id)
    dead = stage.run(target, "fail")
    # AWS tells the exception's name as well; the emulator has one for all.
    assert (dead.state, dead.error.partition(": ")[2]) == (RunState.DEAD, "no such order")


def test_a_function_that_calls_back_ends_its_run(stage: Stage) -> None:
    """From the worker over the queue of Lambda's events to the function's own client."""
    stage.function(CALLER)  # found by its plain name, in the store's region
    target = LambdaTarget(stage.prefix, invocation=Invocation.CALLBACK)
    run, clock = stage.run(target, {"order": 7}), SystemClock()
    ends_at = clock.now() + timedelta(seconds=60)
    pause = threading.Event()
    while not run.terminal and clock.now() < ends_at and not pause.wait(0.05):
        run = stage.verbs.get_run(run.run_id)
    (attempt,) = stage.views.show_run(run.run_id).attempts
    assert (run.state, json.loads(attempt.detail)) == (RunState.DONE, {"got": {"order": 7}})


def test_a_message_is_sent_once_to_a_fifo_queue_whatever_is_tried_again(stage: Stage) -> None:
    """The deduplication id is the run's key: the second try sends nothing new."""
    queue = stage.aws["sqs"].create_queue(
        QueueName=f"{stage.prefix}.fifo", Attributes={"FifoQueue": "true"}
    )["QueueUrl"]
    done = stage.run(SqsTarget(queue), {"order": 7})
    assert done.state is RunState.DONE
    again: AnyContext = Context(
        payload={"order": 7},
        idempotency_key=done.idempotency_key,
        job_id=done.job_id,
        job_name="job",
        run_id=done.run_id,
        tenant="default",
        scheduled_for=done.scheduled_for,
        attempt=2,
    )
    assert isinstance(stage.parts.runner.run(SqsTarget(queue), again), Succeeded)
    answer = stage.aws["sqs"].receive_message(
        QueueUrl=queue,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        AttributeNames=["All"],
    )
    (message,) = answer["Messages"]
    assert json.loads(message["Body"]) == {"order": 7}
    assert message["Attributes"]["MessageDeduplicationId"] == done.idempotency_key
    assert message["MessageAttributes"]["X-Dynsched-Run"]["StringValue"] == done.run_id


def test_a_function_that_is_not_there_buries_the_run(stage: Stage) -> None:
    """The emulator's own answer to a wrong name."""
    dead = stage.run(LambdaTarget("nobody"), None)
    assert dead.state is RunState.DEAD
    assert dead.error.startswith("ResourceNotFoundException: ")
