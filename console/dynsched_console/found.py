"""What a look at many rows found; stands here until the search of the core does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """One page of a listing.

    Attributes:
        items: the rows, in order.
        matched: how many fit.
        examined: how many were read.
        cursor: where the next page begins; None at the end.
        indexed: qualifiers that an index answered.
        tested: qualifiers that were tested row by row.
        notes: what was left out, one sentence each.
    """

    items: tuple[T, ...]
    matched: int = 0
    examined: int = 0
    cursor: str | None = None
    indexed: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
