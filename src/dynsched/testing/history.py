"""A history of a store: every write that was applied and every start of a handler, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from dynsched.errors import NotInitialised
from dynsched.storage.engine import (
    Applied,
    Engine,
    Key,
    Outcome,
    Page,
    PutNew,
    Query,
    Row,
    Table,
    Write,
)

SCAN_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row that was written or deleted.

    Attributes:
        place: in the store's order, from 1.
        before: the row as it was, None for a new one.
        after: the row as it is, None for one that was deleted.
        purged: the store deleted it, as it had expired.
    """

    place: int
    key: Key
    before: Row | None
    after: Row | None
    purged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A handler that was called.

    Attributes:
        place: in the store's order, from 1.
        attempt: the try's number, from 1.
    """

    place: int
    run_id: str
    fence: int
    attempt: int


class Attempted(Protocol):
    """What a start is told by; a handler's context is one."""

    @property
    def run_id(self) -> str:
        """Return the run's id."""

    @property
    def fence(self) -> int:
        """Return the lease's fence."""

    @property
    def attempt(self) -> int:
        """Return the try's number."""


@dataclass(slots=True)
class History:
    """What happened in a store, in its order.

    Attributes:
        changes: rows written and deleted.
        starts: handlers called.
        rows: what is stored now, as far as these changes tell.
        misread: sentences about strong reads that did not show the last acknowledged write.
    """

    changes: list[Change] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    rows: dict[Key, Row] = field(default_factory=dict)
    misread: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _places: int = 0

    def started(self, attempt: Attempted) -> None:
        """Note that a handler was called; to be its first act."""
        with self.lock:
            start = Start(
                place=self._next_place(),
                run_id=attempt.run_id,
                fence=attempt.fence,
                attempt=attempt.attempt,
            )
            self.starts.append(start)

    def changed(self, key: Key, after: Row | None, *, purged: bool = False) -> None:
        """Note a change; the caller holds the lock from before the write."""
        before = self.rows.pop(key, None)
        if after is not None:
            self.rows[key] = after
        change = Change(
            place=self._next_place(), key=key, before=before, after=after, purged=purged
        )
        self.changes.append(change)

    def read(self, key: Key, row: Row | None) -> None:
        """Compare a strong read with what was acknowledged; the caller holds the lock."""
        known = self.rows.get(key)
        if (known is None) != (row is None) or (
            known is not None and row is not None and known.version != row.version
        ):
            self.misread.append(
                f"3: a strong read of {key.pk} {key.sk} shows {_told(row)}, not {_told(known)}"
            )

    def _next_place(self) -> int:
        self._places += 1
        return self._places


def _told(row: Row | None) -> str:
    return "no row" if row is None else f"version {row.version}"


class RecordingEngine:
    """Writes down every change that an engine applies.

    It must be the only way to the store, right around it: engines that inject faults go around
    this one, else a write that was applied without an answer would be missing in the history.

    Args:
        engine: the store; what it holds now is taken as read.

    Attributes:
        history: the changes so far.

    Concurrency: writes and strong reads are made one at a time, so that the history's order is
    the store's.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.history = History()
        self.history.rows = {row.key: row for row in all_rows(engine)}

    def init(self) -> bool:
        """Make the tables."""
        return self._engine.init()

    def get(self, key: Key) -> Row | None:
        """Read one row."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows."""
        with self.history.lock:
            rows = self._engine.get_many(keys)
            for key, row in zip(keys, rows, strict=True):
                self.history.read(key, row)
        return rows

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page of a query."""
        return self._engine.query(query, cursor)

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query."""
        return self._engine.count(query, most)

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a table."""
        return self._engine.scan(table, limit, cursor)

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write."""
        return self._noted([write], lambda: [self._engine.write(write, durable=durable)])[0]

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes."""
        return self._noted(writes, lambda: self._engine.write_many(writes, durable=durable))

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make guarded writes together."""
        return self._noted(writes, lambda: self._engine.transact(writes, durable=durable))

    def store_time(self) -> datetime | None:
        """Return the store's clock."""
        return self._engine.store_time()

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete rows past their expiry."""
        with self.history.lock:
            purged = self._engine.purge_expired(now_s, limit)
            if purged:
                self._note_purged(now_s)
        return purged

    def close(self) -> None:
        """Close the engine; the history stays."""
        self._engine.close()

    def _noted(self, writes: Sequence[Write], make: Callable[[], list[Outcome]]) -> list[Outcome]:
        with self.history.lock:
            outcomes = make()
            for write, outcome in zip(writes, outcomes, strict=True):
                if isinstance(outcome, Applied):
                    self._check_guard(write)
                    self.history.changed(write.key, outcome.row)
        return outcomes

    def _check_guard(self, write: Write) -> None:
        known = self.history.rows.get(write.key)
        seen = None if isinstance(write, PutNew) else write.seen
        if seen != (None if known is None else known.version):
            self.history.misread.append(
                f"4: {write.key.pk} {write.key.sk} was written over {_told(known)},"
                f" guarded by {'no row' if seen is None else f'version {seen}'}"
            )

    def _note_purged(self, now_s: int) -> None:
        expired = [
            key
            for key, row in self.history.rows.items()
            if row.expires_at_s is not None and row.expires_at_s < now_s
        ]
        for key, row in zip(expired, self._engine.get_many(expired), strict=True):
            if row is None:
                self.history.changed(key, None, purged=True)


def all_rows(engine: Engine) -> Iterable[Row]:
    """Return every row of a store, none if it has no tables."""
    rows: list[Row] = []
    for table in Table:
        cursor: str | None = None
        while True:
            try:
                page = engine.scan(table, SCAN_PAGE, cursor)
            except NotInitialised:
                return []
            rows += page.rows
            cursor = page.cursor
            if cursor is None:
                break
    return rows


def starts_of(history: History) -> Callable[[Any], None]:
    """Return a handler that notes its start and succeeds."""

    def handler(ctx: Any) -> None:
        history.started(ctx)

    return handler
