"""Measure what SQLite gives without dynsched, and what dynsched's SQLite engine makes of it.

The floor is a bare loop of guarded writes: claim and complete each row, in WAL mode without
waiting for the disk, with a sparse index of the rows that are due. The engine does the same with
whole rows of JSON, versions, tokens and an index with two columns.

    python -m bench.floor --rows 10000
    python -m bench.floor --waiting 100000      # the same speeds with a long backlog?
    python -m bench.floor --computing 1         # and beside a thread that computes?
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from bench.options import Options
from bench.report import Figure
from dynsched.storage.engine import Applied, Json, Key, Outcome, PutNew, Query, Replace, Row, Table
from dynsched.storage.sqlite import SqliteEngine

DUE = "ready#main#default#0"
BODY: dict[str, Json] = {
    "job_id": "0192f0c1-7a5e-7bbb-8ccc-1234567890ab",
    "tenant": "acme",
    "queue": "main",
    "priority": "default",
    "scheduled_for": "2026-01-02T03:04:05.006Z",
    "attempt": 0,
    "spent": 0,
    "fence": 0,
    "target": {"kind": "handler", "name": "billing.send_invoice"},
    "limits": {"soft_s": 300, "hard_s": 600},
    "payload": "x" * 240,
}
FLOOR_BODY = "x" * 300


def say(text: str) -> None:
    """Write one line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def report(name: str, count: int, unit: str, call: Callable[[], object]) -> None:
    """Run a call that handles `count` things and print how many a second that is."""
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    say(f"  {name:<44} {count / seconds:>12,.0f} {unit}/s")


def batches(count: int, size: int) -> Iterator[range]:
    """Yield the numbers below `count` in ranges of `size`."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


@contextmanager
def computing(threads: int) -> Iterator[None]:
    """Keep threads busy with Python code, as handlers that compute would."""
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            sum(range(1000))

    workers = [threading.Thread(target=compute) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        done.set()
        for worker in workers:
            worker.join()


def bare_store(path: Path, rows: int, waiting: int) -> sqlite3.Connection:
    """Return a connection to a table of due rows."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute(
        "create table run (id integer primary key, version integer not null, due text, body text)"
    )
    connection.execute("create index run_due on run (due) where due is not null")
    connection.execute("begin immediate")
    connection.executemany(
        "insert into run values (?, 1, ?, ?)",
        ((number, f"{number:08d}", FLOOR_BODY) for number in range(max(rows, waiting))),
    )
    connection.execute("commit")
    return connection


def bare_by_id(connection: sqlite3.Connection, rows: int) -> None:
    """Claim and complete rows whose ids are known, each write its own commit."""
    change = "update run set version = version + 1, due = ?, body = ? where id = ? and version = ?"
    for number in range(rows):
        for version in (1, 2):
            changed = connection.execute(change, (None, FLOOR_BODY, number, version)).rowcount
            assert changed == 1


def bare_by_index(connection: sqlite3.Connection, rows: int, size: int) -> None:
    """Find due rows in the index, claim a batch in one commit, complete it in another."""
    claim = (
        "update run set version = version + 1, due = null where id in"
        " (select id from run where due is not null order by due limit ?) returning id, version"
    )
    complete = "update run set version = version + 1, body = ? where id = ? and version = ?"
    done = 0
    while done < rows:
        found = connection.execute(claim, (size,)).fetchall()
        connection.execute("begin immediate")
        for number, version in found:
            connection.execute(complete, (FLOOR_BODY, number, version))
        connection.execute("commit")
        done += len(found)


def measure_floor(folder: Path, rows: int, waiting: int) -> None:
    """Print the speeds of SQLite alone."""
    say(f"floor: SQLite {sqlite3.sqlite_version} alone, {max(rows, waiting):,} rows due")
    with closing(bare_store(folder / "id.db", rows, waiting)) as connection:
        report(
            "claim + complete, by id, one by one",
            rows,
            "runs",
            lambda: bare_by_id(connection, rows),
        )
    for size in (1, 10, 100):
        with closing(bare_store(folder / f"index-{size}.db", rows, waiting)) as connection:
            report(
                f"claim + complete, found by index, by {size}",
                rows,
                "runs",
                lambda c=connection, s=size: bare_by_index(c, rows, s),  # type: ignore[misc]
            )


def run_key(number: int) -> Key:
    """Return the key of a run: jobs have random ids, so keys are in no order."""
    return Key(Table.RUNS, sha256(b"%d" % number).hexdigest()[:32], "2026-01-02T03:04:05.006Z#c")


def due_row(number: int) -> Row:
    """Return a run that is due."""
    return Row(run_key(number), BODY, (DUE, f"acme#{number:012d}"), None, f"made-{number}")


def moved(rows: Sequence[Row], partition: str | None) -> list[Replace]:
    """Return writes that move rows to another index partition, or out of the index."""
    return [
        Replace(
            Row(
                row.key,
                row.body,
                None if partition is None else (partition, row.key.pk),
                1_900_000_000 if partition is None else None,
                row.token,
            ),
            row.version,
        )
        for row in rows
    ]


