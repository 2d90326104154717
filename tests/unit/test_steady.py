"""Passing faults are repeated, lost answers are settled, and no write is made twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsched.errors import OutcomeUnknown, StoreError, Throttled, Unavailable
from dynsched.storage.engine import (
    Applied,
    Delete,
    Engine,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.sqlite import SqliteEngine
from dynsched.storage.steady import REPORT_S, SteadyEngine
from dynsched.testing.faults import Call, Fault, FaultyEngine, Plan
from tests.contract.builders import HandClock, a_key, a_row, known, put, put_all, replace

LOST = [Fault.LOST_APPLIED, Fault.LOST_UNAPPLIED]


@pytest.fixture(name="store")
def _store() -> Iterator[Engine]:
    with closing(SqliteEngine(None)) as store:
        store.init()
        yield store


def steady(
    store: Engine, plan: Plan, *, clock: HandClock | None = None, attempts: int = 6
) -> SteadyEngine:
    """Return a steady engine on a store that fails as planned."""
    faulty = FaultyEngine(store, plan)
    return SteadyEngine(faulty, clock=clock or HandClock(), rng=Random(7), attempts=attempts)


def then(store: Engine, fault: Fault, act: Callable[[Engine], object]) -> Plan:
    """Plan a fault at the first write; a rival acts before the next call."""

    def plan(call: Call) -> Fault:
        if call.number == 2:
            act(store)
        return fault if call.number == 1 else Fault.NONE

    return plan


@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.UNAVAILABLE])
def test_a_refused_call_is_repeated_until_it_succeeds(store: Engine, fault: Fault) -> None:
    """Five refusals of a read or a write are not seen above."""
    plan = dict.fromkeys(range(1, 6), fault)
    assert isinstance(steady(store, plan).write(PutNew(a_row())), Applied)
    assert steady(store, plan).get(a_key()) == store.get(a_key())
    assert steady(store, plan).get_many([a_key()]) == store.get_many([a_key()])
    query = Query(Table.RUNS, "p")
    assert steady(store, plan).query(query) == store.query(query)
    assert steady(store, plan).scan(Table.RUNS, 10) == store.scan(Table.RUNS, 10)
    assert steady(store, plan).purge_expired(0, 1) == 0
    assert steady(store, plan).init() is False


def test_a_store_that_keeps_its_callers_waiting_is_reported_once_in_a_while(
    store: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs are late then, and the log names the cause without a line for each call."""
    caplog.set_level(logging.WARNING, logger="dynsched.store")
    clock = HandClock()
    engine = steady(store, dict.fromkeys([1, 2, 4, 6], Fault.THROTTLE), clock=clock)
    engine.get(a_key())
    engine.get(a_key())
    assert len(caplog.records) == 1
    assert "trying again" in caplog.text
    clock.move(REPORT_S)
    engine.get(a_key())
    assert len(caplog.records) == 2


def test_waits_double_with_full_jitter_up_to_the_cap(store: Engine) -> None:
    """Many processes that were refused at once must not come back at once."""
    clocks = [HandClock() for _ in range(200)]
    plan = dict.fromkeys(range(1, 10), Fault.THROTTLE)
    rng = Random(7)
    for clock in clocks:
        faulty = FaultyEngine(store, plan)
        SteadyEngine(faulty, clock=clock, rng=rng, attempts=10).get(a_key())
    ceilings = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    for waits, ceiling in zip(
        zip(*(one.waits for one in clocks), strict=True), ceilings, strict=True
    ):
        assert 0 <= min(waits) < 0.1 * ceiling
        assert 0.9 * ceiling < max(waits) <= ceiling


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.THROTTLE, Throttled), (Fault.UNAVAILABLE, Unavailable)]
)
def test_it_gives_up_after_its_attempts(
    store: Engine, fault: Fault, error: type[StoreError]
) -> None:
    """The kind of the last fault stays, and the message says how often it was tried."""
    clock = HandClock()
    engine = steady(store, lambda _: fault, clock=clock, attempts=4)
    with pytest.raises(error, match="gave up after 4 attempts"):
        engine.write(PutNew(a_row()))
    assert len(clock.waits) == 3


