"""The hand-off by SQS: what is sent, and what happens when SQS fails or refuses."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import moto
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from dynsched.domain.job import Priority
from dynsched.errors import StoreError, Throttled, Unavailable
from dynsched.storage.handoff import MessageQueue, Notice
from dynsched.storage.sqs import DOWN_S, FAILURES_MAX, LOG_S, SqsHandOff, group_of, region_of
from dynsched.testing.clock import SettableClock
from tests.contract.dynamo_backends import REGION, dummy_credentials, ministack_url
from tests.integration.scripted_wire import Answer, Wire, error

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OTHER = MessageQueue(queue="mail", priority=Priority.HIGH, url="https://sqs.aws/1/mail")
UNREACHABLE = EndpointConnectionError(endpoint_url="https://sqs.aws")
TAKEN: Answer = (200, {"Successful": [], "Failed": []})


def notice(number: int = 0, *, share: str = "acme", ahead_s: float = 0) -> Notice:
    """Return what is told of a run."""
    run_id = f"0123456789abc@2026-03-01T12:00:00.000Z-m0-{number:04}"
    return Notice(run_id, share, NOW + timedelta(seconds=ahead_s))


class Desk:
    """A queue at an SQS, and what is sent to it."""

    def __init__(self, endpoint_url: str | None = None) -> None:
        self.client: SQSClient = boto3.client("sqs", region_name=REGION, endpoint_url=endpoint_url)
        url = self.client.create_queue(QueueName="jobs")["QueueUrl"]
        self.queue = MessageQueue(queue="main", priority=Priority.HIGH, url=url)
        self.clock = SettableClock(NOW)
        self.handoff = SqsHandOff(clock=self.clock, region=REGION, endpoint_url=endpoint_url)

    def send(self, *notices: Notice) -> None:
        """Send messages."""
        self.handoff.send(self.queue, notices)

    def receive(self) -> list[dict[str, Any]]:
        """Take all messages that are visible."""
        found: list[dict[str, Any]] = []
        while True:
            answer: Any = self.client.receive_message(
                QueueUrl=self.queue.url, MaxNumberOfMessages=10, AttributeNames=["All"]
            )
            if not answer.get("Messages"):
                return found
            found += answer["Messages"]


@contextmanager
def on_moto() -> Iterator[Desk]:
    """Give a queue in this process."""
    with dummy_credentials(), moto.mock_aws():
        yield Desk()


@contextmanager
def on_ministack() -> Iterator[Desk]:
    """Give a queue at an emulator behind the wire."""
    with dummy_credentials():
        yield Desk(ministack_url())


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Return a queue in this process."""
    with on_moto() as found:
        yield found


@pytest.mark.parametrize("place", [on_moto, on_ministack])
def test_messages_go_by_tens_and_say_which_run_and_whose(place: Any) -> None:
    """A group is a share key, so that a queue that is fair to groups is fair to tenants."""
    with place() as desk:
        desk.send(*(notice(number, share=f"t{number % 3}") for number in range(25)))
        found = desk.receive()
    assert {json.loads(one["Body"])["run"] for one in found} == {
        notice(number).run_id for number in range(25)
    }
    assert {one["Attributes"].get("MessageGroupId") for one in found} == {"t0", "t1", "t2"}
    assert all(json.loads(one["Body"])["v"] == 1 for one in found)


def test_a_message_comes_when_its_run_is_due(desk: Desk) -> None:
    """A depth counts what is visible and what was received: the delayed ones are no backlog."""
    desk.send(notice(1), notice(2, ahead_s=600), notice(3, ahead_s=-600))
    assert desk.handoff.depth(desk.queue) == 2
    assert len(desk.receive()) == 2
    assert desk.handoff.depth(desk.queue) == 2


def test_a_message_that_was_received_can_be_put_off(desk: Desk) -> None:
    """As long as SQS lets it: twelve hours since it was received."""
    desk.send(notice())
    (message,) = desk.receive()
    desk.handoff.postpone(desk.queue.url, message["ReceiptHandle"], 0)
    (message,) = desk.receive()
    desk.handoff.postpone(desk.queue.url, message["ReceiptHandle"], 10**9)
    assert desk.receive() == []


