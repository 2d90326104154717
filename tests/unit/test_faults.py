"""The engines that tests put around an engine do what their plan says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from dynsched.errors import OutcomeUnknown, StoreError, Throttled, Unavailable
from dynsched.storage.engine import Applied, Delete, Engine, PutNew, Query, Table
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.faults import (
    Call,
    CountingEngine,
    Crash,
    Fault,
    FaultyEngine,
    LaggingEngine,
)
from tests.contract.builders import HandClock, a_key, a_row, put, put_all, replace, sorts

INDEX = Query(Table.RUNS, "i", index=True)


@pytest.fixture(name="store")
def _store() -> Iterator[Engine]:
    with closing(SqliteEngine(None)) as store:
        store.init()
        yield store


def test_calls_are_listed_with_their_keys(store: Engine) -> None:
    """A scenario without a plan tells where it can be crashed."""
    engine = FaultyEngine(store)
    put(engine, a_row("a"))
    engine.get(a_key("a"))
    engine.get_many([a_key("a"), a_key("b")])
    put_all(engine, [a_row("b"), a_row("c")])
    engine.query(INDEX)
    assert [(call.number, call.method, [key.sk for key in call.keys]) for call in engine.calls] == [
        (1, "write", ["a"]),
        (2, "get", ["a"]),
        (3, "get_many", ["a", "b"]),
        (4, "write_many", ["b", "c"]),
        (5, "query", []),
    ]
    assert engine.calls[4].query == INDEX


@pytest.mark.parametrize(
    ("fault", "stored"), [(Fault.CRASH_BEFORE, False), (Fault.CRASH_AFTER, True)]
)
def test_a_crash_leaves_the_store_as_it_was_then(
    store: Engine, fault: Fault, *, stored: bool
) -> None:
    """Before or after the write."""
    engine = FaultyEngine(store, {2: fault})
    put(engine, a_row("first"))
    with pytest.raises(Crash):
        engine.write(PutNew(a_row()))
    assert (store.get(a_key()) is not None) is stored


def test_no_handler_of_exceptions_survives_a_crash() -> None:
    """A service that goes on after `except Exception` would go on in a dead process."""
    assert not issubclass(Crash, Exception)


def test_a_dead_process_makes_no_further_call(store: Engine) -> None:
    """What it does on its way out does not reach the store, nor the list of calls."""
    engine = FaultyEngine(store, {1: Fault.CRASH_BEFORE})
    for _ in range(2):
        with pytest.raises(Crash):
            engine.write(PutNew(a_row()))
    assert engine.crashed
    assert (len(engine.calls), store.get(a_key())) == (1, None)


@pytest.mark.parametrize(
    ("fault", "error", "stored"),
    [
        (Fault.LOST_APPLIED, OutcomeUnknown, True),
        (Fault.LOST_UNAPPLIED, OutcomeUnknown, False),
        (Fault.THROTTLE, Throttled, False),
        (Fault.UNAVAILABLE, Unavailable, False),
    ],
)
def test_a_fault_of_a_write_is_told_as_a_store_would(
    store: Engine, fault: Fault, error: type[StoreError], *, stored: bool
) -> None:
    """Only a lost answer leaves open what happened."""
    engine = FaultyEngine(store, {1: fault})
    with pytest.raises(error, match="as planned"):
        engine.write(PutNew(a_row()))
    assert (store.get(a_key()) is not None) is stored
    assert isinstance(engine.write(PutNew(a_row("next"))), Applied)


def test_a_lost_answer_to_a_read_is_no_unknown_outcome(store: Engine) -> None:
    """A read can simply be repeated."""
    engine = FaultyEngine(store, {1: Fault.LOST_APPLIED, 2: Fault.LOST_UNAPPLIED})
    for _ in range(2):
        with pytest.raises(Unavailable):
            engine.get(a_key())


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.CRASH_HALFWAY, Crash), (Fault.LOST_HALFWAY, OutcomeUnknown)]
)
def test_independent_writes_may_fail_halfway(
    store: Engine, fault: Fault, error: type[BaseException]
) -> None:
    """Some were made and some were not; writes that are made together are never halved."""
    rows = [a_row(f"{number}") for number in range(5)]
    with pytest.raises(error):
        FaultyEngine(store, {1: fault}).write_many([PutNew(row) for row in rows])
    with pytest.raises(error):
        FaultyEngine(store, {1: fault}).transact([PutNew(row) for row in rows[3:]])
    stored = store.get_many([row.key for row in rows])
    assert [row is not None for row in stored] == [True, True, False, False, False]


def test_a_plan_may_be_a_function_of_the_call(store: Engine) -> None:
    """So a fault can be tied to a row or a method."""

    def plan(call: Call) -> Fault:
        return Fault.THROTTLE if a_key("bad") in call.keys else Fault.NONE

    engine = FaultyEngine(store, plan)
    put(engine, a_row("good"))
    with pytest.raises(Throttled):
        engine.write(PutNew(a_row("bad")))


def test_a_new_entry_is_missing_from_a_lagging_index(store: Engine) -> None:
    """The base table shows it at once, the index when the lag is over."""
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=10)
    put(engine, a_row(index=("i", "1")))
    clock.move(9)
    assert sorts(engine, INDEX) == []
    assert engine.get(a_key()) is not None
    assert sorts(engine, Query(Table.RUNS, "p")) == ["s"]
    clock.move(1)
    assert sorts(engine, INDEX) == ["s"]


def test_a_count_lags_as_its_index_does(store: Engine) -> None:
    """Else levels would be right in tests before they are right on DynamoDB."""
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=10)
    put(engine, a_row(index=("i", "1")))
    assert (engine.count(INDEX, 9), engine.count(Query(Table.RUNS, "p"), 9)) == (0, 1)
    clock.move(10)
    assert engine.count(INDEX, 9) == 1


def test_a_lagging_index_shows_a_row_as_it_was(store: Engine) -> None:
    """A changed, a moved and a deleted row are found at their old places with old content."""
    changed, moved, gone = put_all(store, [a_row(name, index=("i", name)) for name in "cmg"])
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=10)
    now = replace(engine, changed, a_row("c", {"n": 2}, index=("i", "c")))
    replace(engine, moved, a_row("m"))
    engine.write(Delete(gone.key, gone.version))
    assert engine.query(INDEX).rows == [changed, gone, moved]
    clock.move(10)
    assert engine.query(INDEX).rows == [now]


def test_a_refused_write_does_not_reach_a_lagging_index(store: Engine) -> None:
    """Only what was applied is shown, of batches and transactions too."""
    stored = put(store, a_row(index=("i", "1")))
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=10)
    engine.write(PutNew(a_row(index=("i", "2"))))
    engine.write_many([PutNew(a_row(index=("i", "3"))), PutNew(a_row("t", index=("i", "4")))])
    engine.transact([PutNew(a_row(index=("i", "5"))), PutNew(a_row("u", index=("i", "6")))])
    clock.move(10)
    assert sorts(engine, INDEX) == ["s", "t"]
    assert engine.query(INDEX).rows[0] == stored


def test_a_shorter_lag_does_not_bring_back_an_older_version(store: Engine) -> None:
    """Changes of one row show in their order, or the older one not at all."""
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=60)
    stored = put(engine, a_row(index=("i", "1")))
    engine.lag_s = 1
    now = replace(engine, stored, a_row(index=("i", "2")))
    for _ in range(2):
        clock.move(59)
        assert engine.query(INDEX).rows == [now]


def test_purged_rows_leave_a_lagging_index_late(store: Engine) -> None:
    """As all others do."""
    put(store, a_row(index=("i", "1"), expires_at_s=5))
    clock = HandClock()
    engine = LaggingEngine(store, clock=clock, lag_s=10)
    assert engine.purge_expired(6, 10) == 1
    assert sorts(engine, INDEX) == ["s"]
    clock.move(10)
    assert sorts(engine, INDEX) == []


def test_requests_are_counted_by_service_and_method(store: Engine) -> None:
    """One count for each call, another for the rows that it is about."""
    engine = CountingEngine(store)
    dispatcher, worker = engine.labelled("dispatcher"), engine.labelled("worker")
    put_all(dispatcher, [a_row("a", index=("i", "1")), a_row("b")])
    worker.get(a_key("a"))
    worker.query(INDEX)
    worker.query(Query(Table.RUNS, "p"))
    assert engine.by_label() == {"dispatcher": 1, "worker": 3}
    assert engine.by_method("worker") == {"get": 1, "query": 2}
    assert engine.by_method() == {"write_many": 1, "get": 1, "query": 2}
    assert engine.rows["dispatcher", "write_many"] == 2
    assert engine.rows["worker", "query"] == 3


def test_counts_can_begin_again(store: Engine) -> None:
    """So that the next step of a scenario is counted alone."""
    engine = CountingEngine(store, "one")
    engine.get(a_key())
    engine.reset()
    engine.get(a_key())
    assert engine.by_label() == {"one": 1}
