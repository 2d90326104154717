"""Count the capacity units that DynamoDB would charge, over any engine.

Units follow DynamoDB's published rules, from the requests themselves and the sizes of the rows, so
that a benchmark on SQLite tells the bill on AWS and no emulator's arithmetic is trusted:

- a write costs one unit for each KB of the larger of the old and the new row, in a transaction
  twice that; refused, by the larger of the row that stood in its way and the one to be written;
- an index costs besides: a new entry 1, a moved one 2, a removed one 1, a changed one 1, none or an
  unchanged one 0, each for each KB of the entry (a changed one by the larger of old and new), and
  not doubled in a transaction;
- a strong read costs one unit for each 4 KB, a read of the index half of that; a query and a scan
  by the rows of a page together, `get_many` row by row, and an absent row as the smallest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Final, TypedDict

from dynsched.errors import OutcomeUnknown
from dynsched.storage.engine import (
    Applied,
    Delete,
    Engine,
    Key,
    Outcome,
    Page,
    PutNew,
    Query,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.item import BATCH_GET_KEYS, row_size
from dynsched.storage.schema import load_schema

WRITE_BYTES: Final = 1024
"""Bytes that one write unit pays for."""
READ_BYTES: Final = 4096
"""Bytes that one strong read unit pays for."""
PAGE_BYTES: Final = 1024 * 1024
"""Bytes that DynamoDB looks at in one request of a query."""
UNLABELLED: Final = ""
"""The label of what is counted outside of any `MeteringEngine.label`."""

_LABEL: ContextVar[str] = ContextVar("dynsched_meter_label", default=UNLABELLED)


class Units(TypedDict):
    """Capacity units of one table or index."""

    read: float
    write: float


class LabelReport(TypedDict):
    """What was counted under one label.

    Attributes:
        requests: DynamoDB requests by operation ("put", "query").
        places: units by table ("runs") and index ("runs/sparse").
        read: read units of all places.
        write: write units of all places.
    """

    requests: dict[str, int]
    places: dict[str, Units]
    read: float
    write: float


def write_units(size: int) -> int:
    """Return the write units for so many bytes.

    >>> write_units(0), write_units(1024), write_units(1025)
    (1, 1, 2)
    """
    return max(1, -(-size // WRITE_BYTES))


def read_units(size: int, *, strong: bool = True) -> float:
    """Return the read units for so many bytes; an eventually consistent read costs half.

    >>> read_units(0), read_units(4097), read_units(4097, strong=False)
    (1.0, 2.0, 1.0)
    """
    units = max(1, -(-size // READ_BYTES))
    return float(units) if strong else units / 2


def base_write_units(old: Row | None, new: Row | None) -> int:
    """Return what writing `new` over `old` costs on the base table; None stands for no row."""
    return write_units(max(_size(row) for row in (old, new)))


def index_write_units(old: Row | None, new: Row | None) -> int:
    """Return what the same write costs on an index that projects all attributes."""
    before = old if old is not None and old.index is not None else None
    after = new if new is not None and new.index is not None else None
    if before == after:
        return 0
    if before is not None and after is not None and before.index == after.index:
        return base_write_units(before, after)
    return sum(write_units(row_size(row)) for row in (before, after) if row is not None)


class MeteringEngine:
    """An `Engine` that counts what DynamoDB would charge for the calls it passes on.

    The old row of each replacement and deletion is read from the engine below, uncounted, before
    the write: exact, but it doubles the calls there. So never time anything through a meter, and
    put it directly on the store, below whatever injects faults or repeats calls. A write whose
    outcome is unknown counts as applied; one that was throttled costs nothing.

    Args:
        engine: does the work.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._indexes = {t: schema.index for t, schema in load_schema().tables.items()}
        self._lock = Lock()
        self._units: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._requests: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def label(self, name: str) -> Iterator[None]:
        """Count what the block does in this thread or task under `name`; the innermost counts.

        A thread that the block starts begins without a label.
        """
        token = _LABEL.set(name)
        try:
            yield
        finally:
            _LABEL.reset(token)

    def report(self) -> dict[str, LabelReport]:
        """Return all counts by label; what had none is under `UNLABELLED`."""
        report: dict[str, LabelReport] = {}
        with self._lock:
            for (label, operation), count in sorted(self._requests.items()):
                entry = report.setdefault(
                    label, LabelReport(requests={}, places={}, read=0.0, write=0.0)
                )
                entry["requests"][operation] = count
            for (label, place, kind), units in sorted(self._units.items()):
                entry = report[label]
                found = entry["places"].setdefault(place, Units(read=0.0, write=0.0))
                if kind == "read":
                    found["read"] += units
                    entry["read"] += units
                else:
                    found["write"] += units
                    entry["write"] += units
        return report

    def reset(self) -> None:
        """Forget all counts."""
        with self._lock:
            self._units.clear()
            self._requests.clear()

    def init(self) -> bool:
        """Pass on; operations on tables cost no units."""
        return self._engine.init()

    def get(self, key: Key) -> Row | None:
        """Pass on, and count a strong read of one row."""
        row = self._engine.get(key)
        self._count("get", {(key.table.value, "read"): read_units(_size(row))})
        return row

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Pass on, and count a strong read of each row, a hundred to a request."""
        rows = self._engine.get_many(keys)
        units: defaultdict[tuple[str, str], float] = defaultdict(float)
        distinct = dict(zip(keys, rows, strict=True))
        for key, row in distinct.items():
            units[key.table.value, "read"] += read_units(_size(row))
        self._count("batch_get", units, -(-len(distinct) // BATCH_GET_KEYS))
        return rows

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Pass on, and count the rows of the page together, on the index at half the price."""
        page = self._engine.query(query, cursor)
        size = sum(row_size(row) for row in page.rows)
        place = self._index_place(query.table) if query.index else query.table.value
        self._count("query", {(place, "read"): read_units(size, strong=not query.index)})
        return page

    def count(self, query: Query, most: int) -> int:
        """Pass on, and count what reading the counted rows costs, in pages of at most 1 MB.

        Their sizes are read from the engine below, uncounted.
        """
        found = self._engine.count(query, most)
        size, left, cursor = 0, found, None
        while left > 0:
            page = self._engine.query(replace(query, limit=min(left, 1_000)), cursor)
            size += sum(row_size(row) for row in page.rows)
            left, cursor = left - len(page.rows), page.cursor
            if cursor is None:
                break
        place = self._index_place(query.table) if query.index else query.table.value
        units = read_units(size, strong=not query.index)
        self._count("count", {(place, "read"): units}, 1 + size // PAGE_BYTES)
        return found

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Pass on, and count a strong read of the rows of the page together."""
        page = self._engine.scan(table, limit, cursor)
        size = sum(row_size(row) for row in page.rows)
        self._count("scan", {(table.value, "read"): read_units(size)})
        return page

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Pass on, and count the write."""
        olds = self._olds([write])
        try:
            outcome = self._engine.write(write, durable=durable)
        except OutcomeUnknown:
            self._count_writes([write], olds, None)
            raise
        self._count_writes([write], olds, [outcome])
        return outcome

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Pass on, and count each write as a request of its own."""
        olds = self._olds(writes)
        try:
            outcomes = self._engine.write_many(writes, durable=durable)
        except OutcomeUnknown:
            self._count_writes(writes, olds, None)
            raise
        self._count_writes(writes, olds, outcomes)
        return outcomes

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Pass on, and count the writes, on the base table at twice the price."""
        olds = self._olds(writes)
        try:
            outcomes = self._engine.transact(writes, durable=durable)
        except OutcomeUnknown:
            self._count_writes(writes, olds, None, transaction=True)
            raise
        self._count_writes(writes, olds, outcomes, transaction=True)
        return outcomes

    def store_time(self) -> datetime | None:
        """Pass on."""
        return self._engine.store_time()

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Pass on; DynamoDB deletes expired rows without charge."""
        return self._engine.purge_expired(now_s, limit)

    def close(self) -> None:
        """Pass on."""
        self._engine.close()

    def _olds(self, writes: Sequence[Write]) -> dict[Key, Row | None]:
        keys = [write.key for write in writes if not isinstance(write, PutNew)]
        return dict(zip(keys, self._engine.get_many(keys), strict=True)) if keys else {}

    def _count_writes(
        self,
        writes: Sequence[Write],
        olds: dict[Key, Row | None],
        outcomes: Sequence[Outcome] | None,
        *,
        transaction: bool = False,
    ) -> None:
        """Count writes; without outcomes each is taken as applied."""
        units: defaultdict[tuple[str, str], float] = defaultdict(float)
        requests: Counter[str] = Counter()
        for position, write in enumerate(writes):
            table, old = write.key.table, olds.get(write.key)
            new = None if isinstance(write, Delete) else write.row
            outcome = Applied(new) if outcomes is None else outcomes[position]
            if isinstance(outcome, Stale):
                # In a transaction the row that refused another write is not told; `old` is this.
                old = outcome.current or old
            else:
                new = outcome.row
                moved = index_write_units(old, new)
                if moved:
                    units[self._index_place(table), "write"] += moved
            factor = 2 if transaction else 1
            units[table.value, "write"] += factor * base_write_units(old, new)
            requests["delete" if isinstance(write, Delete) else "put"] += 1
        if transaction:
            requests = Counter({"transact": 1}) if writes else Counter()
        self._add(requests, units)

    def _index_place(self, table: Table) -> str:
        index = self._indexes[table]
        # Another engine may index a table that has no index here: it counts under its own name.
        return f"{table.value}/{index.name if index else 'index'}"

    def _count(
        self, operation: str, units: Mapping[tuple[str, str], float], requests: int = 1
    ) -> None:
        self._add({operation: requests} if requests else {}, units)

    def _add(self, requests: Mapping[str, int], units: Mapping[tuple[str, str], float]) -> None:
        label = _LABEL.get()
        with self._lock:
            for operation, count in requests.items():
                self._requests[label, operation] += count
            for (place, kind), amount in units.items():
                self._units[label, place, kind] += amount


def _size(row: Row | None) -> int:
    return 0 if row is None else row_size(row)
