"""Lambda and SQS targets against the SDK's own stub: what is sent, and what each answer means."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.stub import ANY, Stubber

from dynsched.clock import SystemClock
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.targets.aws import AwsClients
from dynsched.targets.context import AnyContext, Context
from dynsched.targets.result import AwaitsCallback, Result, Succeeded, WasCancelled
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import Limits, Stop, StopReason
from dynsched.targets.ticket import Ticket
from tests.contract.dynamo_backends import REGION, dummy_credentials

AT = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
QUEUE = f"https://sqs.{REGION}.amazonaws.com/123456789012/orders"
ENDS_AT = AT + timedelta(hours=1)


class Stage:
    """A runner whose clients are the SDK's, with answers of the test's."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str | None, Config]] = []
        self.clients = {name: boto3.client(cast(Any, name)) for name in ("lambda", "sqs")}
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()
        self.runner = TargetRunner(
            None,
            allow_commands=False,
            clock=SystemClock(),
            aws=AwsClients(SystemClock(), make=self._make),
        )

    def _make(self, service: str, region: str | None, config: Config) -> Any:
        self.made.append((service, region, config))
        return self.clients[service]

    def answers(self, payload: object, *, fault: str | None = None, status: int = 200) -> None:
        """Let the next invocation be answered so."""
        body = io.BytesIO(json.dumps(payload).encode() if payload is not None else b"")
        told: dict[str, Any] = {"StatusCode": status, "Payload": body}
        if fault is not None:
            told["FunctionError"] = fault
        self.stubs["lambda"].add_response("invoke", told)

    def refuses(self, code: str, headers: dict[str, str] | None = None) -> None:
        """Let the next invocation be refused."""
        self.stubs["lambda"].add_client_error(
            "invoke", code, "no\nmore", response_meta={"HTTPHeaders": headers or {}}
        )


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Give a stage with credentials of nobody's."""
    with dummy_credentials():
        one = Stage()
        yield one
        one.runner.close()


def attempt(payload: object = None, **more: Any) -> AnyContext:
    """Return a context of an attempt."""
    return Context(
        payload=payload,
        idempotency_key="k1",
        job_id="j1",
        job_name="report",
        run_id="j1@x",
        tenant="acme",
        scheduled_for=AT,
        attempt=2,
        fence=3,
        **more,
    )


IDENTITY = {
    "attempt": 2,
    "fence": 3,
    "idempotency_key": "k1",
    "job_id": "j1",
    "job_name": "report",
    "run_id": "j1@x",
    "scheduled_for": "2026-05-04T03:02:01.000Z",
    "tenant": "acme",
    "deadline": None,
}


def test_a_function_is_sent_payload_and_identity_and_its_answer_is_kept(stage: Stage) -> None:
    """A function can tell repeats and stale holders, as a handler can."""
    event = {"payload": {"day": "é"}, "dynsched": IDENTITY}
    told = base64.b64encode(json.dumps({"custom": {"dynsched": IDENTITY}}).encode()).decode()
    stage.stubs["lambda"].add_response(
        "invoke",
        {"StatusCode": 200, "Payload": io.BytesIO(b'{"rows": 3}')},
        {
            "FunctionName": "report:live",
            "InvocationType": "RequestResponse",
            "ClientContext": told,
            "Payload": json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(),
        },
    )
    result = stage.runner.run(LambdaTarget("report:live"), attempt({"day": "é"}))
    assert result == Succeeded(output={"rows": 3})


