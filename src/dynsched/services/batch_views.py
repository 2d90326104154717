"""Views of replay batches: all of them, one with what became of it, its entries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain.batch import (
    Batch,
    BatchState,
    Needs,
    counted,
    needs_of,
)
from dynsched.domain.batch_entry import (
    SKIPS,
    Entry,
    Mark,
    Outcome,
    fate_of,
    fates,
    outcome_of,
)
from dynsched.domain.health import Level
from dynsched.domain.names import JOB_ID
from dynsched.domain.run import Run, parse_run_id
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.choosing import newer_than
from dynsched.services.listing import check_limit
from dynsched.services.search import Found, RunSearch
from dynsched.storage.batches import Marks

SAMPLE = 200  # moved runs that are read to tell what became of them
NEWER_MAX = 1_000
PATIENCE = timedelta(seconds=15)  # until a running batch without an owner is nobody's
ENTRIES_MAX = 5_000  # that one page of entries looks at


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDetail:
    """One batch, its counts as its marks are now.

    Attributes:
        batch: the batch.
        needs: what confirming it needs; None unless it is a draft.
        eta: how long the rest takes at its rate; None if nobody can say.
        sampled: moved runs that were looked at, the last of them.
        done_again: of those, runs that have ended otherwise than dead.
        dead_again: of those, runs that are dead again.
        open_again: of those, runs that have not ended.
        unattended: it is running, and no stepper has been heard of for a while.
        newer: dead runs that its filter chooses and that died after the cut-off; they are no
            entries.
    """

    batch: Batch
    needs: Needs | None
    eta: timedelta | None
    sampled: int
    done_again: int
    dead_again: int
    open_again: int
    unattended: bool
    newer: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEntry:
    """One entry of a batch.

    Attributes:
        run_id: the dead run.
        died_at: when it had died as it was previewed.
        outcome: what became of it.
        why: why it was skipped; empty for other outcomes.
        run: as it is stored now; None if it is gone.
    """

    run_id: str
    died_at: datetime
    outcome: Outcome
    why: str
    run: Run | None


class BatchViews(RunSearch):
    """Reads replay batches for people; only reading, every list bounded, secrets masked."""

    def batches(self, *, limit: int = 100, cursor: str | None = None) -> Found[Batch]:
        """List replay batches, newest first; counts of a running one may be some seconds old.

        Cost: half a read unit for each four batches.

        Raises:
            InvalidInput: the limit or the cursor is wrong.
        """
        check_limit(limit)
        if cursor is not None and not JOB_ID.fullmatch(cursor):
            raise InvalidInput("cursor", "it is not one of this list's", "begin again without it")
        now = self._clock.now()
        found = self._store.batches.newest(most=limit + 1, before=cursor)
        items = tuple(batch.at(now) for batch in found[:limit])
        more = len(found) > limit
        return Found(
            items=items,
            matched=len(items),
            examined=len(items),
            cursor=items[-1].batch_id if more else None,
        )

    def batch(self, batch_id: str, *, sample: int = SAMPLE) -> BatchDetail:
        """Return a batch with what became of what it moved.

        Cost: a read unit for each 4,000 entries, one for each moved run that is looked at, and
        some ten for the search of newer dead runs. Without a sample only the first of these: for
        those who look every second.

        Args:
            batch_id: the batch.
            sample: moved runs to look at; with 0 newer dead runs are not looked for either.

        Raises:
            NotFound: there is no such batch.
            InvalidInput: the sample is too large.
        """
        if not 0 <= sample <= SAMPLE:
            raise InvalidInput("sample", f"{sample} is out of range", f"give 0 to {SAMPLE}")
        batch, marks = self._with_marks(batch_id)
        seen = fates(
            fate_of(run, batch_id) for _, run in self._read(self._last_moved(batch, marks, sample))
        )
        return BatchDetail(
            batch=batch,
            needs=needs_of(batch) if batch.state is BatchState.DRAFT else None,
            eta=eta_of(batch),
            sampled=seen.ended + seen.open,
            done_again=seen.done,
            dead_again=seen.dead,
            open_again=seen.open,
            unattended=_unattended(batch, self._clock.now()),
            newer=newer_than(self, batch, most=NEWER_MAX) if sample else Level(0),
        )

    def batch_entries(
        self,
        batch_id: str,
        outcome: Outcome | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Found[BatchEntry]:
        """List a batch's entries in the order in which they are moved.

        Args:
            batch_id: the batch.
            outcome: only these.
            limit: at most so many.
            cursor: continues an earlier list.

        Raises:
            NotFound: there is no such batch.
            InvalidInput: the cursor is none.
        """
        check_limit(limit)
        batch, marks = self._with_marks(batch_id)
        begin = _offset(cursor, batch.planned)
        end = min(batch.planned, begin + ENTRIES_MAX)
        places: list[int] = []
        place = begin
        while place < end and len(places) < limit:
            mark = Mark(marks[place // batch.chunk].letters[place % batch.chunk])
            if outcome in (None, outcome_of(mark)):
                places.append(place)
            place += 1
        entries = self._entries(batch, places)
        letters = [Mark(marks[at // batch.chunk].letters[at % batch.chunk]) for at in places]
        items = tuple(
            BatchEntry(
                run_id=entry.run_id,
                died_at=entry.died_at,
                outcome=outcome_of(mark),
                why=SKIPS.get(mark, ""),
                run=run,
            )
            for (entry, run), mark in zip(self._read(entries), letters, strict=True)
        )
        return Found(
            items=items,
            matched=len(items),
            examined=place - begin,
            cursor=str(place) if place < batch.planned else None,
            tested=() if outcome is None else ("outcome",),
        )

    def _with_marks(self, batch_id: str) -> tuple[Batch, list[Marks]]:
        """Return a batch with its counts taken from its marks."""
        batch = self._store.batches.get(batch_id)
        if batch is None:
            raise NotFound("batch", batch_id, "`dynsched replay list` shows them")
        batch = batch.at(self._clock.now())
        if batch.state in (BatchState.DRAFT, BatchState.EXPIRED):
            return batch, self._store.batches.unmarked(batch)
        marks = self._store.batches.all_marks(batch)
        total: Counter[str] = sum((one.counts for one in marks), Counter())
        exact = counted(batch, position=batch.position, done=Counter(), current=total)
        return replace(exact, done=batch.done), marks

    def _last_moved(self, batch: Batch, marks: list[Marks], sample: int) -> list[Entry]:
        places = [
            chunk * batch.chunk + place
            for chunk, one in enumerate(marks)
            for place, letter in enumerate(one.letters)
            if letter == Mark.MOVED.value
        ]
        return self._entries(batch, places[-sample:] if sample else [])

    def _entries(self, batch: Batch, places: list[int]) -> list[Entry]:
        """Return entries by their places. Cost: some 10 read units for each 500."""
        chunks = {
            chunk: self._store.batches.entries(batch.batch_id, chunk)
            for chunk in dict.fromkeys(place // batch.chunk for place in places)
        }
        return [chunks[place // batch.chunk][place % batch.chunk] for place in places]

    def _read(self, entries: list[Entry]) -> list[tuple[Entry, Run | None]]:
        keys = [parse_run_id(entry.run_id) for entry in entries]
        found = self._store.runs.look_up(keys)
        runs = [self.masked(run) if isinstance(run, Run) else None for run in found]
        return list(zip(entries, runs, strict=True))


def _unattended(batch: Batch, now: datetime) -> bool:
    """Return whether nobody moves a running batch: its owner would have renewed its claim."""
    if batch.state is not BatchState.RUNNING:
        return False
    heard = [at for at in (batch.confirmed_at, batch.owned_until) if at is not None]
    return now - max(heard, default=now) > PATIENCE


def eta_of(batch: Batch) -> timedelta | None:
    """Return how long the rest of a batch takes at its rate; None if nobody can say."""
    if batch.rate is None or batch.ended:
        return None
    return timedelta(seconds=batch.left / batch.rate)


def _offset(cursor: str | None, planned: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or int(cursor) > planned:
        raise InvalidInput("cursor", f"{cursor!r} continues no list", "leave it out to begin")
    return int(cursor)
