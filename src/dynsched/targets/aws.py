"""AWS targets: a Lambda function is invoked, a message sent to SQS, and the answer judged.

The SDK repeats nothing: a repeated request would be a second invocation that nobody counts. So each
fault of the connection is a failed attempt, and the run's own policy says when to try again.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from math import ceil, log2
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
)

from dynsched.aws_client import AwsSession, client_of, new_session
from dynsched.domain.instants import Clock, to_text
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.domain.template import fill
from dynsched.errors import InvalidInput
from dynsched.targets.context import AnyContext
from dynsched.targets.result import (
    AwaitsCallback,
    Result,
    Succeeded,
    error_name,
    message_of,
    stopped,
    succeeded,
    tail,
)
from dynsched.targets.stop import StopReason
from dynsched.targets.ticket import OpenCallback, Ticket

if TYPE_CHECKING:
    from types_boto3_lambda.client import LambdaClient
    from types_boto3_lambda.type_defs import InvocationResponseTypeDef
    from types_boto3_sqs.client import SQSClient

CONNECT_SECONDS_MAX = 5.0
"""How long a connection may take to be made."""
TAKE_SECONDS_MAX = 15.0
"""How long Lambda may take to queue an event, and SQS to take a message."""
INVOKE_SECONDS_MAX = 905.0
"""How long a function's answer may take: a little longer than Lambda lets a function run."""
RETRY_AFTER_MAX = timedelta(hours=1)
"""The longest delay that a throttled answer can ask for."""
LOOK_AGAIN_S = 60.0
"""After how long credentials are looked for again where there were none, in seconds."""
CONNECTIONS_MAX = 50
STATUS_TAKEN = 202

log = logging.getLogger("dynsched.worker")

_PERMANENT = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "AWS.SimpleQueueService.UnsupportedOperation",
        "InvalidAddress",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "InvalidRuntimeException",
        "InvalidZipFileException",
        "MissingParameter",
        "QueueDoesNotExist",
        "RequestTooLargeException",
        "ResourceNotFoundException",
        "UnsupportedMediaTypeException",
        "UnsupportedOperation",
        "ValidationException",
    }
)
"""Answers that no further try can better; all others may pass, faults and throttles among them."""

T = TypeVar("T")
Make: TypeAlias = Callable[[str, str | None, Config], Any]


class AwsClients:
    """The clients of one process, made when they are first needed.

    Args:
        clock: says when to look for credentials again.
        region: where functions are that are known by their plain names; None takes `AWS_REGION` or
            what else the SDK is configured with.
        make: makes a client of a service, region and configuration; None is the SDK.

    Concurrency: any number of threads may ask.
    """

    def __init__(
        self, clock: Clock, *, region: str | None = None, make: Make | None = None
    ) -> None:
        self._clock = clock
        self._region = region
        self._given = make
        self._lock = threading.Lock()
        self._session: AwsSession | None = None
        self._clients: dict[tuple[str, str | None, float], Any] = {}
        self._refused: tuple[float, str] | None = None

    def refusal(self) -> str:
        """Return why nothing can be asked of AWS from here; empty if it can."""
        if self._given is not None:
            return ""
        with self._lock:
            now = self._clock.monotonic()
            if self._refused is None or (self._refused[1] and now >= self._refused[0]):
                refusal = self._look_for_credentials()
                if refusal and self._refused is None:
                    log.warning("jobs on AWS are left to other workers: %s", refusal)
                self._refused = (now + LOOK_AGAIN_S, refusal)
            return self._refused[1]

    def of_lambda(self, region: str | None, seconds: float) -> LambdaClient:
        """Return a client whose answers may take at least so long."""
        client: LambdaClient = self._client("lambda", region, seconds)
        return client

    def of_sqs(self, region: str | None) -> SQSClient:
        """Return a client for queues of a region."""
        client: SQSClient = self._client("sqs", region, TAKE_SECONDS_MAX)
        return client

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()

    def _look_for_credentials(self) -> str:
        try:
            found = self._own_session().get_credentials()
        except BotoCoreError as error:
            return f"this worker's AWS credentials cannot be read: {message_of(error)}"
        if found is None:
            return "this worker has no AWS credentials (set AWS_PROFILE, or give it a role)"
        return ""

    def _client(self, service: str, region: str | None, seconds: float) -> Any:
        # A time-out is a client's, so the limits of jobs share a few of them.
        seconds = float(2 ** ceil(log2(max(seconds, 1.0))))
        with self._lock:
            region = region or self._region
            name = (service, region, seconds)
            if name not in self._clients:
                config = Config(
                    connect_timeout=CONNECT_SECONDS_MAX,
                    read_timeout=seconds,
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    max_pool_connections=CONNECTIONS_MAX,
                    tcp_keepalive=True,  # a network may forget a connection that waits silently
                )
                self._clients[name] = (self._given or self._make)(service, region, config)
            return self._clients[name]

    def _make(self, service: str, region: str | None, config: Config) -> Any:
        return client_of(self._own_session(), service, region, config)

    def _own_session(self) -> AwsSession:
        if self._session is None:
            self._session = new_session()
        return self._session


