"""One engine used by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dynsched.storage.engine import (
    Applied,
    Engine,
    Outcome,
    PutNew,
    Query,
    Replace,
    Table,
)
from tests.contract.builders import a_key, a_row, applied, known, put, put_all

THREADS = 16
ROUNDS = 50


def at_once(call: Callable[[int], list[Outcome]], threads: int = THREADS) -> list[list[Outcome]]:
    """Call a function in several threads that start together, with the thread's number."""
    ready = threading.Barrier(threads)

    def go(number: int) -> list[Outcome]:
        ready.wait()
        return call(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(go, range(threads)))


def winners(outcomes: list[list[Outcome]]) -> list[int]:
    """Return how many threads won each round."""
    return [sum(isinstance(one, Applied) for one in each) for each in zip(*outcomes, strict=True)]


def test_exactly_one_thread_puts_a_new_row(threaded_engine: Engine) -> None:
    """Sixteen threads, fifty rows: each is made once, and the losers see the winner's."""
    outcomes = at_once(
        lambda number: [
            threaded_engine.write(PutNew(a_row(f"{one}", {"by": number}))) for one in range(ROUNDS)
        ]
    )
    assert winners(outcomes) == [1] * ROUNDS
    stored = threaded_engine.get_many([a_key(f"{one}") for one in range(ROUNDS)])
    told = [[known(one) for one in each] for each in zip(*outcomes, strict=True)]
    assert told == [[row] * THREADS for row in stored]


def test_exactly_one_thread_replaces_a_version(threaded_engine: Engine) -> None:
    """A claim has one winner, however many ask."""
    rows = put_all(threaded_engine, [a_row(f"{one}") for one in range(ROUNDS)])
    outcomes = at_once(
        lambda _: [threaded_engine.write(Replace(a_row(row.key), row.version)) for row in rows]
    )
    assert winners(outcomes) == [1] * ROUNDS


def test_batches_that_overlap_have_one_winner_for_each_row(threaded_engine: Engine) -> None:
    """Independent writes of several threads interleave row by row, never twice."""
    rows = put_all(threaded_engine, [a_row(f"{one:02d}") for one in range(ROUNDS)])

    def claim(number: int) -> list[Outcome]:
        turned = rows[number:] + rows[:number]
        outcomes = threaded_engine.write_many(
            [Replace(a_row(row.key), row.version) for row in turned]
        )
        return outcomes[len(rows) - number :] + outcomes[: len(rows) - number]

    assert winners(at_once(claim)) == [1] * ROUNDS


def test_no_increment_is_lost(threaded_engine: Engine) -> None:
    """Each thread repeats its guarded write until it is applied; all of them count."""
    put(threaded_engine, a_row(body={"n": 0}))

    def add(_: int) -> list[Outcome]:
        current = threaded_engine.get(a_key())
        made = 0
        while made < 5:
            assert current is not None
            row = a_row(body={"n": current.version})
            durable = current.version % 2 == 0
            outcome = threaded_engine.write(Replace(row, current.version), durable=durable)
            made += isinstance(outcome, Applied)
            current = known(outcome)
        return []

    at_once(add, threads=6)
    stored = threaded_engine.get(a_key())
    assert stored is not None
    assert (stored.body, stored.version) == ({"n": 30}, 31)


def test_transactions_never_show_half_of_themselves(threaded_engine: Engine) -> None:
    """Both rows of a pair change together or not at all, whoever wins."""
    pair = put_all(threaded_engine, [a_row("left", {"by": -1}), a_row("right", {"by": -1})])

    def change(number: int) -> list[Outcome]:
        body = {"by": number}
        return threaded_engine.transact(
            [Replace(a_row(row.key, body), row.version) for row in pair]
        )

    outcomes = at_once(change, threads=8)
    assert winners(outcomes) == [1, 1]
    left, right = threaded_engine.get_many([row.key for row in pair])
    assert left is not None
    assert right is not None
    assert left.body == right.body


def test_readers_see_versions_only_grow(threaded_engine: Engine) -> None:
    """Strong reads beside a writer never go back, by key or by query."""
    stored = put(threaded_engine, a_row())
    done = threading.Event()

    def watch(number: int) -> list[Outcome]:
        nonlocal stored
        if number == 0:
            for _ in range(100):
                stored = applied(threaded_engine.write(Replace(a_row(), stored.version)))
            done.set()
        last = 0
        while number > 0 and not done.is_set():
            row = threaded_engine.get(a_key())
            (queried,) = threaded_engine.query(Query(Table.RUNS, "p")).rows
            assert row is not None
            assert last <= row.version <= queried.version
            last = queried.version
        return []

    at_once(watch, threads=5)
    assert stored.version == 101
