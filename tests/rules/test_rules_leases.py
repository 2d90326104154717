"""Leases with a fixed end: whose runs are returned, when, and by which of the nets.

The invocations are played by their writes: what the reaper goes by is what lies in the store.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from dynsched.domain.job import Overlap
from dynsched.domain.run import Run, RunState
from dynsched.storage.runs import run_table_key
from dynsched.testing.faults import Crash, Fault
from tests.rules.small_world import ReaperProcess, World, at
from tests.rules.wire import leaves_lease, reads_rows

READY, LEASED = RunState.READY, RunState.LEASED


@pytest.fixture
def world() -> World:
    """Return a world at 09:00:10."""
    return World()


def leased(world: World, invocation: str, ends_at: datetime) -> Run:
    """Return a run that an invocation has claimed until an instant."""
    name = f"job-{invocation}"
    return world.claim_fixed(world.enqueue(world.job(name))[0], invocation, ends_at)


def sweep_until(world: World, reaper: ReaperProcess, until: datetime) -> int:
    """Sweep each ten seconds until an instant; return the late finds."""
    late = 0
    while world.now < until:
        world.clock.step(seconds=10)
        late += reaper.sweep().late
    return late


def test_a_run_is_returned_a_margin_after_its_own_end_and_not_before(world: World) -> None:
    """Two invocations end in one minute, and the reaper looks into it after the first's end."""
    first, second = (leased(world, str(s), at(f"09:00:{s}")) for s in (30, 50))
    reaper = world.reaper()
    found = []
    for second_of_minute in ("34", "35", "54", "55"):
        world.clock.set(at(f"09:00:{second_of_minute}"))
        reaper.sweep()
        found.append(world.states(first, second))
    assert found == [[LEASED, LEASED], [READY, LEASED], [READY, LEASED], [READY, READY]]
    assert world.run(first).losses == world.run(first).attempt == 1


def test_a_fresh_lease_of_the_same_run_is_not_ended_by_the_one_before(world: World) -> None:
    """The index still shows the lease that has ended, when the next one has begun."""
    world = World(lag_s=30)
    run = leased(world, "a", at("09:00:20"))
    world.clock.set(at("09:01:00"))
    world.reaper().sweep()
    assert world.run(run).state is READY
    again = world.claim_fixed(run, "a", at("09:15:00"))
    world.clock.step(seconds=5)
    assert world.reaper().sweep().returned == 0
    assert world.run(run) == again


def test_the_cursor_of_leases_passes_a_minute_only_when_it_is_closed(world: World) -> None:
    """A claim's entry appears a minute after the lease has ended, within the bound of its lag."""
    run, reaper = leased(world, "a", at("09:00:40")), world.reaper()
    world.hidden.add(run_table_key(run.key))
    assert sweep_until(world, reaper, at("09:01:50")) == 0
    assert world.cursor_at("leased") <= at("09:00")
    world.show()
    assert sweep_until(world, reaper, at("09:02:30")) == 0
    assert world.run(run).state is READY
    sweep_until(world, reaper, at("09:03:10"))
    assert world.cursor_at("leased") == at("09:01")


def test_closed_minutes_of_leases_are_read_again(world: World) -> None:
    """A claim's entry appears after its minute was closed and passed."""
    run, reaper = leased(world, "a", at("09:00:40")), world.reaper()
    world.hidden.add(run_table_key(run.key))
    sweep_until(world, reaper, at("09:03"))
    world.show()
    assert sweep_until(world, reaper, at("09:04:30")) == 1
    assert world.run(run).state is READY


def test_the_daily_sweep_leaves_a_function_its_run_until_its_end(world: World) -> None:
    """A lease with a fixed end has no session row, and yet it is alive."""
    world.reaper().sweep()
    world.clock.step(hours=24)
    run = leased(world, "a", world.now + timedelta(minutes=10))
    world.reaper().sweep()
    assert world.run(run).state is LEASED


def test_the_daily_sweep_returns_a_run_whose_lease_has_ended(world: World) -> None:
    """No index entry ever showed it."""
    reaper = world.reaper()
    reaper.sweep()
    run = leased(world, "a", at("09:10"))
    world.hidden.add(run_table_key(run.key))
    world.clock.step(hours=24)
    assert reaper.sweep().late == 1
    assert world.run(run).state is READY


