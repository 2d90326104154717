"""How far the daily sweep has come: one row, so that any replica goes on where another stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from dynsched.domain.instants import from_ms, to_ms
from dynsched.storage.engine import Applied, Key, PutNew, Replace, Row, Table
from dynsched.storage.rows import Rows

DAILY = Key(Table.CONTROL, "sweep", "daily")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepState:
    """A daily sweep, under way or finished.

    Attributes:
        begun_at: when it began.
        table: what is being read; None once all has been.
        cursor: goes on with that table; None is its beginning.
        held_until: when another replica may go on with it.
        seen: rows seen so far.
        late: rows that it had to mend.
        moved: rows that lay under an older entry of the map.
        failed: rows that could not be swept.
        version: the stored version.
    """

    begun_at: datetime
    table: Table | None = None
    cursor: str | None = None
    held_until: datetime | None = None
    seen: int = 0
    late: int = 0
    moved: int = 0
    failed: int = 0
    version: int = 0


class SweepStore:
    """Verbs on the daily sweep's row."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(self) -> SweepState | None:
        """Read how far it is, strongly; None before the first. Cost: 1 read unit."""
        row = self._rows.engine.get(DAILY)
        if row is None:
            return None
        body = cast(Mapping[str, Any], row.body)
        seen, late, moved, failed = body.get("n", (0, 0, 0, 0))
        return SweepState(
            begun_at=from_ms(body["at"]),
            table=Table(body["t"]) if "t" in body else None,
            cursor=body.get("c"),
            held_until=from_ms(body["u"]) if "u" in body else None,
            seen=seen,
            late=late,
            moved=moved,
            failed=failed,
            version=row.version,
        )

    def write(self, state: SweepState) -> SweepState | None:
        """Write the next version of the state seen; None if somebody else wrote first.

        Cost: 1 write unit.
        """
        body: dict[str, Any] = {"at": to_ms(state.begun_at)}
        body["n"] = [state.seen, state.late, state.moved, state.failed]
        if state.table is not None:
            body["t"] = state.table.value
        if state.cursor is not None:
            body["c"] = state.cursor
        if state.held_until is not None:
            body["u"] = to_ms(state.held_until)
        row = Row(DAILY, body, token=self._rows.token())
        write = Replace(row, state.version) if state.version else PutNew(row)
        if not isinstance(self._rows.engine.write(write), Applied):
            return None
        return replace(state, version=state.version + 1)
