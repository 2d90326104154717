"""Verbs on the hand-off: which ready runs are told of to functions, and by which queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dynsched.domain.access import Action
from dynsched.domain.job import Priority
from dynsched.domain.names import check_name
from dynsched.errors import Conflict, InvalidInput, NotFound
from dynsched.services.gate import changes, note
from dynsched.services.verbs import CHANGE_TRIES, Verbs, on_store
from dynsched.storage.handoff import MessageQueue, check_message_queues, check_queue_url

QUEUES_MAX = 150
"""Queues of messages of one store: each look of the reaper asks for all of them."""


class HandOffVerbs(Verbs):
    """Begin and end the hand-off of a queue's runs; they can be pulled all the same."""

    @changes(Action.STORE_HANDOFF, on_store)
    def set_message_queue(
        self, queue: str, *, priority: Priority, url: str, reason: str = ""
    ) -> tuple[MessageQueue, ...]:
        """Name where messages about a queue's ready runs of a priority go; return all such places.

        Every process follows when it has read the map again, within half a minute. What is ready
        already is told of by the reaper, when it is due for a minute.

        Raises:
            InvalidInput: the queue's name or the URL is wrong.
            Conflict: the map kept changing.
        """
        check_name(queue, "queue")
        named = MessageQueue(queue=queue, priority=priority, url=url)
        check_queue_url(url, "url")
        return self._change_queues(lambda before: _named(before, named))

    @changes(Action.STORE_HANDOFF, on_store)
    def drop_message_queues(
        self, queue: str | None = None, *, priority: Priority | None = None, reason: str = ""
    ) -> tuple[MessageQueue, ...]:
        """End the hand-off of a queue's runs, or of all; return the places that are left.

        Messages on their way still start their runs, as long as a function receives them. The
        runs that are ready lie where workers pull them.

        Args:
            queue: whose runs; None is all.
            priority: of that queue only these; None is all.
            reason: for the audit.

        Raises:
            InvalidInput: a priority is given without a queue.
            NotFound: none of them is handed off.
            Conflict: the map kept changing.
        """
        if queue is None and priority is not None:
            raise InvalidInput("priority", "it says nothing without a queue", "name the queue")
        if queue is not None:
            check_name(queue, "queue")

        def left(before: Sequence[MessageQueue]) -> list[MessageQueue]:
            kept = [one for one in before if not _meant(one, queue, priority)]
            if len(kept) == len(before):
                name = " ".join(filter(None, (queue or "of any queue", priority)))
                raise NotFound("hand-off", name, "`dynsched handoff list` shows them")
            return kept

        return self._change_queues(left)

    def _change_queues(
        self, change: Callable[[Sequence[MessageQueue]], Sequence[MessageQueue]]
    ) -> tuple[MessageQueue, ...]:
        for _ in range(CHANGE_TRIES):
            topology = self._store.refresh()
            before = topology.message_queues
            after = check_message_queues(change(before), "queue")
            if len(after) > QUEUES_MAX:
                raise InvalidInput(
                    "queue", f"more than {QUEUES_MAX} queues of messages", "end the hand-off of one"
                )
            if after == before or self._store.control.write_map(
                replace(topology, message_queues=after)
            ):
                note(_words(before, after))
                self._store.refresh()
                return after
        raise Conflict("the map kept changing; try again")


def _meant(one: MessageQueue, queue: str | None, priority: Priority | None) -> bool:
    return queue in (None, one.queue) and priority in (None, one.priority)


def _named(before: Sequence[MessageQueue], named: MessageQueue) -> list[MessageQueue]:
    return [one for one in before if not _meant(one, named.queue, named.priority)] + [named]


def _words(before: Sequence[MessageQueue], after: Sequence[MessageQueue]) -> str:
    """Return what has changed, as the audit says it."""
    new = [f"{one.queue} {one.priority.value} -> {one.url}" for one in after if one not in before]
    places = {(one.queue, one.priority) for one in after}
    gone = [
        f"{one.queue} {one.priority.value} -> pulled only"
        for one in before
        if (one.queue, one.priority) not in places
    ]
    return ", ".join([*new, *gone]) or "as it was"
