"""Connections of this process to one SQLite store, and what their faults mean.

A file has one connection for writing, used under a lock, and a few for reading, which never wait
for the writer. A store in memory has a single connection for both.

SQLite must not be used across a fork, and a child that inherits the bookkeeping of an open file
believes in locks that it does not hold. So all connections are closed before a fork and opened
again, on both sides, when they are needed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from dynsched.errors import (
    DynschedError,
    InvalidInput,
    NotInitialised,
    OutcomeUnknown,
    Throttled,
    Unavailable,
)
from dynsched.storage.sqlite_statements import APPLICATION_ID, SCHEMA_VERSION, schema

# Readers kept open when nobody reads; more are opened when more threads read at once.
IDLE_READERS_MAX: Final = 8
CACHE_KIB: Final = 16_000
# The log is copied into the file when it has so many pages (of 4 KiB). Pages that many commits
# touch are then copied and synced once; more than 4,062 would slow every reader's look into it.
LOG_PAGES: Final = 4000
# And it is cut back to this size if a large commit made it grow beyond.
LOG_BYTES_MAX: Final = 32 * 1024 * 1024
# How long a fork waits for reads that are under way in other threads.
FORK_WAIT_S: Final = 5.0
# Waiting for another process's commit, which takes some 50 microseconds: short pauses at first.
# SQLite's own handler soon sleeps 100 ms at a time and so loses every turn to a busy writer.
PAUSE_S_MIN: Final = 0.0001
PAUSE_S_MAX: Final = 0.001

SYNCHRONOUS_NORMAL: Final = 1
SYNCHRONOUS_FULL: Final = 2

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


class Connections(Protocol):
    """Where the engine gets its connections from."""

    write_lock: threading.Lock
    closing: threading.Event

    def init(self) -> bool:
        """Make the tables if they are missing; True if they were made."""

    def take_reader(self) -> sqlite3.Connection:
        """Return a connection for the calling thread alone, to be given back."""

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Take a reader back."""

    def writer(self, synchronous: int) -> sqlite3.Connection:
        """Return the writing connection; the caller holds `write_lock`."""

    def close(self) -> None:
        """Close all connections."""


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether another connection stood in the way."""
    return _code(error) in _BUSY


def _code(error: sqlite3.Error) -> int:
    # The low byte is the kind, the rest says where it happened.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _not_writable(store: str) -> InvalidInput:
    return InvalidInput("store", f"{store} cannot be written", "check its owner and mode")


def _without_tables(store: str) -> NotInitialised:
    return NotInitialised(f"{store} has no dynsched tables; run `dynsched init`")


_MEANINGS: Final[Mapping[int, Callable[[str], DynschedError]]] = {
    sqlite3.SQLITE_FULL: lambda store: Unavailable(f"{store} cannot grow: the disk is full"),
    sqlite3.SQLITE_NOTADB: lambda store: InvalidInput(
        "store", f"{store} is no SQLite database", "name another file"
    ),
    sqlite3.SQLITE_PERM: _not_writable,
    sqlite3.SQLITE_READONLY: _not_writable,
    sqlite3.SQLITE_TOOBIG: lambda _: InvalidInput(
        "body", "it is larger than SQLite can store", "make it smaller"
    ),
}


def fault_of(
    error: sqlite3.Error | UnicodeEncodeError, store: str, *, committing: bool = False
) -> DynschedError:
    """Return what an error of SQLite, or of handing it a text, means here."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("text", "it has half a surrogate pair", "give text that UTF-8 can hold")
    code = _code(error)
    if code in _BUSY:
        return Throttled(f"{store} is busy: another process is writing and did not let us in")
    if code in _MEANINGS:
        return _MEANINGS[code](store)
    if "no such table" in str(error):
        return _without_tables(store)
    if committing and code == sqlite3.SQLITE_IOERR:
        # What reached the log without its sync may yet be found there after a power cut.
        return OutcomeUnknown(f"{store}: the disk failed during a commit ({error})")
    return Unavailable(f"{store} failed: {error}")


def patiently(
    call: Callable[[], sqlite3.Cursor], *, limit_s: float, closing: threading.Event
) -> sqlite3.Cursor:
    """Repeat a call that another process keeps busy, for about `limit_s` seconds."""
    waited_s, pause_s = 0.0, PAUSE_S_MIN
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or waited_s >= limit_s or closing.wait(pause_s):
                raise
        waited_s += pause_s
        pause_s = min(pause_s * 1.5, PAUSE_S_MAX)


