"""Found: what a bounded search brought, and how far it looked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """Items in their order.

    Attributes:
        items: at most as many as were asked for.
        matched: how many they are.
        examined: rows that were looked at for them.
        cursor: continues behind the last one; None where the end was reached.
        indexed: qualifiers that an index answered.
        tested: qualifiers that were tested row by row.
        notes: what was not looked at, one sentence each.
    """

    items: tuple[T, ...]
    matched: int
    examined: int
    cursor: str | None = None
    indexed: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def words(self) -> str:
        """Return how far the search went.

        >>> Found(items=(), matched=37, examined=2_000, cursor="x").words()
        'matched 37, examined 2,000; more'
        """
        more = "; more" if self.cursor else ""
        return f"matched {self.matched:,}, examined {self.examined:,}{more}"
