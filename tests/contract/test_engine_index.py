"""The sparse index: who is in it, in which order, and how to page through it."""

from __future__ import annotations

import pytest

from dynsched.storage.engine import Delete, Engine, Query, Table
from tests.contract.builders import a_key, a_row, pages, put, put_all, replace, settled

EQUAL = [f"{number}" for number in range(7)]


def ask(
    partition: str = "i",
    *,
    after: str = "",
    before: str | None = None,
    limit: int = 100,
    descending: bool = False,
) -> Query:
    """Return a query of the index of the runs."""
    return Query(
        Table.RUNS,
        partition,
        index=True,
        after=after,
        before=before,
        limit=limit,
        descending=descending,
    )


def test_only_rows_with_an_index_entry_are_in_the_index(engine: Engine) -> None:
    """A row without an entry costs the index nothing."""
    put_all(engine, [a_row("in", index=("i", "1")), a_row("out")])
    assert settled(engine, ask(), ["in"]) == ["in"]


def test_the_index_holds_the_whole_row(engine: Engine) -> None:
    """What the index shows can be written back under its version."""
    stored = put(engine, a_row(body={"a": 1}, index=("i", "1"), expires_at_s=4_000_000_000))
    settled(engine, ask(), ["s"])
    assert list(engine.query(ask()).rows) == [stored]


def test_a_replaced_row_moves_in_the_index(engine: Engine) -> None:
    """It leaves its old partition and shows its new version in the new one."""
    stored = put(engine, a_row(index=("i", "1")))
    moved = replace(engine, stored, a_row(index=("k", "1")))
    assert settled(engine, ask(), []) == []
    assert settled(engine, ask("k"), ["s"]) == ["s"]
    assert list(engine.query(ask("k")).rows) == [moved]


def test_a_row_leaves_the_index_with_its_entry(engine: Engine) -> None:
    """A run that ended is found no more, and still stored."""
    stored = put(engine, a_row(index=("i", "1")))
    replace(engine, stored, a_row())
    assert settled(engine, ask(), []) == []
    assert engine.get(a_key()) is not None


def test_a_deleted_row_leaves_the_index(engine: Engine) -> None:
    """No entry outlives its row."""
    stored = put(engine, a_row(index=("i", "1")))
    engine.write(Delete(stored.key, stored.version))
    assert settled(engine, ask(), []) == []


def test_a_refused_write_changes_no_index_entry(engine: Engine) -> None:
    """A stale move is no move."""
    stored = put(engine, a_row(index=("i", "1")))
    current = replace(engine, stored, a_row(index=("i", "2")))
    outcome = engine.write_many([Delete(stored.key, stored.version)])
    assert settled(engine, ask(), ["s"]) == ["s"]
    assert list(engine.query(ask()).rows) == [current]
    assert outcome != []


def test_index_partitions_and_tables_are_apart(engine: Engine) -> None:
    """A partition whose name begins alike is another one, and so is another table's."""
    put_all(engine, [a_row(name, index=(name, "1")) for name in ("i", "ii", "i#", "I")])
    put(engine, a_row(a_key("job", table=Table.JOBS), index=("i", "1")))
    assert settled(engine, ask(), ["i"]) == ["i"]


def test_the_index_is_in_the_order_of_its_own_sort_key(engine: Engine) -> None:
    """The base key plays no part."""
    places = {"a": "3", "b": "1", "c": "2"}
    put_all(engine, [a_row(name, index=("i", sort)) for name, sort in places.items()])
    assert settled(engine, ask(), ["b", "c", "a"]) == ["b", "c", "a"]
    backwards = ["a", "c", "b"]
    assert settled(engine, ask(descending=True), backwards) == backwards


@pytest.mark.parametrize("descending", [False, True])
def test_bounds_of_an_index_query_are_exclusive(engine: Engine, *, descending: bool) -> None:
    """They bound the index's sort key, in either direction, also from page to page."""
    put_all(engine, [a_row(f"r{number}", index=("i", f"{number}")) for number in range(6)])
    expected = ["r2", "r3", "r4"][:: -1 if descending else 1]
    for limit in (1, 2, 100):
        query = ask(after="1", before="5", limit=limit, descending=descending)
        assert settled(engine, query, expected) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("descending", [False, True])
def test_rows_with_equal_sort_keys_are_each_found_once(
    engine: Engine, *, limit: int, descending: bool
) -> None:
    """The cursor continues between them; a bound by the sort key would skip the rest."""
    put_all(engine, [a_row(a_key("s", f"p{one}"), index=("i", "same")) for one in EQUAL])
    put_all(engine, [a_row(a_key("s", "first"), index=("i", "earlier"))])
    put_all(engine, [a_row(a_key("s", "last"), index=("i", "tomorrow"))])
    settled(engine, ask(), ["s"] * 9)
    found = pages(engine, ask(limit=limit, descending=descending))
    partitions = [row.key.pk for page in found for row in page]
    assert sorted(partitions) == sorted([*(f"p{one}" for one in EQUAL), "first", "last"])
    assert (partitions[0], partitions[-1]) == (
        ("last", "first") if descending else ("first", "last")
    )


def test_the_next_share_key_is_one_query_away(engine: Engine) -> None:
    """A skip scan: the first row behind all rows that begin alike."""
    names = ["acme#1", "acme#2", "bolt#1", "cent#1"]
    put_all(engine, [a_row(name, index=("i", name)) for name in names])
    settled(engine, ask(), names)
    seen, after = [], ""
    while rows := engine.query(ask(after=after, limit=1)).rows:
        seen.append(rows[0].key.sk)
        after = rows[0].key.sk.partition("#")[0] + "$"
    assert seen == ["acme#1", "bolt#1", "cent#1"]
