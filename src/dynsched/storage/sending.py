"""Sending: the one place that tells functions of runs that have become ready.

The row is written first and the message sent second, so that whoever reads the message finds the
row. What is lost in between, by a crash or by the transport, the reaper sends again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dynsched.domain.run import Run
from dynsched.errors import StoreError
from dynsched.storage.handoff import HandOff, MessageQueue, Notice
from dynsched.storage.reminders import ReminderStore
from dynsched.storage.rows import Rows

log = logging.getLogger("dynsched.handoff")


class Sending:
    """Sends messages about ready runs, to the queues that the map names.

    Args:
        rows: with the map.
        handoff: the transport.
        reminders: for runs beyond its reach.
    """

    def __init__(self, rows: Rows, handoff: HandOff, reminders: ReminderStore) -> None:
        self._rows = rows
        self._handoff = handoff
        self._reminders = reminders

    @property
    def on(self) -> bool:
        """Return whether any runs are handed off."""
        return bool(self._rows.topology.message_queues)

    def tell(self, runs: Iterable[Run]) -> None:
        """Tell functions of runs whose rows say ready; leave a reminder of those far ahead.

        Failures are logged and not raised: the rows are there.
        """
        if not self.on:
            return
        reach, far = self._handoff.reach(), []
        near: dict[MessageQueue, list[Notice]] = {}
        for run in runs:
            queue = self._rows.topology.message_queue(run.queue, run.priority)
            if queue is None:
                continue
            if run.available_at > reach:
                far.append(run)
            else:
                notice = Notice(run.run_id, run.share, run.available_at)
                near.setdefault(queue, []).append(notice)
        for queue, notices in near.items():
            self._handoff.send(queue, notices)
        if far:
            self._remind(far)

    def _remind(self, runs: list[Run]) -> None:
        try:
            self._reminders.put(runs)
        except StoreError as error:
            log.warning(
                "no reminder of run %s and %d more was left: %s; they are told of when they have"
                " been due for a while",
                runs[0].run_id,
                len(runs) - 1,
                error,
            )
