"""One SQLite file used by several processes at once, also by some that are killed."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from dynsched.storage.engine import Applied, Outcome, PutNew, Replace, Stale
from dynsched.storage.sqlite import SqliteEngine
from tests.contract.builders import a_key, a_row, put, put_all
from tests.contract.forked import forked

PROCESSES = 4
ROWS = 40
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "store.db")
    with closing(SqliteEngine(path)) as engine:
        engine.init()
        yield path


def claim_all(path: str, ready: Barrier) -> int:
    """Try to claim each of the rows; return how many were won."""
    with closing(SqliteEngine(path)) as engine:
        ready.wait()
        outcomes: list[Outcome] = []
        for start in range(0, ROWS, 10):
            rows = engine.get_many([a_key(f"{one}") for one in range(start, start + 10)])
            found = [row for row in rows if row is not None and row.version == 1]
            outcomes += engine.write_many([Replace(a_row(row.key), 1) for row in found])
        return sum(isinstance(outcome, Applied) for outcome in outcomes)


def count_up(path: str, ready: Barrier) -> int:
    """Add one to a shared row ten times, as often as it takes."""
    with closing(SqliteEngine(path)) as engine:
        ready.wait()
        for number in range(10):
            outcome: Outcome = Stale(engine.get(a_key()))
            while isinstance(outcome, Stale):
                assert outcome.current is not None
                guard = outcome.current.version
                outcome = engine.write(Replace(a_row(), guard), durable=number % 2 == 0)
    return 10


def make_tables(path: str, ready: Barrier) -> int:
    """Make the tables, like every process of a deployment when it starts."""
    with closing(SqliteEngine(path)) as engine:
        ready.wait()
        return int(engine.init())


def put_for_ever(path: str, acknowledgements: Connection) -> None:
    """Put rows and name each one when it is acknowledged, until killed."""
    engine = SqliteEngine(path)
    for number in itertools.count():
        engine.write(PutNew(a_row(f"{number}")))
        acknowledgements.send(number)


def work(job: Callable[[str, Barrier], int], path: str, ready: Barrier, answers: object) -> None:
    """Hand a process's answer back."""
    answers.put(job(path, ready))  # type: ignore[attr-defined]


def in_processes(job: Callable[[str, Barrier], int], path: str) -> list[int]:
    """Run a function in several processes that start together."""
    answers, ready = SPAWN.Queue(), SPAWN.Barrier(PROCESSES)
    children = [
        SPAWN.Process(target=work, args=(job, path, ready, answers)) for _ in range(PROCESSES)
    ]
    for child in children:
        child.start()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    return found


def test_each_row_is_claimed_by_one_process(path: str) -> None:
    """Four processes want forty rows; together they win forty."""
    with closing(SqliteEngine(path)) as engine:
        put_all(engine, [a_row(f"{one}") for one in range(ROWS)])
        assert sum(in_processes(claim_all, path)) == ROWS
        rows = engine.get_many([a_key(f"{one}") for one in range(ROWS)])
    assert [row.version for row in rows if row is not None] == [2] * ROWS


def test_no_process_loses_a_write_of_another(path: str) -> None:
    """Forty increments of one row by four processes make version 41."""
    with closing(SqliteEngine(path)) as engine:
        put(engine, a_row())
        in_processes(count_up, path)
        row = engine.get(a_key())
    assert row is not None
    assert row.version == 41


def test_several_processes_may_make_the_tables_at_once(tmp_path: Path) -> None:
    """One of them makes the file, the others find it made."""
    assert sorted(in_processes(make_tables, str(tmp_path / "new.db"))) == [0, 0, 0, 1]


def test_a_killed_process_loses_nothing_that_was_acknowledged(path: str) -> None:
    """Also without durability: what a process wrote outlives it."""
    receiving, sending = SPAWN.Pipe(duplex=False)
    child = SPAWN.Process(target=put_for_ever, args=(path, sending))
    child.start()
    sending.close()
    acknowledged = [receiving.recv() for _ in range(200)]
    child.kill()
    with suppress(EOFError, OSError):
        while True:
            acknowledged.append(receiving.recv())
    child.join()
    with closing(SqliteEngine(path)) as engine:
        rows = engine.get_many([a_key(str(number)) for number in acknowledged])
        assert all(row is not None for row in rows)
        assert isinstance(engine.write(PutNew(a_row("next"))), Applied)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_child_go_on_after_a_fork(path: str) -> None:
    """A forked child opens connections of its own; neither side loses what the other writes."""
    with closing(SqliteEngine(path)) as engine:
        put(engine, a_row("before"))
        child = forked(lambda: put(engine, a_row("child")))
        put(engine, a_row("parent"))
        assert os.waitpid(child, 0)[1] == 0
    with closing(SqliteEngine(path)) as engine:
        assert all(engine.get_many([a_key(name) for name in ("before", "child", "parent")]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_keeps_its_writes_when_the_parent_closes_first(path: str) -> None:
    """The parent must not take itself for the last user of the file and remove its log."""
    engine = SqliteEngine(path)
    put(engine, a_row("before"))
    closed, written = os.pipe()

    def outlive() -> None:
        put(engine, a_row("early"))
        os.close(written)
        os.read(closed, 1)
        put(engine, a_row("late"))

    child = forked(outlive)
    os.close(closed)
    engine.close()
    os.write(written, b"x")
    os.close(written)
    assert os.waitpid(child, 0)[1] == 0
    with closing(SqliteEngine(path)) as again:
        assert all(again.get_many([a_key(name) for name in ("before", "early", "late")]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_the_threads_that_use_the_store(path: str) -> None:
    """No connection is open at the fork, whatever other threads do at that moment."""
    with closing(SqliteEngine(path)) as engine:
        put(engine, a_row())
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                assert engine.get(a_key()) is not None

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(5):
            child = forked(partial(put, engine, a_row(f"child-{number}")))
            assert os.waitpid(child, 0)[1] == 0
        done.set()
        for reader in readers:
            reader.join()
        assert all(engine.get_many([a_key(f"child-{number}") for number in range(5)]))