def _connect(target: str, *, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        target,
        timeout=timeout_s,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute(f"pragma cache_size = -{CACHE_KIB}")
    # Else each batch keeps its undo pages in a file of its own: a fifth of the speed.
    connection.execute("pragma temp_store = memory")
    connection.execute(f"pragma wal_autocheckpoint = {LOG_PAGES}")
    return connection


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


def check_schema(connection: sqlite3.Connection, store: str) -> bool:
    """Say whether the tables are there.

    Raises:
        InvalidInput: it is a database of another program.
        NotInitialised: the tables are those of another version of dynsched.
    """
    application = _number(connection, "pragma application_id")
    version = _number(connection, "pragma user_version")
    if application == version == 0 and not _number(
        connection, "select count(*) from sqlite_master"
    ):
        return False
    if application != APPLICATION_ID:
        raise InvalidInput(
            "store", f"{store} is a database of another program", "name another file"
        )
    if version != SCHEMA_VERSION:
        mend = (
            "upgrade dynsched here"
            if version > SCHEMA_VERSION
            else "use the dynsched that made it, or name a new file"
        )
        raise NotInitialised(
            f"{store} has schema {version} and this dynsched works with {SCHEMA_VERSION}; {mend}"
        )
    return True


def make_schema(connection: sqlite3.Connection, store: str) -> bool:
    """Make the tables in one transaction; False if they were there."""
    connection.execute("begin immediate")
    try:
        missing = not check_schema(connection, store)
        for statement in schema() if missing else ():
            connection.execute(statement)
        connection.execute("commit")
    except BaseException:
        connection.rollback()
        raise
    return missing


class FileConnections:
    """Connections to a file, opened when they are needed.

    Args:
        path: the file; it is made by `init` only.
        busy_timeout_s: how long to wait for another process, seconds.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float) -> None:
        self.write_lock = threading.Lock()
        self.closing = threading.Event()
        self._path, self._timeout_s = path, busy_timeout_s
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._forking = False
        self._writer: sqlite3.Connection | None = None
        self._synchronous = 0
        _living.add(self)

    def init(self) -> bool:
        """Make the file and its tables if they are missing; True if any was made."""
        with self.write_lock:
            self._check_open()
            self._check_path(may_be_missing=True)
            connection = self._connect("rwc", self._timeout_s)
            try:
                self._switch_to_log(connection)
                return make_schema(connection, str(self._path))
            except sqlite3.Error as error:
                raise fault_of(error, str(self._path)) from error
            finally:
                connection.close()

    def take_reader(self) -> sqlite3.Connection:
        """Return an idle reader, or a new one."""
        with self._lock:
            while self._forking:
                self._changed.wait()
            self._check_open()
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._open(timeout_s=self._timeout_s)
        except BaseException:
            self._leave()
            raise

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Keep a reader for the next, or close it."""
        with self._lock:
            keep = len(self._idle) < IDLE_READERS_MAX and not self.closing.is_set()
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._leave()

    def writer(self, synchronous: int) -> sqlite3.Connection:
        """Return the writing connection, set to that level of durability."""
        self._check_open()
        if self._writer is None:
            # It does not wait inside SQLite: see `patiently`.
            self._writer, self._synchronous = self._open(timeout_s=0), 0
        if self._synchronous != synchronous:
            self._writer.execute(f"pragma synchronous = {synchronous}")
            self._synchronous = synchronous
        return self._writer

    def close(self) -> None:
        """Close the idle connections now, and each other one when its call ends."""
        self.closing.set()
        with self.write_lock, self._lock:
            self._close_idle()

    def before_fork(self) -> None:
        """Close everything, and let nobody in until `after_fork`."""
        self.write_lock.acquire()
        self._lock.acquire()
        self._forking = True
        self._changed.wait_for(lambda: self._reading == 0, FORK_WAIT_S)
        self._close_idle()

    def after_fork(self, *, in_child: bool) -> None:
        """Let threads in again."""
        if in_child:
            self._reading = 0
        self._forking = False
        self._changed.notify_all()
        self._lock.release()
        self.write_lock.release()

    def _leave(self) -> None:
        with self._lock:
            self._reading -= 1
            if self._forking:
                self._changed.notify_all()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, *, timeout_s: float) -> sqlite3.Connection:
        self._check_path(may_be_missing=False)
        connection = self._connect("rw", timeout_s)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        try:
            ready = check_schema(connection, str(self._path))
            connection.execute(f"pragma journal_size_limit = {LOG_BYTES_MAX}")
            # On macOS a plain sync does not reach the disk; elsewhere this changes nothing.
            connection.execute("pragma fullfsync = on")
        except sqlite3.Error as error:
            raise fault_of(error, str(self._path)) from error
        if not ready:
            raise _without_tables(str(self._path))

    def _switch_to_log(self, connection: sqlite3.Connection) -> None:
        # Two processes that make one file at once get in each other's way here.
        cursor = patiently(
            lambda: connection.execute("pragma journal_mode = wal"),
            limit_s=self._timeout_s,
            closing=self.closing,
        )
        if cursor.fetchone()[0] != "wal":
            raise InvalidInput(
                "store",
                f"the file system under {self._path} has no shared memory",
                "use a disk of this machine",
            )

    def _connect(self, mode: str, timeout_s: float) -> sqlite3.Connection:
        # The path has been checked, so what is left is a fault of the moment (no free descriptor).
        try:
            return _connect(f"{self._path.as_uri()}?mode={mode}", timeout_s=timeout_s)
        except sqlite3.Error as error:
            raise fault_of(error, str(self._path)) from error

    def _check_open(self) -> None:
        if self.closing.is_set():
            raise Unavailable(f"{self._path} was closed by this process")

    def _check_path(self, *, may_be_missing: bool) -> None:
        if self._path.is_dir():
            raise InvalidInput("store", f"{self._path} is a folder", "name a file in it")
        if self._path.exists():
            if not os.access(self._path, os.R_OK | os.W_OK):
                raise _not_writable(str(self._path))
        elif not may_be_missing:
            raise NotInitialised(f"there is no store at {self._path}; run `dynsched init`")
        elif not os.access(self._path.parent, os.W_OK | os.X_OK):
            raise InvalidInput(
                "store",
                f"no file can be made in {self._path.parent}",
                "make the folder first, or name another",
            )


