"""Placement: which index partition and sort key each row gets."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.instants import minute_of, to_text
from dynsched.domain.job import JobState, Priority
from dynsched.domain.run import RunState
from dynsched.storage.placement import (
    MapEntry,
    Topology,
    after_share,
    after_tenant,
    history_partitions,
    job_index,
    ready_sort,
    run_index,
)
from tests.unit.builders import NOW, job_of, run_of

MINUTE = minute_of(NOW)
ONE = Topology((MapEntry(0, shards=1, lanes=1, spread=1),))
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,12}", fullmatch=True)


def test_a_due_job_lies_in_its_minute() -> None:
    """By its next instant; the sort key begins with it, so that a look-ahead is a range."""
    assert job_index(job_of(), ONE) == (f"due#{MINUTE}#0", f"{to_text(NOW)}#j")


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.ACTIVE])
def test_a_job_that_is_not_due_is_in_no_index(state: JobState) -> None:
    """Paused, finished, parked and deleted jobs cost a dispatcher nothing."""
    assert job_index(job_of(state=state), ONE) is None
    assert job_index(job_of(next_at=None), ONE) is None


@pytest.mark.parametrize(
    ("state", "partition"),
    [
        (RunState.READY, "ready#main#default#0"),
        (RunState.LEASED, "leased#s"),
        (RunState.FAILED, f"retry#{MINUTE}#0"),
        (RunState.DEAD, "dead#0"),
        (RunState.DONE, f"ended#{MINUTE // 60}#0"),
        (RunState.CANCELLED, f"ended#{MINUTE // 60}#0"),
        (RunState.SKIPPED, f"ended#{MINUTE // 60}#0"),
    ],
)
def test_each_state_of_a_run_has_its_partition(state: RunState, partition: str) -> None:
    """Whoever needs the run looks there, and only there."""
    index = run_index(run_of(state), ONE)
    assert index is not None
    assert index[0] == partition


def test_ended_runs_can_be_left_out_of_the_index() -> None:
    """It saves a unit a run; dead ones stay, they are the dead-letter queue."""
    sparse = Topology(ONE.entries, keep_ended=False)
    assert run_index(run_of(RunState.DONE), sparse) is None
    assert run_index(run_of(RunState.DEAD), sparse) is not None


def test_discarded_runs_leave_the_dead_letter_queue() -> None:
    """They lie apart, and can be restored from there."""
    index = run_index(run_of(RunState.DEAD, hidden=True), ONE)
    assert index is not None
    assert index[0] == "discarded#0"


def test_queues_and_priorities_are_partitions_of_their_own() -> None:
    """A worker reads only what it serves."""
    index = run_index(run_of(queue="gpu", priority=Priority.HIGH), ONE)
    assert index is not None
    assert index[0] == "ready#gpu#high#0"


@given(st.lists(names, min_size=2, max_size=2, unique=True), st.integers(0, 10**6))
def test_ready_runs_lie_together_by_tenant(tenants: list[str], seconds: int) -> None:
    """Behind a tenant's bound comes the next tenant, never a row of the same one."""
    first, second = tenants
    of_first, of_second = [
        [
            ready_sort(run_of(tenant=tenant, share=share, available_at=at))
            for share in (tenant, f"{tenant}+job")
            for at in (NOW, NOW + timedelta(seconds=seconds))
        ]
        for tenant in (first, second)
    ]
    begin, end = min(of_first), after_tenant(first)
    assert max(of_first) < end
    assert not any(begin <= row < end for row in of_second)


@given(names, names)
def test_a_share_bound_lies_between_a_share_and_the_next(tenant: str, job: str) -> None:
    """A scan goes on behind the rows of one job without passing over another one's."""
    plain, shared = run_of(tenant=tenant, share=tenant), run_of(share=f"{tenant}+{job}")
    assert ready_sort(plain) < after_share(tenant) < ready_sort(shared) < after_share(shared.share)
    assert after_share(shared.share) < after_tenant(tenant)


def test_runs_of_one_share_lie_in_the_order_of_their_time() -> None:
    """The first row of a share that is not due tells that the rest is not either."""
    rows = [
        ready_sort(run_of(available_at=NOW + timedelta(milliseconds=ms))) for ms in (0, 1, 60_000)
    ]
    assert rows == sorted(rows)


def test_writers_use_the_entry_of_the_minute_and_readers_the_largest() -> None:
    """A count can be changed while the system runs, and nothing strands."""
    shrunk = Topology((MapEntry(0, 8, 6, 4), MapEntry(MINUTE, 2, 1, 1)))
    assert shrunk.writing(MINUTE - 1).shards == 8
    assert shrunk.writing(MINUTE).shards == 2
    assert (shrunk.shards, shrunk.lanes, shrunk.spread) == (8, 6, 4)


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from(list(RunState)))
def test_readers_find_what_was_written_under_any_entry(old: int, new: int, state: RunState) -> None:
    """The partition's number is always below what readers count up to."""
    topology = Topology((MapEntry(0, old, old), MapEntry(MINUTE, new, new)))
    for minutes in (-5, 5):
        at = NOW + timedelta(minutes=minutes)
        index = run_index(run_of(state, at=at, available_at=at), topology)
        assert index is not None
        if state is not RunState.LEASED:
            assert int(index[0].rpartition("#")[2]) < max(topology.shards, topology.lanes)


def test_history_is_found_in_every_partition_of_a_job() -> None:
    """Cron runs lie under the job, the others in its spread partitions."""
    topology = Topology((MapEntry(0, spread=2),))
    assert list(history_partitions("j", topology)) == ["j", "j#0", "j#1"]
