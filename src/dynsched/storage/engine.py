"""The engine protocol: what a store must be able to do, and nothing more.

An engine keeps rows in three tables. A row has a key (partition, sort), a version that only grows
by one, a body of plain JSON values, at most one entry in the table's single sparse index, and
perhaps an expiry. Keys, buckets, lanes and transitions are decided above, in
`dynsched.storage.schema` and `dynsched.storage.codec`, so that all engines run the same code.

A guarded write answers `Applied` or `Stale`; exceptions are for faults only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
Body: TypeAlias = Mapping[str, Json]


class Table(StrEnum):
    """The three tables, with the key (pk, sk); jobs and runs have an index (ipk, isk) as well."""

    JOBS = "jobs"
    RUNS = "runs"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Key:
    """The primary key of a row."""

    table: Table
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Row:
    """A stored row.

    Attributes:
        key: where it lies.
        version: 1 for a new row, one more at each replacement. An engine writes
            `seen version + 1` and ignores what a row to be written carries here.
        body: JSON values only; no floats that are not finite; keys are short attribute names.
        index: (index partition, index sort), or None for a row that is in no index.
        expires_at_s: whole seconds since 1970 after which the engine may delete the row by itself.
            An expired row may still be read.
        token: names the write that made this version; unique for each write. Settles writes
            whose answer was lost.
    """

    key: Key
    body: Body
    index: tuple[str, str] | None = None
    expires_at_s: int | None = None
    token: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class PutNew:
    """Write a row whose key must not exist yet."""

    row: Row

    @property
    def key(self) -> Key:
        """Return the key that is written."""
        return self.row.key


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace a whole row, provided that its version is still `seen`."""

    row: Row
    seen: int

    @property
    def key(self) -> Key:
        """Return the key that is written."""
        return self.row.key


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a row, provided that its version is still `seen`."""

    key: Key
    seen: int


Write: TypeAlias = PutNew | Replace | Delete


@dataclass(frozen=True, slots=True)
class Applied:
    """The write was made; `row` is what is stored now (None after a delete)."""

    row: Row | None


@dataclass(frozen=True, slots=True)
class Stale:
    """The guard failed and nothing was written; `current` is the stored row, None if there is none.

    After `transact` it belongs to one write whose own guard held too: then `current` may be None
    although a row exists.
    """

    current: Row | None


Outcome: TypeAlias = Applied | Stale


@dataclass(frozen=True, slots=True)
class Query:
    """Rows of one partition in the order of their sort key.

    Attributes:
        table: which table.
        partition: the base partition, or with `index` the index partition.
        index: read the index instead of the base table; an index may lag behind the base.
        after: only rows whose sort key is greater than this ("" = from the start).
        before: only rows whose sort key is less than this (None = to the end).
        limit: at most this many rows.
        descending: from the end.
    """

    table: Table
    partition: str
    index: bool = False
    after: str = ""
    before: str | None = None
    limit: int = 100
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to a query or a scan; `cursor` is opaque, None when there is nothing more.

    In an index two rows may share one sort key; only the cursor continues safely between them.
    """

    rows: Sequence[Row]
    cursor: str | None


class Engine(Protocol):
    """A store. All methods may be called from several threads.

    Raises (every method):
        Throttled, Unavailable: nothing was written; the call may be repeated.
        OutcomeUnknown: (writes only) it may have been applied.
        NotInitialised: the tables are missing or of another schema version.
    """

    def init(self) -> bool:
        """Make the tables if they are missing; True if any was made. Safe to repeat."""

    def get(self, key: Key) -> Row | None:
        """Read one row, strongly consistent."""

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows, each strongly consistent, in the order of `keys` (not one snapshot)."""

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page: the base table strongly, an index as it has settled."""

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query without their bodies, no further than `most`.

        The query's bounds hold, its limit and direction say nothing here. Costs what reading the
        same rows costs on DynamoDB, and as good as nothing on SQLite.
        """

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of all rows of a table in no order; for daily sweeps and exports."""

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write; `durable` asks for it to survive a power cut (SQLite)."""

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes, one outcome each; keys must be distinct.

        SQLite makes one commit of them. On DynamoDB they are concurrent calls; when one raises,
        others may have been applied: `OutcomeUnknown` is raised unless none was sent.
        """

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make a few (at most 25) guarded writes together: all `Applied`, or none.

        When none was made each answer is `Stale`.
        """

    def store_time(self) -> datetime | None:
        """Return the store's clock as of its last answer, None if it has none of its own."""

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Delete up to `limit` rows past their expiry; 0 where the store does it by itself."""

    def close(self) -> None:
        """Release connections and threads."""
