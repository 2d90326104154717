"""Audit rows: each entry lies under its month and under its target, so that both are one query.

Nothing here is ever changed but by the one completion of an entry; rows go by their expiry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, cast

from dynsched.domain.access import Action, Role
from dynsched.domain.audit import KEPT, AuditEntry, AuditOutcome
from dynsched.domain.instants import EPOCH, from_ms, to_ms, to_text
from dynsched.storage.engine import (
    Applied,
    Body,
    Key,
    PutNew,
    Query,
    Replace,
    Row,
    Table,
    Write,
)
from dynsched.storage.rows import Rows, readable

ALL = 100_000  # entries of one partition that a reader may go through
PAGE = 200
MONTH = len("2026-11")
FIRST = 1  # the version of an entry that has only begun


class AuditStore:
    """Verbs on audit rows. Cost: 2 write units to begin an entry and 2 to complete it."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def begin(self, entry: AuditEntry) -> bool:
        """Write an entry, durably: it is there whatever dies next. False if its id is taken."""
        writes = [PutNew(self._row(key, entry)) for key in _keys(entry)]
        outcomes = self._rows.engine.write_many(writes, durable=True)
        return all(isinstance(outcome, Applied) for outcome in outcomes)

    def complete(self, begun: AuditEntry, entry: AuditEntry) -> None:
        """Write how an entry ended; one whose target is known only now lies under both.

        Args:
            begun: as it was begun.
            entry: the same with its end.
        """
        old = _keys(begun)
        new = [key for key in _keys(entry) if key not in old]
        writes: list[Write] = [Replace(self._row(key, entry), FIRST) for key in old]
        writes += [PutNew(self._row(key, entry)) for key in new]
        self._rows.engine.write_many(writes, durable=True)

    def newest(self, *, after: str, before: str) -> Iterator[AuditEntry]:
        """Return the entries between two places, newest first, read as they are asked for.

        Cost: a query for each month at least.

        Args:
            after: a place (see `place`); an instant's text is one too, and so is a day's.
            before: another.
        """
        month, first = before[:MONTH], after[:MONTH]
        while month >= first:
            yield from self._newest(f"audit#{month}", ALL, after, before)
            year, number = map(int, month.split("-"))
            month = f"{year - (number == 1):04}-{(number - 2) % 12 + 1:02}"

    def of_day(self, day: date, *, most: int = ALL) -> Iterator[AuditEntry]:
        """Return the entries of a day in UTC, newest first."""
        first, last = day.isoformat(), (day + timedelta(days=1)).isoformat()
        return self._newest(f"audit#{first[:MONTH]}", most, first, last)

    def of_target(
        self, target: str, *, most: int = ALL, after: str = "", before: str | None = None
    ) -> Iterator[AuditEntry]:
        """Return the entries about a target, newest first, read as they are asked for."""
        return self._newest(f"audit#{target}", most, after, before)

    def _newest(
        self, partition: str, most: int, after: str, before: str | None
    ) -> Iterator[AuditEntry]:
        query = Query(
            Table.CONTROL,
            partition,
            after=after,
            before=before,
            limit=min(most, PAGE),
            descending=True,
        )
        return readable(_decode, self._rows.all(query, most))

    def _row(self, key: Key, entry: AuditEntry) -> Row:
        expires_at_s = (entry.at + KEPT - EPOCH) // timedelta(seconds=1)
        return Row(key, _body(entry), None, expires_at_s, self._rows.token())


def place(entry: AuditEntry) -> str:
    """Return where an entry lies in its partitions; places sort as the entries' instants do."""
    return f"{to_text(entry.at)}#{entry.entry_id}"


def _keys(entry: AuditEntry) -> list[Key]:
    partitions = (f"audit#{place(entry)[:MONTH]}", f"audit#{entry.target}")
    return [Key(Table.CONTROL, partition, place(entry)) for partition in partitions]


def _body(entry: AuditEntry) -> Body:
    body: dict[str, Any] = {
        "i": entry.entry_id,
        "at": to_ms(entry.at),
        "a": entry.actor,
        "r": entry.role.value,
        "v": entry.via,
        "x": entry.action.value,
        "t": entry.target,
        "o": entry.outcome.value,
    }
    optional: Mapping[str, object] = {
        "n": entry.tenant,
        "w": entry.reason,
        "nt": entry.note,
        "d": dict(entry.details),
    }
    return cast(Body, body | {name: value for name, value in optional.items() if value})


def _decode(row: Row) -> AuditEntry:
    body = cast(Mapping[str, Any], row.body)
    return AuditEntry(
        entry_id=body["i"],
        at=from_ms(body["at"]),
        actor=body["a"],
        role=Role(body["r"]),
        via=body["v"],
        action=Action(body["x"]),
        target=body["t"],
        tenant=body.get("n", ""),
        reason=body.get("w", ""),
        outcome=AuditOutcome(body["o"]),
        note=body.get("nt", ""),
        details=dict(body.get("d", {})),
    )
