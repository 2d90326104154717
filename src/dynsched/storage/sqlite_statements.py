"""The SQL of the SQLite engine, and how rows become parameters and answers become rows.

All SQL is here. Two properties rule its form:

- A statement works on a whole batch in one step. Python's driver lets go of the interpreter lock
  at each step, and gets it back up to 5 ms later when another thread computes, so that a hundred
  steps beside one busy handler take half a second; one step takes 5 ms.
- Batches come in a few sizes, filled up with nulls, so that prepared statements are found again.
"""

# Names of tables and columns in the SQL are constants of this package; all values are bound.
# ruff: noqa: S608

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from dynsched.errors import InvalidInput
from dynsched.storage.engine import Key, PutNew, Query, Replace, Row, Table, Write

SCHEMA_VERSION: Final = 1
# "dyns": marks the file as ours, also for the `file` command.
APPLICATION_ID: Final = 0x64796E73

BATCH_MAX: Final = 100
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, BATCH_MAX)

Cells = tuple[str, str, int, str | None, str | None, int | None, str, str]
Parameters = Sequence[str | int | None]

_COLUMNS: Final = ("pk", "sk", "version", "ipk", "isk", "expires_at_s", "token", "body")
_NAMES: Final = ", ".join(_COLUMNS)
# One row as JSON: the columns as an array, then the body, whose text is JSON already.
_AS_JSON: Final = "json_array(pk, sk, version, ipk, isk, expires_at_s, token) || ',' || body"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a body holds {type(value).__name__}, which is no JSON value")


_encode = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
).encode
_decode = json.JSONDecoder().decode


def schema() -> Iterable[str]:
    """Yield the statements that make the tables.

    Rows have an `id` and lie in the order in which they were made. This is about the order in
    which they become due, so a batch of claims touches few pages; a table in the order of its
    keys was measured at a third of the speed.
    """
    for table in Table:
        yield (
            f"create table {table} (id integer primary key, pk text not null, sk text not null,"
            " version integer not null, ipk text, isk text, expires_at_s integer,"
            " token text not null, body text not null, unique (pk, sk))"
        )
        yield f"create index {table}_index on {table} (ipk, isk, pk, sk) where ipk is not null"
        yield (
            f"create index {table}_expiry on {table} (expires_at_s) where expires_at_s is not null"
        )
    yield f"pragma application_id = {APPLICATION_ID}"
    yield f"pragma user_version = {SCHEMA_VERSION}"


def cells_of(write: PutNew | Replace) -> Cells:
    """Return the columns that a write stores, with the version that it makes."""
    row = write.row
    ipk, isk = row.index or (None, None)
    version = write.seen + 1 if isinstance(write, Replace) else 1
    return (
        row.key.pk,
        row.key.sk,
        version,
        ipk,
        isk,
        row.expires_at_s,
        row.token,
        _encode(row.body),
    )


def row_of(key: Key, found: Sequence[Any]) -> Row:
    """Return the row of `get`'s answer."""
    version, ipk, isk, expires_at_s, token, body = found
    index = None if ipk is None else (ipk, isk)
    return Row(key, _decode(body), index, expires_at_s, token, version)


def rows_of(table: Table, text: str | None) -> list[Row]:
    """Return the rows of an answer that lists them as JSON."""
    if text is None:
        return []
    flat = iter(_decode(f"[{text}]"))
    return [
        Row(
            Key(table, pk, sk),
            body,
            None if ipk is None else (ipk, isk),
            expires_at_s,
            token,
            version,
        )
        for (pk, sk, version, ipk, isk, expires_at_s, token), body in zip(flat, flat, strict=True)
    ]


def flat(batch: Sequence[Parameters]) -> list[str | int | None]:
    """Return a batch's parameters in one list, filled up with nulls to the size of a statement."""
    width = len(batch[0])
    listed = [value for one in batch for value in one]
    listed += [None] * (width * (batch_size(len(batch)) - len(batch)))
    return listed


def batch_size(count: int) -> int:
    """Return the number of places in the statement that serves a batch of `count`."""
    return next(size for size in _SIZES if size >= count)


@cache
def _places(size: int, width: int) -> str:
    return ", ".join(["(" + ", ".join("?" * width) + ")"] * size)


@cache
def get(table: Table) -> str:
    """Read one row by its key."""
    return (
        f"select version, ipk, isk, expires_at_s, token, body from {table} where pk = ? and sk = ?"
    )


@cache
def get_many(table: Table, size: int) -> str:
    """Read the rows of a batch of keys; the cross join makes SQLite seek each of them."""
    return (
        f"select group_concat({_AS_JSON}, ',') from (values {_places(size, 2)}) as asked"
        f" cross join {table} on pk = asked.column1 and sk = asked.column2"
    )


@cache
def versions(table: Table, size: int) -> str:
    """Read the stored version of each key of a batch, null where there is none, in order."""
    return (
        f"select json_group_array(version) from (values {_places(size, 2)}) as asked"
        f" left join {table} on pk = asked.column1 and sk = asked.column2"
    )


def versions_of(text: str, count: int) -> list[int | None]:
    """Return the answer of `versions` without the places that were filled up."""
    listed: list[int | None] = _decode(text)
    return listed[:count]


