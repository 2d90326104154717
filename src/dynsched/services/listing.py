"""Listings: what a bounded look at many rows found, and what it left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from dynsched.errors import InvalidInput

T = TypeVar("T")

LIMIT_MAX = 10_000  # rows that one listing may return


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """Rows in their order.

    Attributes:
        items: at most as many as were asked for.
        more: there are, or may be, others that fit.
        notes: what was not looked at, one sentence each; empty if the listing is exact.
    """

    items: tuple[T, ...]
    more: bool = False
    notes: tuple[str, ...] = ()


def check_limit(limit: int) -> int:
    """Return a listing's limit after checking it.

    Raises:
        InvalidInput: it is out of range.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput("limit", f"{limit} is out of range", f"give 1 to {LIMIT_MAX}")
    return limit
