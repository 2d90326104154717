"""The engine on SQLite: one file for several threads and processes, or a store in memory.

Every write holds SQLite's single write lock from its start, so that a guard once judged stays true
until the commit. Readers never wait for writers.

Put the file on a disk of this machine. Network file systems do not keep SQLite's locks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from dynsched.errors import InvalidInput
from dynsched.storage import sqlite_statements as sql
from dynsched.storage.engine import Key, Outcome, Page, Query, Row, Table, Write
from dynsched.storage.sqlite_commits import Commits, read_many
from dynsched.storage.sqlite_connections import (
    SYNCHRONOUS_FULL,
    SYNCHRONOUS_NORMAL,
    Connections,
    FileConnections,
    MemoryConnections,
    fault_of,
)

TRANSACT_MAX: Final = 25
MEMORY: Final = ":memory:"


class SqliteEngine:
    """A store in one SQLite file, or in memory.

    Args:
        path: the file, relative to the present folder; None or ":memory:" for a store that lives
            as long as this object.
        durability: "power": what is written as durable survives a power cut. "process": it
            survives the death of any process, but the last moments before a power cut may be lost.
        busy_timeout_s: how long to wait for other processes, seconds, before `Throttled`.

    Raises:
        InvalidInput: the path cannot be one, or the durability is unknown. The constructor opens
            and makes no file.
    """

    def __init__(
        self,
        path: str | None,
        *,
        durability: Literal["power", "process"] = "power",
        busy_timeout_s: float = 10.0,
    ) -> None:
        if durability not in ("power", "process"):
            raise InvalidInput("durability", f"{durability!r} is unknown", "give power or process")
        if path is None or path == MEMORY:
            self._store, self._connections = "memory", _in_memory()
        else:
            self._store, self._connections = path, _in_file(path, busy_timeout_s)
        self._normal = self._commits(SYNCHRONOUS_NORMAL, busy_timeout_s)
        self._durable = (
            self._commits(SYNCHRONOUS_FULL, busy_timeout_s)
            if durability == "power"
            else self._normal
        )

    def init(self) -> bool:
        """Make the file and its tables if they are missing; True if any was made.

        Raises:
            InvalidInput: the file cannot be made, or belongs to another program.
            NotInitialised: it has the tables of another version of dynsched.
        """
        return self._connections.init()

    def get(self, key: Key) -> Row | None:
        """Read one row."""
        found = self._read(sql.get(key.table), (key.pk, key.sk))
        return None if found is None else sql.row_of(key, found)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows in the order of `keys`, a hundred at once."""
        if not keys:
            return []
        connection = self._connections.take_reader()
        try:
            return read_many(connection, keys)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise fault_of(error, self._store) from error
        finally:
            self._connections.give_back(connection)

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page; rows of an index with equal sort keys come in the order of their keys."""
        assert query.limit >= 1
        (text,) = self._read(*sql.page(query, cursor))
        rows = sql.rows_of(query.table, text)
        full = len(rows) == query.limit
        return Page(rows, sql.cursor_after(query, rows[-1]) if full else None)

    def count(self, query: Query, most: int) -> int:
        """Count rows in the index that a query would walk; no row is read."""
        return int(self._read(*sql.count(query, max(most, 0)))[0])

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a table in the order in which its rows were made."""
        assert limit >= 1
        text, last = self._read(sql.scan(table), (sql.scan_cursor(cursor), limit))
        rows = sql.rows_of(table, text)
        return Page(rows, str(last) if len(rows) == limit else None)

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write, in a commit shared with other threads that write just now."""
        return self._level(durable).make([write])[0]

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes in one commit."""
        if not writes:
            return []
        assert len({(one.key.table, one.key.pk, one.key.sk) for one in writes}) == len(writes)
        return self._level(durable).make(writes)

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make all of the writes or none; each refused one carries the row as it is stored."""
        if not writes:
            return []
        assert len(writes) <= TRANSACT_MAX
        assert len({(one.key.table, one.key.pk, one.key.sk) for one in writes}) == len(writes)
        return self._level(durable).make(writes, together=True)

    def store_time(self) -> datetime | None:
        """Return None: the store's clock is this machine's."""
        return None

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete up to `limit` rows whose expiry is before `now_s`; tell how many."""
        purged = 0
        for table in Table:
            if purged < limit:
                statement = sql.delete_expired(table)
                purged += self._normal.execute(statement, (now_s, limit - purged))
        return purged

    def close(self) -> None:
        """Close the connections; calls under way in other threads still end well."""
        self._connections.close()

    def _level(self, durable: bool) -> Commits:
        return self._durable if durable else self._normal

    def _commits(self, synchronous: int, limit_s: float) -> Commits:
        return Commits(
            self._connections, store=self._store, synchronous=synchronous, limit_s=limit_s
        )

    def _read(self, statement: str, values: sql.Parameters) -> Any:
        connection = self._connections.take_reader()
        try:
            return connection.execute(statement, values).fetchone()
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise fault_of(error, self._store) from error
        finally:
            self._connections.give_back(connection)


def _in_memory() -> Connections:
    return MemoryConnections()


def _in_file(path: str, busy_timeout_s: float) -> Connections:
    if not path or "\0" in path:
        raise InvalidInput("store", "the path of the file is empty or has a NUL in it")
    return FileConnections(Path(path).absolute(), busy_timeout_s=busy_timeout_s)
