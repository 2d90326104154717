"""Sessions and claims: a lease lives as long as its session, and every change of hands is seen.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynsched.domain.run import Run, RunState
from dynsched.storage.control import Session
from dynsched.storage.engine import Replace
from dynsched.storage.runs import run_table_key
from dynsched.testing.faults import Crash, Fault
from tests.rules.small_world import ReaperProcess, WorkerProcess, World
from tests.rules.wire import claims, leaves_lease, reads_jobs, reads_leased, writes_session


@pytest.fixture
def world() -> World:
    """Return a world with one shard and two lanes."""
    return World()


@pytest.fixture
def run(world: World) -> Run:
    """Return a run of a job that allows overlap, ready to be claimed."""
    return world.enqueue(world.job("a"))[0]


def session_of(world: World, session: str) -> Session:
    """Return a session's row."""
    row = world.store.control.session(session)
    assert row is not None
    return row


def frozen_before_start(world: World, worker: WorkerProcess) -> None:
    """Freeze a worker after its claim until its session was closed and its run returned."""

    def meanwhile() -> None:
        assert world.reap().returned == 1

    worker.wire.before(reads_jobs, meanwhile)


# opening and closing


def test_a_claim_names_a_session_whose_row_is_written(world: World, run: Run) -> None:
    """A worker opens its session, claims and dies at once; no row would say where to look."""
    world.lose_claim()
    assert world.run(run).state is RunState.READY


def test_a_heartbeat_that_lands_in_time_saves_the_session(world: World, run: Run) -> None:
    """The reaper has read an old expiry; before its close the heartbeat lands."""
    worker, reaper = world.worker(), world.reaper()
    worker.poll()
    world.clock.step(seconds=24)
    worker.clock.hold()
    world.clock.step(seconds=12)
    reaper.wire.before(writes_session, worker.beat)
    assert reaper.sweep().closed == 0
    assert reaper.wire.sprung
    assert world.run(run).state is RunState.LEASED


@pytest.mark.usefixtures("run")
def test_a_session_that_replaces_a_lost_one_has_another_id(world: World) -> None:
    """The reaper closes a session; before it takes the runs, the worker goes on with a new one."""
    worker, reaper = world.worker(), world.reaper()
    worker.poll()
    world.clock.step(seconds=40)
    (later,) = world.enqueue(world.operations.find("a"))
    reaper.wire.before(reads_leased, worker.poll)
    reaper.sweep()
    assert world.run(later).state is RunState.LEASED


@pytest.mark.usefixtures("run")
def test_a_lapsed_session_is_never_renewed(world: World) -> None:
    """A process sleeps for 27 s; its heartbeat wakes before its poll and before the reaper."""
    worker = world.worker()
    worker.poll()
    lapsed = worker.session
    expiry = session_of(world, lapsed).expires_at
    world.clock.step(seconds=27)
    assert not worker.beat()
    worker.poll()
    assert worker.session != lapsed
    assert session_of(world, lapsed).expires_at == expiry


# between claim and start


@pytest.mark.usefixtures("run")
def test_a_lease_is_judged_by_its_own_session(world: World) -> None:
    """After the claim the session is lost, the run returned, and a new session opened."""
    worker = world.worker()
    frozen_before_start(world, worker)

    def new_session() -> None:
        worker.keeper.abandon()
        worker.keeper.open()

    worker.wire.after(reads_jobs, new_session)
    assert worker.poll().started == 0
    assert worker.keeper.session is not None


def test_a_run_does_not_start_when_its_lease_is_over(world: World, run: Run) -> None:
    """After the claim the process freezes; the reaper returns the run and another starts it."""
    frozen, other = world.worker(), world.worker()

    def meanwhile() -> None:
        world.reap()
        assert other.poll().started == 1

    frozen.wire.before(reads_jobs, meanwhile)
    assert frozen.poll().started == 0
    assert world.run(run).fence == 2


