"""Error groups: the dead-letter queue by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from bench.crowd import Crowd, fill
from dynsched.bootstrap import Base, build_operations, build_views, init_store, open_base
from dynsched.domain.health import Level
from dynsched.domain.job import Priority
from dynsched.domain.run import Run
from dynsched.errors import FilterError, InvalidInput, NotFound
from dynsched.services.groups import SAMPLE, group_runs, hourly
from dynsched.services.views import Views
from dynsched.storage.engine import Replace, Table
from dynsched.testing import CountingEngine, SettableClock, memory_store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Full:
    """A store in memory with dead runs in groups."""

    def __init__(self, dead: int, groups: int, *, shards: int = 1) -> None:
        self.engine = CountingEngine(memory_store())
        clock = SettableClock(NOW)
        self.base: Base = open_base(environment={}, engine=self.engine, clock=clock, rng=Random(3))
        init_store(self.base, shards=shards)
        self.crowd: Crowd = fill(
            base=self.base, dead=dead, groups=groups, jobs=20, now=NOW, attempts=False
        )
        self.views: Views = build_views(self.base)

    def runs(self) -> Iterator[Run]:
        """Yield every run."""
        cursor: str | None = None
        while True:
            found, cursor = self.base.store.runs.scan(1_000, cursor)
            yield from found
            if cursor is None:
                return


@pytest.fixture(name="full", scope="module")
def _full() -> Full:
    """Return a store of two thousand dead runs in 30 groups, spread over three shards."""
    return Full(2_000, 30, shards=3)


def test_groups_are_those_of_all_dead_runs_taken_together(full: Full) -> None:
    """Counts, first and last death are exact over all shards, those with most runs first."""
    by_hand = group_runs(full.runs(), NOW)
    found = full.views.groups().items
    assert [(one.signature, one.count) for one in found] == [
        (one.signature, one.count) for one in by_hand
    ]
    for one, other in zip(found, by_hand, strict=True):
        assert (one.first_seen, one.last_seen) == (other.first_seen, other.last_seen)
        assert one.newest == other.newest


def test_what_is_sampled_is_the_newest_of_each_group(full: Full) -> None:
    """Tenants, jobs and repeated deaths are those of the newest runs, and their number is told."""
    members: dict[str, list[Run]] = {}
    for run in full.runs():
        members.setdefault(run.signature, []).append(run)
    for group in full.views.groups().items:
        newest = sorted(
            members[group.signature], key=lambda run: (run.ended_at, run.run_id), reverse=True
        )[:SAMPLE]
        assert group.sampled == len(newest)
        assert dict(group.tenants) == Counter(run.tenant for run in newest)
        assert group.again == sum(run.replays for run in newest)
        assert sum(group.per_hour) == sum(run.ended_at > NOW - 24 * HOUR for run in newest)  # type: ignore[operator]


def test_one_group_counts_its_hours_in_full(full: Full) -> None:
    """What the list takes from the newest runs, the group's own view counts in the index."""
    largest = full.views.groups(limit=1).items[0]
    assert largest.sampled < largest.count.count
    ends = [
        run.ended_at for run in full.runs() if run.signature == largest.signature and run.ended_at
    ]
    assert full.views.group(largest.signature).per_hour == hourly(ends, NOW)


def test_pages_of_groups_hold_each_group_once(full: Full) -> None:
    """The cursor goes on behind the last group of the page before."""
    names, cursor = [], None
    while True:
        found = full.views.groups(limit=7, cursor=cursor)
        names += [group.signature for group in found.items]
        cursor = found.cursor
        if cursor is None:
            break
    assert names == list(full.crowd.signatures)


def test_a_filter_leaves_groups_of_what_fits(full: Full) -> None:
    """Counts are of the runs that fit, by the same search that lists them."""
    found = full.views.groups("tenant:acme -prio:bulk")
    by_hand = group_runs(
        (r for r in full.runs() if r.tenant == "acme" and r.priority is not Priority.BULK), NOW
    )
    assert found.items == tuple(by_hand)
    assert found.words() == f"matched {len(by_hand)}, examined 2,000"


def test_filtered_groups_come_in_pages_too(full: Full) -> None:
    """The cursor of a filtered list goes on behind its last group."""
    whole = full.views.groups("tenant:acme").items
    first = full.views.groups("tenant:acme", limit=4)
    rest = full.views.groups("tenant:acme", cursor=first.cursor)
    assert (*first.items, *rest.items) == whole


def test_a_filter_that_is_wrong_says_where(full: Full) -> None:
    """As for every search: with the column."""
    with pytest.raises(FilterError) as caught:
        full.views.groups("tenant:acme state:done")
    assert caught.value.column == 18


def test_a_cursor_of_something_else_is_refused(full: Full) -> None:
    """It would begin somewhere in silence."""
    with pytest.raises(InvalidInput, match="cursor"):
        full.views.groups(cursor="nonsense")


def test_a_group_nobody_died_of_is_not_found(full: Full) -> None:
    """An empty group would look like one that has been mended."""
    with pytest.raises(NotFound, match="error group"):
        full.views.group("123456789abc")


def test_an_empty_dead_letter_queue_has_no_groups() -> None:
    """Nothing is said of nothing."""
    found = Full(0, 1).views.groups()
    assert (found.items, found.words()) == ((), "matched 0, examined 0")


def test_discarded_runs_are_in_no_group() -> None:
    """They are hidden until they are restored."""
    full = Full(3, 1)
    run = next(full.runs())
    build_operations(full.base).discard(run.run_id)
    assert full.views.groups().items[0].count == Level(2)


def test_a_row_that_cannot_be_read_counts_and_blocks_no_group() -> None:
    """Its place in the index says which group it is of, whatever the row holds."""
    full = Full(6, 2)
    engine = full.base.store.engine
    row = next(
        row for row in engine.scan(Table.RUNS, 100).rows if row.index and "#" in row.index[1]
    )
    broken = type(row)(row.key, {"nonsense": 1}, row.index, None, "t", row.version)
    engine.write(Replace(broken, row.version))
    assert sum(group.count.count for group in full.views.groups().items) == 6


def test_the_requests_for_groups_depend_on_groups_and_not_on_runs() -> None:
    """Five thousand dead runs in 40 groups take three requests for each group, and a few more."""
    full = Full(5_000, 40)
    full.engine.reset()
    found = full.views.groups()
    assert (len(found.items), found.examined) == (40, 5_000)
    # A step and a count for each group; its newest run by pages of 500, its oldest one.
    assert sum(full.engine.by_method().values()) <= 4 * 40 + 5


def test_deaths_of_other_days_are_in_no_hour() -> None:
    """The hours are the last 24, the newest at the end; what lies ahead is of now."""
    ends = [NOW, NOW - HOUR, NOW - timedelta(minutes=59), NOW - 30 * HOUR, NOW + HOUR]
    assert hourly(ends, NOW) == (*[0] * 22, 1, 3)


def test_groups_that_have_not_changed_are_not_read_again() -> None:
    """A console that refreshes every two seconds would read 200 runs of each group for nothing."""
    full = Full(600, 5)
    first = full.views.groups().items
    full.engine.rows.clear()
    again = full.views.groups().items
    assert again == first
    assert full.engine.rows["", "query"] < 30
    dead = next(one for one in full.runs() if one.signature == first[0].signature)
    build_operations(full.base).replay(dead.run_id)
    after = {one.signature: one for one in full.views.groups().items}
    assert after[first[0].signature].count.count == first[0].count.count - 1
    assert after == {one.signature: one for one in build_views(full.base).groups().items}