def test_a_queue_that_is_not_there_is_named(desk: Desk) -> None:
    """Whoever asked for its depth reads which one, and where it is said."""
    desk.client.delete_queue(QueueUrl=desk.queue.url)
    with pytest.raises(StoreError, match=f"there is no queue {desk.queue.url}: `dynsched handoff"):
        desk.handoff.depth(desk.queue)


# on a scripted wire


class Scripted:
    """A hand-off whose client talks to a list of answers."""

    def __init__(self) -> None:
        self.wire = Wire()
        config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
        with dummy_credentials():
            client = boto3.client("sqs", region_name=REGION, config=config)
        # The stubs do not know that this event takes an answer.
        client.meta.events.register("before-send.sqs", self.wire.answer)  # type: ignore[arg-type]
        self.clock = SettableClock(NOW)
        self.handoff = SqsHandOff(clock=self.clock, client=client, max_workers=1)
        url = "https://sqs.aws/1/jobs"
        self.queue = MessageQueue(queue="main", priority=Priority.HIGH, url=url)

    def send(self, *notices: Notice, queue: MessageQueue | None = None) -> int:
        """Send messages; return how many requests were made."""
        before = len(self.wire.requests)
        self.handoff.send(queue or self.queue, notices)
        return len(self.wire.requests) - before

    def ids(self) -> list[list[str]]:
        """Return the ids of the entries of each batch that was sent."""
        return [[entry["Id"] for entry in body["Entries"]] for _, body in self.wire.requests]


@pytest.fixture
def scripted() -> Scripted:
    """Return a hand-off on a scripted wire."""
    return Scripted()


def failed(*entries: tuple[str, bool]) -> Answer:
    """Return an answer that refuses entries: id, and whether that is the sender's fault."""
    fields = [
        {"Id": name, "SenderFault": fault, "Code": "Odd", "Message": "why"}
        for name, fault in entries
    ]
    return 200, {"Successful": [], "Failed": fields}


@pytest.mark.parametrize(
    ("ahead_s", "delay_s"), [(-5, 0), (0, 0), (0.001, 1), (1, 1), (29.5, 30), (900, 900)]
)
def test_a_delay_is_rounded_up_to_the_second(
    scripted: Scripted, ahead_s: float, delay_s: int
) -> None:
    """A message that comes early is a visit for nothing."""
    scripted.wire.answers = [TAKEN]
    scripted.send(notice(ahead_s=ahead_s))
    ((_, body),) = scripted.wire.requests
    assert [entry["DelaySeconds"] for entry in body["Entries"]] == [delay_s]