def test_a_run_in_hand_is_not_claimed_again() -> None:
    """The index goes on showing a row as ready that this process has claimed."""
    world = World(lag_s=5)
    world.enqueue(world.job("a"))
    world.clock.step(seconds=6)
    worker = world.worker()
    assert worker.poll().started == 1
    world.clock.step(seconds=2)
    assert worker.poll().started == 0


def test_a_claim_whose_answer_was_lost_is_recognised(world: World, run: Run) -> None:
    """The claim is applied, its answer lost, and a cancel flag written over it."""
    worker = world.worker()
    worker.wire.before(claims, fault=Fault.LOST_APPLIED)
    worker.wire.after(claims, lambda: world.operations.cancel(run.run_id))
    assert worker.poll().started == 1
    assert worker.wire.sprung


# what nobody has in hand


def test_a_run_in_nobodys_hand_is_handed_back_by_its_own_process(world: World, run: Run) -> None:
    """A claim lands that the process had given up; its heartbeats go on."""
    worker = world.worker()
    worker.poll()
    run = world.enqueue(world.operations.find("a"))[0]
    world.land_claim(run, worker.session)
    for _ in range(4):
        world.leave_alone(worker, seconds=10)
        worker.poll()
    assert world.run(run).attempt == 1
    assert len(worker.slots.held) == 2


def test_sessions_that_their_owner_closed_are_read_at_once(world: World, run: Run) -> None:
    """A process closes its session on SIGTERM; a claim of it lands behind the close."""
    worker = drained(world)
    world.land_claim(run, worker)
    world.reaper().sweep()
    assert world.run(run).state is RunState.READY


def drained(world: World) -> str:
    """Let a worker open a session and close it again; return its id."""
    worker = world.worker()
    worker.keeper.open()
    session = worker.session
    worker.worker.drain()
    worker.poll()
    worker.worker.close()
    return session


def test_partitions_of_closed_sessions_are_read_again(world: World, run: Run) -> None:
    """A reaper closes a session and finds nothing; then a frozen claim lands."""
    worker = world.worker(queues=("other",))
    worker.poll()
    session = worker.session
    assert world.reap().closed == 1
    world.reaper().sweep()
    world.land_claim(run, session)
    world.clock.step(seconds=61)
    assert world.reaper().sweep().late == 1
    assert world.run(run).state is RunState.READY


def forgotten(world: World, reaper: ReaperProcess) -> str:
    """Let a session be closed and read again for the last time; return its id."""
    session = drained(world)
    for _ in range(12):
        reaper.sweep()
        world.clock.step(minutes=10)
    assert world.store.control.session(session) is None
    return session


def test_the_daily_sweep_finds_what_the_re_readings_missed(world: World, run: Run) -> None:
    """A frozen claim lands two hours after its session was closed, its row long gone."""
    reaper = world.reaper()
    session = forgotten(world, reaper)
    world.land_claim(run, session)
    world.clock.step(hours=24)
    assert reaper.sweep().late == 1
    assert world.run(run).state is RunState.READY


# ways out


def test_a_friends_write_is_not_taken_for_a_lost_lease(world: World, run: Run) -> None:
    """A cancel flag bumps the version of a run whose handler is about to return."""
    worker = world.worker()
    worker.poll()
    world.operations.cancel(run.run_id)
    worker.finish()
    assert world.run(run).state is RunState.DONE


def test_a_lost_lease_counts_as_a_try(world: World, run: Run) -> None:
    """A handler is called for try 1, its process dies; the next start must be try 2."""
    world.lose_handler()
    worker = world.worker()
    worker.poll()
    worker.finish()
    assert [context.attempt for context in world.calls] == [1, 2]
    assert world.run(run).attempt == 2


def test_a_step_back_counts_no_try(world: World, run: Run) -> None:
    """The lease is over before the start; the worker gives the run back unstarted."""
    worker = world.worker()
    worker.wire.before(reads_jobs, lambda: world.clock.step(seconds=27))
    assert worker.poll().started == 0
    assert (world.run(run).state, world.run(run).attempt) == (RunState.READY, 0)


