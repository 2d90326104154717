"""The worker as a function: is handed messages by SQS, and answers which of them are to stay."""

from __future__ import annotations

import logging
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dynsched.bootstrap import build_message_worker
from dynsched.domain.delay import scheduling_delay
from dynsched.domain.instants import MILLISECOND, from_ms
from dynsched.domain.lifecycle import Transition
from dynsched.domain.run import Run, RunState
from dynsched.errors import InvalidInput, StoreError
from dynsched.lambdas.process import LambdaContext, Once, Process, end_of, process_of
from dynsched.services.exits import Slots
from dynsched.services.message_worker import Fate, Message
from dynsched.targets.app import App, load_app

log = logging.getLogger("dynsched.worker")

APP = "DYNSCHED_APP"
ALLOW_COMMANDS = "DYNSCHED_ALLOW_COMMANDS"
_ARN = re.compile(r"arn:([^:]+):sqs:([^:]*):([^:]*):([^:]+)")


class Counts:
    """Counts what one invocation does."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.delays_ms: dict[str, list[float]] = {}

    def started(self, run: Run, at: datetime) -> None:
        """Count a handler's call; its delay, if it is the run's first."""
        self.done["RunsStarted"] += 1
        if not run.attempt:
            delay = scheduling_delay(run, at, started=at) or timedelta(0)
            self.delays_ms.setdefault(run.priority.value, []).append(delay / MILLISECOND)

    def moved(self, move: Transition) -> None:
        """Count a way out of a lease: success, a failure that is tried again, or death."""
        if move.after.state is RunState.DONE:
            self.done["RunsDone"] += 1
        elif move.after.state is RunState.DEAD:
            self.done["RunsDied"] += 1
        elif move.after.spent > move.before.spent:
            self.done["RunsFailed"] += 1

    def take(self, fates: Sequence[Fate]) -> tuple[dict[str, int], dict[str, list[float]]]:
        """Return what was counted, with the fates of the messages, and begin anew."""
        self.done["MessagesKept"] += sum(fate.keep for fate in fates)
        self.done["MessagesDropped"] += sum(not fate.keep for fate in fates)
        done = {name: count for name, count in self.done.items() if count}
        delays = self.delays_ms
        self.done, self.delays_ms = Counter(), {}
        return done, delays


class WorkerFunction:
    """One process of the function.

    Args:
        process: its store.
        app: the handlers; None for none.
        allow_commands: whether shell commands may be run.
        slots: where handlers run; None is on threads.
    """

    def __init__(
        self,
        process: Process,
        app: App | None,
        *,
        allow_commands: bool,
        slots: Slots | None = None,
    ) -> None:
        self._store, self._clock = process.base.store, process.base.clock
        self._emf, self._counts = process.emf, Counts()
        self._worker = build_message_worker(
            process.base, app, allow_commands=allow_commands, slots=slots, figures=self._counts
        )

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Run what a batch of messages names; return which messages are to stay.

        Raises:
            InvalidInput: the event is no batch of messages of SQS.
        """
        records = _records(event)
        messages = [_message(record) for record in records]
        fates = self._worker.work(
            messages,
            ends_at=end_of(context, self._clock),
            invocation=context.aws_request_id,
        )
        kept = [fate for fate in fates if fate.keep]
        arns = {record["messageId"]: record.get("eventSourceARN", "") for record in records}
        for fate in kept:
            self._postpone(fate, arns[fate.message.id])
        done, delays = self._counts.take(fates)
        self._emf.emit(done)
        for priority, values in delays.items():
            self._emf.emit({"StartDelay": values}, priority)
        return {"batchItemFailures": [{"itemIdentifier": fate.message.id} for fate in kept]}

    def url_of(self, arn: str) -> str:
        """Return the URL of the queue that an event came from: the map's, else AWS's own.

        Names recur in other regions and accounts, which AWS's URLs tell and an emulator's may not.
        The map is known once the worker has worked: in a new process not before.
        """
        match = _ARN.fullmatch(arn)
        if match is None:
            return ""
        partition, region, account, name = match.groups()
        domain = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
        own = f"https://sqs.{region}.{domain}/{account}/{name}"
        urls = [queue.url for queue in self._store.topology.message_queues]
        named = [url for url in urls if url.rpartition("/")[2] == name]
        exact = [url for url in named if region in url and f"/{account}/" in url]
        return next(iter(exact or [url for url in named if ".amazonaws.com" not in url]), own)

    def _postpone(self, fate: Fate, arn: str) -> None:
        message = fate.message
        if fate.again_in is None or not message.receipt:
            return
        seconds = math.ceil(fate.again_in.total_seconds())
        try:
            self._store.handoff.postpone(self.url_of(arn), message.receipt, seconds)
        except StoreError as error:
            log.warning("message %s comes again when its queue says so: %s", message.id, error)


def commands_allowed(environment: Mapping[str, str]) -> bool:
    """Return whether shell commands may be run, as the function's environment says.

    Raises:
        InvalidInput: it says neither; taken for a no, its runs would wait for a day and be dead.
    """
    text = environment.get(ALLOW_COMMANDS, "")
    if text not in ("", "0", "1"):
        raise InvalidInput(ALLOW_COMMANDS, f"{text[:40]!r} is neither yes nor no", "give 1 or 0")
    return text == "1"


def _message(record: Mapping[str, Any]) -> Message:
    sent_ms = record.get("attributes", {}).get("SentTimestamp")
    return Message(
        id=record["messageId"],
        body=record["body"],
        receipt=record.get("receiptHandle", ""),
        sent_at=None if sent_ms is None else from_ms(int(sent_ms)),
    )


def _records(event: object) -> list[Mapping[str, Any]]:
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list) or not all("messageId" in one for one in records):
        raise InvalidInput(
            "event", "it is no batch of messages of SQS", "map the queues' events to this function"
        )
    return records


def _make() -> WorkerFunction:
    path = os.environ.get(APP)
    return WorkerFunction(
        process_of("worker", os.environ),
        load_app(path) if path else None,
        allow_commands=commands_allowed(os.environ),
    )


_function = Once(_make)


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one batch of messages."""
    return _function()(event, context)
