"""Queues of messages in memory, which lose, double, delay and mix what they are given.

They stand for SQS where a test lets time pass: a message that was received is hidden for a while
and comes back unless it is deleted.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain.instants import Clock
from dynsched.domain.message import decode_message, encode_message
from dynsched.errors import Unavailable
from dynsched.storage.handoff import DELAY_MAX, MessageQueue, Notice

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A message as its queue keeps it.

    Attributes:
        message_id: of its own; a doubled message has two.
        queue_url: where it lies.
        group: of its share key.
        sent_at: when it was sent.
        visible_at: when it may be received, for the first time or again.
        receipt: of its last receiving; empty before.
        received: how often.
    """

    message_id: str
    queue_url: str
    body: str
    group: str
    sent_at: datetime
    visible_at: datetime
    receipt: str = ""
    received: int = 0

    @property
    def run_id(self) -> str:
        """Return which run it is about."""
        return decode_message(self.body)


class MemoryHandOff:
    """A `HandOff` in memory.

    Args:
        clock: when messages are delivered.
        rng: for the faults and for the order of what is received.
        loss: how probable it is that a message is never seen.
        doubling: how probable it is that it comes twice.
        late_s: a message is delivered up to so many seconds late.
        visibility: how long a received message is hidden.

    Attributes:
        down: whether the transport fails; then what is sent is lost.
        sent: what was given to be sent, lost or not, in order: queue and notice.

    Concurrency: any number of threads.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        rng: Random | None = None,
        loss: float = 0.0,
        doubling: float = 0.0,
        late_s: float = 0.0,
        visibility: timedelta = timedelta(seconds=30),
    ) -> None:
        self._clock = clock
        self._rng = rng or Random(0)
        self.loss, self.doubling, self.late_s = loss, doubling, late_s
        self._visibility = visibility
        self._numbers = itertools.count(1)
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()
        self.down = False
        self.sent: list[tuple[MessageQueue, Notice]] = []

    def reach(self) -> datetime:
        """Return the latest instant for which a message can be sent now."""
        return self._clock.now() + DELAY_MAX

    def send(self, queue: MessageQueue, notices: Sequence[Notice]) -> None:
        """Keep a message for each notice, but for the faults."""
        now = self._clock.now()
        with self._lock:
            for notice in notices:
                self.sent.append((queue, notice))
                delay = max(timedelta(0), notice.available_at - now)
                assert delay <= DELAY_MAX, f"{notice} is beyond the reach of a message"
                if not self.down and self._rng.random() >= self.loss:
                    for _ in range(1 + (self._rng.random() < self.doubling)):
                        self._keep(queue, notice, now, -(-delay // SECOND) * SECOND)

    def _keep(self, queue: MessageQueue, notice: Notice, now: datetime, delay: timedelta) -> None:
        late = timedelta(seconds=self._rng.uniform(0, self.late_s))
        message = Kept(
            message_id=f"m{next(self._numbers)}",
            queue_url=queue.url,
            body=encode_message(notice.run_id),
            group=notice.share,
            sent_at=now,
            visible_at=now + delay + late,
        )
        self._kept[message.message_id] = message

    def depth(self, queue: MessageQueue) -> int:
        """Count the messages of a queue that wait to be received or were put off.

        Raises:
            Unavailable: the transport is down.
        """
        self._check()
        now = self._clock.now()
        kept = self.messages(queue.url)
        return sum(one.visible_at <= now or one.received > 0 for one in kept)

    def postpone(self, queue_url: str, receipt: str, seconds: int) -> None:
        """Hide a received message for so many seconds from now.

        Raises:
            Unavailable: the transport is down, or the message was received again since.
        """
        self._check()
        with self._lock:
            for one in self._kept.values():
                if one.queue_url == queue_url and one.receipt == receipt:
                    visible_at = self._clock.now() + seconds * SECOND
                    self._kept[one.message_id] = replace(one, visible_at=visible_at)
                    return
        raise Unavailable(f"no message of {queue_url} has the receipt {receipt}")

    # what tests do with the queues

    def messages(self, queue_url: str | None = None) -> list[Kept]:
        """Return all messages that a queue keeps, or all queues: hidden ones too."""
        with self._lock:
            kept = list(self._kept.values())
        return [one for one in kept if queue_url in (None, one.queue_url)]

    def receive(self, queue_url: str | None = None, *, most: int = 10) -> list[Kept]:
        """Take visible messages in any order, of one queue or of all; they are hidden then."""
        now = self._clock.now()
        found = [one for one in self.messages(queue_url) if one.visible_at <= now]
        self._rng.shuffle(found)
        taken = [
            replace(
                one,
                receipt=f"{one.message_id}-{one.received + 1}",
                received=one.received + 1,
                visible_at=now + self._visibility,
            )
            for one in found[:most]
        ]
        with self._lock:
            self._kept.update((one.message_id, one) for one in taken)
        return taken

    def delete(self, message: Kept) -> None:
        """Delete a message that was received and is done with."""
        with self._lock:
            self._kept.pop(message.message_id, None)

    def settle(self, message: Kept, *, keep: bool, again_in: timedelta | None) -> None:
        """Do with a received message what a worker decided, as the worker's function does.

        Args:
            message: as it was received.
            keep: whether it stays.
            again_in: when it is visible again, rounded up to the second; None leaves it hidden as
                long as it was to be.

        Raises:
            Unavailable: the transport is down, or the message was received again since.
        """
        if not keep:
            self.delete(message)
        elif again_in is not None:
            self.postpone(message.queue_url, message.receipt, -(-again_in // SECOND))

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the queues of messages do not answer")
