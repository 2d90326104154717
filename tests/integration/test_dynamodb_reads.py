"""What is particular to DynamoDB in reading: batches in parts, pages, cursors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynsched.errors import (
    InvalidInput,
    StoreError,
    Throttled,
)
from dynsched.storage.dynamodb import BATCH_GET_TRIES, EMPTY_PAGES_MAX
from dynsched.storage.engine import (
    Engine,
    Key,
    PutNew,
    Query,
    Row,
    Table,
)
from dynsched.storage.item import to_item
from tests.integration.scripted_wire import Answer, Wire

WRITE = "w1"
KEY = Key(Table.RUNS, "job", "1")
ROW = Row(key=KEY, body={"state": "ready"}, token=WRITE)


def unprocessed(*keys: str) -> dict[str, Any]:
    """Return the part of an answer that leaves these rows unread."""
    wanted = [{"pk": {"S": "job"}, "sk": {"S": key}} for key in keys]
    return {"p-runs": {"Keys": wanted, "ConsistentRead": True}} if keys else {}


def test_a_batch_that_comes_in_parts_is_put_together(engine: Engine, wire: Wire) -> None:
    """As long as each call brings something it goes on, and keeps the order of the keys."""
    names = "abcdefgh"
    rows = [Row(key=Key(Table.RUNS, "job", name), body={}, version=1) for name in names]
    for place, row in enumerate(rows):
        part = {"Responses": {"p-runs": [to_item(row, 1)]}}
        left = {"UnprocessedKeys": unprocessed(*names[place + 1 :])}
        wire.answers.append((200, part | left))
    assert len(rows) > BATCH_GET_TRIES
    assert engine.get_many([row.key for row in rows]) == rows


def test_a_key_given_twice_is_asked_for_once(engine: Engine, wire: Wire) -> None:
    """DynamoDB refuses a batch that names a row twice."""
    wire.answers = [(200, {"Responses": {"p-runs": [to_item(ROW, 1)]}})]
    assert engine.get_many([KEY, KEY]) == [replace(ROW, version=1)] * 2
    assert len(wire.requests[0][1]["RequestItems"]["p-runs"]["Keys"]) == 1


def test_all_reads_of_base_tables_are_strong(engine: Engine, wire: Wire) -> None:
    """What was acknowledged is seen, also by a sweep; an index cannot be read so."""
    wire.answers = [(200, {"Items": []})]
    engine.get(KEY)
    engine.get_many([KEY])
    engine.query(Query(Table.RUNS, "job"))
    engine.scan(Table.RUNS, 10)
    engine.query(Query(Table.RUNS, "job", index=True))
    bodies = [body for _, body in wire.requests]
    bodies[1] = bodies[1]["RequestItems"]["p-runs"]
    assert [body.get("ConsistentRead") for body in bodies] == [True, True, True, True, None]


def test_a_batch_that_stays_unread_is_throttled(engine: Engine, wire: Wire) -> None:
    """Repetition is bounded, with growing pauses in between."""
    wire.answers = [(200, {"Responses": {}, "UnprocessedKeys": unprocessed("1")})]
    with pytest.raises(Throttled, match="p-runs"):
        engine.get_many([KEY])
    assert len(wire.requests) == BATCH_GET_TRIES
    assert wire.waits == sorted(wire.waits)


def test_many_rows_are_read_by_hundreds_and_each_once(ministack_engine: Engine) -> None:
    """250 keys of two tables, some twice and some absent, come back in their places."""
    keys = [Key(table, "job", str(n)) for n in range(110) for table in (Table.RUNS, Table.JOBS)]
    rows = [Row(key=key, body={"n": n}, version=1) for n, key in enumerate(keys) if n % 3]
    ministack_engine.write_many([PutNew(row) for row in rows])
    by_key = {row.key: row for row in rows}
    asked = keys + keys[:30]
    assert ministack_engine.get_many(asked) == [by_key.get(key) for key in asked]


# Pages


def page(*names: str, more: str = "") -> Answer:
    """Return an answer to a query: these rows, and perhaps the key to go on from."""
    items = [to_item(Row(key=Key(Table.RUNS, "job", name), body={}), 1) for name in names]
    last = {"LastEvaluatedKey": {"pk": {"S": "job"}, "sk": {"S": more}}} if more else {}
    return 200, {"Items": items} | last


def test_an_empty_page_with_a_cursor_is_stepped_over(engine: Engine, wire: Wire) -> None:
    """DynamoDB may answer nothing and still have more: no caller has to know."""
    wire.answers = [page(more="a"), page(more="b"), page("c")]
    found = engine.query(Query(Table.RUNS, "job"))
    assert [row.key.sk for row in found.rows] == ["c"]
    assert found.cursor is None
    starts = [body.get("ExclusiveStartKey", {}).get("sk") for _, body in wire.requests]
    assert starts == [None, {"S": "a"}, {"S": "b"}]


def test_endless_empty_pages_end_in_an_honest_answer(engine: Engine, wire: Wire) -> None:
    """The number of steps is bounded; the cursor says that there may be more."""
    wire.answers = [page(more="a")]
    found = engine.query(Query(Table.RUNS, "job"))
    assert (list(found.rows), found.cursor is None) == ([], False)
    assert len(wire.requests) == EMPTY_PAGES_MAX


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_both_bounds_of_a_query_are_outside(
    moto_engine: Engine, limit: int, descending: bool
) -> None:
    """BETWEEN takes its bounds in, the protocol leaves them out; pages stay complete."""
    for name in "abcdef":
        moto_engine.write(PutNew(Row(key=Key(Table.RUNS, "job", name), body={})))
    query = Query(Table.RUNS, "job", after="b", before="e", limit=limit, descending=descending)
    found, cursor = [], None
    for _ in range(10):
        answer = moto_engine.query(query, cursor)
        found += [row.key.sk for row in answer.rows]
        cursor = answer.cursor
        if cursor is None:
            break
    assert found == (["d", "c"] if descending else ["c", "d"])


@pytest.mark.parametrize(("after", "before"), [("b", "b"), ("c", "b"), ("", "")])
def test_an_empty_range_asks_nothing(engine: Engine, wire: Wire, after: str, before: str) -> None:
    """DynamoDB refuses a range that ends before it begins; here it is just empty."""
    assert engine.query(Query(Table.RUNS, "job", after=after, before=before)).cursor is None
    assert wire.requests == []


def test_a_cursor_goes_on_between_rows_of_one_index_key(ministack_engine: Engine) -> None:
    """Rows that share an index key come each once, page by page."""
    keys = [Key(Table.RUNS, f"job{number}", "1") for number in range(7)]
    index = ("ready#main", "same")
    ministack_engine.write_many([PutNew(Row(key=key, body={}, index=index)) for key in keys])
    found, cursor = [], None
    for _ in range(10):
        answer = ministack_engine.query(
            Query(Table.RUNS, "ready#main", index=True, limit=3), cursor
        )
        found += [row.key for row in answer.rows]
        cursor = answer.cursor
        if cursor is None:
            break
    assert sorted(found, key=lambda key: key.pk) == keys


@pytest.mark.parametrize("cursor", ["", "x", "bm8=", "WyJhIl0=", "é", "WyJqb2IiLCAiYSJd"])
def test_a_cursor_of_another_list_is_refused(engine: Engine, cursor: str) -> None:
    """A cursor comes back through a browser, so it may be anything."""
    with pytest.raises(InvalidInput, match="cursor"):
        engine.query(Query(Table.RUNS, "job", index=True), cursor)


def test_a_limit_below_one_is_refused(engine: Engine) -> None:
    """An empty page that says it is all would hide rows."""
    with pytest.raises(InvalidInput, match="limit"):
        engine.scan(Table.RUNS, 0)


def test_a_table_without_an_index_has_none_to_query(engine: Engine) -> None:
    """The schema file says which tables have an index."""
    with pytest.raises(InvalidInput, match="control has none"):
        engine.query(Query(Table.CONTROL, "x", index=True))


def test_an_item_of_somebody_else_is_named(engine: Engine, wire: Wire) -> None:
    """A foreign item in a table is told by its key, not by a missing attribute alone."""
    wire.answers = [(200, {"Item": {"pk": {"S": "job"}, "sk": {"S": "odd"}}})]
    with pytest.raises(StoreError, match=r"odd.*no dynsched row"):
        engine.get(KEY)
