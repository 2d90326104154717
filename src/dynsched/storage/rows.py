"""What every domain store shares: an engine, the map, and unique tokens for its writes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from dynsched.domain.names import new_id
from dynsched.storage.engine import Engine, Query, Row
from dynsched.storage.placement import Topology

PAGE = 500


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