def test_a_function_with_a_template_gets_what_that_says(stage: Stage) -> None:
    """A function that was there before need not learn of the envelope."""
    stage.stubs["lambda"].add_response(
        "invoke",
        {"StatusCode": 202, "ResponseMetadata": {"RequestId": "r7"}},
        {"FunctionName": "report", "InvocationType": "Event", "Payload": b'{"id": 7, "n": 2}'},
    )
    target = LambdaTarget(
        "report", invocation=Invocation.ASYNC, body='{"id": {payload.id}, "n": {attempt}}'
    )
    assert stage.runner.run(target, attempt({"id": 7})) == Succeeded(output={"request_id": "r7"})


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {
                "errorType": "KeyError",
                "errorMessage": "'id'",
                "stackTrace": ["  File a\n", "  b\n"],
            },
            Failed(error_type="KeyError", message="'id'", trace_tail="  File a\n  b"),
        ),
        (
            {"errorType": "Permanent", "errorMessage": "no such order"},
            Failed(error_type="Permanent", message="no such order", hint=Hint.PERMANENT),
        ),
        (
            {"errorMessage": "2026-05-04T03:02:01Z r7 Task timed out after 3.00 seconds"},
            Failed(
                error_type="FunctionError.Unhandled",
                message="2026-05-04T03:02:01Z r7 Task timed out after 3.00 seconds",
            ),
        ),
        ("gone", Failed(error_type="FunctionError.Unhandled", message='"gone"')),
    ],
)
def test_a_function_that_fails_tells_its_error(
    stage: Stage, payload: object, expected: Failed
) -> None:
    """Type, message and trace are the function's own, so that rules and groups see them."""
    stage.answers(payload, fault="Unhandled")
    assert stage.runner.run(LambdaTarget("report"), attempt()) == expected


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("ResourceNotFoundException", Hint.PERMANENT),
        ("AccessDeniedException", Hint.PERMANENT),
        ("RequestTooLargeException", Hint.PERMANENT),
        ("TooManyRequestsException", Hint.DEFAULT),
        ("ServiceException", Hint.DEFAULT),
        ("ResourceConflictException", Hint.DEFAULT),
        ("ExpiredTokenException", Hint.DEFAULT),
        ("KMSDisabledException", Hint.DEFAULT),
    ],
)
def test_what_may_pass_is_tried_again_and_nothing_else(stage: Stage, code: str, hint: Hint) -> None:
    """A missing function stays missing; a throttle, a fault or a worker's old token does not."""
    stage.refuses(code)
    result = stage.runner.run(LambdaTarget("report"), attempt())
    assert result == Failed(error_type=code, message="no more", hint=hint)


def test_a_throttled_answer_names_the_delay(stage: Stage) -> None:
    """Lambda knows better than the policy when it has room again."""
    stage.refuses("TooManyRequestsException", {"retry-after": "7"})
    result = stage.runner.run(LambdaTarget("report"), attempt())
    assert isinstance(result, Failed)
    assert (result.hint, result.after) == (Hint.AFTER, timedelta(seconds=7))


@pytest.mark.parametrize(("soft_s", "read_s"), [(None, 1024), (3.5, 8), (0.2, 2), (86_400, 1024)])
def test_the_time_out_fits_the_limit_and_nothing_is_repeated(
    stage: Stage, soft_s: float | None, read_s: float
) -> None:
    """A time-out before the limit would be a second invocation while the first one runs."""
    stage.answers(None)
    soft = None if soft_s is None else timedelta(seconds=soft_s)
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:report"
    assert stage.runner.run(LambdaTarget(arn), attempt(limits=Limits(soft=soft))) == Succeeded()
    ((_, region, made),) = stage.made
    config = cast(Any, made)  # the stubs know none of its settings
    assert (region, config.read_timeout) == ("eu-west-1", read_s)
    assert config.retries == {"total_max_attempts": 1, "mode": "standard"}


def test_a_stop_signal_ends_the_wait_for_a_function(stage: Stage) -> None:
    """Nobody waits for an answer that nobody wants any more."""
    asked, release = threading.Event(), threading.Event()
    stage.stubs["lambda"].deactivate()

    def hold(**_: object) -> AWSResponse:
        asked.set()
        release.wait(30)
        return AWSResponse("", 200, cast(Any, {}), cast(Any, io.BytesIO(b"null")))

    stage.clients["lambda"].meta.events.register("before-send.lambda.Invoke", hold)
    stop, results = Stop(), list[Result]()
    context = attempt(stop=stop)
    thread = threading.Thread(
        target=lambda: results.append(stage.runner.run(LambdaTarget("report"), context))
    )
    thread.start()
    assert asked.wait(30)
    stop.set(StopReason.CANCELLED)
    thread.join(30)
    release.set()
    assert results == [WasCancelled(reason=StopReason.CANCELLED)]


