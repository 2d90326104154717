"""The hand-off on AWS: rows in DynamoDB, messages by SQS, both as moto knows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import boto3
import moto
import pytest

from dynsched.bootstrap import (
    Base,
    build_dispatcher,
    build_operations,
    build_reaper,
    init_store,
    open_base,
    prepare_store,
)
from dynsched.clock import SystemClock
from dynsched.domain.instants import minute_of
from dynsched.domain.job import Priority
from dynsched.domain.message import decode_message
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings
from dynsched.storage.handoff import MessageQueue
from dynsched.testing.clock import SettableClock
from tests.contract.dynamo_backends import REGION, dummy_credentials, fresh_prefix

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


class Place:
    """A store on DynamoDB whose main queue is handed off."""

    def __init__(self) -> None:
        # moto dates its answers by the machine's clock, and a process compares its own with it.
        self.clock = SettableClock(SystemClock().now())
        settings = Settings(skew_stop=timedelta(days=1))
        url = f"dynamodb://{fresh_prefix()}?region={REGION}"
        self.base: Base = open_base(url, clock=self.clock, rng=Random(1), settings=settings)
        init_store(self.base)
        self.client: SQSClient = boto3.client("sqs", region_name=REGION)
        self.queue = self.client.create_queue(QueueName="jobs")["QueueUrl"]
        self.hand_off(self.queue)
        self.operations = build_operations(self.base)
        self.job = self.operations.create(JobSpec(name="job", target=HandlerTarget("ok")))

    def hand_off(self, url: str) -> None:
        """Let the map name a queue of messages."""
        named = MessageQueue(queue="main", priority=Priority.DEFAULT, url=url)
        prepare_store(
            self.base,
            look_ahead=timedelta(seconds=30),
            shards=1,
            lanes=2,
            message_queues=[named],
        )

    def enqueue(self, delay_s: float = 0) -> Run:
        """Make a run."""
        return self.operations.enqueue(self.job.job_id, None, delay=timedelta(seconds=delay_s))

    def receive(self) -> list[str]:
        """Take what is visible; return the ids of its runs."""
        answer: Any = self.client.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10)
        return [decode_message(one["Body"]) for one in answer.get("Messages", ())]


@pytest.fixture
def place() -> Iterator[Place]:
    """Return a store on DynamoDB whose main queue is handed off."""
    with dummy_credentials(), moto.mock_aws():
        found = Place()
        yield found
        found.base.store.engine.close()


def test_a_run_in_dynamodb_is_told_of_by_sqs(place: Place) -> None:
    """The store's URL is all that a process is given."""
    run = place.enqueue()
    assert place.receive() == [run.run_id]


def test_a_run_far_ahead_waits_in_dynamodb_for_its_message(place: Place) -> None:
    """Its reminder lies in the index of the retries, where a dispatcher finds it."""
    run = place.enqueue(delay_s=1_000)
    place.clock.step(seconds=990)
    build_dispatcher(place.base).tick()
    assert place.receive() == []
    attributes = place.client.get_queue_attributes(QueueUrl=place.queue, AttributeNames=["All"])
    assert attributes["Attributes"]["ApproximateNumberOfMessagesDelayed"] == "1"
    minute, end = minute_of(run.available_at), run.available_at + timedelta(seconds=1)
    assert place.base.store.reminders.due(minute, 0, end, most=9) == []


def test_a_message_that_was_lost_is_sent_again_by_sqs(place: Place) -> None:
    """The queue was not there when the row was written; the map names another one since."""
    place.client.delete_queue(QueueUrl=place.queue)
    run = place.enqueue()
    place.queue = place.client.create_queue(QueueName="others")["QueueUrl"]
    place.hand_off(place.queue)
    assert place.receive() == []
    place.clock.step(seconds=61)
    assert build_reaper(place.base).sweep().resent == 1
    assert place.receive() == [run.run_id]
