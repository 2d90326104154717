"""The hand-off: who tells functions of ready runs, and by which queues of messages.

The run's row is the entry of the queue; a message only says that it is worth a look. So a hand-off
may lose a message: whoever is to look at old ready rows sends another one (`services.resending`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlsplit

from dynsched.domain.instants import LAST
from dynsched.domain.job import Priority
from dynsched.domain.names import check_name
from dynsched.errors import InvalidInput

DELAY_MAX = timedelta(seconds=900)
"""The longest delay that a message can have: SQS's."""
URL_MAX = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueue:
    """Where messages about the ready runs of one queue and priority go.

    Attributes:
        queue: the scheduler's queue.
        priority: of the runs.
        url: the queue of messages.
    """

    queue: str
    priority: Priority
    url: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What is told of a ready run.

    Attributes:
        share: the key that takes turns; messages of one share form a group.
        available_at: before this instant the message is not delivered.
    """

    run_id: str
    share: str
    available_at: datetime


class HandOff(Protocol):
    """A transport of messages. All methods may be called from several threads."""

    def reach(self) -> datetime:
        """Return the latest instant for which a message can be sent now."""

    def send(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        """Send a message for each notice; what fails is logged, and the resend sends it again."""

    def depth(self, queue: MessageQueue) -> int:
        """Return about how many messages of a queue wait to be received, or were put off.

        So those in flight count too. Those that are delayed are for a later instant, and no
        backlog.

        Raises:
            StoreError: the transport did not answer.
        """

    def postpone(self, queue_url: str, receipt: str, seconds: int) -> None:
        """Let a message that was received be visible again so many seconds from now.

        Raises:
            StoreError: the transport did not answer; the message comes back by itself.
        """


class NoHandOff:
    """The hand-off of a store whose runs are pulled: it sends nothing."""

    def reach(self) -> datetime:
        """Return the end of the calendar: nothing has to wait."""
        return LAST

    def send(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        """Send nothing."""

    def depth(self, queue: MessageQueue) -> int:  # noqa: ARG002  # the protocol's name
        """Return 0."""
        return 0

    def postpone(self, queue_url: str, receipt: str, seconds: int) -> None:
        """Do nothing."""


class LazyHandOff:
    """A hand-off that is made when the map has first named a queue of messages.

    So whoever has none loads nothing that it would need.
    """

    def __init__(self, make: Callable[[], HandOff]) -> None:
        self._make = make
        self._made: HandOff | None = None
        self._lock = threading.Lock()

    def _handoff(self) -> HandOff:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def reach(self) -> datetime:
        """Return the latest instant for which a message can be sent now."""
        return self._handoff().reach()

    def send(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        """Send a message for each notice."""
        self._handoff().send(queue, notices)

    def depth(self, queue: MessageQueue) -> int:
        """Return about how many messages of a queue wait to be received, or were put off."""
        return self._handoff().depth(queue)

    def postpone(self, queue_url: str, receipt: str, seconds: int) -> None:
        """Let a message that was received be visible again so many seconds from now."""
        self._handoff().postpone(queue_url, receipt, seconds)


def check_message_queues(queues: Sequence[MessageQueue], field: str) -> tuple[MessageQueue, ...]:
    """Return queues of messages in their order after checking each, and that they differ.

    Raises:
        InvalidInput: a name or URL is wrong, or one place is named twice.
    """
    found: dict[tuple[str, Priority], MessageQueue] = {}
    for one in queues:
        place = check_name(one.queue, f"{field}.queue"), one.priority
        if place in found:
            raise InvalidInput(field, f"{one.queue} {one.priority.value} is named twice")
        check_queue_url(one.url, f"{field}.url")
        found[place] = one
    order = list(Priority)
    return tuple(sorted(found.values(), key=lambda one: (one.queue, order.index(one.priority))))


def check_queue_url(url: str, field: str) -> str:
    """Return the URL of a queue of messages after checking its form.

    Raises:
        InvalidInput: it is no URL of a standard queue.
    """
    mend = "give the URL of a standard queue, as https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
    try:
        parts = urlsplit(url)
        placed = parts.port != 0 and parts.path.strip("/")  # a port that is none raises
        named = placed and parts.scheme in ("https", "http") and parts.hostname
    except ValueError:
        named = None
    if not named or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(field, f"{url!r} is no URL of a queue", mend)
    if "@" in parts.netloc:
        # Everybody who reads the map sees it; and SQS wants a signature, no password.
        raise InvalidInput(field, "it has a user's name or password in it", mend)
    if len(url) > URL_MAX:
        raise InvalidInput(field, f"it is longer than {URL_MAX} characters", mend)
    if url.endswith(".fifo"):
        # It delays whole queues only, and forgets what it has seen within five minutes.
        raise InvalidInput(field, f"{url!r} is a FIFO queue, which delays no single message", mend)
    return url


def read_message_queues(text: str, field: str) -> tuple[MessageQueue, ...]:
    """Return the queues of messages that a JSON list names, as a deployment is given them.

    Raises:
        InvalidInput: it is no such list; the field is named.

    >>> read_message_queues('[{"queue": "main", "priority": "high", "url": "http://h/q"}]', "x")
    (MessageQueue(queue='main', priority=<Priority.HIGH: 'high'>, url='http://h/q'),)
    """
    mend = 'give a JSON list of {"queue": NAME, "priority": high, default or bulk, "url": URL}'
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(field, "it is not JSON", mend) from None
    if not isinstance(items, list):
        raise InvalidInput(field, "it is not a list", mend)
    queues = [_queue_of(item, field, mend) for item in items]
    return check_message_queues(queues, field)


def _queue_of(item: object, field: str, mend: str) -> MessageQueue:
    if not isinstance(item, Mapping) or item.keys() != {"queue", "priority", "url"}:
        raise InvalidInput(field, f"{item!r} names no queue of messages", mend)
    fields: Mapping[str, Any] = item
    for name, value in fields.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{field}.{name}", "it is not text", mend)
    try:
        priority = Priority(fields["priority"])
    except ValueError:
        raise InvalidInput(
            f"{field}.priority", f"{fields['priority']!r} is no priority", mend
        ) from None
    return MessageQueue(queue=fields["queue"], priority=priority, url=fields["url"])
