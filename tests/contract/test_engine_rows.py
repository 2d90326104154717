"""What one guarded write does to one row."""

from __future__ import annotations

import pytest

from dynsched.storage.engine import Applied, Body, Delete, Engine, PutNew, Replace, Stale, Table
from tests.contract.builders import a_key, a_row, put, replace

BODIES: dict[str, Body] = {
    "empty": {},
    "nested": {"a": {"b": [1, {"c": [None, True, False, []]}], "d": {}}},
    "numbers": {"n": [0, -1, 2**53 + 1, 2**63 + 1, 0.1, -1.5e-7, 1e20]},
    "text": {"t": ["", " ", "Zürich 東京 🚀 \u200f", 'quote " back \\ slash /', "'; --"]},
    "control": {"t": "a\0b\n\r\t\x1f\x7f\u2028", "line\nname": 1},
    "large": {"t": "x" * 100_000, "u": ["é" * 20_000] * 5},
}


def test_a_new_row_is_read_back_with_all_its_parts(engine: Engine) -> None:
    """Body, index entry, expiry and token come back; the version is 1."""
    row = a_row(body={"a": [1]}, index=("i", "j"), expires_at_s=4_000_000_000)
    outcome = engine.write(PutNew(row))
    stored = engine.get(row.key)
    assert outcome == Applied(stored)
    assert stored is not None
    assert (stored.version, stored.token) == (1, row.token)
    assert (stored.body, stored.index, stored.expires_at_s) == (
        {"a": [1]},
        ("i", "j"),
        4_000_000_000,
    )


def test_a_row_that_is_not_there_reads_as_none(engine: Engine) -> None:
    """A missing row is an answer, not an error."""
    assert engine.get(a_key("nobody")) is None


@pytest.mark.parametrize("name", BODIES)
def test_a_body_comes_back_as_it_was_written(engine: Engine, name: str) -> None:
    """No text, number or nesting is changed on its way, up to some 300 kB."""
    put(engine, a_row(body=BODIES[name]))
    stored = engine.get(a_key())
    assert stored is not None
    assert stored.body == BODIES[name]


@pytest.mark.parametrize("sort", ["ключ", "a#b+c~d", "東京", "with space", "'quote\"", "%_*?"])
def test_a_key_may_hold_any_text(engine: Engine, sort: str) -> None:
    """Keys are data: nothing in them is taken for syntax."""
    put(engine, a_row(a_key(sort, partition=sort)))
    assert engine.get(a_key(sort, partition=sort)) is not None
    assert engine.get(a_key(sort, partition="other")) is None


@pytest.mark.parametrize("table", Table)
def test_a_row_lies_in_its_table_only(engine: Engine, table: Table) -> None:
    """Equal keys in two tables are two rows."""
    put(engine, a_row(a_key(table=table)))
    found = [engine.get(a_key(table=other)) is not None for other in Table]
    assert found == [other is table for other in Table]


def test_the_version_that_a_row_carries_is_ignored(engine: Engine) -> None:
    """An engine counts versions itself, from the guard."""
    stored = put(engine, a_row())
    again = replace(engine, stored, stored)
    third = replace(engine, again, again)
    assert [stored.version, again.version, third.version] == [1, 2, 3]


def test_put_new_refuses_a_key_that_exists(engine: Engine) -> None:
    """The loser is told the row that is there, and changes nothing."""
    stored = put(engine, a_row(body={"by": "first"}, index=("i", "j")))
    outcome = engine.write(PutNew(a_row(body={"by": "second"})))
    assert outcome == Stale(stored)
    assert engine.get(a_key()) == stored


def test_replace_replaces_the_whole_row(engine: Engine) -> None:
    """Nothing of the earlier version stays: no attribute, no index entry, no expiry."""
    stored = put(engine, a_row(body={"a": 1, "b": 2}, index=("i", "j"), expires_at_s=4_000_000_000))
    row = a_row(body={"c": 3})
    outcome = engine.write(Replace(row, stored.version))
    current = engine.get(a_key())
    assert outcome == Applied(current)
    assert current is not None
    assert (current.body, current.index, current.expires_at_s) == ({"c": 3}, None, None)
    assert (current.version, current.token) == (2, row.token)


@pytest.mark.parametrize("seen", [1, 3, 4])
def test_replace_refuses_any_version_but_the_one_seen(engine: Engine, seen: int) -> None:
    """The row has version 2: an older guard fails, and so does one from the future."""
    stored = put(engine, a_row())
    current = replace(engine, stored, a_row(body={"by": "winner"}, index=("i", "j")))
    assert engine.write(Replace(a_row(), seen)) == Stale(current)
    assert engine.get(a_key()) == current


def test_replace_of_a_missing_row_is_stale_without_a_row(engine: Engine) -> None:
    """A row that was deleted meanwhile is not brought back."""
    assert engine.write(Replace(a_row(), 1)) == Stale(None)
    assert engine.get(a_key()) is None


def test_delete_removes_the_version_seen(engine: Engine) -> None:
    """A delete answers without a row."""
    stored = put(engine, a_row())
    assert engine.write(Delete(a_key(), stored.version)) == Applied(None)
    assert engine.get(a_key()) is None


def test_delete_refuses_another_version(engine: Engine) -> None:
    """A row that was changed meanwhile stays, and is told."""
    stored = put(engine, a_row())
    current = replace(engine, stored, a_row(body={"by": "winner"}))
    assert engine.write(Delete(a_key(), stored.version)) == Stale(current)
    assert engine.get(a_key()) == current


def test_delete_of_a_missing_row_is_stale_without_a_row(engine: Engine) -> None:
    """Somebody else deleted it: a lost race, not a success."""
    assert engine.write(Delete(a_key(), 1)) == Stale(None)


def test_a_deleted_key_begins_again_at_version_one(engine: Engine) -> None:
    """A row's history ends with it."""
    stored = replace(engine, put(engine, a_row()), a_row())
    engine.write(Delete(a_key(), stored.version))
    assert put(engine, a_row()).version == 1


def test_durable_writes_answer_like_the_others(engine: Engine) -> None:
    """Durability is about power cuts and changes no outcome."""
    outcome = engine.write(PutNew(a_row()), durable=True)
    assert isinstance(outcome, Applied)
    assert engine.write(PutNew(a_row()), durable=True) == Stale(outcome.row)


def test_init_may_be_repeated_and_keeps_the_rows(engine: Engine) -> None:
    """Only the first call makes tables."""
    put(engine, a_row())
    assert engine.init() is False
    assert engine.get(a_key()) is not None


def test_only_expired_rows_are_purged_and_no_more_than_the_limit(engine: Engine) -> None:
    """A store that expires rows by itself purges none; a row without expiry never goes."""
    keys = [a_key(sort) for sort in ("past-1", "past-2", "past-3", "edge", "future", "none")]
    expiries = [4_000_000_000, 4_000_000_001, 4_000_000_002, 4_000_000_010, 4_000_000_011, None]
    for key, expires_at_s in zip(keys, expiries, strict=True):
        put(engine, a_row(key, expires_at_s=expires_at_s))
    purged = engine.purge_expired(4_000_000_010, 2)
    left = [row for row in engine.get_many(keys) if row is not None]
    assert purged <= 2
    assert len(left) == len(keys) - purged
    assert [row.key for row in left][-3:] == keys[-3:]
