"""Every statement finds its rows through an index, in the order asked."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from dynsched.errors import InvalidInput
from dynsched.storage import sqlite_statements as sql
from dynsched.storage.engine import Delete, Key, PutNew, Query, Replace, Row, Table, Write

KEY = Key(Table.RUNS, "p", "s")
ROW = Row(KEY, {})
WRITES: list[Write] = [PutNew(ROW), Replace(ROW, 1), Delete(KEY, 1)]


@pytest.fixture(name="database")
def _database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in sql.schema():
            connection.execute(statement)
        yield connection


def plan(database: sqlite3.Connection, statement: str, values: sql.Parameters) -> list[str]:
    """Return the lines of SQLite's plan that are about a table or a sort."""
    rows = database.execute(f"explain query plan {statement}", values).fetchall()
    tables = tuple(f" {table}" for table in Table)
    return [row[3] for row in rows if "TEMP B-TREE" in row[3] or any(t in row[3] for t in tables)]


def assert_seeks(lines: list[str]) -> None:
    """Fail where a table is read through or rows are sorted."""
    assert lines != []
    assert [line for line in lines if "SCAN" in line or "TEMP B-TREE" in line] == []


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("after", "before", "paged"), list(itertools.product(["", "a"], [None, "z"], [False, True]))
)
def test_every_query_seeks_and_never_sorts(
    database: sqlite3.Connection,
    *,
    index: bool,
    descending: bool,
    after: str,
    before: str | None,
    paged: bool,
) -> None:
    """Whatever bounds, direction and cursor: one range of one index, already in order."""
    query = Query(Table.RUNS, "p", index=index, after=after, before=before, descending=descending)
    row = Row(KEY, {}, ("p", "s"))
    cursor = sql.cursor_after(query, row) if paged else None
    lines = plan(database, *sql.page(query, cursor))
    assert_seeks(lines)
    assert all(("runs_index (ipk=?" if index else "(pk=?") in line for line in lines)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize(("after", "before"), list(itertools.product(["", "a"], [None, "z"])))
def test_every_count_walks_an_index_and_touches_no_row(
    database: sqlite3.Connection, *, index: bool, after: str, before: str | None
) -> None:
    """Ten thousand rows are counted in a millisecond, however large they are."""
    query = Query(Table.RUNS, "p", index=index, after=after, before=before)
    lines = plan(database, *sql.count(query, 10))
    assert_seeks(lines)
    assert all("COVERING INDEX" in line for line in lines)


@pytest.mark.parametrize("write", WRITES, ids=["put", "replace", "delete"])
def test_single_writes_seek_their_row(database: sqlite3.Connection, write: Write) -> None:
    """A guard costs no reading through."""
    cells = None if isinstance(write, Delete) else sql.cells_of(write)
    lines = plan(database, *sql.guarded(write, cells))
    if not isinstance(write, PutNew):
        assert_seeks(lines)
    assert not any("SCAN" in line for line in lines)


@pytest.mark.parametrize("size", [1, 8, 100])
def test_batches_seek_each_row(database: sqlite3.Connection, size: int) -> None:
    """The given keys are read through, the table is not; `(pk, sk) in (…)` would do so."""
    pairs: list[None] = [None] * (2 * size)
    for statement in (sql.get_many, sql.versions, sql.delete_many):
        assert_seeks(plan(database, statement(Table.RUNS, size), pairs))
    lines = plan(database, sql.upsert(Table.RUNS, size), [None] * (8 * size))
    assert not any("SCAN" in line for line in lines)


def test_the_rest_seeks_too(database: sqlite3.Connection) -> None:
    """A key, the expired rows in the order of their expiry, and a scan by the row's id."""
    assert_seeks(plan(database, sql.get(Table.RUNS), ("p", "s")))
    assert_seeks(plan(database, sql.scan(Table.RUNS), (0, 10)))
    lines = plan(database, sql.delete_expired(Table.RUNS), (0, 10))
    assert_seeks(lines)
    assert any("runs_expiry (expires_at_s<?)" in line for line in lines)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 65, 99, 100])
def test_a_batch_is_filled_up_to_a_size_that_is_prepared_already(count: int) -> None:
    """Few sizes, so that statements are found again; the filling is null, at the end."""
    size = sql.batch_size(count)
    values = sql.flat([("p", "s")] * count)
    assert count <= size < 2 * count + 1
    assert values == ["p", "s"] * count + [None, None] * (size - count)


@pytest.mark.parametrize("cursor", ["", "x", "1", "null", '{"a": 1}', '["a"]', '["a", "b", 3]'])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    """Cursors come back from web pages, where anything may be put in."""
    with pytest.raises(InvalidInput, match="cursor"):
        sql.page(Query(Table.RUNS, "p", index=True), cursor)


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "\u0661"])
def test_a_scan_cursor_of_something_else_is_refused(cursor: str) -> None:
    """A scan continues at a number of its own."""
    with pytest.raises(InvalidInput, match="cursor"):
        sql.scan_cursor(cursor)
