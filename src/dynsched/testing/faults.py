"""Engines around an engine: one that fails as told, one whose index lags, one that counts.

They wrap any engine and one another. To crash a scenario at each of its calls, run it once with a
`FaultyEngine` that has no plan, take the length of `calls`, and run it again for each number:

    FaultyEngine(engine, {number: Fault.CRASH_AFTER})
"""

from __future__ import annotations

import heapq
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from dynsched.domain.instants import Clock
from dynsched.errors import NotInitialised, OutcomeUnknown, Throttled, Unavailable
from dynsched.storage.engine import (
    Applied,
    Engine,
    Key,
    Outcome,
    Page,
    Query,
    Row,
    Table,
    Write,
)

Answer = TypeVar("Answer")

_SCAN_LIMIT = 1000


class Crash(BaseException):  # a process that dies runs no handler of exceptions
    """The process died at this call."""


class Fault(StrEnum):
    """What becomes of a call; the members for writes mean `UNAVAILABLE` or a crash for reads."""

    NONE = "none"
    # The process dies, and every later call of it: what it wrote before is in the store.
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    # The answer is lost; the write was applied, or was not.
    LOST_APPLIED = "lost, applied"
    LOST_UNAPPLIED = "lost, not applied"
    # As above, when the first half (rounded down) of independent writes was applied.
    CRASH_HALFWAY = "crash halfway"
    LOST_HALFWAY = "lost halfway"
    # The store refuses; nothing is written.
    THROTTLE = "throttle"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call to an engine.

    Attributes:
        number: counted from 1, over all methods.
        method: its name in the protocol.
        keys: what it reads or writes by key.
        writes: what it writes.
        query: what it asks for.
    """

    number: int
    method: str
    keys: tuple[Key, ...] = ()
    writes: tuple[Write, ...] = ()
    query: Query | None = None


Plan = Mapping[int, Fault] | Callable[[Call], Fault]


class _Around:
    """Hands every call on to another engine, through one method."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made = 0
        self._lock = threading.Lock()

    def init(self) -> bool:
        """Make the tables."""
        return self._around(self._call("init"), self._engine.init)

    def get(self, key: Key) -> Row | None:
        """Read one row."""
        return self._around(self._call("get", [key]), lambda: self._engine.get(key))

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows."""
        return self._around(self._call("get_many", keys), lambda: self._engine.get_many(keys))

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page of a query."""
        call = self._call("query", query=query)
        return self._around(call, lambda: self._engine.query(query, cursor))

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query."""
        call = self._call("count", query=query)
        return self._around(call, lambda: self._engine.count(query, most))

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a table."""
        return self._around(self._call("scan"), lambda: self._engine.scan(table, limit, cursor))

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write."""
        call = self._call("write", writes=[write])
        return self._around(call, lambda: self._engine.write(write, durable=durable))

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes."""
        call = self._call("write_many", writes=writes)
        return self._around(call, lambda: self._engine.write_many(writes, durable=durable))

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make guarded writes together."""
        call = self._call("transact", writes=writes)
        return self._around(call, lambda: self._engine.transact(writes, durable=durable))

    def store_time(self) -> datetime | None:
        """Return the store's clock; this is no request."""
        return self._engine.store_time()

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete rows past their expiry."""
        call = self._call("purge_expired")
        return self._around(call, lambda: self._engine.purge_expired(now_s, limit))

    def close(self) -> None:
        """Close the engine; this is no request."""
        self._engine.close()

    def _call(
        self,
        method: str,
        keys: Sequence[Key] = (),
        *,
        writes: Sequence[Write] = (),
        query: Query | None = None,
    ) -> Call:
        with self._lock:
            self._made += 1
            number = self._made
        named = tuple(keys) or tuple(write.key for write in writes)
        return Call(number=number, method=method, keys=named, writes=tuple(writes), query=query)

    def _around(self, call: Call, proceed: Callable[[], Answer]) -> Answer:
        raise NotImplementedError


class FaultyEngine(_Around):
    """Fails as its plan says; stands for the connection of one process, which can die.

    Args:
        engine: the store, which outlives the process.
        plan: the faults by number of call, or a function that is asked before each call.

    Attributes:
        calls: all calls so far, those that failed too.
        crashed: whether the process has died; each later call raises `Crash` again.
    """

    def __init__(self, engine: Engine, plan: Plan | None = None) -> None:
        super().__init__(engine)
        self._plan: Plan = {} if plan is None else plan
        self.calls: list[Call] = []
        self.crashed = False

    def _around(self, call: Call, proceed: Callable[[], Answer]) -> Answer:
        if self.crashed:
            raise Crash(f"{call.method} of a process that has died")
        self.calls.append(call)
        plan = self._plan
        fault = plan.get(call.number, Fault.NONE) if isinstance(plan, Mapping) else plan(call)
        self._fail_before(call, fault)
        answer = proceed()
        if fault is Fault.CRASH_AFTER:
            self._crash(call)
        if fault is Fault.LOST_APPLIED:
            raise _lost(call)
        return answer

    def _fail_before(self, call: Call, fault: Fault) -> None:
        if fault in (Fault.CRASH_HALFWAY, Fault.LOST_HALFWAY):
            self._apply_half(call)
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_HALFWAY):
            self._crash(call)
        if fault in (Fault.LOST_UNAPPLIED, Fault.LOST_HALFWAY):
            raise _lost(call)
        if fault is Fault.THROTTLE:
            raise Throttled(f"call {call.number} ({call.method}) is throttled, as planned")
        if fault is Fault.UNAVAILABLE:
            raise Unavailable(f"call {call.number} ({call.method}) fails, as planned")

    def _apply_half(self, call: Call) -> None:
        half = call.writes[: len(call.writes) // 2]
        if call.method == "write_many" and half:
            self._engine.write_many(half)

    def _crash(self, call: Call) -> None:
        self.crashed = True
        raise Crash(f"at call {call.number} ({call.method}), as planned")


def _lost(call: Call) -> OutcomeUnknown | Unavailable:
    told = f"the answer to call {call.number} ({call.method}) is lost, as planned"
    return OutcomeUnknown(told) if call.writes else Unavailable(told)


class CountingEngine(_Around):
    """Counts requests, by the service that makes them.

    Args:
        engine: the store.
        label: who makes the calls.
        requests: counts to add to, by (label, method).
        rows: counts to add to, of keys read, writes made and rows returned, by (label, method).
    """

    def __init__(
        self,
        engine: Engine,
        label: str = "",
        *,
        requests: Counter[tuple[str, str]] | None = None,
        rows: Counter[tuple[str, str]] | None = None,
    ) -> None:
        super().__init__(engine)
        self._label = label
        self.requests = Counter() if requests is None else requests
        self.rows = Counter() if rows is None else rows

    def labelled(self, label: str) -> CountingEngine:
        """Return the same engine for another service, with the same counts."""
        return CountingEngine(self._engine, label, requests=self.requests, rows=self.rows)

    def by_method(self, label: str | None = None) -> Counter[str]:
        """Return the requests of one service, or of all, by method."""
        counts: Counter[str] = Counter()
        for (who, method), count in self.requests.items():
            if label in (None, who):
                counts[method] += count
        return counts

    def by_label(self) -> Counter[str]:
        """Return the requests of all methods, by service."""
        counts: Counter[str] = Counter()
        for (who, _), count in self.requests.items():
            counts[who] += count
        return counts

    def reset(self) -> None:
        """Begin again at zero, for all services."""
        self.requests.clear()
        self.rows.clear()

    def _around(self, call: Call, proceed: Callable[[], Answer]) -> Answer:
        place = self._label, call.method
        with _counting:
            self.requests[place] += 1
            self.rows[place] += len(call.keys)
        answer = proceed()
        if isinstance(answer, Page):
            with _counting:
                self.rows[place] += len(answer.rows)
        return answer


# Labelled engines share their counts.
_counting = threading.Lock()


class LaggingEngine(_Around):
    """Shows each change in the index only after a lag; the base tables never lag.

    Until then the index misses a new entry, and shows a row that was changed or deleted as it was.
    What others write around this object is never seen in its index.

    Args:
        engine: the store; what it holds now has settled.
        clock: tells when a change has settled.
        lag_s: the lag of changes made from now on, seconds; may be set at any time.
    """

    def __init__(self, engine: Engine, *, clock: Clock, lag_s: float) -> None:
        super().__init__(engine)
        self._clock, self.lag_s = clock, lag_s
        # Writes one at a time, so that changes of a row are noted in the order of its versions.
        self._in_order = threading.Lock()
        self._changes = 0
        self._shown: dict[tuple[Table, str], dict[Key, Row]] = {}
        self._latest: dict[Key, tuple[int, Row | None]] = {}
        self._coming: list[tuple[datetime, int, Key, Row | None]] = []
        for row in _all_rows(engine):
            self._show(0, row.key, row)

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page; an index as it has settled by now."""
        if not query.index:
            return super().query(query, cursor)
        with self._lock:
            self._settle()
            shown = list(self._shown.get((query.table, query.partition), {}).values())
        return _page(query, shown, cursor)

    def count(self, query: Query, most: int) -> int:
        """Count rows; those of an index as it has settled by now."""
        if not query.index:
            return super().count(query, most)
        with self._lock:
            self._settle()
            shown = list(self._shown.get((query.table, query.partition), {}).values())
        every = replace(query, limit=len(shown) + 1)
        return min(len(_page(every, shown, None).rows), max(most, 0))

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write, shown in the index later."""
        with self._in_order:
            outcome = super().write(write, durable=durable)
            self._note([write.key], [outcome])
        return outcome

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes, shown in the index later."""
        with self._in_order:
            outcomes = super().write_many(writes, durable=durable)
            self._note([write.key for write in writes], outcomes)
        return outcomes

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make guarded writes together, shown in the index later."""
        with self._in_order:
            outcomes = super().transact(writes, durable=durable)
            self._note([write.key for write in writes], outcomes)
        return outcomes

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete rows past their expiry; the index still shows them for a while."""
        purged = super().purge_expired(now_s, limit)
        with self._lock:
            rows = [row for entries in self._shown.values() for row in entries.values()]
        gone = [
            row.key
            for row in rows
            if row.expires_at_s is not None
            and row.expires_at_s < now_s
            and self._engine.get(row.key) is None
        ]
        self._note(gone, [Applied(None) for _ in gone])
        return purged

    def _around(self, call: Call, proceed: Callable[[], Answer]) -> Answer:
        del call
        return proceed()

    def _note(self, keys: Sequence[Key], outcomes: Sequence[Outcome]) -> None:
        settles_at = self._clock.now() + timedelta(seconds=self.lag_s)
        with self._lock:
            for key, outcome in zip(keys, outcomes, strict=True):
                if isinstance(outcome, Applied):
                    self._changes += 1
                    heapq.heappush(self._coming, (settles_at, self._changes, key, outcome.row))

    def _settle(self) -> None:
        now = self._clock.now()
        while self._coming and self._coming[0][0] <= now:
            _, change, key, row = heapq.heappop(self._coming)
            self._show(change, key, row)

    def _show(self, change: int, key: Key, row: Row | None) -> None:
        before, shown = self._latest.get(key, (-1, None))
        # A shorter lag may let a later change of the row overtake an earlier one.
        if change < before:
            return
        if shown is not None and shown.index is not None:
            del self._shown[key.table, shown.index[0]][key]
        if row is not None and row.index is not None:
            self._shown.setdefault((key.table, row.index[0]), {})[key] = row
        self._latest[key] = change, row


def _all_rows(engine: Engine) -> list[Row]:
    rows: list[Row] = []
    for table in Table:
        cursor = None
        while True:
            try:
                page = engine.scan(table, _SCAN_LIMIT, cursor)
            except NotInitialised:
                return []
            rows += page.rows
            cursor = page.cursor
            if cursor is None:
                break
    return rows


def _page(query: Query, shown: Sequence[Row], cursor: str | None) -> Page:
    """Answer an index query from rows that are in its partition."""
    places = sorted(
        ((row.index[1], row.key.pk, row.key.sk), row) for row in shown if row.index is not None
    )
    if query.descending:
        places.reverse()
    begin = None if cursor is None else tuple(json.loads(cursor))
    found = [
        (place, row)
        for place, row in places
        if (not query.after or place[0] > query.after)
        and (query.before is None or place[0] < query.before)
        and (begin is None or (place < begin if query.descending else place > begin))
    ][: query.limit]
    more = json.dumps(found[-1][0]) if len(found) == query.limit else None
    return Page([row for _, row in found], more)
