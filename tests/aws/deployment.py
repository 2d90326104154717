"""A deployment without Terraform: tables, queues and functions made in a second by boto3.

It has what the module makes and the fault stories need: the functions' environment is the module's,
but each function reaches AWS by a door of its own of the wire.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from dynsched.bootstrap import (
    CLOCK_VARIABLE,
    Base,
    build_operations,
    build_views,
    init_store,
    open_base,
)
from dynsched.domain.job import Job, Overlap, Policies, Priority
from dynsched.domain.message import encode_message
from dynsched.domain.names import new_id
from dynsched.domain.run import TERMINAL, Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.operations import Operations
from dynsched.services.specs import JobSpec, ScheduleSpec
from dynsched.services.views import Views
from dynsched.testing.checker import check_history, check_rows, told
from dynsched.testing.history import History
from dynsched.testing.trail import read_trail
from tests.aws.wire import Entry, Wire
from tests.contract.dynamo_backends import REGION, dummy_credentials, fresh_prefix
from tests.processes.stage import wait_until

if TYPE_CHECKING:
    from types_boto3_lambda.client import LambdaClient
    from types_boto3_sqs.client import SQSClient

QUEUE: Final = "main"
SOON: Final = timedelta(seconds=3)
RUNTIME: Final = "python3.13"
ROLE: Final = "arn:aws:iam::000000000000:role/tried"
HANDLERS: Final = {
    "dispatcher": "dynsched.lambdas.dispatcher.handler",
    "reaper": "dynsched.lambdas.reaper.handler",
    "worker": "dynsched.lambdas.worker.handler",
}


def lambda_client(url: str) -> LambdaClient:
    """Return a client for functions."""
    with dummy_credentials():
        # An invocation may take as long as the function's time limit; nothing is called twice.
        config = Config(read_timeout=120, retries={"total_max_attempts": 1})
        return boto3.client("lambda", region_name=REGION, endpoint_url=url, config=config)


def queue_client(url: str) -> SQSClient:
    """Return a client for queues."""
    with dummy_credentials():
        return boto3.client("sqs", region_name=REGION, endpoint_url=url)


def shifted(real_s: float, shift: timedelta) -> str:
    """Return a rehearsal clock that goes ahead of the machine's by `shift`, as fast as it."""
    # So little faster that it gains a millisecond in a quarter of an hour.
    gain = 1e-6
    return f"{1 + gain}@{real_s - shift.total_seconds() / gain}"


