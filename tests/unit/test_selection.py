"""Selection: turns of tenants and priorities, shares of lanes and shards."""

from __future__ import annotations

from collections import Counter, deque
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.job import Priority
from dynsched.domain.run import Run
from dynsched.domain.selection import (
    WEIGHTS,
    WeightedTurns,
    home_lanes,
    in_turn,
    shards_to_serve,
    take_by_weight,
)
from tests.unit.builders import NOW, run_of

SOON = NOW + timedelta(seconds=20)


def runs(*shares: str) -> list[Run]:
    """Return one run for each share key, in order, told apart by their instants."""
    return [
        run_of(at=NOW + timedelta(seconds=number), tenant=share.partition("+")[0], share=share)
        for number, share in enumerate(shares)
    ]


def shares(found: list[Run]) -> list[str]:
    """Return the share keys of runs."""
    return [run.share for run in found]


def test_tenants_take_turns() -> None:
    """One with many runs does not keep the others waiting."""
    assert shares(in_turn(runs("a", "a", "a", "b", "c"))) == ["a", "b", "c", "a", "a"]


def test_jobs_of_one_tenant_take_turns_inside_its_turn() -> None:
    """More jobs do not give a tenant more turns."""
    found = in_turn(runs("a+x", "a+x", "a+y", "b", "b"))
    assert shares(found) == ["a+x", "b", "a+y", "b", "a+x"]


@given(st.lists(st.sampled_from(["a", "a+x", "a+y", "b", "c+z"]), max_size=30))
def test_turns_keep_every_run_and_the_order_within_a_share(given_shares: list[str]) -> None:
    """Nothing is lost, doubled, or overtaken by one of its own."""
    before = runs(*given_shares)
    after = in_turn(before)
    assert Counter(after) == Counter(before)
    for share in set(given_shares):
        of_share = [run.scheduled_for for run in after if run.share == share]
        assert of_share == sorted(of_share)


@given(st.lists(st.sampled_from(["a", "a+x", "b", "c"]), max_size=30))
def test_no_tenant_is_ahead_by_more_than_a_turn_while_others_wait(given_shares: list[str]) -> None:
    """At each point, tenants that still have runs were served equally often, give or take one."""
    left = Counter(run.tenant for run in runs(*given_shares))
    served = Counter(dict.fromkeys(left, 0))
    for run in in_turn(runs(*given_shares)):
        served[run.tenant] += 1
        left[run.tenant] -= 1
        waiting = [served[tenant] for tenant, count in left.items() if count]
        assert not waiting or served[run.tenant] - min(waiting) <= 1


def test_priorities_get_turns_by_their_weights() -> None:
    """Of ten turns with work everywhere, six are high, three default, one bulk."""
    turns = WeightedTurns()
    assert Counter(turns.next(list(Priority)) for _ in range(10)) == Counter(WEIGHTS)


def test_a_priority_without_work_leaves_its_turns_to_the_others() -> None:
    """Workers never idle for fairness' sake."""
    turns = WeightedTurns()
    picks = Counter(turns.next([Priority.BULK]) for _ in range(5))
    assert picks == {Priority.BULK: 5}


@given(st.lists(st.sets(st.sampled_from(list(Priority)), min_size=1), min_size=1, max_size=80))
def test_no_priority_with_work_starves(available: list[set[Priority]]) -> None:
    """Bulk has its turn within ten, whatever else there is."""
    turns, waited = WeightedTurns(), dict.fromkeys(Priority, 0)
    for priorities in available:
        chosen = turns.next(sorted(priorities))
        for priority in priorities - {chosen}:
            waited[priority] += 1
        waited[chosen] = 0
        assert max(waited.values()) <= 2 * sum(WEIGHTS.values())


def sources(**counts: int) -> dict[Priority, list[deque[Run]]]:
    """Return one queue for each priority with so many runs of a tenant of its name."""
    return {
        priority: [deque(runs(*[priority.value] * counts.get(priority.value, 0)))]
        for priority in Priority
    }


def test_taking_by_weight_stops_at_the_count_and_at_the_end() -> None:
    """No more than there are slots, no more than there is work."""
    turns = WeightedTurns()
    assert len(take_by_weight(sources(high=9, bulk=9), turns, 4, lambda _: True)) == 4
    assert len(take_by_weight(sources(high=2, bulk=1), turns, 9, lambda _: True)) == 3


def test_what_is_not_usable_is_dropped_and_what_lies_behind_it_taken() -> None:
    """A run that may not start here does not hold up the others."""
    here = sources(default=4)
    last = here[Priority.DEFAULT][0][-1]
    assert take_by_weight(here, WeightedTurns(), 9, lambda run: run is last) == [last]
    assert not any(here[Priority.DEFAULT])


def test_queues_of_one_priority_take_turns() -> None:
    """Two lanes, or two queues, are emptied side by side."""
    lanes = [deque(runs("a", "a")), deque(runs("b", "b"))]
    found = take_by_weight({Priority.HIGH: lanes}, WeightedTurns(), 4, lambda _: True)
    assert shares(found) == ["a", "b", "a", "b"]


@given(st.integers(1, 12), st.integers(1, 12))
def test_home_lanes_leave_no_lane_without_a_worker(workers: int, lanes: int) -> None:
    """Each lane is somebody's, each worker has one."""
    names = [f"w{number:02}" for number in range(workers)]
    homes = [home_lanes(name, names, lanes) for name in names]
    assert frozenset().union(*homes) == frozenset(range(lanes))
    assert all(homes)


def test_a_worker_that_is_not_listed_yet_has_lanes_all_the_same() -> None:
    """The list of sessions may be older than the worker."""
    assert home_lanes("new", ["a"], 4) == {1, 3}


def test_a_dispatcher_takes_free_shards_and_leaves_those_of_living_ones() -> None:
    """Two replicas share four shards evenly; an owner that is gone loses its own."""
    owners = [("a", SOON), ("a", SOON), ("", None), ("gone", NOW)]
    assert shards_to_serve("b", owners, NOW) == {2, 3}


def test_a_dispatcher_takes_from_one_that_has_more_than_its_share() -> None:
    """A new replica gets its part of the work."""
    assert len(shards_to_serve("b", [("a", SOON)] * 4, NOW)) == 2


@given(st.lists(st.sampled_from(["", "me", "a", "b", "gone"]), min_size=1, max_size=12))
def test_no_shard_without_a_living_owner_is_left_alone(names: list[str]) -> None:
    """Correctness does not rest on ownership, but a shard that nobody serves is late."""
    owners = [(name, NOW if name == "gone" else SOON) for name in names]
    free = {shard for shard, name in enumerate(names) if name in ("", "gone")}
    assert free <= shards_to_serve("me", owners, NOW)
