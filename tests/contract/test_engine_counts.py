"""Counts: the rows of a query without the rows."""

from __future__ import annotations

import pytest

from dynsched.storage.engine import Engine, Query, Table
from tests.contract.builders import SETTLE_READS_MAX, a_key, a_row, put_all

MOST = 1_000


def settled_count(engine: Engine, query: Query, expected: int, most: int = MOST) -> int:
    """Return a count, after the index has had time to reach what is expected."""
    for _ in range(SETTLE_READS_MAX):
        if engine.count(query, most) == expected:
            break
    return engine.count(query, most)


@pytest.fixture(name="filled")
def _filled(engine: Engine) -> Engine:
    """Return an engine with rows of partition p and of index partition i, among neighbours."""
    put_all(engine, [a_row(sort, index=("i", f"x{sort}")) for sort in "abcde"])
    put_all(engine, [a_row(a_key("c", "pp"), index=("ii", "xc"))])
    put_all(engine, [a_row(a_key("c", "q"), index=("i", "xc"))])
    return engine


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ("", None, 5),
        ("b", None, 3),
        ("", "d", 3),
        ("a", "e", 3),
        ("bb", "dd", 2),
        ("c", "d", 0),
        ("d", "b", 0),
        ("e", None, 0),
    ],
)
def test_a_count_keeps_the_bounds_of_its_query(
    filled: Engine, *, after: str, before: str | None, expected: int
) -> None:
    """Both bounds are exclusive and only the partition's own rows count."""
    assert filled.count(Query(Table.RUNS, "p", after=after, before=before), MOST) == expected


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [("", None, 6), ("xb", None, 4), ("", "xc", 2), ("xa", "xe", 4), ("xb", "xc", 0)],
)
def test_a_count_of_an_index_keeps_its_bounds_too(
    filled: Engine, *, after: str, before: str | None, expected: int
) -> None:
    """Rows of one sort key all count, and none at a bound does."""
    query = Query(Table.RUNS, "i", index=True, after=after, before=before)
    assert settled_count(filled, query, expected) == expected


@pytest.mark.parametrize(("after", "before"), [("", None), ("xa", None), ("xa", "xz")])
@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 6, 7])
def test_a_count_goes_no_further_than_it_is_asked(
    filled: Engine, *, after: str, before: str | None, most: int
) -> None:
    """Whether more rows lie behind is not told: who wants to know asks for one more."""
    query = Query(Table.RUNS, "i", index=True, after=after, before=before)
    expected = min(most, 6 if not after else 5)
    assert settled_count(filled, query, expected, most) == expected


def test_a_count_says_nothing_of_limit_and_direction(filled: Engine) -> None:
    """They are for pages."""
    assert filled.count(Query(Table.RUNS, "p", limit=1, descending=True), MOST) == 5


def test_an_empty_partition_counts_nothing(engine: Engine) -> None:
    """As for a query there is no difference between an empty partition and a missing one."""
    assert engine.count(Query(Table.RUNS, "p"), MOST) == 0
    assert engine.count(Query(Table.RUNS, "p", index=True), MOST) == 0


def test_rows_of_several_megabytes_are_all_counted(engine: Engine) -> None:
    """A store that bounds what it looks at in one request is asked again."""
    put_all(engine, [a_row(sort, {"t": "x" * 300_000}) for sort in "abcdef"])
    assert engine.count(Query(Table.RUNS, "p"), MOST) == 6
    assert engine.count(Query(Table.RUNS, "p", after="a", before="f"), MOST) == 4
