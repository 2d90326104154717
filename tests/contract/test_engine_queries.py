"""Queries of the base tables, lists of keys, and scans."""

from __future__ import annotations

import pytest

from dynsched.storage.engine import Engine, Query, Table
from tests.contract.builders import PAGES_MAX, a_key, a_row, pages, put, put_all, replace, sorts

ALL = ["a", "b", "c", "d", "e"]


@pytest.fixture(name="filled")
def _filled(engine: Engine) -> Engine:
    """Return an engine with five rows of partition p between rows of its neighbours."""
    put_all(engine, [a_row(sort) for sort in reversed(ALL)])
    put_all(engine, [a_row(a_key("c", partition)) for partition in ("o", "pp", "p#", "P")])
    put_all(engine, [a_row(a_key("c", table=Table.JOBS))])
    return engine


def ask(
    *, after: str = "", before: str | None = None, limit: int = 100, descending: bool = False
) -> Query:
    """Return a query of partition p."""
    return Query(Table.RUNS, "p", after=after, before=before, limit=limit, descending=descending)


def test_a_query_returns_its_partition_in_the_order_of_sort_keys(filled: Engine) -> None:
    """Neither other partitions nor the order of writing play a part."""
    assert sorts(filled, ask()) == ALL


def test_a_query_can_run_from_the_end(filled: Engine) -> None:
    """Descending is the same rows in the opposite order."""
    assert sorts(filled, ask(descending=True)) == ALL[::-1]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ("b", None, "cde"),
        ("", "d", "abc"),
        ("a", "e", "bcd"),
        ("bb", "dd", "cd"),
        ("c", "d", ""),
        ("e", None, ""),
        ("", "a", ""),
        ("d", "b", ""),
    ],
)
def test_bounds_are_exclusive(
    filled: Engine, *, after: str, before: str | None, expected: str, descending: bool
) -> None:
    """`after` and `before` bound the sort key in either direction, and may lie between rows."""
    found = sorts(filled, ask(after=after, before=before, descending=descending))
    assert found == list(expected[::-1] if descending else expected)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_hold_the_limit_and_miss_no_row(
    filled: Engine, *, limit: int, descending: bool
) -> None:
    """The cursor continues behind the last row until nothing is left."""
    found = pages(filled, ask(limit=limit, descending=descending))
    assert max(map(len, found)) <= limit
    assert [row.key.sk for page in found for row in page] == (ALL[::-1] if descending else ALL)


@pytest.mark.parametrize("descending", [False, True])
def test_pages_stay_within_the_bounds(filled: Engine, *, descending: bool) -> None:
    """A cursor does not replace the bound that lies ahead of it."""
    query = ask(after="a", before="e", limit=2, descending=descending)
    assert sorts(filled, query) == (["d", "c", "b"] if descending else ["b", "c", "d"])


def test_a_cursor_continues_when_its_row_is_gone(filled: Engine) -> None:
    """Rows that were deleted or added between two pages move no other row across them."""
    page = filled.query(ask(limit=2))
    filled.write_many([])
    put(filled, a_row("aa"))
    rest = filled.query(ask(limit=10), page.cursor)
    assert [row.key.sk for row in rest.rows] == ["c", "d", "e"]


def test_an_empty_partition_is_an_empty_page(engine: Engine) -> None:
    """There is no difference between an empty partition and a missing one."""
    page = engine.query(ask())
    assert (list(page.rows), page.cursor) == ([], None)


def test_text_is_sorted_by_its_code_points(engine: Engine) -> None:
    """So do all engines: neither case nor language plays a part."""
    texts = ["#", "+", "-", "0", "A", "Z", "a", "z", "~", "é", "東", "🚀"]
    put_all(engine, [a_row(text) for text in reversed(texts)])
    assert sorts(engine, ask()) == texts


def test_a_query_sees_every_write_that_was_acknowledged(engine: Engine) -> None:
    """The base table is read strongly."""
    stored = put(engine, a_row(body={"n": 0}))
    for number in range(1, 6):
        stored = replace(engine, stored, a_row(body={"n": number}))
        assert engine.query(ask()).rows == [stored]


def test_large_rows_are_all_found(engine: Engine) -> None:
    """A store that bounds its answers by size says so with a cursor."""
    put_all(engine, [a_row(sort, {"t": "x" * 300_000}) for sort in ALL])
    assert sorts(engine, ask()) == ALL


def test_many_keys_are_read_in_the_order_asked(filled: Engine) -> None:
    """Missing rows are None at their place; a key asked twice is answered twice."""
    keys = [a_key("d"), a_key("zz"), a_key("a"), a_key("d"), a_key("c", table=Table.JOBS)]
    found = filled.get_many(keys)
    assert found == [filled.get(key) for key in keys]
    assert [row is None for row in found] == [False, True, False, False, False]


def test_many_keys_may_be_none(engine: Engine) -> None:
    """No keys, no rows, no error."""
    assert engine.get_many([]) == []


def test_more_keys_than_a_store_takes_at_once_are_read(engine: Engine) -> None:
    """The engine splits what its store bounds."""
    put_all(engine, [a_row(f"{number:03d}") for number in range(0, 230, 2)])
    found = engine.get_many([a_key(f"{number:03d}") for number in range(230)])
    assert [row is not None for row in found] == [number % 2 == 0 for number in range(230)]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_scan_sees_all_rows_of_its_table_once(filled: Engine, limit: int) -> None:
    """In any order, and of one table only."""
    found, cursor = [], None
    for _ in range(PAGES_MAX):
        page = filled.scan(Table.RUNS, limit, cursor)
        assert len(page.rows) <= limit
        found += [(row.key.pk, row.key.sk) for row in page.rows]
        cursor = page.cursor
        if cursor is None:
            break
    expected = [("p", sort) for sort in ALL] + [(name, "c") for name in ("o", "pp", "p#", "P")]
    assert sorted(found) == sorted(expected)


def test_a_scan_returns_whole_rows(engine: Engine) -> None:
    """What a scan shows can be written back."""
    stored = put(engine, a_row(body={"a": 1}, index=("i", "j"), expires_at_s=4_000_000_000))
    assert list(engine.scan(Table.RUNS, 10).rows) == [stored]
