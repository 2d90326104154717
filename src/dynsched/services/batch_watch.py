"""Batch watch: what became of the runs that a batch has moved, for its canary and its breaker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dynsched.domain.batch import (
    WINDOW,
    Batch,
    PauseCause,
    breaker_trips,
    canary_says,
)
from dynsched.domain.batch_entry import (
    Entry,
    Fates,
    Mark,
    fate_of,
    fates,
)
from dynsched.domain.instants import within
from dynsched.domain.run import Run, parse_run_id
from dynsched.storage.batches import Marks
from dynsched.storage.store import Store

CHUNKS_KEPT = 8  # whose entries are remembered, as they never change
WATCH_PERIOD = timedelta(seconds=5)  # between two looks of the breaker
CANARY_PERIOD = timedelta(seconds=1)
OPEN = "open"


@dataclass(slots=True)
class Hand:
    """What a stepper remembers of a batch that it owns; all of it can be read again.

    Attributes:
        chunk: the chunk that is being moved.
        marks: its marks.
        paced_at: up to when the rate is used up.
        noted_at: when the batch's row was written last.
        watched_at: when its moved runs were looked at last.
        fates: what became of those that are watched.
    """

    chunk: int
    marks: Marks
    paced_at: datetime | None = None
    noted_at: datetime | None = None
    watched_at: datetime | None = None
    fates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Says:
    """What a look says.

    Attributes:
        wait: nothing is to be moved now.
        passed: the canary has ended well.
        pause: the batch is to be paused, and by whom.
        why: a sentence.
    """

    wait: bool = False
    passed: bool = False
    pause: PauseCause | None = None
    why: str = ""


class BatchWatch:
    """Looks at moved runs now and then, and not again at those that have ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: OrderedDict[tuple[str, int], list[Entry]] = OrderedDict()

    def entries(self, batch: Batch, chunk: int) -> list[Entry]:
        """Return a chunk's entries; some chunks are remembered."""
        place = batch.batch_id, chunk
        if place not in self._entries:
            self._entries[place] = self._store.batches.entries(batch.batch_id, chunk)
        self._entries.move_to_end(place)
        while len(self._entries) > CHUNKS_KEPT:
            self._entries.popitem(last=False)
        return self._entries[place]

    def look(self, batch: Batch, hand: Hand, now: datetime) -> Says:
        """Return what the moved runs say about moving more.

        Cost: 1 read unit for each watched run that has not ended, each second for the canary's
        and each five for the breaker's last 50.
        """
        if batch.canary and not batch.canary_passed:
            return self._canary(batch, hand, now)
        if batch.breaker >= 1 or within(now, hand.watched_at, WATCH_PERIOD):
            return Says()
        hand.watched_at = now
        count = min(WINDOW, batch.moved - batch.window_from)
        why = breaker_trips(batch, self._fates(batch, hand, self._last(batch, hand, count)))
        return Says(pause=PauseCause.BREAKER, why=why) if why else Says()

    def _canary(self, batch: Batch, hand: Hand, now: datetime) -> Says:
        if batch.moved < batch.canary:
            return Says()
        if within(now, hand.watched_at, CANARY_PERIOD):
            return Says(wait=True)
        hand.watched_at = now
        seen = self._fates(batch, hand, self._first(batch, hand, batch.canary))
        if seen.open:
            return Says(wait=True)
        why = canary_says(batch, seen)
        if why:
            return Says(pause=PauseCause.CANARY, why=why)
        return Says(passed=True)

    def _fates(self, batch: Batch, hand: Hand, entries: Sequence[Entry]) -> Fates:
        hand.fates = {one.run_id: hand.fates.get(one.run_id, OPEN) for one in entries}
        unknown = [run_id for run_id, fate in hand.fates.items() if fate == OPEN]
        found = self._store.runs.look_up([parse_run_id(run_id) for run_id in unknown])
        for run_id, run in zip(unknown, found, strict=True):
            hand.fates[run_id] = fate_of(run if isinstance(run, Run) else None, batch.batch_id)
        return fates(hand.fates.values())

    def _first(self, batch: Batch, hand: Hand, count: int) -> list[Entry]:
        """Return the entries that were moved first."""
        found: list[Entry] = []
        for chunk in range(hand.chunk + 1):
            found += self._moved(batch, hand, chunk)
            if len(found) >= count:
                break
        return found[:count]

    def _last(self, batch: Batch, hand: Hand, count: int) -> list[Entry]:
        """Return the entries that were moved last."""
        found: list[Entry] = []
        for chunk in range(hand.chunk, -1, -1):
            if len(found) >= count:
                break
            found = self._moved(batch, hand, chunk) + found
        return found[len(found) - count :] if count > 0 else []

    def _moved(self, batch: Batch, hand: Hand, chunk: int) -> list[Entry]:
        marks = hand.marks if chunk == hand.chunk else self._store.batches.marks(batch, chunk)
        if not marks.letters:
            return []
        pairs = zip(self.entries(batch, chunk), marks.letters, strict=True)
        return [entry for entry, letter in pairs if letter == Mark.MOVED.value]
