"""Minute statistics in the store: a row for each minute and process in which something happened.

A row has one writer, which writes it again as its minute goes on; it is read by all who look at
the store's health. Cost: one write unit each time, as a row stays under 1 KB (a little more with
many tenants in three priorities).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from dynsched.domain.histogram import SIZE
from dynsched.domain.instants import EPOCH, minute_start
from dynsched.domain.minutes import Counts, MinuteTally, busiest
from dynsched.storage.engine import Applied, Body, Key, PutNew, Query, Replace, Row, Table
from dynsched.storage.placement import MINUTES
from dynsched.storage.rows import PAGE, Rows, readable

KEPT = timedelta(days=7)
TENANTS_MAX = 10  # that one row names
GROUPS_MAX = 5
TRIES = 3


class MinuteStore:
    """Verbs on minute statistics."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def write(self, tally: MinuteTally, writer: str, seen: int) -> int:
        """Write a minute over what the same writer wrote of it before; return the new version.

        Args:
            tally: all that was counted in the minute so far.
            writer: no other process has this name.
            seen: the version written before, 0 for none.
        """
        row = _row(tally, writer)
        for _ in range(TRIES):
            row = Row(row.key, row.body, None, row.expires_at_s, self._rows.token())
            outcome = self._rows.engine.write(Replace(row, seen) if seen else PutNew(row))
            if isinstance(outcome, Applied):
                return seen + 1
            # Nobody else writes it: an earlier write of ours was applied unheard, or it is gone.
            seen = 0 if outcome.current is None else outcome.current.version
        return seen

    def read(self, first: int, before: int, *, most: int) -> tuple[list[MinuteTally], bool]:
        """Read minutes of all writers, newest first; and whether some were left out.

        Cost: one read unit for each 4 KB, so about one for six processes and a minute.
        """
        query = Query(
            Table.CONTROL,
            MINUTES,
            after=_sort(first, ""),
            before=_sort(before, ""),
            limit=PAGE,
            descending=True,
        )
        rows = list(self._rows.all(query, most + 1))
        return list(readable(_decode, rows[:most])), len(rows) > most


def _sort(minute: int, writer: str) -> str:
    return f"{minute:09}#{writer}"


def _row(tally: MinuteTally, writer: str) -> Row:
    body: dict[str, Any] = {
        "p": {name: _encode(counts) for name, counts in tally.priorities.items()},
        "t": busiest(tally.starts, TENANTS_MAX),
    }
    if tally.deaths:
        body["td"] = busiest(tally.deaths, TENANTS_MAX)
        body["g"] = busiest(tally.groups, GROUPS_MAX)
    expires_at_s = int((minute_start(tally.minute) + KEPT - EPOCH).total_seconds())
    key = Key(Table.CONTROL, MINUTES, _sort(tally.minute, writer))
    return Row(key, cast(Body, body), None, expires_at_s)


def _encode(counts: Counts) -> list[int]:
    """Return the counts, then bucket and number of each bucket that is not empty."""
    flat = [counts.started, counts.done, counts.failed, counts.dead, counts.delay_max_ms]
    for bucket, count in enumerate(counts.delays):
        if count:
            flat += [bucket, count]
    return flat


def _decode(row: Row) -> MinuteTally:
    body = cast(Mapping[str, Any], row.body)
    return MinuteTally(
        minute=int(row.key.sk.partition("#")[0]),
        priorities={name: _counts(flat) for name, flat in body["p"].items()},
        starts=dict(body["t"]),
        deaths=dict(body.get("td", {})),
        groups=dict(body.get("g", {})),
    )


def _counts(flat: Sequence[int]) -> Counts:
    started, done, failed, dead, delay_max_ms = flat[:5]
    delays = [0] * SIZE
    for bucket, count in zip(flat[5::2], flat[6::2], strict=True):
        delays[bucket] = count
    return Counts(started, done, failed, dead, delay_max_ms, delays)