def run_lambda(
    target: LambdaTarget,
    context: AnyContext,
    *,
    clients: AwsClients,
    open_callback: OpenCallback | None,
) -> Result:
    """Invoke the function and judge its answer.

    Args:
        target: what to invoke.
        context: the attempt's.
        clients: the worker's.
        open_callback: writes that the run waits for its callback, before the function is invoked.
    """
    ticket: Ticket | None = None
    try:
        if target.body is not None:
            event = fill(target.body, context.payload, context.fields())
        if target.invocation is Invocation.CALLBACK:
            if open_callback is None:
                return Failed(error_type="TargetRefused", message="callbacks need a store")
            taken = open_callback()
            if not isinstance(taken, Ticket):
                return taken
            ticket = taken
        if target.body is None:
            event = _envelope(context, ticket)
    except InvalidInput as error:
        return Failed(error_type="InvalidInput", message=str(error), hint=Hint.PERMANENT)
    if target.invocation is Invocation.SYNC:
        return _ask(lambda: _wait_for(target, context, event, clients))
    return _ask(lambda: _queue(target, event, clients, ticket))


def run_sqs(target: SqsTarget, context: AnyContext, *, clients: AwsClients) -> Result:
    """Send the message; the queue's acknowledgement is the attempt's success."""
    try:
        body = check_payload(context.payload) if target.body is None else None
        text = body or fill(target.body or "", context.payload, context.fields())
    except InvalidInput as error:
        return Failed(error_type="InvalidInput", message=str(error), hint=Hint.PERMANENT)
    grouped: dict[str, Any] = {}
    group = target.group or (context.job_id if target.fifo else None)
    if group is not None:
        grouped["MessageGroupId"] = group
    if target.fifo:
        grouped["MessageDeduplicationId"] = context.idempotency_key

    def send() -> Result:
        answer = clients.of_sqs(target.region).send_message(
            QueueUrl=target.queue_url,
            MessageBody=text,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in context.headers().items()
            },
            **grouped,
        )
        return Succeeded(output={"message_id": answer["MessageId"]})

    return _ask(send)


def _envelope(context: AnyContext, ticket: Ticket | None) -> str:
    """Return the event of a function: the payload, and beside it which attempt it is for."""
    event = {"payload": context.payload, "dynsched": _identity(context, ticket)}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def _identity(context: AnyContext, ticket: Ticket | None) -> dict[str, Json]:
    deadline = context.deadline if ticket is None else ticket.ends_at
    fields: dict[str, Json] = {
        **context.fields(),
        "deadline": None if deadline is None else to_text(deadline),
    }
    return fields if ticket is None else {**fields, "token": ticket.token}


def _ask(act: Callable[[], Result]) -> Result:
    """Ask AWS for something; return what its refusals and faults mean."""
    try:
        return act()
    except ClientError as error:
        return _refused(error)
    except NoRegionError:
        problem = "its name tells no region: give its ARN, or start the worker with AWS_REGION"
        return Failed(error_type="NoRegion", message=problem)
    except NoCredentialsError:
        return Failed(error_type="TargetRefused", message="this worker has no AWS credentials")
    except ParamValidationError as error:
        return Failed(error_type="InvalidInput", message=message_of(error), hint=Hint.PERMANENT)
    except (BotoCoreError, OSError) as error:
        return Failed(error_type=error_name(error), message=message_of(error))