@cache
def upsert(table: Table, size: int) -> str:
    """Store a batch of rows whose guards have been judged in the same transaction."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])
    columns = ", ".join(f"column{number}" for number in range(1, len(_COLUMNS) + 1))
    return (
        f"insert into {table} ({_NAMES}) select {columns}"
        f" from (values {_places(size, len(_COLUMNS))}) where column1 is not null"
        f" on conflict (pk, sk) do update set {changes}"
    )


@cache
def delete_many(table: Table, size: int) -> str:
    """Delete a batch of rows whose guards have been judged in the same transaction."""
    return (
        f"delete from {table} where id in (select id from (values {_places(size, 2)}) as asked"
        f" cross join {table} on pk = asked.column1 and sk = asked.column2)"
    )


@cache
def delete_expired(table: Table) -> str:
    """Delete a bounded number of rows whose expiry is over."""
    return (
        f"delete from {table} where id in"
        f" (select id from {table} where expires_at_s < ? order by expires_at_s limit ?)"
    )


@cache
def _put_new(table: Table) -> str:
    places = _places(1, len(_COLUMNS))
    return f"insert into {table} ({_NAMES}) values {places} on conflict (pk, sk) do nothing"


@cache
def _replace(table: Table) -> str:
    changes = ", ".join(f"{name} = ?{place}" for place, name in enumerate(_COLUMNS[2:], 3))
    return f"update {table} set {changes} where pk = ?1 and sk = ?2 and version = ?3 - 1"


@cache
def _delete(table: Table) -> str:
    return f"delete from {table} where pk = ? and sk = ? and version = ?"


def guarded(write: Write, cells: Cells | None) -> tuple[str, Parameters]:
    """Return the statement that makes one write and checks its guard by itself."""
    table = write.key.table
    if isinstance(write, PutNew):
        assert cells is not None
        return _put_new(table), cells
    if isinstance(write, Replace):
        assert cells is not None
        return _replace(table), cells
    return _delete(table), (write.key.pk, write.key.sk, write.seen)


@cache
def _page(table: Table, where: str, order: str) -> str:
    # The inner query has an order and a limit, so it is worked off first and hands its rows on in
    # that order.
    return (
        f"select group_concat(listed, ',') from (select {_AS_JSON} as listed from {table}"
        f" where {where} order by {order} limit ?)"
    )


@cache
def _count(table: Table, where: str) -> str:
    # The limit is within, so that the index is walked no further; no row is touched.
    return f"select count(*) from (select 1 from {table} where {where} limit ?)"


def count(query: Query, most: int) -> tuple[str, Parameters]:
    """Return the statement that counts a query's rows, no further than `most`."""
    partition, sort = ("ipk", "isk") if query.index else ("pk", "sk")
    where, values = [f"{partition} = ?"], [query.partition]
    for mark, bound in ((">", query.after or None), ("<", query.before)):
        if bound is not None:
            where.append(f"{sort} {mark} ?")
            values.append(bound)
    return _count(query.table, " and ".join(where)), [*values, most]


def page(query: Query, cursor: str | None) -> tuple[str, Parameters]:
    """Return the statement for one page of a query.

    Raises:
        InvalidInput: the cursor is not one of this query's.
    """
    partition, sort = ("ipk", "isk") if query.index else ("pk", "sk")
    order = ["isk", "pk", "sk"] if query.index else ["sk"]
    where, values = [f"{partition} = ?"], [query.partition]
    on, mark = ("<", query.before) if query.descending else (">", query.after or None)
    back, end = (">", query.after or None) if query.descending else ("<", query.before)
    if cursor is not None:
        place = _read_cursor(cursor, len(order))
        where.append(f"({', '.join(order)}) {on} ({', '.join('?' * len(order))})")
        values += place
    elif mark is not None:
        where.append(f"{sort} {on} ?")
        values.append(mark)
    if end is not None:
        where.append(f"{sort} {back} ?")
        values.append(end)
    direction = " desc" if query.descending else ""
    ordered = ", ".join(name + direction for name in order)
    return _page(query.table, " and ".join(where), ordered), [*values, query.limit]


def cursor_after(query: Query, row: Row) -> str:
    """Return the cursor that continues a query behind a row."""
    if not query.index:
        return _encode([row.key.sk])
    assert row.index is not None
    return _encode([row.index[1], row.key.pk, row.key.sk])


def _read_cursor(cursor: str, length: int) -> list[str]:
    try:
        place = _decode(cursor)
    except ValueError:
        place = None
    if (
        not isinstance(place, list)
        or len(place) != length
        or not all(isinstance(part, str) for part in place)
    ):
        raise InvalidInput("cursor", "it is not one of this query's", "begin again without it")
    return place


@cache
def scan(table: Table) -> str:
    """Read a page of a table in the order of its file, with the id of the last row."""
    return (
        f"select group_concat(listed, ','), max(id) from (select {_AS_JSON} as listed, id"
        f" from {table} where id > ? order by id limit ?)"
    )


def scan_cursor(cursor: str | None) -> int:
    """Return the id behind which a scan continues.

    Raises:
        InvalidInput: the cursor is not one of a scan's.
    """
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidInput("cursor", "it is not one of a scan's", "begin again without it")
    return int(cursor)
