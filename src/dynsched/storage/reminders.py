"""Reminders: notes of ready runs that lie too far ahead for a message.

They lie in the index partitions of the retries of their minute, behind these, so that a dispatcher
finds them in the buckets that it reads anyway and no reader of retries meets them. A reminder that
is lost does no harm: its run is told of when it has been due for a while (`services.resending`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from dynsched.domain.instants import EPOCH, from_ms, minute_of, to_ms, to_text
from dynsched.domain.job import Priority
from dynsched.domain.names import bucket_of
from dynsched.domain.run import Run
from dynsched.storage.engine import Delete, Key, PutNew, Query, Replace, Row, Stale, Table
from dynsched.storage.placement import (
    REMIND_SORT,
    REMINDERS,
    attempts_partition,
    retry_partition,
)
from dynsched.storage.rows import PAGE, Rows, readable

KEPT = timedelta(days=2)
"""How long a reminder outlives its instant if nobody takes it: the hand-off was ended since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """That a run is to be told of when its time is near.

    Attributes:
        queue: the scheduler's queue that the run is in.
        share: the key that takes turns.
        available_at: when the run may be claimed.
        version: of its row.
    """

    run_id: str
    queue: str
    priority: Priority
    share: str
    available_at: datetime
    version: int


class ReminderStore:
    """Verbs on reminders."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def put(self, runs: Sequence[Run]) -> None:
        """Write a reminder for each run. Cost: 2 write units each, base and index.

        One that is there already for another time is written over.
        """
        rows = [self._row_of(run) for run in runs]
        outcomes = self._rows.engine.write_many([PutNew(row) for row in rows])
        others = [
            Replace(row, outcome.current.version)
            for row, outcome in zip(rows, outcomes, strict=True)
            if isinstance(outcome, Stale)
            and outcome.current is not None
            and outcome.current.index != row.index
        ]
        if others:
            self._rows.engine.write_many(others)

    def due(self, minute: int, shard: int, before: datetime, *, most: int) -> list[Reminder]:
        """Read the reminders of a minute bucket whose time comes before an instant."""
        query = Query(
            Table.RUNS,
            retry_partition(minute, shard),
            index=True,
            after=REMINDERS,
            before=REMINDERS + to_text(before),
            limit=min(most, PAGE),
        )
        return list(readable(_decode, self._rows.all(query, most)))

    def delete(self, reminders: Sequence[Reminder]) -> None:
        """Delete reminders, each as it was read. Cost: 2 write units each."""
        writes = [Delete(_key(one.run_id), one.version) for one in reminders]
        if writes:
            self._rows.engine.write_many(writes)

    def _row_of(self, run: Run) -> Row:
        minute = minute_of(run.available_at)
        shard = bucket_of(run.job_id, self._rows.topology.writing(minute).shards)
        index = (
            retry_partition(minute, shard),
            f"{REMINDERS}{to_text(run.available_at)}#{run.run_id}",
        )
        body = {
            "q": run.queue,
            "p": run.priority.value,
            "s": run.share,
            "at": to_ms(run.available_at),
        }
        expires_at_s = int((run.available_at - EPOCH + KEPT).total_seconds())
        return Row(_key(run.run_id), body, index, expires_at_s, self._rows.token())


def _key(run_id: str) -> Key:
    return Key(Table.RUNS, attempts_partition(run_id), REMIND_SORT)


def _decode(row: Row) -> Reminder:
    body = row.body
    return Reminder(
        run_id=row.key.pk.removeprefix(attempts_partition("")),
        queue=cast(str, body["q"]),
        priority=Priority(cast(str, body["p"])),
        share=cast(str, body["s"]),
        available_at=from_ms(cast(int, body["at"])),
        version=row.version,
    )
