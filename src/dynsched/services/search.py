"""Found: what a bounded search brought, and what it cost to find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """A page of what a search found.

    Attributes:
        items: in their order.
        matched: how many of those that were examined fit.
        examined: how many were looked at.
        cursor: continues behind the last item; None if the end was reached.
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
        """Return how much was found and looked at, for a status line."""
        more = "; more" if self.cursor is not None else ""
        return f"matched {self.matched:,}, examined {self.examined:,}{more}"
