"""Start delays in few numbers: percentiles of added histograms, and their error."""

from __future__ import annotations

from math import ceil
from operator import add

from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.histogram import BOUNDS_MS, DAY_MS, ERROR, SIZE, bucket_of, percentile_ms

DELAYS = st.one_of(
    st.integers(min_value=-1_000, max_value=2_000), st.integers(min_value=0, max_value=DAY_MS)
)


def counted(delays: list[int]) -> list[int]:
    """Return the histogram of some delays."""
    counts = [0] * SIZE
    for delay in delays:
        counts[bucket_of(delay)] += 1
    return counts


@given(st.lists(st.lists(DELAYS), min_size=1), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_percentiles_of_added_histograms_are_as_good_as_promised(
    parts: list[list[int]], share: float
) -> None:
    """However the starts are spread over processes: within the stated part and a millisecond."""
    total = [0] * SIZE
    for part in parts:
        total = list(map(add, total, counted(part)))
    every = sorted(delay for part in parts for delay in part)
    longest = max([0, *every])
    found = percentile_ms(total, share, longest)
    if not every:
        assert found is None
        return
    exact = max(every[ceil(share * len(every)) - 1], 0)
    assert found is not None
    assert abs(found - exact) <= ERROR * exact + 1


def test_bounds_grow_from_a_millisecond_to_a_day() -> None:
    """Forty of them, each longer than the one before."""
    assert (len(BOUNDS_MS), BOUNDS_MS[0], BOUNDS_MS[-1]) == (40, 1, DAY_MS)
    assert list(BOUNDS_MS) == sorted(set(BOUNDS_MS))


def test_what_is_longer_than_a_day_is_told_by_the_longest() -> None:
    """The last bucket has no end, so its middle would say nothing."""
    assert percentile_ms(counted([DAY_MS * 3]), 0.5, DAY_MS * 3) == DAY_MS * 3
