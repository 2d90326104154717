"""What the SQLite engine does beyond the protocol: files, faults, locks and commits."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import pytest

from dynsched.errors import (
    InvalidInput,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    Throttled,
    Unavailable,
)
from dynsched.storage.engine import Applied, PutNew, Query, Replace, Table
from dynsched.storage.sqlite import SqliteEngine
from dynsched.storage.sqlite_commits import Commits
from dynsched.storage.sqlite_connections import (
    LOG_BYTES_MAX,
    SYNCHRONOUS_FULL,
    SYNCHRONOUS_NORMAL,
    FileConnections,
)
from tests.contract.builders import a_key, a_row, applied, pages, put, put_all, replace
from tests.contract.forked import forked

WAIT_S = 30.0


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(name="engine")
def _engine(path: Path) -> Iterator[SqliteEngine]:
    with closing(SqliteEngine(str(path), busy_timeout_s=0.02)) as engine:
        engine.init()
        yield engine


@contextmanager
def someone_writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the write lock as another process would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield other
        other.rollback()


def test_init_makes_the_file_once(path: Path) -> None:
    """The first call makes file and tables; a later one, also by another engine, makes none."""
    with closing(SqliteEngine(str(path))) as engine:
        assert engine.init() is True
        assert engine.init() is False
    with closing(SqliteEngine(str(path))) as engine:
        assert engine.init() is False


def test_a_missing_file_says_init_and_is_not_made(path: Path) -> None:
    """A mistyped path must not become an empty store."""
    with closing(SqliteEngine(str(path))) as engine:
        for call in (lambda: engine.get(a_key()), lambda: engine.write(PutNew(a_row()))):
            with pytest.raises(NotInitialised, match="dynsched init"):
                call()
    assert not path.exists()


def test_an_empty_file_says_init(path: Path) -> None:
    """A database without our tables is not initialised, and can be."""
    path.touch()
    with closing(SqliteEngine(str(path))) as engine:
        with pytest.raises(NotInitialised, match="dynsched init"):
            engine.get(a_key())
        assert engine.init() is True
        assert engine.get(a_key()) is None


@pytest.mark.parametrize(("version", "mend"), [(0, "new file"), (2, "upgrade dynsched")])
def test_another_schema_version_is_refused(
    engine: SqliteEngine, path: Path, version: int, mend: str
) -> None:
    """Neither reads, nor writes, nor init touch the tables of another version."""
    engine.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"pragma user_version = {version}")
    with closing(SqliteEngine(str(path))) as again:
        calls = (again.init, lambda: again.get(a_key()), lambda: again.write(PutNew(a_row())))
        for call in calls:
            with pytest.raises(NotInitialised, match=mend):
                call()


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    """Nothing is added to somebody else's tables."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table jobs (id)")
    with closing(SqliteEngine(str(path))) as engine:
        for call in (engine.init, lambda: engine.get(a_key())):
            with pytest.raises(InvalidInput, match="another program"):
                call()


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    """The file stays as it is."""
    path.write_bytes(b"important notes, no database\n" * 100)
    with closing(SqliteEngine(str(path))) as engine:
        for call in (engine.init, lambda: engine.get(a_key())):
            with pytest.raises(InvalidInput, match="no SQLite database"):
                call()
    assert path.read_bytes().startswith(b"important notes")


def test_a_path_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    """A folder, a file in no folder, the empty path: each error says what it is."""
    with pytest.raises(InvalidInput, match="is a folder"):
        SqliteEngine(str(tmp_path)).init()
    with pytest.raises(InvalidInput, match="make the folder first"):
        SqliteEngine(str(tmp_path / "none" / "store.db")).init()
    with pytest.raises(InvalidInput, match="empty"):
        SqliteEngine("")


def test_a_path_may_hold_what_an_uri_may_not(tmp_path: Path) -> None:
    """The path is a path: no character of it is taken for an option."""
    path = tmp_path / "a b?mode=memory#%41'é.db"
    with closing(SqliteEngine(str(path))) as engine:
        engine.init()
        put(engine, a_row())
    assert path.exists()


def test_an_unknown_durability_is_refused() -> None:
    """A typing error must not turn off what it asks for."""
    with pytest.raises(InvalidInput, match="durability"):
        SqliteEngine(None, durability="full")  # type: ignore[arg-type]


def test_a_store_in_memory_is_empty_until_init() -> None:
    """It behaves as a file does."""
    with closing(SqliteEngine(":memory:")) as engine:
        with pytest.raises(NotInitialised):
            engine.get(a_key())
        assert engine.init() is True
        assert engine.get(a_key()) is None


