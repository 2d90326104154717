"""Rows and writes with defaults, reads that wait until an index has settled, and a clock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from dynsched.domain.instants import Signal
from dynsched.storage.engine import (
    Applied,
    Body,
    Engine,
    Key,
    Outcome,
    PutNew,
    Query,
    Replace,
    Row,
    Table,
)

SETTLE_READS_MAX = 200
SETTLE_PAUSE_S = 0.05
PAGES_MAX = 1000

_tokens = itertools.count(1)
_never = threading.Event()


class HandClock:
    """A clock that moves when told to, or when somebody waits on it.

    Attributes:
        waits: how long each wait was, seconds.
    """

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self.waits: list[float] = []

    def now(self) -> datetime:
        """Return the present instant."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds since some instant."""
        return self._now.timestamp()

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Wait, and say whether the event is set."""
        self.wait(seconds)
        return event.is_set()

    def wait(self, seconds: float) -> None:
        """Let time pass at once."""
        self.waits.append(seconds)
        self.move(seconds)

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)


def a_key(sort: str = "s", partition: str = "p", table: Table = Table.RUNS) -> Key:
    """Return a key."""
    return Key(table, partition, sort)


def a_row(
    key: Key | str = "s",
    body: Body | None = None,
    *,
    index: tuple[str, str] | None = None,
    expires_at_s: int | None = None,
) -> Row:
    """Return a row to be written, with a token that no other row has."""
    return Row(
        a_key(key) if isinstance(key, str) else key,
        {"n": 1} if body is None else body,
        index,
        expires_at_s,
        f"token-{next(_tokens)}",
    )


def put(engine: Engine, row: Row) -> Row:
    """Store a new row and return what was stored."""
    return applied(engine.write(PutNew(row)))


def replace(engine: Engine, stored: Row, row: Row) -> Row:
    """Replace a stored row and return what was stored."""
    return applied(engine.write(Replace(row, stored.version)))


def applied(outcome: Outcome) -> Row:
    """Return the row of a write that must have been made."""
    assert isinstance(outcome, Applied)
    assert outcome.row is not None
    return outcome.row


def known(outcome: Outcome) -> Row | None:
    """Return the row that an outcome tells."""
    return outcome.row if isinstance(outcome, Applied) else outcome.current


def put_all(engine: Engine, rows: Sequence[Row]) -> list[Row]:
    """Store new rows."""
    return [applied(outcome) for outcome in engine.write_many([PutNew(row) for row in rows])]


def pages(engine: Engine, query: Query) -> list[list[Row]]:
    """Return all pages of a query."""
    found, cursor = [], None
    for _ in range(PAGES_MAX):
        page = engine.query(query, cursor)
        found.append(list(page.rows))
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the cursor never ends")


def sorts(engine: Engine, query: Query) -> list[str]:
    """Return the base sort keys of all rows of a query."""
    return [row.key.sk for page in pages(engine, query) for row in page]


def settled(engine: Engine, query: Query, expected: Sequence[str]) -> list[str]:
    """Return what an index query finds, after it has had time to find what is expected."""
    for _ in range(SETTLE_READS_MAX):
        if sorts(engine, query) == list(expected):
            break
        _never.wait(SETTLE_PAUSE_S)
    return sorts(engine, query)
