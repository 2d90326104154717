"""The capacity meter, on cases counted by hand."""

# ruff: noqa: D102 - the methods of the small engine below are documented by the protocol

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from dynsched.errors import OutcomeUnknown, Throttled
from dynsched.storage.engine import (
    Applied,
    Delete,
    Key,
    Outcome,
    Page,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.item import row_size
from dynsched.storage.metering import (
    UNLABELLED,
    MeteringEngine,
    base_write_units,
    index_write_units,
    read_units,
)

KB = 1024
READY = ("ready#main", "acme")
LEASED = ("leased#s1", "acme")

Ask = Callable[[MeteringEngine], object]


def row_of(size: int, index: tuple[str, str] | None = None, name: str = "1") -> Row:
    """Return a stored row that takes so many bytes."""
    bare = Row(key=Key(Table.RUNS, "job", name), body={"x": ""}, index=index, version=1)
    row = replace(bare, body={"x": "y" * (size - row_size(bare))})
    assert row_size(row) == size
    return row


class DictEngine:
    """The smallest engine: rows in a dict, no faults but the one that is set."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.fault: Exception | None = None

    def init(self) -> bool:
        return False

    def get(self, key: Key) -> Row | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        return [self.rows.get(key) for key in keys]

    def query(self, query: Query, cursor: str | None = None) -> Page:
        del cursor
        rows = [row for row in self.rows.values() if row.key.table is query.table]
        return Page(rows=rows[: query.limit], cursor=None)

    def count(self, query: Query, most: int) -> int:
        return min(len(self.query(replace(query, limit=most)).rows), most)

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        return self.query(Query(table, "", limit=limit), cursor)

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        del durable
        if self.fault is not None:
            raise self.fault
        current = self.rows.get(write.key)
        seen = 0 if isinstance(write, PutNew) else write.seen
        if (current.version if current else 0) != seen:
            return Stale(current)
        if isinstance(write, Delete):
            del self.rows[write.key]
            return Applied(None)
        self.rows[write.key] = replace(write.row, version=seen + 1)
        return Applied(self.rows[write.key])

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        return [self.write(write, durable=durable) for write in writes]

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        before = dict(self.rows)
        outcomes = self.write_many(writes, durable=durable)
        if all(isinstance(outcome, Applied) for outcome in outcomes):
            return outcomes
        self.rows = before
        # As DynamoDB: a row whose own guard held is not told.
        return [o if isinstance(o, Stale) else Stale(None) for o in outcomes]

    def store_time(self) -> datetime | None:
        return None

    def purge_expired(self, now_s: int, limit: int) -> int:
        del now_s, limit
        return 0

    def close(self) -> None:
        self.rows.clear()


@pytest.fixture
def engine() -> DictEngine:
    """Give an empty engine."""
    return DictEngine()


@pytest.fixture
def meter(engine: DictEngine) -> MeteringEngine:
    """Give a meter over the engine."""
    return MeteringEngine(engine)


def written(meter: MeteringEngine, label: str = UNLABELLED) -> dict[str, float]:
    """Return the write units by place."""
    places = meter.report()[label]["places"]
    return {place: units["write"] for place, units in places.items() if units["write"]}


def read(meter: MeteringEngine) -> float:
    """Return all read units."""
    return meter.report()[UNLABELLED]["read"]


@pytest.mark.parametrize(
    ("old", "new", "base", "index"),
    [
        # A first write: the index takes an entry only if the row is in it.
        (None, row_of(500), 1, 0),
        (None, row_of(500, READY), 1, 1),
        (None, row_of(KB, READY), 1, 1),
        (None, row_of(KB + 1, READY), 2, 2),
        # A move in the index is a deletion and a new entry, each by its own size.
        (row_of(500, READY), row_of(500, LEASED), 1, 2),
        (row_of(500, READY), row_of(500, (READY[0], "other")), 1, 2),
        (row_of(3 * KB, READY), row_of(500, LEASED), 3, 4),
        # Into and out of the index.
        (row_of(500), row_of(500, READY), 1, 1),
        (row_of(500, READY), row_of(500), 1, 1),
        (row_of(2 * KB, READY), row_of(500), 2, 2),
        # The same entry with another content counts once, by the larger; unchanged not at all.
        (row_of(500, READY), row_of(501, READY), 1, 1),
        (row_of(3 * KB, READY), row_of(500, READY), 3, 3),
        (row_of(500, READY), row_of(500, READY), 1, 0),
        (row_of(500), row_of(3 * KB), 3, 0),
        # A deletion, by the row that was there; nothing there counts as the smallest.
        (row_of(2 * KB, READY), None, 2, 2),
        (row_of(2 * KB), None, 2, 0),
        (None, None, 1, 0),
    ],
)
def test_a_write_costs_by_what_it_changes(
    old: Row | None, new: Row | None, base: int, index: int
) -> None:
    """Each rule of the base table and of the index, by hand."""
    assert base_write_units(old, new) == base
    assert index_write_units(old, new) == index


@pytest.mark.parametrize(
    ("size", "strong", "units"),
    [(0, True, 1), (4096, True, 1), (4097, True, 2), (0, False, 0.5), (4097, False, 1)],
)
def test_a_read_costs_by_four_kilobytes(size: int, strong: bool, units: float) -> None:
    """An index read costs half of a strong one; nothing found costs as the smallest row."""
    assert read_units(size, strong=strong) == units


def test_a_claim_costs_one_unit_and_two_of_the_index(meter: MeteringEngine) -> None:
    """Put, claim and finish of a small run: 1+1, 1+2, 1+1 units."""
    meter.write(PutNew(row_of(500, READY)))
    meter.write(Replace(row_of(500, LEASED), seen=1))
    meter.write(Replace(row_of(500), seen=2))
    assert written(meter) == {"runs": 3, "runs/sparse": 4}
    assert meter.report()[UNLABELLED]["requests"] == {"put": 3}


def test_the_old_row_is_read_without_being_counted(meter: MeteringEngine) -> None:
    """What the meter itself has to know is no part of the bill."""
    meter.write(PutNew(row_of(500, READY)))
    meter.write(Delete(row_of(500).key, seen=1))
    assert read(meter) == 0
    assert written(meter) == {"runs": 2, "runs/sparse": 2}


@pytest.mark.parametrize(
    ("write", "units"),
    [
        (PutNew(row_of(500)), 3),
        (PutNew(row_of(5 * KB)), 5),
        (Replace(row_of(500), seen=9), 3),
        (Delete(row_of(500).key, seen=9), 3),
        (Replace(row_of(500, name="absent"), seen=9), 1),
        (Delete(row_of(500, name="absent").key, seen=9), 1),
    ],
)
def test_a_refused_write_costs_by_the_larger_row_and_no_index(
    engine: DictEngine, meter: MeteringEngine, write: Write, units: int
) -> None:
    """A lost race is charged by the row that won, or the one to be written if larger."""
    engine.write(PutNew(row_of(3 * KB, READY)))
    assert isinstance(meter.write(write), Stale)
    assert written(meter) == {"runs": units}


def test_a_transaction_costs_twice_on_the_base_table_only(meter: MeteringEngine) -> None:
    """Two writes of one unit: 4 units, and each index entry once."""
    rows = [row_of(500, READY, name) for name in "ab"]
    meter.transact([PutNew(row) for row in rows])
    assert written(meter) == {"runs": 4, "runs/sparse": 2}
    assert meter.report()[UNLABELLED]["requests"] == {"transact": 1}


def test_a_refused_transaction_costs_twice_and_no_index(
    engine: DictEngine, meter: MeteringEngine
) -> None:
    """All rows of it are charged, also one whose own guard held and that is not told."""
    rows = [row_of(size * KB, READY, name) for size, name in ((3, "a"), (5, "b"))]
    engine.write_many([PutNew(row) for row in rows])
    meter.transact([PutNew(row_of(500, READY, "a")), Delete(rows[1].key, seen=1)])
    assert written(meter) == {"runs": 2 * 3 + 2 * 5}


def test_independent_writes_are_requests_of_their_own(meter: MeteringEngine) -> None:
    """A batch saves round trips, not units."""
    meter.write_many([PutNew(row_of(KB + 1, name=name)) for name in "abc"])
    meter.write_many([Delete(row_of(500, name=name).key, seen=1) for name in "ab"])
    assert written(meter) == {"runs": 3 * 2 + 2 * 2}
    assert meter.report()[UNLABELLED]["requests"] == {"delete": 2, "put": 3}


def test_many_rows_are_read_at_the_price_of_each(engine: DictEngine, meter: MeteringEngine) -> None:
    """Two of 1 KB and an absent one: 3 units, though 4 KB would pay for all; a twin is free."""
    rows = [row_of(KB, name=name) for name in "ab"]
    engine.write_many([PutNew(row) for row in rows])
    keys = [row.key for row in rows]
    meter.get_many([*keys, keys[0], row_of(500, name="absent").key])
    assert read(meter) == 3


@pytest.mark.parametrize(("index", "units"), [(False, 3), (True, 1.5)])
def test_a_count_costs_as_the_rows_that_it_counts(
    engine: DictEngine, meter: MeteringEngine, *, index: bool, units: float
) -> None:
    """DynamoDB looks at the rows all the same; five of 2 KB are 10 KB."""
    engine.write_many([PutNew(row_of(2 * KB, name=name)) for name in "abcdefg"])
    assert meter.count(Query(Table.RUNS, "job", index=index), 5) == 5
    assert read(meter) == units
    assert meter.report()[UNLABELLED]["requests"] == {"count": 1}


def test_keys_count_one_request_for_each_hundred(meter: MeteringEngine) -> None:
    """250 keys are three BatchGetItem calls."""
    meter.get_many([Key(Table.JOBS, "job", str(number)) for number in range(250)])
    assert meter.report()[UNLABELLED]["requests"] == {"batch_get": 3}


@pytest.mark.parametrize(
    ("ask", "place", "units"),
    [
        (lambda meter: meter.query(Query(Table.RUNS, "job")), "runs", 2),
        (lambda meter: meter.query(Query(Table.RUNS, "x", index=True)), "runs/sparse", 1),
        (lambda meter: meter.scan(Table.RUNS, 100), "runs", 2),
        (lambda meter: meter.get(row_of(500, name="0").key), "runs", 1),
        (lambda meter: meter.query(Query(Table.JOBS, "none")), "jobs", 1),
    ],
)
def test_the_rows_of_a_page_are_added_before_rounding(
    engine: DictEngine, meter: MeteringEngine, ask: Ask, place: str, units: float
) -> None:
    """Five rows of 1 KB: 5 KB are 2 strong units, 1 on the index."""
    engine.write_many([PutNew(row_of(KB, name=str(number))) for number in range(5)])
    ask(meter)
    assert meter.report()[UNLABELLED]["places"][place]["read"] == units


def test_counts_go_to_the_innermost_label(meter: MeteringEngine) -> None:
    """A step of a service names what it does; outside of it the outer name counts again."""
    with meter.label("tick"):
        meter.write(PutNew(row_of(500, name="a")))
        with meter.label("claim"):
            meter.write(PutNew(row_of(500, name="b")))
        meter.write(PutNew(row_of(500, name="c")))
    assert written(meter, "tick") == {"runs": 2}
    assert written(meter, "claim") == {"runs": 1}
    assert UNLABELLED not in meter.report()


def test_an_unknown_outcome_counts_as_applied(engine: DictEngine, meter: MeteringEngine) -> None:
    """The bill of a lost answer is the higher of the two that are possible."""
    engine.fault = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        meter.write(PutNew(row_of(500, READY)))
    assert written(meter) == {"runs": 1, "runs/sparse": 1}


def test_a_throttled_write_costs_nothing(engine: DictEngine, meter: MeteringEngine) -> None:
    """DynamoDB does not charge what it refused for load."""
    engine.fault = Throttled("slow down")
    with pytest.raises(Throttled):
        meter.write_many([PutNew(row_of(500))])
    assert meter.report() == {}


def test_reset_begins_anew(meter: MeteringEngine) -> None:
    """A benchmark counts from after its preparation."""
    meter.write(PutNew(row_of(500)))
    meter.reset()
    assert meter.report() == {}