class MemoryConnections:
    """The single connection to a store in memory, for one thread at a time."""

    def __init__(self) -> None:
        self.write_lock = threading.Lock()
        self.closing = threading.Event()
        self._connection: sqlite3.Connection | None = _connect(":memory:", timeout_s=0)
        self._ready = False
        _living.add(self)

    def init(self) -> bool:
        """Make the tables if they are missing; True if they were made."""
        with self.write_lock:
            made = make_schema(self._open(), "memory")
            self._ready = True
        return made

    def take_reader(self) -> sqlite3.Connection:
        """Return the connection, under the lock."""
        self.write_lock.acquire()
        try:
            return self.writer(SYNCHRONOUS_NORMAL)
        except BaseException:
            self.write_lock.release()
            raise

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Let the next thread in."""
        del connection
        self.write_lock.release()

    def writer(self, synchronous: int) -> sqlite3.Connection:
        """Return the connection; there is nothing to make durable."""
        del synchronous
        connection = self._open()
        if not self._ready:
            raise NotInitialised("the store in memory has no tables; call `init` first")
        return connection

    def close(self) -> None:
        """Forget everything that was stored."""
        self.closing.set()
        with self.write_lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Let nobody in until `after_fork`."""
        self.write_lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Let threads in again; the child has no store, it would not be the same one."""
        if in_child:
            self._connection = None
        self.write_lock.release()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise Unavailable("the store in memory was closed, or belongs to the parent process")
        return self._connection


_living: weakref.WeakSet[FileConnections | MemoryConnections] = weakref.WeakSet()
_forking: list[FileConnections | MemoryConnections] = []
_one_fork = threading.Lock()


def _before_fork() -> None:
    _one_fork.acquire()
    # Strong references, so that both sides let go of exactly what was taken here.
    _forking.extend(_living)
    for connections in _forking:
        connections.before_fork()


def _after_fork(*, in_child: bool) -> None:
    for connections in reversed(_forking):
        connections.after_fork(in_child=in_child)
    _forking.clear()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )
