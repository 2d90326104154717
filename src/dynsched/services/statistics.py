"""Minute statistics as a process counts them: in memory, and written at most every ten seconds.

Counting costs a few dict operations for each start and end; nothing is written on the way of a
claim. What was counted since the last write is lost with a crash: ten seconds at most.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.delay import scheduling_delay
from dynsched.domain.instants import MILLISECOND, minute_of, within
from dynsched.domain.lifecycle import Transition
from dynsched.domain.minutes import MinuteTally, count_name
from dynsched.domain.run import Run, RunState
from dynsched.errors import StoreError
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.statistics")

WRITTEN_EVERY = timedelta(seconds=10)
UNWRITTEN_MAX = 5  # minutes that are kept while the store fails
SET_BACK_MAX = 2  # minutes


@dataclass(slots=True)
class _Kept:
    """A minute's tally, the version that was written of it, and whether it has changed since."""

    tally: MinuteTally
    version: int = 0
    changed: bool = False


class Statistics:
    """Counts for one worker or reaper.

    Concurrency: used by one thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer = ""
        self._present = _Kept(MinuteTally(0))
        self._over: deque[_Kept] = deque(maxlen=UNWRITTEN_MAX)
        self._written_at: datetime | None = None

    def turn(self, now: datetime) -> None:
        """Begin the minute of an instant, unless that was done.

        A clock that is set back a little goes on in the minute that it was in: an earlier one was
        written already, and would be written over.
        """
        minute = minute_of(now)
        if not 0 <= self._present.tally.minute - minute <= SET_BACK_MAX:
            if self._present.changed:
                self._over.append(self._present)
            self._present = _Kept(MinuteTally(minute))

    def started(self, run: Run, at: datetime) -> None:
        """Count a handler's call; its delay, if it is the run's first."""
        present = self._present
        present.changed = True
        counts = present.tally.of(run.priority.value)
        counts.started += 1
        count_name(present.tally.starts, run.tenant)
        if not run.attempt:
            delay = scheduling_delay(run, at, started=at)
            counts.delayed(0 if delay is None else delay // MILLISECOND)

    def moved(self, move: Transition) -> None:
        """Count a way out of a lease: success, a failure that is tried again, or death."""
        before, after = move.before, move.after
        tally = self._present.tally
        if after.state is RunState.DONE:
            tally.of(after.priority.value).done += 1
        elif after.state is RunState.DEAD:
            tally.of(after.priority.value).dead += 1
            count_name(tally.deaths, after.tenant)
            count_name(tally.groups, after.signature)
        elif after.spent > before.spent:
            tally.of(after.priority.value).failed += 1
        else:
            return
        self._present.changed = True

    def write_by(self, now: datetime) -> None:
        """Write what has changed, if the last time was ten seconds ago or the minute is over."""
        if not self._over and not self._present.changed:
            return
        if self._over or not within(now, self._written_at, WRITTEN_EVERY):
            self.write(now)

    def write(self, now: datetime) -> None:
        """Write what has changed; while the store fails it is kept, for some minutes."""
        self._written_at = now
        try:
            while self._over:
                self._write(self._over[0])
                self._over.popleft()
            if self._present.changed:
                self._write(self._present)
        except StoreError as error:
            log.warning("the minute's statistics are written later: %s", error)

    def _write(self, kept: _Kept) -> None:
        self._writer = self._writer or self._store.token()
        kept.version = self._store.minutes.write(kept.tally, self._writer, kept.version)
        kept.changed = False
