"""Views of the hand-off: which runs are told of to functions, by which queues, and their depth."""

from __future__ import annotations

from dataclasses import dataclass

from dynsched.domain.job import Priority
from dynsched.errors import DynschedError
from dynsched.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOffLine:
    """Where messages about a queue's ready runs of one priority go.

    Attributes:
        url: the queue of messages.
        waiting: about how many messages wait there to be received; None if that is not known.
        problem: why it is not known; empty if it is, or if nobody asked.
    """

    queue: str
    priority: Priority
    url: str
    waiting: int | None = None
    problem: str = ""


class HandOffViews:
    """Reads the hand-off; only reading."""

    _store: Store

    def hand_offs(self, *, depth: bool = False) -> tuple[HandOffLine, ...]:
        """List the queues of messages in their order; none if all runs are pulled.

        Args:
            depth: ask each how many messages wait there. Cost: one request to each.
        """
        lines = []
        for one in self._store.refresh().message_queues:
            waiting, problem = None, ""
            if depth:
                try:
                    waiting = self._store.handoff.depth(one)
                except DynschedError as error:
                    problem = str(error)
            lines.append(
                HandOffLine(
                    queue=one.queue,
                    priority=one.priority,
                    url=one.url,
                    waiting=waiting,
                    problem=problem,
                )
            )
        return tuple(lines)
