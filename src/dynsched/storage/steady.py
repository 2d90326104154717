"""An engine that repeats what the store refused for the moment, and settles lost answers.

A write whose answer was lost is never repeated blindly. Its row is read, strongly:

    stored token is ours                    it was applied
    guard still holds                       it was not applied (yet): send it again
    anything else                           it is stale, with the row that won

Sending again is safe even when the first message is still on its way: both carry the same guard
and the same token, so at most one of them is applied, whichever it is. A delete has no token: if
it was applied unheard and the key was written anew by somebody else, at the same version, before
it is sent again, it deletes that row. So keys that are deleted should not be used again at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import TypeVar

from dynsched.domain.instants import Clock
from dynsched.errors import OutcomeUnknown, StoreError, Throttled, Unavailable
from dynsched.storage.engine import (
    Applied,
    Delete,
    Engine,
    Key,
    Outcome,
    Page,
    PutNew,
    Query,
    Row,
    Stale,
    Table,
    Write,
)

log = logging.getLogger("dynsched.store")

Answer = TypeVar("Answer")

REPORT_S = 10.0  # least time between two reports of passing faults


class SteadyEngine:
    """Wraps an engine so that its passing faults are not seen above.

    Args:
        engine: the store.
        clock: waits between attempts.
        rng: draws the jitter.
        attempts: how often one call is sent at most.
        base_s: the first wait is up to this long, each later one up to twice the one before.
        cap_s: no wait is longer than this, seconds.

    Raises (every method):
        Throttled, Unavailable: all attempts failed; nothing was written.
        OutcomeUnknown: (writes only) a write was sent and even its row could not be read.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        rng: Random,
        attempts: int = 6,
        base_s: float = 0.05,
        cap_s: float = 2.0,
    ) -> None:
        assert attempts >= 1
        self._engine, self._clock, self._rng = engine, clock, rng
        self._attempts, self._base_s, self._cap_s = attempts, base_s, cap_s
        self._reported_at: float | None = None

    def init(self) -> bool:
        """Make the tables if they are missing; True if any was made."""
        return self._again(self._engine.init)

    def get(self, key: Key) -> Row | None:
        """Read one row."""
        return self._again(lambda: self._engine.get(key))

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows in the order of `keys`."""
        return self._again(lambda: self._engine.get_many(keys))

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page of a query."""
        return self._again(lambda: self._engine.query(query, cursor))

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query."""
        return self._again(lambda: self._engine.count(query, most))

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a table."""
        return self._again(lambda: self._engine.scan(table, limit, cursor))

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write."""
        return self._apart([write], lambda left: [self._engine.write(left[0], durable=durable)])[0]

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes; each is settled by itself."""
        return self._apart(writes, lambda left: self._engine.write_many(left, durable=durable))

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make guarded writes together; they are settled together."""
        _check_tokens(writes)
        budget = _Budget()
        while True:
            answers = self._send(budget, lambda: self._engine.transact(writes, durable=durable))
            met_itself = answers is not None and _meets_itself(writes, answers)
            if answers is not None and not met_itself and not (budget.lost and _refused(answers)):
                return answers
            current = self._read_back(writes, budget)
            settled = _settled_together(writes, current, applied=met_itself)
            if settled is not None:
                return settled
            self._wait_or_give_up(budget)

    def store_time(self) -> datetime | None:
        """Return the store's clock as of its last answer."""
        return self._engine.store_time()

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete up to `limit` rows past their expiry; what a lost answer counted is left out."""
        return self._again(lambda: self._engine.purge_expired(now_s, limit))

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def _again(self, call: Callable[[], Answer]) -> Answer:
        """Repeat a call that does no harm when it is made twice."""
        budget = _Budget()
        while True:
            budget.attempts += 1
            try:
                return call()
            except (Throttled, Unavailable, OutcomeUnknown) as fault:
                budget.fault = fault
            self._wait_or_give_up(budget)

    def _apart(
        self, writes: Sequence[Write], send: Callable[[Sequence[Write]], list[Outcome]]
    ) -> list[Outcome]:
        """Send writes until each has its outcome."""
        _check_tokens(writes)
        outcomes: dict[int, Outcome] = {}
        left = list(range(len(writes)))
        budget = _Budget()
        while left:
            asked = [writes[place] for place in left]
            answers = self._send(budget, partial(send, asked))
            settled: list[Outcome | None]
            if answers is None:
                settled = list(map(_settled_apart, asked, self._read_back(asked, budget)))
            else:
                recognise = partial(_recognised, lost=budget.lost)
                settled = list(map(recognise, asked, answers))
            pairs = zip(left, settled, strict=True)
            outcomes |= {place: one for place, one in pairs if one is not None}
            left = [place for place in left if place not in outcomes]
            if left:
                self._wait_or_give_up(budget)
        return [outcomes[place] for place in range(len(writes))]

    def _send(self, budget: _Budget, call: Callable[[], list[Outcome]]) -> list[Outcome] | None:
        """Return the answer of a write, None if it was lost."""
        while True:
            budget.attempts += 1
            try:
                return call()
            except OutcomeUnknown as fault:
                budget.fault, budget.lost = fault, True
                return None
            except (Throttled, Unavailable) as fault:
                budget.fault = fault
            self._wait_or_give_up(budget)

    def _read_back(self, writes: Sequence[Write], budget: _Budget) -> list[Row | None]:
        try:
            return self.get_many([write.key for write in writes])
        except (Throttled, Unavailable) as fault:
            budget.fault = fault
            raise budget.error() from fault

    def _wait_or_give_up(self, budget: _Budget) -> None:
        if budget.attempts >= self._attempts:
            raise budget.error() from budget.fault
        self._report(budget)
        ceiling_s = min(self._cap_s, self._base_s * 2 ** (budget.attempts - 1))
        self._clock.wait(self._rng.uniform(0, ceiling_s))

    def _report(self, budget: _Budget) -> None:
        """Say once in a while that the store keeps its callers waiting: runs are late by it."""
        now = self._clock.monotonic()
        if self._reported_at is None or now - self._reported_at >= REPORT_S:
            self._reported_at = now
            log.warning("%s (attempt %d, trying again)", budget.fault, budget.attempts)


@dataclass(slots=True)
class _Budget:
    """The attempts of one call, the last fault, and whether the answer of a write was lost."""

    attempts: int = 0
    fault: StoreError | None = None
    lost: bool = False

    def error(self) -> StoreError:
        """Return what to raise when the attempts are spent."""
        assert self.fault is not None
        if self.lost:
            return OutcomeUnknown(
                f"after {self.attempts} attempts it is still not known whether a write was"
                f" applied: {self.fault}"
            )
        return type(self.fault)(f"{self.fault} (gave up after {self.attempts} attempts)")


def _check_tokens(writes: Sequence[Write]) -> None:
    for write in writes:
        assert isinstance(write, Delete) or write.row.token, f"no token: {write.key}"


def _is_ours(write: Write, current: Row | None) -> bool:
    return not isinstance(write, Delete) and (
        current is not None and current.token == write.row.token
    )


def _guard_holds(write: Write, current: Row | None) -> bool:
    if isinstance(write, PutNew):
        return current is None
    return current is not None and current.version == write.seen


def _recognised(write: Write, answer: Outcome, *, lost: bool) -> Outcome:
    """Return an answer, corrected where a write was refused because of itself."""
    if isinstance(answer, Applied):
        return answer
    if _is_ours(write, answer.current):
        return Applied(answer.current)
    if lost and isinstance(write, Delete) and answer.current is None:
        return Applied(None)
    return answer


def _settled_apart(write: Write, current: Row | None) -> Outcome | None:
    """Return the outcome of a write whose answer was lost, None if it must be sent again."""
    if _guard_holds(write, current):
        return None
    return _recognised(write, Stale(current), lost=True)


def _refused(answers: Sequence[Outcome]) -> bool:
    return any(isinstance(answer, Stale) for answer in answers)


def _meets_itself(writes: Sequence[Write], answers: Sequence[Outcome]) -> bool:
    """Say whether a transaction was refused because it had been applied before."""
    return any(
        isinstance(answer, Stale) and _is_ours(write, answer.current)
        for write, answer in zip(writes, answers, strict=True)
    )


def _settled_together(
    writes: Sequence[Write], current: Sequence[Row | None], *, applied: bool
) -> list[Outcome] | None:
    """Return the outcome of a transaction whose answer was lost, None if it must be sent again.

    One stored row of ours proves that all were applied, whatever became of the others since.
    """
    pairs = list(zip(writes, current, strict=True))
    deleted = all(isinstance(write, Delete) and row is None for write, row in pairs)
    if applied or deleted or any(_is_ours(*pair) for pair in pairs):
        return [Applied(row) for row in current]
    if all(_guard_holds(*pair) for pair in pairs):
        return None
    return [Stale(row) for row in current]
