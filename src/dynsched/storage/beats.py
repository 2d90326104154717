"""Signs of life of dispatchers and reapers, one row for each replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from dynsched.domain.health import Beat
from dynsched.domain.instants import EPOCH, MILLISECOND, from_ms, to_ms
from dynsched.storage.engine import Applied, Delete, Key, PutNew, Query, Replace, Row, Table
from dynsched.storage.placement import BEATS
from dynsched.storage.rows import PAGE, Rows, readable

DISPATCHER = "dispatcher"
REAPER = "reaper"
KEPT = timedelta(days=1)
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBeat:
    """A sign of life as it is stored: whose, and the version that was written."""

    role: str
    beat: Beat
    version: int = 0


class BeatStore:
    """Verbs on signs of life."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def write(self, role: str, beat: Beat, seen: int) -> int:
        """Write a replica's sign of life over its last one; return the new version.

        Cost: one write unit.
        """
        body: dict[str, Any] = {"at": to_ms(beat.at), "n": beat.note}
        if beat.lag is not None:
            body["l"] = beat.lag // MILLISECOND
        expires_at_s = int((beat.at + KEPT - EPOCH).total_seconds())
        for _ in range(TRIES):
            row = Row(_key(role, beat.name), body, None, expires_at_s, self._rows.token())
            outcome = self._rows.engine.write(Replace(row, seen) if seen else PutNew(row))
            if isinstance(outcome, Applied):
                return seen + 1
            seen = 0 if outcome.current is None else outcome.current.version
        return seen

    def delete(self, role: str, name: str, seen: int) -> None:
        """Take a replica's sign of life away, since it ends in good order."""
        self._rows.engine.write(Delete(_key(role, name), seen))

    def all(self, *, most: int) -> list[StoredBeat]:
        """Read the signs of life of all replicas, newest first. Cost: one query."""
        query = Query(Table.CONTROL, BEATS, limit=min(most, PAGE))
        found = readable(_decode, self._rows.all(query, most))
        return sorted(found, key=lambda one: one.beat.at, reverse=True)


def _key(role: str, name: str) -> Key:
    return Key(Table.CONTROL, BEATS, f"{role}#{name}")


def _decode(row: Row) -> StoredBeat:
    body = cast(Mapping[str, Any], row.body)
    role, _, name = row.key.sk.partition("#")
    lag = body.get("l")
    beat = Beat(
        name=name,
        at=from_ms(body["at"]),
        note=body["n"],
        lag=None if lag is None else lag * MILLISECOND,
    )
    return StoredBeat(role=role, beat=beat, version=row.version)
