"""Dead runs by the signature of their errors: groups, their counts, their newest runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime

from dynsched.domain.instants import from_text, to_text
from dynsched.domain.run import Run
from dynsched.storage.engine import Query, Row, Table
from dynsched.storage.placement import dead_partition
from dynsched.storage.rows import PAGE, Rows
from dynsched.storage.runs import decode_each


class DeadStore:
    """Reads the index of dead runs, whose sort keys are `{signature}#{end}#{run id}`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def groups(self, *, most: int) -> Iterator[str]:
        """Yield the signatures of dead runs in their order, each once.

        Cost: one query for each of them and shard, of one row.
        """
        shards = heapq.merge(*(self._groups(shard) for shard in self._shards()))
        last = None
        for name in shards:
            if name == last:
                continue
            if not most:
                return
            last, most = name, most - 1
            yield name

    def _groups(self, shard: int) -> Iterator[str]:
        after = ""
        while True:
            query = Query(Table.RUNS, dead_partition(shard), index=True, after=after, limit=1)
            rows = self._rows.engine.query(query).rows
            if not rows:
                return
            name = _parts(rows[0])[0]
            yield name
            after = f"{name}$"

    def count(
        self,
        signature: str,
        *,
        most: int,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> int:
        """Count a group's runs, no further than `most`; or those that died in a time."""
        first = f"{signature}#{'' if since is None else to_text(since)}"
        last = f"{signature}$" if before is None else f"{signature}#{to_text(before)}"
        found = 0
        for shard in self._shards():
            if found < most:
                query = Query(
                    Table.RUNS, dead_partition(shard), index=True, after=first, before=last
                )
                found += self._rows.engine.count(query, most - found)
        return found

    def newest(self, signature: str, *, most: int) -> list[Run]:
        """Read a group's newest runs, newest first; those that cannot be read are left out."""
        found: list[Row] = []
        for shard in self._shards():
            query = _group_query(shard, signature, min(most, PAGE), descending=True)
            found += self._rows.all(query, most)
        found.sort(key=_parts, reverse=True)
        return decode_each(found[:most])

    def first_seen(self, signature: str) -> datetime | None:
        """Return when the oldest run of a group died; None for a group without a run."""
        ends: list[str] = []
        for shard in self._shards():
            rows = self._rows.engine.query(_group_query(shard, signature, 1)).rows
            ends += [_parts(row)[1] for row in rows]
        return from_text(min(ends)) if ends else None

    def _shards(self) -> range:
        return range(self._rows.topology.shards)


def _group_query(shard: int, signature: str, limit: int, *, descending: bool = False) -> Query:
    return Query(
        Table.RUNS,
        dead_partition(shard),
        index=True,
        after=f"{signature}#",
        before=f"{signature}$",
        limit=limit,
        descending=descending,
    )


def _parts(row: Row) -> tuple[str, str, str]:
    """Return the signature, the end and the run id that a row lies under."""
    name, _, rest = ("" if row.index is None else row.index[1]).partition("#")
    end, _, run_id = rest.partition("#")
    return name, end, run_id
