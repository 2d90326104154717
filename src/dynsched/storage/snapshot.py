"""The shared snapshot of a store's health: its text, and who is making the next one.

Two rows, so that taking the guard does not write the text again. Whoever has written itself into
the guard makes the next snapshot; the guard holds for some seconds only, and no longer than until
that snapshot is there, so a taker that dies blocks nobody for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.instants import from_ms, to_ms
from dynsched.storage.engine import Applied, Body, Key, PutNew, Replace, Row, Table
from dynsched.storage.rows import Rows

GUARD = Key(Table.CONTROL, "health", "guard")
SNAPSHOT = Key(Table.CONTROL, "health", "snapshot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What lies in the store.

    Attributes:
        text: the last snapshot; None before the first.
        at: when it was made.
        taken_at: when somebody last undertook to make one.
        until: how long it was given for that.
    """

    text: str | None = None
    at: datetime | None = None
    taken_at: datetime | None = None
    until: datetime | None = None
    version: int = 0
    guard_version: int = 0

    def held(self, now: datetime) -> bool:
        """Return whether somebody is making the next one just now."""
        if self.taken_at is None or self.until is None or now >= self.until:
            return False
        if now < self.taken_at - (self.until - self.taken_at):
            return False  # a clock that was far ahead wrote this: it would hold for ever
        return self.at is None or self.at < self.taken_at


class SnapshotStore:
    """Verbs on the snapshot."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(self) -> Stored:
        """Read both rows, strongly. Cost: one request, a read unit for each 4 KB."""
        guard, snapshot = self._rows.engine.get_many([GUARD, SNAPSHOT])
        at = _instant(snapshot, "at")
        return Stored(
            text=None if at is None or snapshot is None else str(snapshot.body.get("j", "")),
            at=at,
            taken_at=_instant(guard, "at"),
            until=_instant(guard, "u"),
            version=0 if snapshot is None else snapshot.version,
            guard_version=0 if guard is None else guard.version,
        )

    def take(self, seen: Stored, now: datetime, until: datetime) -> bool:
        """Undertake to make the next snapshot; False if somebody else did first. Cost: 1 unit."""
        body: Body = {"at": to_ms(now), "u": to_ms(until)}
        return self._put(GUARD, body, seen.guard_version)

    def put(self, seen: Stored, text: str, at: datetime) -> bool:
        """Store a snapshot over the one seen; False if a newer one came first.

        Cost: a write unit for each KB.
        """
        return self._put(SNAPSHOT, {"at": to_ms(at), "j": text}, seen.version)

    def _put(self, key: Key, body: Body, seen: int) -> bool:
        row = Row(key, body, None, None, self._rows.token())
        write = Replace(row, seen) if seen else PutNew(row)
        return isinstance(self._rows.engine.write(write), Applied)


def _instant(row: Row | None, name: str) -> datetime | None:
    """Return an instant of a row; None if it has none that can be read: it is made anew."""
    value = None if row is None else row.body.get(name)
    try:
        return from_ms(value) if isinstance(value, int) else None
    except (ValueError, OverflowError):
        return None