def test_what_sqs_could_not_take_of_a_batch_is_sent_once_more(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    """Only that, and only if it is not our fault; then it is left to the reaper."""
    scripted.wire.answers = [failed(("1", False), ("2", True)), failed(("1", False)), TAKEN]
    with caplog.at_level(logging.WARNING, "dynsched.handoff"):
        assert scripted.send(*(notice(number) for number in range(4))) == 2
    assert scripted.ids() == [["0", "1", "2", "3"], ["1"]]
    assert caplog.messages[0].startswith(
        "2 messages were not sent to https://sqs.aws/1/jobs: SQS refused them (Odd: why)"
    )
    assert scripted.send(notice()) == 1


def test_an_outage_costs_a_writer_a_few_calls_and_the_log_one_line(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind that one call in a while finds out whether it is over."""
    scripted.wire.answers = [UNREACHABLE]
    with caplog.at_level(logging.WARNING, "dynsched.handoff"):
        assert [scripted.send(notice()) for _ in range(5)] == [1] * FAILURES_MAX + [0, 0]
        assert len(caplog.messages) == 1
        scripted.clock.step(seconds=DOWN_S)
        assert [scripted.send(notice()) for _ in range(3)] == [1, 0, 0]
        scripted.clock.step(seconds=LOG_S)
        assert scripted.send(*(notice(number) for number in range(10))) == 1
    assert len(caplog.messages) == 2
    assert caplog.messages[1].startswith("17 messages were not sent to https://sqs.aws/1/jobs: ")
    scripted.wire.answers = [TAKEN]
    scripted.clock.step(seconds=DOWN_S)
    assert [scripted.send(notice()) for _ in range(3)] == [1, 1, 1]


def test_a_queue_that_fails_does_not_silence_another(scripted: Scripted) -> None:
    """What is known of an outage is known of one queue."""
    scripted.wire.answers = [UNREACHABLE]
    for _ in range(FAILURES_MAX):
        scripted.send(notice())
    scripted.wire.answers = [TAKEN]
    assert [scripted.send(notice()), scripted.send(notice(), queue=OTHER)] == [0, 1]


def test_a_refusal_is_no_outage(scripted: Scripted) -> None:
    """It costs no time, and a right or a queue that is missing may be there at any moment."""
    scripted.wire.answers = [error("AccessDeniedException")]
    assert [scripted.send(notice()) for _ in range(9)] == [1] * 9


def test_a_server_that_fails_or_throttles_is_an_outage(scripted: Scripted) -> None:
    """Each of its answers takes its time."""
    scripted.wire.answers = [error("RequestThrottled"), error("InternalError", 500)]
    assert [scripted.send(notice()) for _ in range(5)] == [1] * FAILURES_MAX + [0, 0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (UNREACHABLE, Unavailable),
        (error("RequestThrottled"), Throttled),
        (error("InternalError", 500), Unavailable),
        (error("AccessDenied"), StoreError),
    ],
)
def test_what_is_asked_of_sqs_fails_as_the_store_does(
    scripted: Scripted, answer: Answer, kind: type[StoreError]
) -> None:
    """Whoever asks has one family of errors to expect."""
    scripted.wire.answers = [answer]
    with pytest.raises(kind):
        scripted.handoff.depth(scripted.queue)
    with pytest.raises(kind):
        scripted.handoff.postpone(scripted.queue.url, "receipt", 1)


# where the calls go


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/jobs", "eu-west-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/jobs", "us-gov-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/jobs", "cn-north-1"),
        ("https://eu-west-1.queue.amazonaws.com/1/jobs", "eu-west-1"),
        ("https://vpce-1-a.sqs.eu-west-1.vpce.amazonaws.com/1/jobs", "eu-west-1"),
        ("https://sqs.eu-west-1.api.aws/1/jobs", "eu-west-1"),
        ("http://sqs.eu-west-1.localhost.localstack.cloud:4566/1/jobs", "eu-west-1"),
        ("http://127.0.0.1:4566/1/jobs", None),
        ("https://queue.amazonaws.com/1/jobs", None),
    ],
)
def test_a_queue_s_url_names_its_region(url: str, region: str | None) -> None:
    """A call that is signed for another region is refused."""
    assert region_of(url) == region


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:4566", "http://127.0.0.1:4566"),
        (
            "https://dynamodb-fips.eu-central-1.amazonaws.com",
            "https://sqs.eu-central-1.amazonaws.com",
        ),
        (
            "https://vpce-1-a.dynamodb.eu-central-1.vpce.amazonaws.com",
            "https://sqs.eu-central-1.amazonaws.com",
        ),
    ],
)
def test_an_endpoint_of_the_store_is_one_of_sqs_only_if_it_is_an_emulator(
    given: str, used: str
) -> None:
    """AWS has another endpoint for each service."""
    with dummy_credentials():
        handoff = SqsHandOff(clock=SettableClock(NOW), region=REGION, endpoint_url=given)
        assert handoff._client_of("http://h/1/q").meta.endpoint_url == used


def test_without_a_region_a_message_is_lost_and_not_its_run(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends is not to fail by a hand-off that is set up wrongly."""
    with dummy_credentials():
        monkeypatch.delenv("AWS_DEFAULT_REGION")
        handoff = SqsHandOff(clock=SettableClock(NOW))
        with caplog.at_level(logging.WARNING, "dynsched.handoff"):
            handoff.send(OTHER, [notice()])
        with pytest.raises(StoreError, match="no AWS region is given"):
            handoff.depth(OTHER)  # as a reaper asks, which has leases to return besides
        with pytest.raises(StoreError, match="no AWS region is given"):
            handoff.postpone(OTHER.url, "receipt", 1)
    assert "no AWS region is given" in caplog.messages[0]


def test_a_share_key_that_sqs_would_refuse_is_made_fit() -> None:
    """A tenant's name never is one, as it is checked when its job is made."""
    assert group_of("acme+0123456789abc") == "acme+0123456789abc"
    assert group_of("ä b") == "__b"