def test_a_day_without_a_reaper_loses_no_run(world: World) -> None:
    """The first sweep finds what has ended meanwhile by its cursor, in every minute and shard."""
    world = World(shards=3)
    runs = [leased(world, str(hour), at(f"{hour}:30")) for hour in range(10, 20)]
    world.clock.step(hours=20)
    report = world.reaper().sweep()
    assert (report.returned, report.late) == (10, 0)
    assert set(world.states(*runs)) == {READY}


def test_a_run_that_cannot_be_returned_keeps_no_other_and_is_tried_again(world: World) -> None:
    """The store refuses the return of the first; the cursor waits for it."""
    first, second = (leased(world, str(s), at(f"09:00:{s}")) for s in (30, 31))
    reaper = world.reaper()
    reaper.wire.before(leaves_lease, fault=Fault.UNAVAILABLE, times=6)
    world.clock.set(at("09:00:40"))
    assert (reaper.sweep().failed, world.states(first, second)) == (1, [LEASED, READY])
    sweep_until(world, reaper, at("09:01:20"))
    assert world.run(first).state is READY


def test_a_run_of_a_function_that_dies_frees_its_permit(world: World) -> None:
    """The next run of a job that forbids overlap waits for the end of the lost lease, no longer."""
    world.job("one", overlap=Overlap.QUEUE_ONE)
    job = world.operations.find("one")
    lost, waiting = world.enqueue(job, 2)
    worker = world.worker(slots=1)
    world.claim_fixed(lost, "a", at("09:01"))
    world.clock.set(at("09:01:05"))
    world.reaper().sweep()
    worker.poll(times=3)
    worker.finish()
    worker.poll(times=3)
    worker.finish()
    assert world.states(lost, waiting) == [RunState.DONE, RunState.DONE]


def test_a_cancel_is_obeyed_when_the_function_has_died(world: World) -> None:
    """The flag lies in the row; there is no mailbox."""
    run = leased(world, "a", at("09:01"))
    world.operations.cancel(run.run_id)
    assert world.run(run).state is LEASED
    world.clock.set(at("09:01:05"))
    world.reaper().sweep()
    assert world.run(run).state is RunState.CANCELLED


def test_a_sweep_ends_in_time_and_the_next_one_goes_on(world: World) -> None:
    """A function that has no time left leaves everything as it is."""
    run = leased(world, "a", at("09:00:30"))
    world.clock.set(at("09:00:40"))
    reaper = world.reaper()
    assert reaper.sweep(until=world.now).behind
    assert world.run(run).state is LEASED
    assert not reaper.sweep(until=world.now + timedelta(seconds=1)).behind
    assert world.run(run).state is READY


def daily(world: World) -> tuple[ReaperProcess, Run]:
    """Return a reaper whose daily sweep has two pages; only it finds the run on the second."""
    reaper = world.reaper()
    reaper.sweep()
    world.enqueue(world.job("many"), 520)
    run = leased(world, "a", at("09:10"))
    world.hidden.add(run_table_key(run.key))
    world.clock.step(hours=24)
    return reaper, run


def slowly(world: World, reaper: ReaperProcess) -> ReaperProcess:
    """Let the next page of a reaper's daily sweep take a quarter of a minute."""
    reaper.wire.before(reads_rows, lambda: world.clock.step(seconds=15))
    return reaper


def test_the_daily_sweep_is_made_in_slices(world: World) -> None:
    """Between two of them the sessions of the dead are looked after."""
    reaper, run = daily(world)
    assert (slowly(world, reaper).sweep().behind, world.run(run).state) == (True, LEASED)
    assert not reaper.sweep().behind
    assert world.run(run).state is READY
    state = world.store.sweeps.read()
    assert state is not None
    assert (state.table, state.late, state.failed) == (None, 1, 0)
    assert state.seen > 520


def test_another_replica_goes_on_with_the_daily_sweep(world: World) -> None:
    """The first had no time left for the second page."""
    reaper, run = daily(world)
    slowly(world, reaper).sweep()
    assert world.reaper().sweep().late == 1
    assert world.run(run).state is READY


def test_a_replica_that_dies_in_the_daily_sweep_is_followed_by_another(world: World) -> None:
    """Not at once, as it might live; and the page that it has read is not read again."""
    reaper, run = daily(world)
    wire = reaper.wire
    wire.after(reads_rows, lambda: wire.before(reads_rows, fault=Fault.CRASH_BEFORE))
    with pytest.raises(Crash):
        reaper.sweep()
    other = world.reaper()
    assert other.sweep().late == 0
    world.clock.step(seconds=61)
    assert other.sweep().late == 1
    assert world.run(run).state is READY
    state = world.store.sweeps.read()
    assert state is not None
    assert state.seen < 1_000
