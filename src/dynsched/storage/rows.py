"""What every domain store shares: an engine, the map, and unique tokens for its writes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TypeVar

from dynsched.domain.names import new_id
from dynsched.errors import DamagedRow
from dynsched.storage.engine import Engine, Query, Row
from dynsched.storage.placement import Topology

log = logging.getLogger("dynsched.store")

T = TypeVar("T")

PAGE = 500
UNREADABLE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)
"""What decoding a row raises that was damaged, or that a newer version of the program wrote."""


def decoded(decode: Callable[[Row], T], row: Row) -> T:
    """Return what a row holds.

    Raises:
        DamagedRow: it cannot be read.
    """
    try:
        return decode(row)
    except UNREADABLE as error:
        raise DamagedRow(f"row {row.key.pk} {row.key.sk} cannot be read: {error!r}") from error


def readable(decode: Callable[[Row], T], rows: Iterable[Row]) -> Iterator[T]:
    """Yield what rows hold; one that cannot be read is reported and never blocks the others."""
    for row in rows:
        try:
            found = decoded(decode, row)
        except DamagedRow as error:
            log.error("%s", error)  # noqa: TRY400  # one line: the trace is of no use
            continue
        yield found


class Rows:
    """An engine together with a source of write tokens and the present map.

    Args:
        engine: where rows lie.
        rng: for the process's token prefix.
        topology: the map as last read; replaced when a service reads it again.
    """

    def __init__(self, engine: Engine, rng: Random, topology: Topology) -> None:
        self.engine = engine
        self.topology = topology
        self._prefix = new_id(rng, 8)
        self._numbers = itertools.count(1)

    def token(self) -> str:
        """Return a token that no other write carries; it settles lost answers."""
        return f"{self._prefix}{next(self._numbers):x}"

    def all(self, query: Query, most: int) -> Iterator[Row]:
        """Return up to `most` rows of a query, page by page."""
        cursor: str | None = None
        while most > 0:
            page = self.engine.query(query, cursor)
            yield from page.rows[:most]
            most -= len(page.rows)
            cursor = page.cursor
            if cursor is None:
                return