def body(outcome: Applied | Stale) -> object:
    """Return the body of the row that an outcome tells."""
    row = known(outcome)
    return None if row is None else row.body


@pytest.mark.parametrize("fault", LOST)
def test_a_new_row_with_a_lost_answer_is_made_once(store: Engine, fault: Fault) -> None:
    """Applied or not, the caller learns that it is there."""
    outcome = steady(store, {1: fault}).write(PutNew(a_row(body={"by": "me"})))
    assert outcome == Applied(store.get(a_key()))
    assert body(outcome) == {"by": "me"}


@pytest.mark.parametrize("fault", LOST)
def test_a_replacement_with_a_lost_answer_is_made_once(store: Engine, fault: Fault) -> None:
    """The version rises by one only."""
    stored = put(store, a_row())
    outcome = steady(store, {1: fault}).write(Replace(a_row(body={"n": 2}), stored.version))
    current = store.get(a_key())
    assert outcome == Applied(current)
    assert current is not None
    assert (current.body, current.version) == ({"n": 2}, 2)


@pytest.mark.parametrize("fault", LOST)
def test_a_delete_with_a_lost_answer_is_made(store: Engine, fault: Fault) -> None:
    """A row that is gone after a delete was sent is a success."""
    stored = put(store, a_row())
    assert steady(store, {1: fault}).write(Delete(stored.key, stored.version)) == Applied(None)
    assert store.get(a_key()) is None


def test_a_delete_of_a_missing_row_stays_stale(store: Engine) -> None:
    """Without a lost answer it was somebody else who deleted it."""
    assert steady(store, {}).write(Delete(a_key(), 1)) == Stale(None)


def rival_wins(engine: Engine) -> None:
    """Write a row over whatever is there."""
    current = engine.get(a_key())
    row = a_row(body={"by": "rival"})
    engine.write(PutNew(row) if current is None else Replace(row, current.version))


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("kind", ["put", "replace", "delete"])
def test_a_rival_that_writes_meanwhile_is_told(store: Engine, fault: Fault, kind: str) -> None:
    """After a lost answer the row that won is read and returned; nothing is written over it."""
    write: Write = PutNew(a_row())
    if kind != "put":
        seen = replace(store, put(store, a_row()), a_row()).version
        write = Replace(a_row(), seen) if kind == "replace" else Delete(a_key(), seen)
    outcome = steady(store, then(store, fault, rival_wins)).write(write)
    assert outcome == Stale(store.get(a_key()))
    assert body(outcome) == {"by": "rival"}


@pytest.mark.parametrize("together", [False, True])
def test_a_write_that_is_refused_because_of_itself_is_applied(
    store: Engine, *, together: bool
) -> None:
    """A repetition within a client library meets its own first try."""
    stored = put(store, a_row())
    writes: list[Write] = [Replace(a_row(body={"by": "me"}), stored.version), PutNew(a_row("new"))]
    store.transact(writes)
    engine = steady(store, {})
    outcomes = engine.transact(writes) if together else engine.write_many(writes)
    assert outcomes == [Applied(store.get(write.key)) for write in writes]
    assert [row.version for row in map(known, outcomes) if row is not None] == [2, 1]


@pytest.mark.parametrize("fault", [*LOST, Fault.LOST_HALFWAY, Fault.THROTTLE])
def test_each_of_many_writes_is_settled_apart(store: Engine, fault: Fault) -> None:
    """Whatever part of a batch was applied: each write ends applied once, or stale."""
    rows = put_all(store, [a_row(f"{number}") for number in range(6)])
    rival = replace(store, rows[4], a_row("4"))
    engine = steady(store, {1: fault})
    outcomes = engine.write_many([Replace(a_row(row.key), row.version) for row in rows])
    stored = store.get_many([row.key for row in rows])
    assert [isinstance(one, Applied) for one in outcomes] == [True] * 4 + [False, True]
    assert list(map(known, outcomes)) == stored
    assert [row.version for row in stored if row is not None] == [2] * 6
    assert stored[4] == rival


