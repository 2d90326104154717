"""Progress: what handlers report of themselves, kept where `run show` finds it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from dynsched.domain.instants import Clock
from dynsched.errors import StoreError
from dynsched.services.endings import attempt_expiry
from dynsched.services.hand import Hand, InHand
from dynsched.storage.runs import ProgressNote
from dynsched.storage.store import Store
from dynsched.targets.context import Progress

_log = logging.getLogger("dynsched.worker")

PERIOD = timedelta(seconds=5)  # a busy reporter costs one write in this time


class ProgressNotes:
    """Writes the last report of each run in hand, now and then."""

    def __init__(self, store: Store, *, clock: Clock, hand: Hand) -> None:
        self._store = store
        self._clock = clock
        self._hand = hand
        self._written_at: datetime | None = None

    def write(self, now: datetime) -> int:
        """Write what has changed since the last time; return how many reports.

        A report that cannot be written is dropped with a line in the log: it is an ornament.

        Raises:
            StoreError: the store failed, which is no report's fault.
        """
        if self._written_at is not None and now - self._written_at < PERIOD:
            return 0
        self._written_at = now
        count = 0
        for item in self._hand.items():
            progress = item.progress
            if progress is None or progress is item.progress_written or item.given_up:
                continue
            try:
                self._write_one(item, progress, now)
                count += 1
            except StoreError:
                raise
            except Exception:  # noqa: BLE001  # the poll goes on
                _log.exception("a progress report of run %s was dropped", item.run.run_id)
            item.progress_written = progress
        return count

    def _write_one(self, item: InHand, progress: Progress, now: datetime) -> None:
        self._store.runs.note_progress(
            ProgressNote(
                run_id=item.run.run_id,
                attempt=item.number,
                done=progress.done,
                total=progress.total,
                note=progress.note,
                at=now,
            ),
            attempt_expiry(item.run, now),
        )
