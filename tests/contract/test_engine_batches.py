"""Independent writes in one call, and writes that are made together."""

from __future__ import annotations

from dynsched.storage.engine import Applied, Delete, Engine, PutNew, Replace, Stale, Table
from tests.contract.builders import a_key, a_row, applied, put, put_all, replace


def test_independent_writes_each_have_their_outcome(engine: Engine) -> None:
    """In the order asked; a refused one carries its row and holds up no other."""
    old, other, gone = put_all(engine, [a_row("old"), a_row("other"), a_row("gone")])
    newer = replace(engine, old, a_row("old", {"by": "winner"}))
    new = a_row("new")
    outcomes = engine.write_many(
        [
            Replace(a_row("old"), old.version),
            PutNew(new),
            Delete(gone.key, gone.version),
            PutNew(a_row("other")),
            Replace(a_row("missing"), 1),
            Delete(a_key("missing too"), 1),
        ]
    )
    assert outcomes == [
        Stale(newer),
        Applied(engine.get(new.key)),
        Applied(None),
        Stale(other),
        Stale(None),
        Stale(None),
    ]


def test_independent_writes_change_what_they_say(engine: Engine) -> None:
    """What was answered is what is stored."""
    rows = put_all(engine, [a_row(f"{number}") for number in range(5)])
    outcomes = engine.write_many([Replace(a_row(row.key), row.version) for row in rows])
    assert engine.get_many([row.key for row in rows]) == [applied(one) for one in outcomes]


def test_independent_writes_may_be_none(engine: Engine) -> None:
    """No writes, no outcomes, no error."""
    assert engine.write_many([]) == []


def test_more_writes_than_a_store_takes_at_once_are_made(engine: Engine) -> None:
    """The engine splits what its store bounds; one stale write among them is found."""
    rows = put_all(engine, [a_row(f"{number:03d}") for number in range(130)])
    replace(engine, rows[77], a_row("077", {"by": "winner"}))
    outcomes = engine.write_many([Replace(a_row(row.key), row.version) for row in rows])
    assert [place for place, one in enumerate(outcomes) if isinstance(one, Stale)] == [77]
    assert sum(isinstance(one, Applied) for one in outcomes) == 129


def test_independent_writes_may_be_in_several_tables(engine: Engine) -> None:
    """Equal keys in two tables are different rows."""
    rows = [a_row(a_key(table=table), {"in": table.value}) for table in Table]
    engine.write_many([PutNew(row) for row in rows])
    stored = engine.get_many([row.key for row in rows])
    assert [row.body for row in stored if row is not None] == [row.body for row in rows]


def test_writes_together_are_all_made(engine: Engine) -> None:
    """A new row, a replaced one and a deleted one, in several tables."""
    old, gone = put_all(engine, [a_row("old"), a_row("gone")])
    name = a_row(a_key("name", table=Table.JOBS))
    outcomes = engine.transact(
        [PutNew(name), Replace(a_row("old"), old.version), Delete(gone.key, gone.version)]
    )
    stored = engine.get_many([name.key, old.key, gone.key])
    assert outcomes == [Applied(row) for row in stored]
    assert [None if row is None else row.version for row in stored] == [1, 2, None]


def test_one_failed_guard_stops_all_writes_together(engine: Engine) -> None:
    """Nothing is written, every answer is stale, and the failed one carries its row."""
    taken, old = put_all(engine, [a_row("taken"), a_row("old", index=("i", "1"))])
    outcomes = engine.transact(
        [PutNew(a_row("new")), Replace(a_row("old"), old.version), PutNew(a_row("taken"))]
    )
    assert all(isinstance(outcome, Stale) for outcome in outcomes)
    assert outcomes[2] == Stale(taken)
    assert engine.get_many([a_key("new"), old.key, taken.key]) == [None, old, taken]


def test_a_missing_row_stops_writes_together(engine: Engine) -> None:
    """A replacement and a delete of nothing are refused, each without a row."""
    for write in (Replace(a_row("missing"), 1), Delete(a_key("missing"), 1)):
        outcomes = engine.transact([PutNew(a_row("new")), write])
        assert outcomes == [Stale(None), Stale(None)]
        assert engine.get(a_key("new")) is None


def test_twenty_five_writes_go_together(engine: Engine) -> None:
    """The bound of the protocol holds on every store."""
    rows = [a_row(f"{number:02d}") for number in range(25)]
    outcomes = engine.transact([PutNew(row) for row in rows], durable=True)
    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert all(row is not None for row in engine.get_many([row.key for row in rows]))


def test_a_stale_row_told_by_a_batch_can_be_written_under(engine: Engine) -> None:
    """The loser of a race builds on what won, without another read."""
    stored = put(engine, a_row(body={"n": 0}))
    replace(engine, stored, a_row(body={"n": 1}))
    (outcome,) = engine.write_many([Replace(a_row(), stored.version)])
    assert isinstance(outcome, Stale)
    assert outcome.current is not None
    assert replace(engine, outcome.current, a_row(body={"n": 2})).version == 3
