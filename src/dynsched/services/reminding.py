"""Reminding: a dispatcher turns the reminders of its minutes into messages.

Sent first and deleted second: a crash in between doubles a message, which does no harm.
"""

from __future__ import annotations

from datetime import datetime

from dynsched.storage.handoff import MessageQueue, Notice
from dynsched.storage.store import Store


class Reminding:
    """Sends what was too far ahead for a message when its run became ready."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def send(self, minute: int, shard: int, before: datetime, *, most: int) -> int:
        """Send a message for each reminder of a minute bucket before an instant; return how many.

        A store without queues of messages is not asked at all. One whose hand-off ended leaves the
        last reminders to their expiry.

        Cost: half a read unit for each bucket; 2 write units for each reminder.
        """
        topology = self._store.topology
        if not topology.message_queues:
            return 0
        found = self._store.reminders.due(minute, shard, before, most=most)
        by_queue: dict[MessageQueue, list[Notice]] = {}
        for one in found:
            queue = topology.message_queue(one.queue, one.priority)
            if queue is not None:
                notice = Notice(one.run_id, one.share, one.available_at)
                by_queue.setdefault(queue, []).append(notice)
        for queue, notices in by_queue.items():
            self._store.handoff.send(queue, notices)
        self._store.reminders.delete(found)
        return len(found)