def test_a_cancel_outlives_the_holder(world: World, run: Run) -> None:
    """The holder dies before it reads its mail; the reaper returns the run."""
    worker = world.worker()
    worker.poll()
    world.operations.cancel(run.run_id)
    worker.die()
    world.reap()
    assert world.run(run).state is RunState.CANCELLED


def test_a_cancelled_run_is_not_tried_again(world: World) -> None:
    """A cancel is acknowledged while the handler runs, which then fails."""
    (run,) = world.enqueue(world.job("a", handler="fail"))
    worker = world.worker()
    worker.poll()
    world.operations.cancel(run.run_id)
    worker.finish()
    assert world.run(run).state is RunState.CANCELLED


def test_a_heartbeat_brings_the_mail_and_overwrites_none(world: World, run: Run) -> None:
    """A cancel is left in the session's row since the worker wrote it last."""
    worker = world.worker()
    worker.poll()
    world.operations.cancel(run.run_id)
    assert worker.beat()
    worker.slots.release()
    assert world.calls[0].cancelled


def test_a_reaper_puts_runs_back_where_workers_look() -> None:
    """The reaper has a process of its own, and the store another count of lanes than usual."""
    world = World(lanes=1)
    runs = world.enqueue(world.job("a"), 8)
    dead = world.worker(slots=8)
    dead.poll()
    dead.die()
    world.reap()
    world.worker(slots=8).poll()
    assert world.states(*runs) == [RunState.LEASED] * 8


def test_a_reaper_that_dies_after_its_close_delays_nobody(world: World, run: Run) -> None:
    """The reaper dies between the close of a session and the return of its runs."""
    dead, reaper = world.worker(), world.reaper()
    dead.poll()
    dead.die()
    world.clock.step(seconds=40)
    reaper.wire.before(reads_leased, fault=Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        reaper.sweep()
    world.clock.step(seconds=5)
    world.reaper().sweep()
    assert world.run(run).state is RunState.READY


def test_a_run_that_could_not_be_returned_is_returned_by_the_next_sweep(
    world: World, run: Run
) -> None:
    """The store twice refuses the return of the run, from a session that was closed."""
    dead, reaper = world.worker(), world.reaper()
    dead.poll()
    dead.die()
    world.clock.step(seconds=40)
    for _ in range(2):
        reaper.wire.before(leaves_lease, fault=Fault.UNAVAILABLE, times=6)
        assert reaper.sweep().failed == 1
        world.clock.step(seconds=5)
    reaper.sweep()
    assert world.run(run).state is RunState.READY


def test_a_session_that_lapses_while_it_merges_mail_is_not_renewed(world: World, run: Run) -> None:
    """Mail makes the heartbeat stale; before it is sent again the process sleeps."""
    worker = world.worker()
    worker.poll()
    expiry = session_of(world, worker.session).expires_at

    def meanwhile() -> None:
        world.operations.cancel(run.run_id)
        world.clock.step(seconds=10)

    session = worker.session
    world.clock.step(seconds=20)
    worker.wire.before(writes_session, meanwhile)
    assert not worker.beat()
    assert session_of(world, session).expires_at == expiry


def test_the_daily_sweep_goes_on_behind_a_row_that_cannot_be_read(world: World, run: Run) -> None:
    """The first row of all is damaged; behind it lies a run that only the sweep can find."""
    later = world.enqueue(world.operations.find("a"))[0]
    reaper = world.reaper()
    session = forgotten(world, reaper)
    row = world.people.wire.get(run_table_key(run.key))
    assert row is not None
    world.people.wire.write(Replace(replace(row, body={"s": "?"}, index=None), row.version))
    world.clock.step(hours=24)
    world.land_claim(later, session)
    reaper.sweep()
    assert world.run(later).state is RunState.READY