@dataclass(slots=True, kw_only=True)
class Deployment:
    """Tables, queues and functions under one prefix; `open` makes them.

    Attributes:
        wire: what goes between them and ministack.
        package: the functions' zip.
        settings: the functions' environment, besides the store and the queues.
        timeout_s: the worker's time limit.
        visibility_s: how long a received message is hidden.
        history: what was written to its store.
        lambdas: a client for the functions.
        messages: a client for the queues, which goes by no door.
    """

    wire: Wire
    package: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 60
    visibility_s: int = 360
    prefix: str = field(default_factory=fresh_prefix)
    history: History = field(default_factory=History)
    lambdas: LambdaClient = field(init=False)
    messages: SQSClient = field(init=False)
    base: Base = field(init=False)
    operations: Operations = field(init=False)
    views: Views = field(init=False)
    queues: dict[Priority, str] = field(default_factory=dict)
    _doors: dict[str, str] = field(default_factory=dict)
    _functions: list[str] = field(default_factory=list)
    _mappings: list[str] = field(default_factory=list)
    _ahead: timedelta = timedelta(0)
    _delayed: list[tuple[datetime, str, Entry]] = field(default_factory=list)

    def open(self) -> None:
        """Make everything; functions start cold at their first call."""
        self.lambdas = lambda_client(self.wire.upstream)
        self.messages = queue_client(self.wire.upstream)
        self.history = self.wire.watch(self.prefix)
        self.connect()
        for priority in Priority:
            self.queues[priority] = self._make_queue(f"{self.prefix}-{QUEUE}-{priority}")
        init_store(self.base)
        for name in HANDLERS:
            self.make_function(name, name)
        self.invoke("dispatcher")
        self.base.store.refresh()  # the dispatcher has written into it where messages go

    def make_function(self, name: str, kind: str) -> None:
        """Make a function, perhaps a second one of its kind."""
        self.lambdas.create_function(
            FunctionName=f"{self.prefix}-{name}",
            Runtime=RUNTIME,
            Role=ROLE,
            Handler=HANDLERS[kind],
            Code={"ZipFile": self.package.read_bytes()},
            Timeout=self.timeout_s if kind == "worker" else 60,
            Environment={"Variables": self.environment(name)},
        )
        self._functions.append(name)

    def connect(self) -> None:
        """Open the store as a program of a user does, by the functions' clock."""
        environment = {**self.settings, **self.clock_settings()}
        with dummy_credentials():
            self.base = open_base(self.store_url("program"), environment=environment)
        self.operations, self.views = build_operations(self.base), build_views(self.base)

    def store_url(self, caller: str) -> str:
        """Return the store's URL by a door of the caller's own."""
        if caller not in self._doors:
            self._doors[caller] = self.wire.door(caller)
        return f"dynamodb://{self.prefix}?region={REGION}&endpoint_url={self._doors[caller]}"

    def environment(self, name: str) -> dict[str, str]:
        """Return a function's environment."""
        queues = [
            {"queue": QUEUE, "priority": priority.value, "url": url}
            for priority, url in self.queues.items()
        ]
        return {
            "DYNSCHED_STORE": self.store_url(name),
            "DYNSCHED_MESSAGE_QUEUES": json.dumps(queues),
            "DYNSCHED_LOOK_AHEAD_S": "180",
            "DYNSCHED_APP": "tried_app:app",
            "TOLD_AT": self.wire.told_at(self.prefix),
            **self.settings,
            **self.clock_settings(),
        }

    def keep_delayed(self) -> None:
        """Keep delayed messages here, so that their delays too pass when `ahead` lets time pass."""
        self.wire.bend = self._keep_delayed

    def _keep_delayed(self, url: str, entries: Sequence[Entry]) -> list[Entry]:
        now, soon = self.base.clock.now(), []
        for entry in entries:
            delay = timedelta(seconds=entry.get("DelaySeconds", 0))
            if delay > SOON:
                self._delayed.append((now + delay, url, entry))
            else:
                soon.append(entry)
        return soon

    def _send_due(self) -> None:
        now = self.base.clock.now() + SOON
        due = [(url, entry) for at, url, entry in self._delayed if at <= now]
        self._delayed = [one for one in self._delayed if one[0] > now]
        for url, entry in due:
            self.messages.send_message(QueueUrl=url, MessageBody=entry["MessageBody"])

    def ahead(self, shift: timedelta) -> None:
        """Let so much time pass at once, for the functions and for programs.

        Messages do not notice, as their delays are the queue's; but see `keep_delayed`.
        """
        self._ahead += shift
        self.base.store.engine.close()
        self.connect()
        for name in self._functions:
            self.lambdas.update_function_configuration(
                FunctionName=f"{self.prefix}-{name}",
                Environment={"Variables": self.environment(name)},
            )

        self._send_due()

    def clock_settings(self) -> dict[str, str]:
        """Return what makes another process live by the same clock."""
        if not self._ahead:
            return {}
        # The store's clock stays where it was.
        return {CLOCK_VARIABLE: shifted(time.time(), self._ahead), "DYNSCHED_SKEW_STOP_S": "1e7"}

    def invoke(self, name: str, event: Mapping[str, Any] | None = None) -> Any:
        """Call a function and return what it returns.

        Raises:
            FunctionFailed: it raised, or was killed.
        """
        answer = self.lambdas.invoke(
            FunctionName=f"{self.prefix}-{name}", Payload=json.dumps(event or {}).encode()
        )
        returned = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise FunctionFailed(f"{name}: {returned}")
        return returned

    def add(
        self,
        handler: str,
        *,
        every: ScheduleSpec | None = None,
        priority: Priority = Priority.DEFAULT,
        **policies: Any,
    ) -> Job:
        """Make a job of one of the tests' handlers."""
        name = f"{handler}-{new_id(self.base.rng, 8)}"
        policies.setdefault("overlap", Overlap.ALLOW)
        return self.operations.create(
            JobSpec(
                name=name,
                target=HandlerTarget(handler),
                schedule=every,
                priority=priority,
                policies=Policies(**policies),
            )
        )

    def runs(self) -> list[Run]:
        """Return all runs as they are now, by what was written."""
        with self.history.lock:
            trail = read_trail(self.history)
        last = [changes[-1].after for changes in trail.runs.values()]
        return [run for run in last if run is not None]

    def await_end(self, *runs: Run, within_s: float = 30.0) -> list[Run]:
        """Wait until these runs have ended; return them as they are then."""
        ids = {run.run_id for run in runs}

        def ended() -> list[Run]:
            now = [run for run in self.runs() if run.run_id in ids]
            return now if all(run.state in TERMINAL for run in now) else []

        return wait_until(ended, within_s, f"the end of {sorted(ids)}")

    def starts(self, run: Run) -> int:
        """Return how often a run's handler was called."""
        return sum(start.run_id == run.run_id for start in self.history.starts)

    def broken_invariants(self) -> str:
        """Return what in the history breaks an invariant, one sentence a line."""
        # Read before the lock is held, which every strong read by the wire takes.
        topology = self.base.store.refresh()
        found = check_rows(self.history, self.base.store.engine)
        with self.history.lock:
            found += check_history(self.history, topology=topology)
        return told(found)

    def waiting_messages(self) -> int:
        """Return how many messages there are, hidden and delayed ones too."""
        return sum(self._depth(url) for url in self.queues.values())

    def _depth(self, url: str) -> int:
        asked = self.messages.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        told = {str(name): value for name, value in asked["Attributes"].items()}
        names = ("", "Delayed", "NotVisible")
        return sum(int(told[f"ApproximateNumberOfMessages{name}"]) for name in names)

    def send(self, run: Run) -> None:
        """Send a message for a run, whether it is due or not."""
        url = self.queues[run.priority]
        self.messages.send_message(QueueUrl=url, MessageBody=encode_message(run.run_id))

    def deliver(self) -> None:
        """Hand the worker what the queues hold now, as the mappings would, and once only.

        Raises:
            FunctionFailed: the worker did; the messages come again.
        """
        for url in self.queues.values():
            received = self.messages.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0
            )
            messages = received.get("Messages", [])
            if not messages:
                continue
            records = [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "eventSourceARN": self._arn(url),
                }
                for message in messages
            ]
            failures = self.invoke("worker", {"Records": records})["batchItemFailures"]
            kept = {failure["itemIdentifier"] for failure in failures}
            for message in messages:
                if message["MessageId"] not in kept:
                    self.messages.delete_message(
                        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]
                    )

    def listen(self) -> None:
        """Let ministack feed the worker from the queues."""
        for url in self.queues.values():
            made = self.lambdas.create_event_source_mapping(
                EventSourceArn=self._arn(url),
                FunctionName=f"{self.prefix}-worker",
                BatchSize=1,
                FunctionResponseTypes=["ReportBatchItemFailures"],
            )
            self._mappings.append(made["UUID"])

    def close(self) -> None:
        """Remove what works by itself; rows and queues end with ministack."""
        for mapping in self._mappings:
            self.lambdas.delete_event_source_mapping(UUID=mapping)
        for name in self._functions:
            self.lambdas.delete_function(FunctionName=f"{self.prefix}-{name}")
        self.base.store.engine.close()

    def _make_queue(self, name: str) -> str:
        made = self.messages.create_queue(
            QueueName=name, Attributes={"VisibilityTimeout": str(self.visibility_s)}
        )
        return made["QueueUrl"]

    def _arn(self, url: str) -> str:
        asked = self.messages.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return asked["Attributes"]["QueueArn"]


class FunctionFailed(Exception):
    """A function raised, or was killed at its time limit."""
