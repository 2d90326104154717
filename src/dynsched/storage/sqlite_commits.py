"""Commits of the SQLite engine: guards judged and rows stored under the write lock.

Threads that wait for the lock find their writes made by the one that held it: all that waits goes
into one commit, which costs one sync of the disk where it is to be durable.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from dynsched.errors import DynschedError, OutcomeUnknown
from dynsched.storage import sqlite_statements as sql
from dynsched.storage.engine import (
    Applied,
    Delete,
    Key,
    Outcome,
    PutNew,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.sqlite_connections import Connections, fault_of, patiently

# Requests of waiting threads that one commit takes at most.
GROUP_MAX: Final = 256

_Fault = sqlite3.Error, UnicodeEncodeError


class _Request:
    """Writes that one thread waits for."""

    __slots__ = ("cells", "done", "fault", "outcomes", "together", "writes")

    def __init__(self, writes: Sequence[Write], *, together: bool) -> None:
        self.writes, self.together = writes, together
        self.cells = [None if isinstance(one, Delete) else sql.cells_of(one) for one in writes]
        self.outcomes: list[Outcome] = []
        self.fault: DynschedError | None = None
        self.done = False

    def end(self, fault: DynschedError | None = None) -> None:
        """Let the waiting thread go on."""
        self.fault, self.done = fault, True


class Commits:
    """Makes writes, of one level of durability.

    Args:
        connections: where the writing connection and its lock come from.
        store: what to call the store in errors.
        synchronous: SQLite's level: whether a commit waits for the disk.
        limit_s: how long to wait for other processes, seconds.
    """

    def __init__(
        self, connections: Connections, *, store: str, synchronous: int, limit_s: float
    ) -> None:
        self._connections, self._store = connections, store
        self._synchronous, self._limit_s = synchronous, limit_s
        self._waiting: deque[_Request] = deque()

    @property
    def waiting(self) -> int:
        """Return how many requests of threads are not yet made."""
        return len(self._waiting)

    def make(self, writes: Sequence[Write], *, together: bool = False) -> list[Outcome]:
        """Make guarded writes in one commit: each by itself, or all `together` or none.

        Raises:
            Throttled: other processes kept the write lock.
            Unavailable: the disk is full or broken; nothing was written.
            OutcomeUnknown: the disk failed during the commit.
        """
        request = _Request(writes, together=together)
        self._waiting.append(request)
        with self._connections.write_lock:
            while not request.done:
                self._lead()
        if request.fault is not None:
            raise request.fault
        return request.outcomes

    def execute(self, statement: str, values: sql.Parameters) -> int:
        """Run one statement as a commit of its own and return how many rows it changed."""
        with self._connections.write_lock:
            connection = self._connections.writer(self._synchronous)
            try:
                return self._patiently(connection, statement, values).rowcount
            except _Fault as error:
                raise fault_of(error, self._store, committing=True) from error

    def _lead(self) -> None:
        """Make what waits, for its own thread and the others."""
        # Requests leave the queue when they have ended, so that none is lost to an interrupt.
        group = list(self._waiting)[:GROUP_MAX]
        try:
            self._commit_group(group)
        except DynschedError as error:
            _end(group, error)
        except BaseException:
            # An interrupt hits this thread only; the others are told that it is not known.
            _end(group, OutcomeUnknown(f"{self._store}: a commit was interrupted"))
            raise
        finally:
            while self._waiting and self._waiting[0].done:
                self._waiting.popleft()

    def _commit_group(self, group: list[_Request]) -> None:
        connection = self._connections.writer(self._synchronous)
        if len(group) == 1 and self._commit_single(connection, group[0]):
            return
        self._begin(connection)
        try:
            for part in _parts(group):
                _apply(connection, part)
        except _Fault as error:
            connection.rollback()
            if len(group) == 1:
                raise fault_of(error, self._store) from error
            self._commit_apart(group)
        except BaseException:
            connection.rollback()
            raise
        else:
            self._commit(connection)
            for request in group:
                request.end()

    def _commit_apart(self, group: list[_Request]) -> None:
        """Make each request by itself, since one of them cannot be made."""
        for request in group:
            try:
                self._commit_group([request])
            except DynschedError as error:
                request.end(error)

    def _commit_single(self, connection: sqlite3.Connection, request: _Request) -> bool:
        """Make a single write by one statement that is its own commit; False if it is stale."""
        if len(request.writes) != 1:
            return False
        write, cells = request.writes[0], request.cells[0]
        try:
            changed = self._patiently(connection, *sql.guarded(write, cells)).rowcount
        except _Fault as error:
            raise fault_of(error, self._store, committing=True) from error
        if changed == 1:
            request.outcomes = [_applied(write)]
            request.end()
        # Otherwise the whole is done again in a transaction, so that guard and current row agree.
        return changed == 1

    def _begin(self, connection: sqlite3.Connection) -> None:
        try:
            self._patiently(connection, "begin immediate", ())
        except sqlite3.Error as error:
            raise fault_of(error, self._store) from error

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("commit")
        except sqlite3.Error as error:
            connection.rollback()
            raise fault_of(error, self._store, committing=True) from error

    def _patiently(
        self, connection: sqlite3.Connection, statement: str, values: sql.Parameters
    ) -> sqlite3.Cursor:
        return patiently(
            lambda: connection.execute(statement, values),
            limit_s=self._limit_s,
            closing=self._connections.closing,
        )


def _end(group: Sequence[_Request], fault: DynschedError) -> None:
    for request in group:
        if not request.done:
            request.end(fault)


def read_many(connection: sqlite3.Connection, keys: Sequence[Key]) -> list[Row | None]:
    """Read rows in the order of their keys."""
    found: dict[tuple[Table, str, str], Row] = {}
    for table, places in _by_table(keys).items():
        for batch in _batches(places):
            asked = [(keys[place].pk, keys[place].sk) for place in batch]
            statement = sql.get_many(table, sql.batch_size(len(batch)))
            (text,) = connection.execute(statement, sql.flat(asked)).fetchone()
            for row in sql.rows_of(table, text):
                found[table, row.key.pk, row.key.sk] = row
    return [found.get((key.table, key.pk, key.sk)) for key in keys]


def _by_table(keys: Sequence[Key]) -> dict[Table, list[int]]:
    places: dict[Table, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key.table, []).append(place)
    return places


def _batches(places: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(places), sql.BATCH_MAX):
        yield places[start : start + sql.BATCH_MAX]


def _parts(group: list[_Request]) -> Iterator[list[_Request]]:
    """Join neighbours that touch different rows, so that they are judged and stored at once."""
    part: list[_Request] = []
    taken: set[Key] = set()
    for request in group:
        keys = {write.key for write in request.writes} if len(group) > 1 else set()
        if part and (request.together or part[0].together or not taken.isdisjoint(keys)):
            yield part
            part, taken = [], set()
        part.append(request)
        taken |= keys
    yield part


def _apply(connection: sqlite3.Connection, part: list[_Request]) -> None:
    """Judge the guards of requests, store what may be and note the outcomes."""
    writes = [write for request in part for write in request.writes]
    cells = [cell for request in part for cell in request.cells]
    keys = [write.key for write in writes]
    stale = _judge(connection, writes, keys)
    if stale and part[0].together:
        stale = set(range(len(writes)))
    places = sorted(stale)
    current = read_many(connection, [keys[place] for place in places])
    refused = dict(zip(places, current, strict=True))
    accepted = [place for place in range(len(writes)) if place not in refused]
    _store(connection, [(keys[place], cells[place]) for place in accepted])
    outcomes = iter(
        [
            Stale(refused[place]) if place in refused else _applied(write)
            for place, write in enumerate(writes)
        ]
    )
    for request in part:
        request.outcomes = [next(outcomes) for _ in request.writes]


def _judge(
    connection: sqlite3.Connection, writes: Sequence[Write], keys: Sequence[Key]
) -> set[int]:
    """Return the places of the writes whose guard does not hold."""
    stale = set()
    for table, places in _by_table(keys).items():
        for batch in _batches(places):
            asked = [(keys[place].pk, keys[place].sk) for place in batch]
            statement = sql.versions(table, sql.batch_size(len(batch)))
            (text,) = connection.execute(statement, sql.flat(asked)).fetchone()
            for place, version in zip(batch, sql.versions_of(text, len(batch)), strict=True):
                write = writes[place]
                if version != (None if isinstance(write, PutNew) else write.seen):
                    stale.add(place)
    return stale


def _store(
    connection: sqlite3.Connection, accepted: Sequence[tuple[Key, sql.Cells | None]]
) -> None:
    keys = [key for key, _ in accepted]
    for table, places in _by_table(keys).items():
        stored = [cell for place in places if (cell := accepted[place][1]) is not None]
        gone = [(keys[place].pk, keys[place].sk) for place in places if accepted[place][1] is None]
        for start in range(0, len(stored), sql.BATCH_MAX):
            rows = stored[start : start + sql.BATCH_MAX]
            connection.execute(sql.upsert(table, sql.batch_size(len(rows))), sql.flat(rows))
        for start in range(0, len(gone), sql.BATCH_MAX):
            batch = gone[start : start + sql.BATCH_MAX]
            connection.execute(sql.delete_many(table, sql.batch_size(len(batch))), sql.flat(batch))


def _applied(write: Write) -> Applied:
    if isinstance(write, Delete):
        return Applied(None)
    row = write.row
    version = 1 if isinstance(write, PutNew) else write.seen + 1
    return Applied(Row(row.key, row.body, row.index, row.expires_at_s, row.token, version))