def _wait_for(target: LambdaTarget, context: AnyContext, event: str, clients: AwsClients) -> Result:
    soft = context.limits.soft
    seconds = INVOKE_SECONDS_MAX if soft is None else soft.total_seconds() + 1
    client = clients.of_lambda(target.region, min(seconds, INVOKE_SECONDS_MAX))
    told = json.dumps({"custom": {"dynsched": _identity(context, None)}})

    def invoke() -> tuple[InvocationResponseTypeDef, bytes]:
        answer = client.invoke(
            FunctionName=target.function,
            InvocationType="RequestResponse",
            ClientContext=base64.b64encode(told.encode()).decode(),
            Payload=event.encode(),
        )
        return answer, answer["Payload"].read()

    answered = _unless_stopped(invoke, context)
    if isinstance(answered, StopReason):
        return stopped(context)
    answer, payload = answered
    text = payload.decode("utf-8", "replace")
    if "FunctionError" in answer:
        return _failure(answer["FunctionError"], text)
    try:
        return succeeded(json.loads(text) if text else None)
    except ValueError:
        return Succeeded(note="the output was not kept: it is no JSON")


def _queue(target: LambdaTarget, event: str, clients: AwsClients, ticket: Ticket | None) -> Result:
    answer = clients.of_lambda(target.region, TAKE_SECONDS_MAX).invoke(
        FunctionName=target.function, InvocationType="Event", Payload=event.encode()
    )
    if answer["StatusCode"] != STATUS_TAKEN:
        problem = f"Lambda answered {answer['StatusCode']} instead of {STATUS_TAKEN}"
        return Failed(error_type="NotTaken", message=problem)
    if ticket is not None:
        return AwaitsCallback(ends_at=ticket.ends_at)
    return Succeeded(output={"request_id": answer["ResponseMetadata"].get("RequestId", "")})


def _unless_stopped(call: Callable[[], T], context: AnyContext) -> T | StopReason:
    """Return a call's answer, or why the attempt is to end if that comes first.

    Then nobody waits for the answer any more; the call ends by its time-out. The function goes on
    as well: no request of ours can end it.
    """
    answers: SimpleQueue[tuple[T] | BaseException | StopReason] = SimpleQueue()

    def work() -> None:
        try:
            answers.put((call(),))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the attempt is told
            answers.put(error)

    with context.stop.heard_by(answers.put):
        if not context.stop.is_set():
            threading.Thread(target=work, name="dynsched-invoke", daemon=True).start()
        answer = answers.get()
    if isinstance(answer, BaseException):
        raise answer
    return answer if isinstance(answer, StopReason) else answer[0]


def _failure(kind: str, text: str) -> Failed:
    """Return the failure that a function's answer tells: its error's type, message and trace."""
    try:
        told: Any = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, Mapping):
        return Failed(error_type=f"FunctionError.{kind}", message=_line(text))
    name = _line(told.get("errorType") or f"FunctionError.{kind}", 200)
    trace = told.get("stackTrace") or told.get("trace") or ()
    lines = trace if isinstance(trace, list | tuple) else (trace,)
    return Failed(
        error_type=name,
        message=_line(told.get("errorMessage") or ""),
        trace_tail=tail("\n".join(str(line).rstrip("\n") for line in lines)),
        # What a function's code raises to say that no try can succeed, as a handler would.
        hint=Hint.PERMANENT if name == "Permanent" else Hint.DEFAULT,
    )


def _line(text: object, length: int = 500) -> str:
    """Return a text of somebody else's as one line of valid Unicode."""
    return tail(" ".join(str(text)[: 4 * length].split())[:length])


def _refused(error: ClientError) -> Failed:
    """Return what an error that AWS answered means for the run."""
    told = error.response.get("Error", {})
    code = _line(told.get("Code") or "ClientError", 200)
    hint, after = Hint.DEFAULT, None
    if code in _PERMANENT:
        hint = Hint.PERMANENT
    elif (delay := _retry_after(error)) is not None:
        hint, after = Hint.AFTER, delay
    return Failed(
        error_type=code, message=_line(told.get("Message") or code), hint=hint, after=after
    )


def _retry_after(error: ClientError) -> timedelta | None:
    """Return the delay that a throttled answer asks for."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    value = headers.get("retry-after", "")
    if not value.isdecimal():
        return None
    return min(timedelta(seconds=int(value[:9])), RETRY_AFTER_MAX)
