"""An engine beside a model of its rows, through random batches of writes."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynsched.storage.engine import (
    Applied,
    Delete,
    Engine,
    Key,
    Outcome,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
    Write,
)
from tests.contract.builders import a_key, a_row, settled, sorts

_examples = itertools.count()

SORTS = ["a", "b", "c", "d"]
# A write: its kind, how far its guard is from the truth, and where in the index it puts the row.
WRITES = st.tuples(
    st.sampled_from(["put", "replace", "delete"]),
    st.sampled_from([0, 0, 0, 1, -1]),
    st.sampled_from([None, "1", "2"]),
)
BATCHES = st.tuples(
    st.sampled_from(["write_many", "transact", "write"]),
    st.dictionaries(st.sampled_from(SORTS), WRITES, min_size=1),
)


class Model:
    """The rows of one partition as they must be."""

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self.rows: dict[Key, Row] = {}

    def a_write(self, sort: str, kind: str, off: int, place: str | None) -> Write:
        """Return a write whose guard is right when `off` is 0."""
        key = a_key(sort, self.partition)
        row = a_row(key, index=None if place is None else (self.partition, place))
        stored = self.rows.get(key)
        seen = (1 if stored is None else stored.version) + off
        if kind == "put":
            return PutNew(row)
        return Replace(row, seen) if kind == "replace" else Delete(key, seen)

    def answers(self, writes: list[Write], *, together: bool) -> list[Outcome]:
        """Make writes and return what an engine must answer."""
        held = [self._holds(write) for write in writes]
        if together:
            held = [all(held)] * len(writes)
        return [self._answer(write, held=one) for write, one in zip(writes, held, strict=True)]

    def _holds(self, write: Write) -> bool:
        stored = self.rows.get(write.key)
        if isinstance(write, PutNew):
            return stored is None
        return stored is not None and stored.version == write.seen

    def _answer(self, write: Write, *, held: bool) -> Outcome:
        if not held:
            return Stale(self.rows.get(write.key))
        if isinstance(write, Delete):
            del self.rows[write.key]
            return Applied(None)
        row, version = write.row, 1 if isinstance(write, PutNew) else write.seen + 1
        stored = Row(row.key, row.body, row.index, row.expires_at_s, row.token, version)
        self.rows[write.key] = stored
        return Applied(stored)


def make(engine: Engine, how: str, writes: list[Write]) -> list[Outcome]:
    """Make writes in one of the three ways."""
    if how == "transact":
        return engine.transact(writes)
    if how == "write_many":
        return engine.write_many(writes)
    return [engine.write(write) for write in writes]


def same(answered: Outcome, right: Outcome, *, together: bool) -> bool:
    """Compare outcomes; a write refused for another one's guard need not tell its row."""
    if together and answered == Stale(None):
        return isinstance(right, Stale)
    return answered == right


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches=st.lists(BATCHES, min_size=1, max_size=8))
def test_an_engine_answers_as_its_model(
    engine: Engine, batches: list[tuple[str, dict[str, tuple[str, int, str | None]]]]
) -> None:
    """Every outcome, the rows, the index and the order of both, after each batch."""
    model = Model(f"p{next(_examples)}")
    for how, parts in batches:
        together = how == "transact"
        writes = [model.a_write(sort, *part) for sort, part in parts.items()]
        answered = make(engine, how, writes)
        right = model.answers(writes, together=together)
        pairs = zip(answered, right, strict=True)
        assert all(same(*pair, together=together) for pair in pairs)
    keys = [a_key(sort, model.partition) for sort in SORTS]
    assert engine.get_many(keys) == [model.rows.get(key) for key in keys]
    stored = [key.sk for key in keys if key in model.rows]
    assert sorts(engine, Query(Table.RUNS, model.partition)) == stored
    indexed = sorted(
        (row.index[1], row.key.sk) for row in model.rows.values() if row.index is not None
    )
    query = Query(Table.RUNS, model.partition, index=True)
    found = settled(engine, query, [sort for _, sort in indexed])
    assert sorted(found) == sorted(sort for _, sort in indexed)
