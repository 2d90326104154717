"""How far the looks for ready runs have come whose messages may be lost."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from dynsched.domain.instants import EPOCH, from_ms, to_ms
from dynsched.storage.engine import Applied, Body, Key, PutNew, Query, Replace, Row, Table
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.placement import ready_partition
from dynsched.storage.rows import Rows
from dynsched.storage.runs import RunPage, decode_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """One look over all ready runs of a queue of messages, which may take several sweeps.

    Attributes:
        since: the end of the lap before; runs are looked at for the ages that they reached since.
        until: and up to here; None if no lap is under way.
        lane: the lane that is looked at.
        after: the sort key there behind which the look goes on.
    """

    since: datetime = EPOCH
    until: datetime | None = None
    lane: int = 0
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laps:
    """The laps of all queues of messages.

    Attributes:
        at: when somebody looked last.
        laps: by `lap_name`; a queue without one begins with everything that is old.
    """

    at: datetime = EPOCH
    laps: Mapping[str, Lap] = field(default_factory=dict)
    version: int = 0


def lap_name(queue: MessageQueue) -> str:
    """Return under which name the lap of a queue of messages is kept.

    It has the URL in it: what was sent to another queue counts for nothing.
    """
    return f"{queue.queue}#{queue.priority.value}#{zlib.crc32(queue.url.encode())}"


class ResendStore:
    """Verbs on the one row of the laps, and the read that they make."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(self) -> Laps:
        """Read the laps, strongly. Cost: 1 read unit."""
        row = self._rows.engine.get(_KEY)
        if row is None:
            return Laps()
        body = cast(Mapping[str, Any], row.body)
        laps = {name: _decode(lap) for name, lap in body["l"].items()}
        return Laps(at=from_ms(body["at"]), laps=laps, version=row.version)

    def write(self, laps: Laps) -> bool:
        """Write the next version of the laps; False if somebody else did. Cost: 1 write unit."""
        body: Body = {
            "at": to_ms(laps.at),
            "l": {name: _encode(lap) for name, lap in laps.laps.items()},
        }
        row = Row(_KEY, body, token=self._rows.token(), version=laps.version)
        write = Replace(row, laps.version) if laps.version else PutNew(row)
        return isinstance(self._rows.engine.write(write), Applied)

    def page(self, queue: MessageQueue, lane: int, *, after: str, limit: int) -> RunPage:
        """Read ready runs of a lane behind a sort key, in its order. Cost: one query."""
        partition = ready_partition(queue.queue, queue.priority, lane)
        query = Query(Table.RUNS, partition, index=True, after=after, limit=limit)
        page = self._rows.engine.query(query)
        rows = [("" if row.index is None else row.index[1], row) for row in page.rows]
        runs = [(sort, run) for sort, row in rows for run in decode_each([row])]
        return RunPage(runs, rows[-1][0] if rows else "", page.cursor)


_KEY = Key(Table.CONTROL, "handoff", "laps")


def _encode(lap: Lap) -> list[int | str]:
    """Return a lap as it is stored: most are not under way, and short."""
    if lap.until is None:
        return [to_ms(lap.since)]
    return [to_ms(lap.since), to_ms(lap.until), lap.lane, lap.after]


def _decode(stored: list[Any]) -> Lap:
    lap = Lap(since=from_ms(stored[0]))
    if len(stored) == 1:
        return lap
    return replace(lap, until=from_ms(stored[1]), lane=stored[2], after=stored[3])
