"""Start delays in few numbers: a histogram whose buckets grow, and percentiles out of it.

Forty bounds from a millisecond to a day, each 1.6 times the one before. A percentile is told as
the middle of its bucket, so it lies within 27 % and a millisecond of the exact one,
however many histograms were added up; the largest delay is kept exactly beside.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil, sqrt
from typing import Final

STEPS: Final = 40
DAY_MS: Final = 86_400_000
ERROR: Final = 0.27
"""A percentile lies within this part of the exact one and a millisecond, either way."""

BOUNDS_MS: Final = tuple(round(DAY_MS ** (step / (STEPS - 1))) for step in range(STEPS))
"""The longest delay of each bucket, in milliseconds; what is longer than a day lies behind."""
SIZE: Final = STEPS + 1

_LOWEST_MS: Final = (1, *(bound + 1 for bound in BOUNDS_MS))
_MIDDLES_MS: Final = (
    *(round(sqrt(low * high)) for low, high in zip(_LOWEST_MS, BOUNDS_MS, strict=False)),
    DAY_MS,
)


def bucket_of(delay_ms: int) -> int:
    """Return the bucket that a delay belongs into; one before its time counts as none.

    >>> bucket_of(-5), bucket_of(1), bucket_of(2), bucket_of(DAY_MS), bucket_of(DAY_MS + 1)
    (0, 0, 1, 39, 40)
    """
    return bisect_left(BOUNDS_MS, delay_ms)


def percentile_ms(counts: Sequence[int], share: float, max_ms: int) -> int | None:
    """Return the delay that so large a share of the starts did not exceed; None without one.

    Args:
        counts: starts by bucket.
        share: 0.95 for the 95th percentile.
        max_ms: the longest delay of all, which no percentile exceeds.

    >>> percentile_ms([3] + [0] * 39 + [1], 0.5, 90_000_000)
    1
    >>> percentile_ms([3] + [0] * 39 + [1], 0.95, 90_000_000)
    90000000
    """
    rank = ceil(share * sum(counts))
    if not rank:
        return None
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if seen >= rank:
            return max_ms if bucket == STEPS else min(_MIDDLES_MS[bucket], max_ms)
    return max_ms
