"""A replay batch in words: how it is paced, and where it stands."""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.domain.batch import Batch, BatchState, PauseCause, rate_words
from dynsched.domain.time_words import span

UNOWNED_FOR = timedelta(seconds=10)  # since the confirm, before a stepper is missed


def pace_words(batch: Batch) -> tuple[str, ...]:
    """Return how a batch is moved, in a few words each.

    >>> from dynsched.domain.instants import EPOCH
    >>> batch = Batch(
    ...     batch_id="b", actor="ada", filter="", cut_off=EPOCH, planned=9, canary=5,
    ...     created_at=EPOCH, expires_at=EPOCH,
    ... )
    >>> print(*pace_words(batch), sep="; ")
    10 runs a second; priority bulk; first 5, then the others if they end well; stops when over \
50% are dead again
    """
    words = [rate_words(batch.rate), f"priority {batch.priority.value}"]
    if batch.canary:
        then = "then a pause" if batch.canary_hold else "then the others if they end well"
        words.append(f"first {batch.canary}, {then}")
    if batch.breaker < 1:
        words.append(f"stops when over {batch.breaker:.0%} are dead again")
    return tuple(words)


def standing(batch: Batch, now: datetime) -> str:
    """Return what a batch does now or waits for, a sentence.

    Args:
        batch: as it is stored.
        now: the present instant.
    """
    words = {
        BatchState.DRAFT: _draft,
        BatchState.RUNNING: _running,
        BatchState.PAUSED: _paused,
        BatchState.ABORTED: _aborted,
        BatchState.FINISHED: lambda *_: "every entry was moved, skipped or failed",
        BatchState.EXPIRED: lambda *_: batch.why,
    }
    return words[batch.state](batch, now)


def _draft(batch: Batch, now: datetime) -> str:
    left = span(max(batch.expires_at - now, timedelta(0)))
    return f"nothing is moved before it is confirmed; it expires in {left}"


def _paused(batch: Batch, _: datetime) -> str:
    if batch.cause in (None, PauseCause.HAND):
        return batch.why
    return f"by its {batch.cause.value}: {batch.why}"


def _aborted(batch: Batch, _: datetime) -> str:
    return batch.why + ("" if batch.settled else "; what was moved is still being counted")


def _running(batch: Batch, now: datetime) -> str:
    since = batch.confirmed_at or batch.created_at
    owned = batch.owned_until is not None and batch.owned_until > now
    if not owned and now - since > UNOWNED_FOR:
        return "nobody moves it: no `dynsched up` or `dynsched reaper` is running on this store"
    if batch.canary and not batch.canary_passed and batch.moved >= batch.canary:
        then = "it pauses" if batch.canary_hold else "the others follow"
        return f"the first {batch.moved} are moved; {then} when those have ended"
    if not owned:
        return "waits for its stepper"
    return "entries are moved" + (f" ({batch.why})" if batch.why else "")
