"""What is told of runs that functions hold: leases with a fixed end, and no session row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.explanation import Cause
from dynsched.domain.instants import minute_of
from dynsched.domain.lease_words import holder_words
from dynsched.domain.run import Run
from dynsched.domain.time_words import stamp
from dynsched.services.documents import run_document
from dynsched.storage.engine import Delete
from dynsched.storage.placement import cursor_key
from tests.rules.small_world import World
from tests.rules.wire import reads_leased, writes_session
from tests.unit.asking_why import said, why


@pytest.fixture
def world() -> World:
    """Return a world at 09:00:10."""
    return World(shards=2)


def leased(world: World, name: str = "job", **left: float) -> Run:
    """Return a run that the invocation `~8e1c` holds for so long."""
    run = world.enqueue(world.job(name))[0]
    return world.claim_fixed(run, "8e1c", world.now + timedelta(**left))


def test_a_run_of_a_living_function_says_until_when(world: World) -> None:
    """Nothing extends it, and it is told what becomes of the run if the function dies."""
    run = leased(world, minutes=5)
    explained = why(world, run)
    assert explained.cause is Cause.RUNNING
    assert f"in function invocation 8e1c since {stamp(world.now)}" in explained.headline
    assert explained.headline.endswith("under a lease that ends at 2026-03-02 09:05:10Z.")
    assert "if the function dies, the reaper returns the run 5s after that." in said(explained)
    assert "leased to function invocation 8e1c under fence 1" in str(explained.timeline)


def test_a_run_of_a_dead_function_says_when_it_will_be_returned(world: World) -> None:
    """The margin is not over yet; then it is, and no reaper came."""
    run = leased(world, seconds=20)
    world.clock.step(seconds=22)
    explained = why(world, run)
    assert explained.cause is Cause.LEASE_EXPIRED
    assert "which gave no word of it: its lease ended at 2026-03-02 09:00:30Z, 2s ago." in (
        explained.headline
    )
    assert "The reaper returns it from 2026-03-02 09:00:35Z on" in said(explained)
    world.clock.step(minutes=3)
    explained = why(world, run)
    assert "should have returned it since 2026-03-02 09:00:35Z" in said(explained)
    assert explained.hints[0] == "dynsched reaper"


def test_a_function_that_was_asked_to_stop_is_told_so(world: World) -> None:
    """It looks at the row, as nobody can write to it."""
    run = leased(world, minutes=5)
    world.people.wire.before(writes_session, lambda: pytest.fail("there is no mailbox"))
    world.operations.cancel(run.run_id)
    explained = why(world, run)
    assert explained.cause is Cause.STOPPING
    assert "at the latest its lease ends it at 2026-03-02 09:05:10Z" in said(explained)


def test_attempts_say_that_it_was_a_function_that_was_lost(world: World) -> None:
    """The attempt names the invocation."""
    run = leased(world, seconds=20)
    world.clock.step(seconds=30)
    world.reaper().sweep()
    (attempt,) = world.store.runs.attempts(run.run_id)
    assert (attempt.outcome, attempt.session) == ("lost", "~8e1c")
    assert attempt.message.startswith("its lease had ended with no word of the function")


def test_the_words_for_the_holder_are_none_of_a_worker(world: World) -> None:
    """People and programs see the end."""
    run = leased(world, minutes=5)
    assert holder_words(run) == "function invocation 8e1c until 2026-03-02 09:05:10Z"
    assert run_document(run)["lease_ends_at"] == "2026-03-02T09:05:10.000Z"
    worker = world.worker(slots=1)
    (other,) = world.enqueue(world.operations.find("job"))
    worker.poll()
    assert holder_words(world.run(other)) == f"session {worker.session}"
    assert run_document(world.run(other))["lease_ends_at"] is None


def test_a_search_finds_leases_by_their_ends_and_says_how_far_it_looks(world: World) -> None:
    """What waits for a callback for days is found by its job."""
    soon = leased(world, minutes=15)
    late = leased(world, name="handed", hours=9)
    views = build_views(world.people.base)
    found = views.find_runs("state:leased")
    assert [run.run_id for run in found.items] == [soon.run_id]
    assert any("that end after 2026-03-02T09:17:00.000Z" in note for note in found.notes)
    assert [run.run_id for run in views.find_runs("worker:~8e1c").items] == [soon.run_id]
    assert [run.run_id for run in views.find_runs("job:handed").items] == [late.run_id]
    worker = views.find_runs("worker:somebody")
    assert not any("functions" in note for note in worker.notes)


def test_health_counts_what_functions_hold_beside_the_workers_slots(world: World) -> None:
    """With what the reaper should have returned by now."""
    leased(world, seconds=10)
    job = world.operations.find("job")
    for run in world.enqueue(job, 3):
        world.claim_fixed(run, "b", world.now + timedelta(minutes=14))
    views = build_views(world.people.base)
    health = views.health()
    assert (str(health.leased), str(health.leased_by_functions), health.in_slots) == ("4", "4", 0)
    assert health.expired_leases == 0
    assert health.top_tenants[0].running == 4
    world.clock.step(seconds=90)
    assert views.health(timedelta(0)).expired_leases == 1


def test_between_two_walks_a_sweep_asks_each_shard_one_question(world: World) -> None:
    """An idle store is swept each five seconds; what is asked must not be much."""
    reaper, asked = world.reaper(), []
    world.clock.set(world.now.replace(second=30))
    reaper.wire.before(reads_leased, lambda: asked.append(world.now), times=1_000)
    for _ in range(5):
        reaper.sweep()
        world.clock.step(seconds=5)
    first, *others = [asked.count(at) for at in dict.fromkeys(asked)]
    assert first <= 3 * 2
    assert others == [2] * 4


def test_a_lease_that_ends_in_days_is_moved_when_its_shard_is_given_up(world: World) -> None:
    """The cursors of the shard that it lies in are soon forgotten."""
    reaper = world.reaper()
    reaper.sweep()
    runs = [leased(world, name=f"j{n}", days=9) for n in range(8)]
    places = {world.store.runs.row_of(run).index for run in runs}
    assert len({partition for partition, _ in filter(None, places)}) == 2
    world.operations.resize(shards=1)
    for _ in range(2):
        world.clock.step(hours=25)
        reaper.sweep()
    minute = minute_of(world.now) + 9 * 24 * 60 - 2 * 25 * 60
    assert len(world.store.runs.ending(minute, 0, most=99)) == 8
    assert world.store.refresh().shards == 1


def test_a_store_from_before_gets_its_cursors_where_they_need_not_read_for_years(
    world: World,
) -> None:
    """The cursor of due jobs tells how old the store is."""
    dispatcher = world.dispatcher()
    for _ in range(3):
        world.clock.step(hours=24)
        dispatcher.tick()
        dispatcher.tick()
    for shard in range(2):
        world.people.wire.write(Delete(cursor_key("leased", shard), 1))
    run = leased(world, seconds=20)
    world.clock.step(seconds=30)
    world.reaper().sweep()
    due, found = world.store.control.cursors("due", 2), world.store.control.cursors("leased", 2)
    for one, other in zip(due, found, strict=True):
        assert one is not None
        assert other is not None
        assert 0 <= other.minute - (one.minute - 24 * 60) <= 24 * 60 + 3
    assert world.run(run).lease_ends_at is None
