"""Replay batches: a frozen set of dead runs that is brought back at a pace, and how it changes.

A batch is previewed (draft), confirmed once (running), and moved entry by entry (see
`dynsched.domain.batch_entry`). `confirmed` and its neighbours are the only changes of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.access import Access, Role
from dynsched.domain.batch_entry import SKIPS, Fates, Mark
from dynsched.domain.instants import to_text
from dynsched.domain.job import Priority
from dynsched.errors import Conflict, InvalidInput

RATE = 10.0
CHUNK = 500  # some 40 KB of entries, half a KB of marks
BREAKER = 0.5
WINDOW = 50  # moved runs that the breaker looks at
ENDED_MIN = 5  # of them must have ended before it may trip
CANARY_MAX = 100
RATE_MIN, RATE_MAX = 0.001, 10_000.0
TYPED_FROM = 100  # runs from which on the count must be given with the confirm
REASON_FROM = 2
LIFE = timedelta(days=30)  # a batch that would take longer is refused: its runs expire before
KEPT = timedelta(days=90)  # since the preview


class BatchState(StrEnum):
    """Where a batch stands."""

    DRAFT = "draft"  # previewed; nothing is moved before it is confirmed
    RUNNING = "running"  # the stepper moves entries
    PAUSED = "paused"  # by people, the canary or the breaker; until resumed or aborted
    FINISHED = "finished"  # every entry was moved, skipped or failed
    ABORTED = "aborted"  # what was not moved stays dead
    EXPIRED = "expired"  # a draft that nobody confirmed in time


class PauseCause(StrEnum):
    """Who paused a batch."""

    HAND = "by hand"
    CANARY = "canary"
    BREAKER = "breaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A replay batch's row.

    Attributes:
        why: a sentence: what it waits for, why it was paused or ended.
        cause: who paused it; None unless it is paused.
        actor: who previewed it.
        reason: why it is made.
        filter: which dead runs were chosen.
        cut_off: what died later is never included.
        planned: entries.
        chunk: entries whose marks lie in one row.
        counts: entries by `job` (id), `tenant` and `group` (error signature), the largest of each.
        tenants: how many tenants the entries have.
        oldest: when the first of them had died.
        newest: when the last of them had died.
        skipped_expected: runs that the filter chose and that are no entries, by why.
        warned: entries that will be moved but may not start soon, by why.
        notes: what the preview left out, a sentence each.
        rate: runs a second; None is as fast as the store takes them.
        canary: so many are moved first, and must have ended before the others; 0 is none.
        canary_hold: pause after the canary however it went.
        canary_passed: the others may follow.
        breaker: pause if more than this part of the last moved is dead again; 1 is never.
        window_from: moved runs before this count are no matter of the breaker's any more.
        priority: what moved runs get.
        moved: entries that were moved.
        skipped: entries that were not, by why.
        failed: entries that could not be read or written.
        position: chunks of entries that are done.
        done: counts by mark of those chunks.
        confirmed_by: who started it.
        role: what that actor was trusted with.
        parent: the batch that it is the rest of.
        pull_back: moved runs that were not tried yet are to be made dead again.
        pulled: chunks for which that is done.
        settled: the stepper has nothing more to do.
        paced_at: up to when the rate is used up.
        owner: the stepper that moves it (soft: correctness does not rest on it).
        owned_until: when others may take it over.
        expires_at: when a draft may not be confirmed any more.
        version: the stored version, 0 for a batch not stored yet.
    """

    batch_id: str
    state: BatchState = BatchState.DRAFT
    why: str = ""
    cause: PauseCause | None = None
    actor: str
    reason: str = ""
    filter: str
    cut_off: datetime
    planned: int
    chunk: int = CHUNK
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tenants: int = 1
    oldest: datetime | None = None
    newest: datetime | None = None
    skipped_expected: Mapping[str, int] = field(default_factory=dict)
    warned: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rate: float | None = RATE
    canary: int = 0
    canary_hold: bool = False
    canary_passed: bool = False
    breaker: float = BREAKER
    window_from: int = 0
    priority: Priority = Priority.BULK
    moved: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    position: int = 0
    done: Mapping[str, int] = field(default_factory=dict)
    created_at: datetime
    confirmed_at: datetime | None = None
    confirmed_by: str = ""
    role: Role = Role.ADMIN
    ended_at: datetime | None = None
    parent: str = ""
    pull_back: bool = False
    pulled: int = 0
    settled: bool = False
    paced_at: datetime | None = None
    owner: str = ""
    owned_until: datetime | None = None
    expires_at: datetime
    version: int = 0

    @property
    def chunks(self) -> int:
        """Return how many chunks of entries there are."""
        return -(-self.planned // self.chunk)

    @property
    def left(self) -> int:
        """Return how many entries nothing has become of yet."""
        return self.planned - self.moved - sum(self.skipped.values()) - self.failed

    @property
    def tenant(self) -> str:
        """Return whose runs they are; empty if they are several tenants'."""
        return next(iter(self.counts.get("tenant", ())), "") if self.tenants == 1 else ""

    @property
    def ended(self) -> bool:
        """Return whether nothing more is moved, ever."""
        return self.state in (BatchState.FINISHED, BatchState.ABORTED, BatchState.EXPIRED)

    def at(self, now: datetime) -> Batch:
        """Return the batch as it is at an instant: a draft expires by itself."""
        if self.state is BatchState.DRAFT and now >= self.expires_at:
            why = f"nobody confirmed it before {to_text(self.expires_at)}"
            return replace(self, state=BatchState.EXPIRED, why=why)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a confirm must bring.

    Attributes:
        reason: why it is done.
        count: the number of runs, typed.
    """

    reason: bool
    count: bool


def needs_of(batch: Batch) -> Needs:
    """Return what confirming a batch needs: more, the more it touches."""
    many = batch.planned >= TYPED_FROM or batch.tenants > 1
    return Needs(reason=batch.planned >= REASON_FROM or many, count=many)


def rate_words(rate: float | None) -> str:
    """Return a rate in words.

    >>> rate_words(10.0), rate_words(1.0), rate_words(None)
    ('10 runs a second', '1 run a second', 'no limit of the rate')
    """
    if rate is None:
        return "no limit of the rate"
    return "1 run a second" if rate == 1 else f"{rate:g} runs a second"


def check_options(rate: float | None, canary: int, breaker: float, planned: int) -> None:
    """Check how a batch is to be moved.

    Raises:
        InvalidInput: one of them is out of range, or it would take longer than `LIFE`.
    """
    if not 0 <= canary <= CANARY_MAX:
        raise InvalidInput("canary", f"{canary} is out of range", f"give 0 to {CANARY_MAX}")
    if not 0 < breaker <= 1:
        raise InvalidInput("breaker", f"{breaker:g} is no part of 1", "0.5 is half; 1 is never")
    if rate is None:
        return
    if not RATE_MIN <= rate <= RATE_MAX:
        mend = f"give {RATE_MIN:g} to {RATE_MAX:,.0f} runs a second, or none for no limit"
        raise InvalidInput("rate", f"{rate:g} is out of range", mend)
    if planned / rate > LIFE.total_seconds():
        least = planned / LIFE.total_seconds()
        raise InvalidInput(
            "rate",
            f"at {rate:g} a second {planned:,} runs take longer than {LIFE.days} days",
            f"give at least {least:.2g}",
        )


def confirmed(
    batch: Batch, *, now: datetime, access: Access, reason: str, count: int | None
) -> Batch:
    """Start a draft.

    Raises:
        Conflict: it was started before, or is too old.
        InvalidInput: the reason or the count is missing or wrong.
    """
    batch = batch.at(now)
    if batch.state is BatchState.EXPIRED:
        raise Conflict(f"batch {batch.batch_id} has expired ({batch.why}): preview it again")
    if batch.state is not BatchState.DRAFT:
        raise Conflict(
            f"batch {batch.batch_id} was confirmed by {batch.confirmed_by} at"
            f" {to_text(batch.confirmed_at or batch.created_at)}; it is {batch.state.value} now"
        )
    reason = reason.strip() or batch.reason
    needs = needs_of(batch)
    if needs.reason and not reason:
        raise InvalidInput("reason", "it is empty", f"say why {batch.planned:,} runs are replayed")
    if needs.count and count is None:
        raise InvalidInput("count", "it is missing", f"give {batch.planned}, the number of runs")
    if count is not None and count != batch.planned:
        raise InvalidInput(
            "count", f"{count:,} is not the number of runs", f"the batch has {batch.planned:,}"
        )
    return replace(
        batch,
        state=BatchState.RUNNING,
        confirmed_at=now,
        confirmed_by=access.actor,
        role=access.role,
        reason=reason,
        paced_at=_one_ahead(batch.rate, now),
    )


def _one_ahead(rate: float | None, now: datetime) -> datetime:
    """Return since when the rate counts, so that the first run moves at once."""
    return now if rate is None else now - timedelta(seconds=1 / rate)


def paused(batch: Batch, *, cause: PauseCause, why: str) -> Batch:
    """Stop moving until it is resumed.

    Raises:
        Conflict: it is not running.
    """
    _must_be(batch, BatchState.RUNNING, "pause")
    return replace(batch, state=BatchState.PAUSED, cause=cause, why=why)


def resumed(batch: Batch, *, now: datetime, actor: str, reason: str) -> Batch:
    """Go on; what the canary or the breaker objected to is taken as seen.

    Raises:
        Conflict: it is not paused.
        InvalidInput: the breaker paused it, and no reason is given.
    """
    _must_be(batch, BatchState.PAUSED, "resume")
    reason = reason.strip()
    if batch.cause is PauseCause.BREAKER and not reason:
        raise InvalidInput("reason", "it is empty", "the breaker paused it: say why it may go on")
    return replace(
        batch,
        state=BatchState.RUNNING,
        cause=None,
        why=f"resumed by {actor}" + (f": {reason}" if reason else ""),
        canary_passed=batch.canary_passed or batch.cause is PauseCause.CANARY,
        window_from=batch.moved if batch.cause is PauseCause.BREAKER else batch.window_from,
        paced_at=_one_ahead(batch.rate, now),
    )


def aborted(batch: Batch, *, now: datetime, actor: str, reason: str, pull_back: bool) -> Batch:
    """End it; with `pull_back` a finished or aborted one may be taken back too.

    Raises:
        Conflict: it is a draft, or has ended and nothing is to be pulled back.
    """
    batch, reason = batch.at(now), reason.strip()
    over = batch.state in (BatchState.FINISHED, BatchState.ABORTED) and pull_back
    if batch.state not in (BatchState.RUNNING, BatchState.PAUSED) and not over:
        raise Conflict(
            f"batch {batch.batch_id} is {batch.state.value}, so there is nothing to abort"
            f" ({_ABORT_MENDS.get(batch.state, 'preview again')})"
        )
    return replace(
        batch,
        state=BatchState.ABORTED,
        cause=None,
        why=f"aborted by {actor}" + (f": {reason}" if reason else ""),
        ended_at=now,
        pull_back=batch.pull_back or pull_back,
        pulled=0,
        settled=False,
    )


_ABORT_MENDS: Mapping[BatchState, str] = {
    BatchState.DRAFT: "leave it: a draft expires by itself",
    BatchState.FINISHED: "a pull back takes back what was not tried yet",
    BatchState.ABORTED: "a pull back takes back what was not tried yet",
}


def paced(batch: Batch, *, now: datetime, rate: float | None) -> Batch:
    """Change the rate of a batch that has not ended.

    Raises:
        Conflict: it has ended.
        InvalidInput: the rate is out of range.
    """
    batch = batch.at(now)
    if batch.ended:
        raise Conflict(f"batch {batch.batch_id} is {batch.state.value}: it has no pace any more")
    check_options(rate, batch.canary, batch.breaker, max(batch.left, 1))
    return replace(batch, rate=rate, paced_at=_one_ahead(rate, now))


def finished(batch: Batch, *, now: datetime) -> Batch:
    """End a batch that has nothing left."""
    assert batch.left == 0, batch
    return replace(batch, state=BatchState.FINISHED, cause=None, why="", ended_at=now, settled=True)


def _must_be(batch: Batch, state: BatchState, verb: str) -> None:
    if batch.state is not state:
        found = batch.state.value
        raise Conflict(f"{verb} does not apply to batch {batch.batch_id}: it is {found}")


def counted(batch: Batch, *, position: int, done: Counter[str], current: Counter[str]) -> Batch:
    """Return the batch with its counts taken from marks.

    Args:
        batch: as stored.
        position: chunks that are done.
        done: marks of those.
        current: marks of the chunk at `position`, those that are left too.
    """
    total = done + current
    skipped = {words: total[mark.value] for mark, words in SKIPS.items() if total[mark.value]}
    return replace(
        batch,
        position=position,
        done=dict(done),
        moved=total[Mark.MOVED.value],
        failed=total[Mark.FAILED.value],
        skipped=skipped,
    )


def breaker_trips(batch: Batch, seen: Fates) -> str:
    """Return why the breaker trips, a sentence; empty if it does not."""
    if seen.ended < ENDED_MIN or seen.dead <= batch.breaker * seen.ended:
        return ""
    return (
        f"{seen.dead} of the last {seen.ended} moved runs that have ended are dead again,"
        f" more than {batch.breaker:.0%}"
    )


def canary_says(batch: Batch, seen: Fates) -> str:
    """Return why a batch pauses after its canary, a sentence; empty if it goes on."""
    if seen.dead > batch.breaker * seen.ended:
        return (
            f"of the first {seen.ended} runs {seen.dead} are dead again, more than"
            f" {batch.breaker:.0%}"
        )
    if batch.canary_hold:
        return f"the first {seen.ended} runs have ended, {seen.dead} of them dead again: your turn"
    return ""


def ending_words(batch: Batch) -> str:
    """Return how a batch ended, with its counts, for the audit and the log."""
    parts = [f"{batch.moved:,} moved"]
    parts += [f"{count:,} skipped ({why})" for why, count in batch.skipped.items()]
    parts += [f"{count:,} {what}" for what, count in (("failed", batch.failed),) if count]
    return f"{batch.state.value}: {', '.join(parts)}, {batch.left:,} left"
