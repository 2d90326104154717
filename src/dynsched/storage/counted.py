"""Counts what a view asks of the store, so that it can say what looking costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dynsched.storage.engine import Engine, Key, Outcome, Page, Query, Row, Table, Write


class CountedEngine:
    """Hands every call on and counts it; used by one thread.

    Args:
        engine: the store.

    Attributes:
        requests: calls made.
        rows: rows read or counted; on DynamoDB some five of them take a read unit.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.requests = 0
        self.rows = 0

    def init(self) -> bool:
        """Make the tables."""
        return self._engine.init()

    def get(self, key: Key) -> Row | None:
        """Read one row."""
        self._count(1)
        return self._engine.get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows in the order of `keys`."""
        self._count(len(keys))
        return self._engine.get_many(keys)

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page of a query."""
        page = self._engine.query(query, cursor)
        self._count(len(page.rows))
        return page

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query."""
        found = self._engine.count(query, most)
        self._count(found)
        return found

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a table."""
        page = self._engine.scan(table, limit, cursor)
        self._count(len(page.rows))
        return page

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write."""
        self._count(1)
        return self._engine.write(write, durable=durable)

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes."""
        self._count(len(writes))
        return self._engine.write_many(writes, durable=durable)

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make guarded writes together."""
        self._count(len(writes))
        return self._engine.transact(writes, durable=durable)

    def store_time(self) -> datetime | None:
        """Return the store's clock."""
        return self._engine.store_time()

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete rows past their expiry."""
        return self._engine.purge_expired(now_s, limit)

    def close(self) -> None:
        """Leave the store open: it is another's."""

    def _count(self, rows: int) -> None:
        self.requests += 1
        self.rows += rows