@pytest.mark.parametrize("path", [None, "store.db"])
def test_a_closed_engine_says_so(
    path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads and writes after `close` are refused; closing twice is harmless."""
    monkeypatch.chdir(tmp_path)
    engine = SqliteEngine(path)
    engine.init()
    engine.close()
    engine.close()
    for call in (lambda: engine.get(a_key()), lambda: engine.write(PutNew(a_row()))):
        with pytest.raises(Unavailable, match="closed"):
            call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_store_in_memory_does_not_follow_a_fork() -> None:
    """A copy that goes its own way would be worse than an error."""
    with closing(SqliteEngine(None)) as engine:
        engine.init()

        def look() -> None:
            with pytest.raises(Unavailable):
                engine.get(a_key())

        child = forked(look)
        assert os.waitpid(child, 0)[1] == 0
        assert engine.get(a_key()) is None


def test_a_busy_store_throttles_every_kind_of_write(engine: SqliteEngine, path: Path) -> None:
    """Busy is never stale: the write may be sent again as it is."""
    stored = put(engine, a_row())
    with someone_writing(path):
        for write in (
            lambda: engine.write(Replace(a_row(), stored.version)),
            lambda: engine.write(PutNew(a_row("new")), durable=True),
            lambda: engine.write_many([PutNew(a_row("a")), PutNew(a_row("b"))]),
            lambda: engine.transact([PutNew(a_row("a"))]),
            lambda: engine.purge_expired(0, 1),
        ):
            with pytest.raises(Throttled):
                write()
    assert replace(engine, stored, a_row()).version == 2


def test_readers_do_not_wait_for_a_writer(engine: SqliteEngine, path: Path) -> None:
    """They see the last commit, while another process is in the middle of its own."""
    stored = put(engine, a_row(index=("i", "1")))
    with someone_writing(path) as other:
        other.execute("update runs set version = 9, isk = '2'")
        assert engine.get(a_key()) == stored
        assert engine.get_many([a_key()]) == [stored]
        assert engine.query(Query(Table.RUNS, "i", index=True)).rows == [stored]
        assert engine.scan(Table.RUNS, 10).rows == [stored]


def test_closing_ends_the_wait_for_another_process(path: Path) -> None:
    """A process that is told to stop does not hang for its busy time-out."""
    engine = SqliteEngine(str(path), busy_timeout_s=1e9)
    engine.init()
    put(engine, a_row("first"))
    with someone_writing(path), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.write, PutNew(a_row()))
        wait_until_queued(engine._normal, 1)
        engine.close()
        with pytest.raises(StoreError):
            waiting.result(WAIT_S)


def test_a_full_disk_is_no_lost_write(engine: SqliteEngine, path: Path) -> None:
    """The writes that do not fit are refused, none of them is there, and later ones work."""
    put(engine, a_row("first"))
    log = path.with_name(path.name + "-wal").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log + 8192, before[1]))
    try:
        large = [a_row(f"{number}", {"t": "x" * 50_000}) for number in range(3)]
        with pytest.raises((Unavailable, OutcomeUnknown), match="disk"):
            engine.write_many([PutNew(row) for row in large])
        with pytest.raises((Unavailable, OutcomeUnknown), match="disk"):
            engine.write(PutNew(large[0]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert engine.get_many([row.key for row in large]) == [None] * 3
    assert put(engine, a_row("second")).version == 1


@pytest.mark.parametrize("place", ["key", "body", "index"])
def test_half_a_surrogate_pair_is_refused(engine: SqliteEngine, place: str) -> None:
    """No store can keep it; the error is told, and nothing of it is written."""
    half = "\ud800"
    rows = {
        "key": a_row(half),
        "body": a_row(body={"t": half}),
        "index": a_row(index=("i", half)),
    }
    with pytest.raises(InvalidInput, match="surrogate"):
        engine.write(PutNew(rows[place]))
    with pytest.raises(InvalidInput, match="surrogate"):
        engine.write_many([PutNew(a_row("good")), PutNew(rows[place])])
    assert engine.scan(Table.RUNS, 10).rows == []


def test_a_scan_sees_a_row_once_although_it_is_replaced_meanwhile(engine: SqliteEngine) -> None:
    """A row keeps its place in the file, so it does not turn up again behind the cursor."""
    rows = put_all(engine, [a_row(f"{number}") for number in range(4)])
    page = engine.scan(Table.RUNS, 2)
    replace(engine, rows[0], a_row("0"))
    rest = engine.scan(Table.RUNS, 10, page.cursor)
    assert [row.key.sk for row in [*page.rows, *rest.rows]] == ["0", "1", "2", "3"]


def test_expired_rows_of_all_tables_are_purged_the_oldest_first(engine: SqliteEngine) -> None:
    """Bounded by the limit over all tables together; the rest follows at the next call."""
    keys = [a_key(f"{number}", table=table) for table in Table for number in range(2)]
    put_all(engine, [a_row(key, expires_at_s=10 + int(key.sk)) for key in keys])
    put(engine, a_row("later", expires_at_s=100))
    assert [engine.purge_expired(100, 4), engine.purge_expired(100, 4)] == [4, 2]
    assert engine.purge_expired(100, 4) == 0
    assert [row is None for row in engine.get_many([*keys, a_key("later")])] == [True] * 6 + [False]


def test_the_log_stays_bounded_beside_readers(engine: SqliteEngine, path: Path) -> None:
    """What is committed moves into the file, although somebody reads all the time."""
    stored = put_all(engine, [a_row(f"{number}") for number in range(100)])
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            pages(engine, Query(Table.RUNS, "p"))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(60):
            body = {"t": "x" * 2000}
            writes = [Replace(a_row(row.key, body), row.version) for row in stored]
            stored = [applied(outcome) for outcome in engine.write_many(writes)]
        done.set()
        for reader in readers:
            reader.result(WAIT_S)
    assert path.with_name(path.name + "-wal").stat().st_size <= LOG_BYTES_MAX


@pytest.fixture(name="connections")
def _connections(engine: SqliteEngine, path: Path) -> Iterator[FileConnections]:
    del engine
    with closing(FileConnections(path, busy_timeout_s=1.0)) as connections:
        yield connections


def wait_until_queued(commits: Commits, requests: int) -> None:
    """Wait until that many threads stand before the write lock."""
    never = threading.Event()
    for _ in range(10_000):
        if commits.waiting == requests:
            return
        never.wait(0.001)
    raise AssertionError("the threads did not come")


def make_at_once(
    connections: FileConnections, batches: list[list[PutNew]]
) -> tuple[list[object], list[str]]:
    """Let threads queue for the write lock, one batch each; return answers and statements."""
    commits = Commits(connections, store="it", synchronous=SYNCHRONOUS_FULL, limit_s=1.0)
    statements: list[str] = []
    with ThreadPoolExecutor(len(batches)) as pool:
        with connections.write_lock:
            connections.writer(SYNCHRONOUS_FULL).set_trace_callback(statements.append)
            calls = [pool.submit(commits.make, batch) for batch in batches]
            wait_until_queued(commits, len(batches))
        answers: list[object] = [call.exception(WAIT_S) or call.result() for call in calls]
    return answers, [text.lower().split()[0] for text in statements]


def test_threads_that_wait_share_one_commit(connections: FileConnections) -> None:
    """Eight durable writes cost one sync of the disk, and one statement stores them all."""
    answers, statements = make_at_once(connections, [[PutNew(a_row(f"{n}"))] for n in range(8)])
    assert all(isinstance(answer, list) and isinstance(answer[0], Applied) for answer in answers)
    assert statements == ["begin", "select", "insert", "commit"]


def test_threads_that_want_the_same_row_share_a_commit_too(connections: FileConnections) -> None:
    """The first in the queue wins, the others are told its row."""
    answers, statements = make_at_once(connections, [[PutNew(a_row())] for _ in range(4)])
    won = [isinstance(answer, list) and isinstance(answer[0], Applied) for answer in answers]
    assert sum(won) == 1
    assert statements.count("commit") == 1


def test_a_request_that_cannot_be_made_fails_alone(connections: FileConnections) -> None:
    """The others that wait with it are made all the same."""
    batches = [[PutNew(a_row("a"))], [PutNew(a_row("\ud800"))], [PutNew(a_row("b"))]]
    answers, _ = make_at_once(connections, batches)
    assert [type(answer) for answer in answers] == [list, InvalidInput, list]


@pytest.mark.parametrize("level", [SYNCHRONOUS_NORMAL, SYNCHRONOUS_FULL])
def test_the_writer_syncs_as_it_is_asked(connections: FileConnections, level: int) -> None:
    """Each commit has the level of its own request, whatever the one before had."""
    connections.writer(SYNCHRONOUS_FULL)
    connections.writer(SYNCHRONOUS_NORMAL)
    assert connections.writer(level).execute("pragma synchronous").fetchone() == (level,)


@pytest.mark.parametrize(
    ("durability", "level"), [("power", SYNCHRONOUS_FULL), ("process", SYNCHRONOUS_NORMAL)]
)
def test_durable_writes_wait_for_the_disk_unless_relaxed(
    path: Path, durability: Literal["power", "process"], level: int
) -> None:
    """`durability=process` makes accepting writes as quick as all the others."""
    statements: list[str] = []
    with closing(SqliteEngine(str(path), durability=durability)) as engine:
        engine.init()
        engine.write(PutNew(a_row("usual")))
        writer = engine._connections.writer(SYNCHRONOUS_NORMAL)
        writer.set_trace_callback(statements.append)
        engine.write(PutNew(a_row("durable")), durable=True)
        assert writer.execute("pragma synchronous").fetchone() == (level,)
    assert any(text.startswith("insert") for text in statements)