def stored(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return the rows of writes that were all made."""
    rows = [outcome.row for outcome in outcomes if isinstance(outcome, Applied)]
    assert len(rows) == len(outcomes)
    return [row for row in rows if row is not None]


def drain(engine: SqliteEngine, rows: int, size: int) -> None:
    """Find due runs in the index, claim a batch, complete it."""
    done = 0
    while done < rows:
        found = engine.query(Query(Table.RUNS, DUE, index=True, limit=size)).rows
        claimed = write_all(engine, moved(found, "leased#session"))
        done += len(write_all(engine, moved(claimed, None)))


def write_all(engine: SqliteEngine, writes: Sequence[Replace]) -> list[Row]:
    """Make writes the way a single one or a batch is made."""
    if len(writes) == 1:
        return stored([engine.write(writes[0])])
    return stored(engine.write_many(writes))


@contextmanager
def filled(path: Path | None, rows: int) -> Iterator[SqliteEngine]:
    """Give an engine with due runs."""
    with closing(SqliteEngine(None if path is None else str(path))) as engine:
        engine.init()
        for batch in batches(rows, 1000):
            engine.write_many([PutNew(due_row(number)) for number in batch])
        yield engine


def measure_calls(engine: SqliteEngine, rows: int, first: int) -> None:
    """Print the speed of each kind of call."""
    made = range(first, first + rows)
    keys = [run_key(number - first) for number in made]
    groups = [keys[batch.start : batch.stop] for batch in batches(rows, 100)]
    report("put_new, 100 a call", rows, "writes", lambda: [
        engine.write_many([PutNew(due_row(first + number)) for number in batch])
        for batch in batches(rows, 100)
    ])  # fmt: skip
    few = range(first + rows, first + rows + rows // 10)
    report("put_new, one by one", len(few), "writes", lambda: [
        engine.write(PutNew(due_row(number))) for number in few
    ])  # fmt: skip
    few = range(few.stop, few.stop + min(rows // 10, 500))
    report("put_new, one by one, durable", len(few), "writes", lambda: [
        engine.write(PutNew(due_row(number)), durable=True) for number in few
    ])  # fmt: skip
    report("get", rows, "rows", lambda: [engine.get(key) for key in keys])
    report("get_many, 100 a call", rows, "rows", lambda: [engine.get_many(one) for one in groups])
    report("query of the index, 100 a page", rows, "rows", lambda: read_index(engine, rows))
    found = [row for one in groups for row in engine.get_many(one) if row is not None]
    report("replace, 100 a call", rows, "writes", lambda: [
        engine.write_many(moved(found[batch.start : batch.stop], None))
        for batch in batches(rows, 100)
    ])  # fmt: skip
    found = [row for one in groups for row in engine.get_many(one) if row is not None]
    report("replace, one by one", rows, "writes", lambda: [
        engine.write(write) for write in moved(found, None)
    ])  # fmt: skip


def read_index(engine: SqliteEngine, rows: int) -> None:
    """Read pages of the index."""
    read, cursor = 0, None
    while read < rows:
        page = engine.query(Query(Table.RUNS, DUE, index=True, limit=100), cursor)
        read, cursor = read + len(page.rows), page.cursor


def measure_engine(path: Path | None, rows: int, waiting: int) -> None:
    """Print the speeds of the engine."""
    backlog = max(rows, waiting)
    say(f"engine: {'memory' if path is None else 'file'}, {backlog:,} runs due")
    for size in (1, 10, 100):
        place = None if path is None else path / f"drain-{size}.db"
        with filled(place, backlog) as engine:
            report(
                f"claim + complete, found by index, by {size}",
                rows,
                "runs",
                lambda e=engine, s=size: drain(e, rows, s),  # type: ignore[misc]
            )
    with filled(None if path is None else path / "calls.db", backlog) as engine:
        measure_calls(engine, rows, backlog)


def measure(options: Options) -> list[Figure]:
    """Measure SQLite alone, for the table of all benchmarks."""
    rows, figures = 10_000, []
    for size in (1, 10, 32, 100):
        path = options.folder / f"floor-{size}.db"
        with closing(bare_store(path, rows, rows)) as connection:
            began = time.perf_counter()
            bare_by_index(connection, rows, size)
            took_s = time.perf_counter() - began
        name = f"claim + complete, found by index, by {size}"
        note = f"10,000 at one instant: {took_s:.2f} s"
        figures.append(Figure(name, rows / took_s, "runs/s", note=note))
    return figures


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description="Speeds of SQLite alone and of its engine.")
    parser.add_argument("--rows", type=int, default=10_000, help="rows handled by each measure")
    parser.add_argument("--waiting", type=int, default=0, help="rows due at the start, if more")
    parser.add_argument("--computing", type=int, default=0, help="threads that compute meanwhile")
    parser.add_argument("--only", choices=("floor", "file", "memory"), help="measure only this")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dynsched-floor-") as name, computing(chosen.computing):
        folder = Path(name)
        if chosen.only in (None, "floor"):
            measure_floor(folder, chosen.rows, chosen.waiting)
        if chosen.only in (None, "file"):
            measure_engine(folder, chosen.rows, chosen.waiting)
        if chosen.only in (None, "memory"):
            measure_engine(None, chosen.rows, chosen.waiting)


if __name__ == "__main__":
    main()
