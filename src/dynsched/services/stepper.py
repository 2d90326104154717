"""The stepper: moves the entries of running replay batches, one bounded step after the other.

Correctness rests on guarded writes alone. A run is moved by one write under the version that was
seen, which names the batch in the run; so whoever steps after a crash sees what was moved. Marks
are written after the moves, and all counts are taken from marks. That one stepper owns a batch
only saves reads and refused writes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain import batch as rules
from dynsched.domain.access import Action
from dynsched.domain.audit import ACTOR_MAX, AuditEntry, AuditOutcome, plain
from dynsched.domain.batch import Batch, BatchState, counted, ending_words
from dynsched.domain.batch_entry import Mark, Outcome, merged, outcome_of
from dynsched.domain.instants import MILLISECOND, Clock, within
from dynsched.errors import DamagedRow, StoreError
from dynsched.services.batch_moves import EntryMover
from dynsched.services.batch_watch import BatchWatch, Hand, Says
from dynsched.settings import Settings
from dynsched.storage.batches import Marks, awaits
from dynsched.storage.engine import Key
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.stepper")

VIA = "stepper"
BATCHES_MAX = 200  # that one step looks at
TRIES = 5
NOTE_PERIOD = timedelta(seconds=5)  # between two writes of a running batch's row
BURST = timedelta(seconds=2)  # of the rate that may be made up for
DRAFT_MARGIN = timedelta(minutes=5)  # a confirm under way when the draft expired has landed


@dataclass(slots=True)
class StepReport:
    """What one step did.

    Attributes:
        running: batches that are running, wherever they are stepped.
        moved: runs put back to ready.
        skipped: entries that may not be moved, those that were pulled back too.
        failed: entries that could not be read.
        ended: batches that have nothing left to do.
        broken: batches that could not be stepped; the others went on.
        again: more may be done at once.
    """

    running: int = 0
    moved: int = 0
    skipped: int = 0
    failed: int = 0
    ended: int = 0
    broken: int = 0
    again: bool = False


class BatchStepper:
    """One replica; any number may step at once.

    Args:
        store: where everything lies.
        clock: the source of time.
        settings: bounds.
        name: tells replicas apart.
    """

    def __init__(self, store: Store, *, clock: Clock, settings: Settings, name: str) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._name = name
        self._mover = EntryMover(store, clock=clock)
        self._watch = BatchWatch(store)
        self._hands: dict[str, Hand] = {}
        self._owned: set[str] = set()
        self._report = StepReport()

    def step(self) -> StepReport:
        """Make one pass over the batches that have something to do.

        Cost: one read unit if there are none.

        Raises:
            StoreError: the store failed; the next step repeats what is missing.
        """
        report = self._report = StepReport()
        pointed = self._store.batches.pointed(most=BATCHES_MAX)
        self._hands = {one: hand for one, hand in self._hands.items() if one in pointed}
        if not pointed:
            return report
        self._store.refresh_by(self._clock.now())  # moved runs lie where the map says
        found = self._store.batches.look_up(list(pointed))
        for batch, keys in zip(found, pointed.values(), strict=True):
            try:
                self._one(batch, keys)
            except StoreError:
                raise
            except DamagedRow as error:
                report.broken += 1
                log.error(  # noqa: TRY400  # one line: the trace is of no use
                    "replay batch %s could not be stepped: %s", keys[0].sk, error
                )
            except Exception:
                report.broken += 1
                log.exception("replay batch %s could not be stepped", keys[0].sk)
        return report

    def close(self) -> None:
        """Let others have at once what is owned here; to be called when stepping ends.

        Raises:
            StoreError: the store failed; others wait for the end of the ownership.
        """
        for batch_id in self._owned:
            batch = self._store.batches.get(batch_id)
            if batch is not None and batch.owner == self._name:
                self._store.batches.replace(replace(batch, owner="", owned_until=None))
        self._owned.clear()
        self._hands.clear()

    def _one(self, batch: Batch | DamagedRow | None, keys: Sequence[Key]) -> None:
        if isinstance(batch, DamagedRow):
            raise batch
        now = self._clock.now()
        if batch is None or _long_expired(batch, now):
            self._store.batches.unpoint(keys)
        elif batch.state is BatchState.RUNNING:
            self._report.running += 1
            owned = self._own(batch, now)
            if owned is not None:
                self._go_on(owned, keys, now)
        elif batch.state is BatchState.PAUSED:
            self._rest(batch)
        elif batch.settled:
            over = [key for key in keys if not awaits(key, batch)]
            if over:
                self._forget(batch, over)
        elif batch.ended:
            owned = self._own(batch, now)
            if owned is not None:
                self._settle(owned, keys)

    def _own(self, batch: Batch, now: datetime) -> Batch | None:
        """Return the batch if it is stepped here, None if it is stepped elsewhere."""
        lease = self._settings.batch_lease
        until, mine = batch.owned_until, batch.owner == self._name
        if not mine:
            self._hands.pop(batch.batch_id, None)
            # An end too far ahead was written by a clock that is wrong.
            if until is not None and now < until <= now + 2 * lease:
                return None
        elif until is not None and until - now > lease / 2:
            return batch
        self._owned.add(batch.batch_id)
        return self._store.batches.replace(
            replace(batch, owner=self._name, owned_until=now + lease), durable=False
        )

    def _rest(self, batch: Batch) -> None:
        """Leave a paused batch, with the counts that were not written yet."""
        hand = self._hands.pop(batch.batch_id, None)
        if hand is not None:
            self._note(batch, hand)

    # moving

    def _go_on(self, batch: Batch, keys: Sequence[Key], now: datetime) -> None:
        hand = self._hand(batch)
        batch = _as_marked(batch, hand)
        if batch.left == 0:
            self._finish(batch, keys)
            return
        says = self._watch.look(batch, hand, now)
        if says.pause is not None:
            self._pause(batch, hand, says)
            return
        if says.passed:
            passed = self._change(batch, lambda one: replace(one, canary_passed=True))
            if passed is None:
                return
            batch = _as_marked(passed, hand)
        most = 0 if says.wait else self._allowance(batch, hand, now)
        if most > 0:
            self._move(batch, hand, most)
        if hand.marks.complete or not within(now, hand.noted_at, NOTE_PERIOD):
            hand.noted_at = now
            self._note(batch, hand)

    def _hand(self, batch: Batch) -> Hand:
        """Return what is known of a batch, read again where it is not known here."""
        known = self._hands.get(batch.batch_id)
        if known is not None and known.chunk == batch.position:
            return known
        hand = Hand(batch.position, self._marks(batch, batch.position))
        if known is not None:
            hand.paced_at, hand.noted_at = known.paced_at, known.noted_at
            hand.watched_at, hand.fates = known.watched_at, known.fates
        self._hands[batch.batch_id] = hand
        return hand

    def _marks(self, batch: Batch, chunk: int) -> Marks:
        over = chunk >= batch.chunks
        return Marks("") if over else self._store.batches.marks(batch, chunk)

    def _allowance(self, batch: Batch, hand: Hand, now: datetime) -> int:
        """Return how many runs may be moved now, by the rate and the canary."""
        most = self._settings.step_runs
        if batch.canary and not batch.canary_passed:
            most = min(most, batch.canary - batch.moved)
        if batch.rate is None:
            return most
        paced_at = max(filter(None, (batch.paced_at, hand.paced_at)), default=now)
        slack = BURST + timedelta(seconds=1 / batch.rate)
        hand.paced_at = min(max(paced_at, now - slack), now)
        # A microsecond more, since instants are whole microseconds and the rate is not.
        return min(most, int(((now - hand.paced_at).total_seconds() + 1e-6) * batch.rate))

    def _move(self, batch: Batch, hand: Hand, most: int) -> None:
        """Move up to `most` runs of the chunk in hand; entries that are skipped are free."""
        entries = self._watch.entries(batch, hand.chunk)
        letters = hand.marks.letters
        left = [place for place, letter in enumerate(letters) if letter == Mark.LEFT.value]
        left = left[: self._settings.step_runs]
        new: dict[int, Mark] = {}
        moved = begin = 0
        while moved < most and begin < len(left):
            places = left[begin : begin + most - moved]
            begin += len(places)
            marks = self._mover.move(batch, [entries[place] for place in places])
            new |= dict(zip(places, marks, strict=True))
            moved += sum(mark is Mark.MOVED for mark in marks)
        if batch.rate is not None and hand.paced_at is not None:
            hand.paced_at += timedelta(seconds=moved / batch.rate)
        self._mark(batch, hand, new)
        # Fewer than allowed: this chunk has no more. All of a step's: there may be more to make up.
        full = most >= self._settings.step_runs
        self._report.again |= batch.rate is None or moved < most or full

    def _mark(self, batch: Batch, hand: Hand, new: Mapping[int, Mark]) -> None:
        """Write marks, together with those that another stepper wrote meanwhile."""
        new = {place: mark for place, mark in new.items() if mark is not Mark.LEFT}
        if not new:
            return
        counts = Counter(map(outcome_of, new.values()))
        self._report.moved += counts[Outcome.MOVED]
        self._report.skipped += counts[Outcome.SKIPPED]
        self._report.failed += counts[Outcome.FAILED]
        for _ in range(TRIES):
            letters = [
                merged(letter, new[place]) if place in new else letter
                for place, letter in enumerate(hand.marks.letters)
            ]
            marks = Marks("".join(letters), hand.marks.version)
            stored = self._store.batches.write_marks(batch, hand.chunk, marks)
            if stored is not None:
                hand.marks = stored
                return
            hand.marks = self._store.batches.marks(batch, hand.chunk)

    def _note(self, batch: Batch, hand: Hand) -> None:
        """Write the counts, and go to the next chunk if this one is done."""
        complete = hand.marks.complete

        def change(batch: Batch) -> Batch:
            paced_at = max(filter(None, (batch.paced_at, hand.paced_at)), default=None)
            noted = replace(_as_marked(batch, hand), paced_at=paced_at)
            if complete:
                done = Counter(batch.done) + hand.marks.counts
                noted = replace(noted, position=batch.position + 1, done=dict(done))
            if batch.owner != self._name or batch.state is not BatchState.RUNNING:
                return noted
            return replace(noted, owned_until=self._clock.now() + self._settings.batch_lease)

        noted = self._change(batch, change, chunk=hand.chunk)
        self._report.again |= complete and noted is not None and noted.left == 0

    def _pause(self, batch: Batch, hand: Hand, says: Says) -> None:
        cause = says.pause
        assert cause is not None

        def change(batch: Batch) -> Batch:
            return rules.paused(_as_marked(batch, hand), cause=cause, why=says.why)

        if self._change(batch, change, running=True) is not None:
            log.warning("replay batch %s is paused (%s): %s", batch.batch_id, cause, says.why)

    def _change(
        self,
        batch: Batch,
        change: Callable[[Batch], Batch],
        *,
        chunk: int | None = None,
        running: bool = False,
    ) -> Batch | None:
        """Write a change of a batch, again if people were first; None if it does not apply.

        Args:
            batch: as seen.
            change: made on what is stored.
            chunk: only while this chunk is in hand.
            running: only while it is running.
        """
        current: Batch | None = batch
        for _ in range(TRIES):
            if current is None or chunk not in (None, current.position):
                return None
            if running and current.state is not BatchState.RUNNING:
                return None
            stored = self._store.batches.replace(change(current))
            if stored is not None:
                return stored
            current = self._store.batches.get(batch.batch_id)
        return None

    # ending

    def _finish(self, batch: Batch, keys: Sequence[Key]) -> None:
        """End a batch with nothing left, its counts taken from all marks again."""
        recounted = self._recounted(batch)
        if recounted.left:  # a chunk was passed over: back to it
            self._change(batch, lambda _: recounted, running=True)
            self._hands.pop(batch.batch_id, None)
            return
        now = self._clock.now()

        def change(one: Batch) -> Batch:
            return rules.finished(_with_counts_of(recounted, one), now=now)

        ended = self._change(batch, change, running=True)
        if ended is not None:
            self._forget(ended, keys)

    def _recounted(self, batch: Batch) -> Batch:
        marks = self._store.batches.all_marks(batch)
        first = next((place for place, one in enumerate(marks) if not one.complete), len(marks))
        done: Counter[str] = sum((one.counts for one in marks[:first]), Counter())
        rest: Counter[str] = sum((one.counts for one in marks[first:]), Counter())
        return counted(batch, position=first, done=done, current=rest)

    def _settle(self, batch: Batch, keys: Sequence[Key]) -> None:
        """Do for an aborted batch what is left: find unmarked moves, pull back, count."""
        self._hands.pop(batch.batch_id, None)
        chunks = batch.chunks
        if batch.pulled == 0 and batch.position < chunks:
            hand = Hand(batch.position, self._marks(batch, batch.position))
            self._redo(batch, hand, Mark.LEFT, self._mover.recognise)
        if batch.pull_back and batch.pulled < min(batch.position + 1, chunks):
            hand = Hand(batch.pulled, self._marks(batch, batch.pulled))
            self._redo(batch, hand, Mark.MOVED, self._mover.pull_back)
            self._change(batch, lambda one: replace(one, pulled=hand.chunk + 1))
            self._report.again = True
            return
        recounted = self._recounted(batch)

        def change(one: Batch) -> Batch:
            again = one.pull_back != batch.pull_back  # asked for meanwhile
            return replace(_with_counts_of(recounted, one), settled=not again)

        settled = self._change(batch, change)
        if settled is not None and settled.settled:
            self._forget(settled, keys)

    def _redo(
        self, batch: Batch, hand: Hand, mark: Mark, judge: Callable[..., Sequence[Mark]]
    ) -> None:
        """Judge the entries of a chunk that have a mark, and write what became of them."""
        places = [at for at, letter in enumerate(hand.marks.letters) if letter == mark.value]
        entries = self._watch.entries(batch, hand.chunk)
        for start in range(0, len(places), self._settings.step_runs):
            some = places[start : start + self._settings.step_runs]
            found = judge(batch, [entries[place] for place in some])
            changed = {
                place: new for place, new in zip(some, found, strict=True) if new is not mark
            }
            self._mark(batch, hand, changed)

    def _forget(self, batch: Batch, keys: Sequence[Key]) -> None:
        """Write down how a batch ended, and look at it no more.

        The entry has one place whoever writes it, and how often.
        """
        told = ending_words(batch)
        self._store.audit.begin(
            AuditEntry(
                entry_id=batch.batch_id,
                at=(batch.ended_at or batch.created_at) + MILLISECOND,  # behind an abort's own
                actor=plain(batch.confirmed_by, ACTOR_MAX),
                role=batch.role,
                via=VIA,
                action=Action.BATCH_FINISH,
                target=f"batch:{batch.batch_id}",
                tenant=batch.tenant,
                reason=batch.reason,
                outcome=AuditOutcome.DONE,
                note=told,
            )
        )
        log.info("replay batch %s: %s", batch.batch_id, told)
        self._store.batches.unpoint(keys)
        self._hands.pop(batch.batch_id, None)
        self._owned.discard(batch.batch_id)
        self._report.ended += 1


def _long_expired(batch: Batch, now: datetime) -> bool:
    return batch.state is BatchState.DRAFT and now >= batch.expires_at + DRAFT_MARGIN


def _as_marked(batch: Batch, hand: Hand) -> Batch:
    """Return the batch with its counts as its marks are."""
    if batch.position != hand.chunk:
        return batch
    current = hand.marks.counts
    return counted(batch, position=hand.chunk, done=Counter(batch.done), current=current)


def _with_counts_of(counts: Batch, batch: Batch) -> Batch:
    return replace(
        batch,
        position=counts.position,
        done=counts.done,
        moved=counts.moved,
        skipped=counts.skipped,
        failed=counts.failed,
    )