def test_the_wait_for_a_callback_is_written_before_its_function_is_invoked(stage: Stage) -> None:
    """The token must be good as soon as the function can have it."""
    event = {
        "payload": 7,
        "dynsched": {**IDENTITY, "deadline": "2026-05-04T04:02:01.000Z", "token": "secret"},
    }
    stage.stubs["lambda"].add_response(
        "invoke",
        {"StatusCode": 202},
        {
            "FunctionName": "report",
            "InvocationType": "Event",
            "Payload": json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(),
        },
    )
    target = LambdaTarget("report", invocation=Invocation.CALLBACK)
    result = stage.runner.run(
        target,
        attempt(7),
        open_callback=lambda: Ticket(token="secret", ends_at=ENDS_AT),  # noqa: S106
    )
    assert result == AwaitsCallback(ends_at=ENDS_AT)


def test_what_cannot_wait_for_its_callback_is_not_invoked(stage: Stage) -> None:
    """Its lease was lost or it was cancelled: the stub would refuse any call."""
    target = LambdaTarget("report", invocation=Invocation.CALLBACK)
    lost = WasCancelled(reason=StopReason.LEASE_LOST)
    assert stage.runner.run(target, attempt(), open_callback=lambda: lost) == lost


def test_a_message_carries_payload_and_identity(stage: Stage) -> None:
    """The receiver has the same headers as one of an HTTP request."""
    stage.stubs["sqs"].add_response(
        "send_message",
        {"MessageId": "m1"},
        {
            "QueueUrl": QUEUE,
            "MessageBody": '{"id":7}',
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value}
                for name, value in attempt().headers().items()
            },
        },
    )
    result = stage.runner.run(SqsTarget(QUEUE), attempt({"id": 7}))
    assert result == Succeeded(output={"message_id": "m1"})
    assert stage.made[0][:2] == ("sqs", REGION)


@pytest.mark.parametrize(("group", "sent"), [(None, "j1"), ("orders", "orders")])
def test_a_fifo_queue_drops_what_an_attempt_sends_again(
    stage: Stage, group: str | None, sent: str
) -> None:
    """The idempotency key is the deduplication id, and one job's messages keep their order."""
    stage.stubs["sqs"].add_response(
        "send_message",
        {"MessageId": "m1"},
        {
            "QueueUrl": f"{QUEUE}.fifo",
            "MessageBody": "order 7",
            "MessageAttributes": ANY,
            "MessageGroupId": sent,
            "MessageDeduplicationId": "k1",
        },
    )
    target = SqsTarget(f"{QUEUE}.fifo", group=group, body="order {payload.id}")
    result = stage.runner.run(target, attempt({"id": 7}))
    assert result == Succeeded(output={"message_id": "m1"})


def test_a_queue_that_is_not_there_buries_the_run(stage: Stage) -> None:
    """No try can send to it."""
    code = "AWS.SimpleQueueService.NonExistentQueue"
    stage.stubs["sqs"].add_client_error("send_message", code, "gone")
    result = stage.runner.run(SqsTarget(QUEUE), attempt())
    assert result == Failed(error_type=code, message="gone", hint=Hint.PERMANENT)


def test_a_worker_without_credentials_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its runs wait for a worker that has some, instead of failing here."""
    with dummy_credentials():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name)
        runner = TargetRunner(None, allow_commands=False, clock=SystemClock())
        refusal, again = (runner.refusal(SqsTarget(QUEUE)) for _ in range(2))
        runner.close()
    assert refusal == again
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "jobs on AWS are left to other workers"
    ]
    assert refusal == "this worker has no AWS credentials (set AWS_PROFILE, or give it a role)"