@pytest.mark.parametrize("fault", LOST)
def test_writes_together_are_settled_together(store: Engine, fault: Fault) -> None:
    """A new row, a replacement and a delete: all are there, once."""
    old, gone = put_all(store, [a_row("old"), a_row("gone")])
    writes: list[Write] = [PutNew(a_row()), Replace(a_row("old"), 1), Delete(gone.key, 1)]
    outcomes = steady(store, {1: fault}).transact(writes)
    assert outcomes == [Applied(store.get(write.key)) for write in writes]
    assert [row and row.version for row in map(known, outcomes)] == [1, 2, None]
    assert old.version == 1


@pytest.mark.parametrize("fault", LOST)
def test_deletes_together_are_settled_together(store: Engine, fault: Fault) -> None:
    """They have no token; that all rows are gone settles it."""
    rows = put_all(store, [a_row("a"), a_row("b")])
    outcomes = steady(store, {1: fault}).transact([Delete(row.key, 1) for row in rows])
    assert outcomes == [Applied(None), Applied(None)]
    assert store.get_many([row.key for row in rows]) == [None, None]


def test_a_transaction_that_lost_to_a_rival_is_stale(store: Engine) -> None:
    """Nothing of it is written later; each answer tells its row."""
    other = put(store, a_row("other"))
    plan = then(store, Fault.LOST_UNAPPLIED, rival_wins)
    outcomes = steady(store, plan).transact([PutNew(a_row()), Replace(a_row("other"), 1)])
    assert outcomes == [Stale(store.get(a_key())), Stale(other)]
    assert store.get(other.key) == other


def test_one_row_of_ours_proves_the_whole_transaction(store: Engine) -> None:
    """A rival changed one of its rows since; the caller still learns that it was applied."""
    plan = then(store, Fault.LOST_APPLIED, rival_wins)
    writes = [PutNew(a_row()), PutNew(a_row("other"))]
    outcomes = steady(store, plan).transact(writes)
    assert outcomes == [Applied(store.get(write.key)) for write in writes]
    assert body(outcomes[0]) == {"by": "rival"}


def test_an_answer_that_names_our_token_proves_the_transaction(store: Engine) -> None:
    """It was applied, although a rival has changed every row of it before they are read."""
    writes: list[Write] = [PutNew(a_row())]
    store.transact(writes)
    outcomes = steady(store, then(store, Fault.NONE, rival_wins)).transact(writes)
    assert outcomes == [Applied(store.get(a_key()))]
    assert body(outcomes[0]) == {"by": "rival"}


def test_what_cannot_be_settled_is_said_to_be_unknown(store: Engine) -> None:
    """The store went away after a write: neither success nor failure may be claimed."""

    def plan(call: Call) -> Fault:
        return Fault.LOST_APPLIED if call.number == 1 else Fault.UNAVAILABLE

    with pytest.raises(OutcomeUnknown, match="not known whether a write was applied"):
        steady(store, plan).write(PutNew(a_row()))


def test_a_refusal_after_a_lost_answer_is_not_a_refusal(store: Engine) -> None:
    """`Throttled` promises that nothing was written, which nobody knows here."""

    def plan(call: Call) -> Fault:
        if call.method.startswith("get"):
            return Fault.NONE
        return Fault.LOST_UNAPPLIED if call.number == 1 else Fault.THROTTLE

    with pytest.raises(OutcomeUnknown):
        steady(store, plan).write(PutNew(a_row()))


def test_every_row_needs_a_token(store: Engine) -> None:
    """Without one a lost answer could not be settled; that is a mistake of the program."""
    with pytest.raises(AssertionError, match="no token"):
        steady(store, {}).write(PutNew(Row(a_key(), {})))


FAULTS = st.sampled_from([*Fault])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(faults=st.lists(FAULTS.filter(lambda one: "crash" not in one), max_size=60))
def test_no_increment_is_lost_or_made_twice(faults: list[Fault]) -> None:
    """Ten counted increments under any faults make version eleven."""
    with closing(SqliteEngine(None)) as store:
        store.init()
        current: Row | None = put(store, a_row())
        engine = steady(store, dict(enumerate(faults, 1)), attempts=100)
        for _ in range(10):
            assert current is not None
            outcome = engine.write_many([Replace(a_row(), current.version)])[0]
            assert isinstance(outcome, Applied)
            current = outcome.row
        assert store.get(a_key()) == current
        assert current is not None
        assert current.version == 11
