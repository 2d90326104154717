"""The shared snapshot: one looks, the others are given what it saw, and no death blocks anybody."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from bench.crowd import fill
from dynsched.bootstrap import (
    Base,
    build_health,
    build_operations,
    build_views,
    init_store,
    open_base,
)
from dynsched.domain.health import Health
from dynsched.domain.target import HandlerTarget
from dynsched.errors import Unavailable
from dynsched.services.health import MAX_AGE, TAKEN_FOR
from dynsched.services.packing import packed, unpacked
from dynsched.services.specs import JobSpec
from dynsched.storage.item import ITEM_BYTES_MAX, row_size
from dynsched.storage.metering import MeteringEngine
from dynsched.storage.snapshot import GUARD, SNAPSHOT
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing import (
    CountingEngine,
    FaultyEngine,
    SettableClock,
    memory_store,
)
from dynsched.testing.faults import Call, Fault

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def opened(clock: SettableClock, engine: object | None = None) -> Base:
    """Return an empty store in memory."""
    base = open_base(
        environment={},
        engine=engine or memory_store(),  # type: ignore[arg-type]
        clock=clock,
        rng=Random(5),
    )
    init_store(base)
    return base


def add_job(base: Base) -> None:
    """Make a job that runs when it is told to."""
    build_operations(base).create(JobSpec(name="report", target=HandlerTarget("report")))


def looks(base: Base) -> int:
    """Return how often somebody undertook to look."""
    row = base.store.engine.get(GUARD)
    return 0 if row is None else row.version


def test_a_snapshot_is_shared_until_it_is_too_old() -> None:
    """A second reader is given what the first one saw, with its age; a later one looks anew."""
    clock = SettableClock(NOW)
    base = opened(clock)
    first = build_views(base).health()
    clock.step(seconds=4)
    second = build_views(base).health()
    assert (second.at, second.age, first.age) == (first.at, 4 * SECOND, 0 * SECOND)
    clock.step(seconds=1)
    third = build_views(base).health()
    assert (third.at, third.age, looks(base)) == (clock.now(), 0 * SECOND, 2)


def test_one_reader_asks_the_store_nothing_while_its_snapshot_is_young() -> None:
    """A console with many viewers in one process is one reader."""
    clock = SettableClock(NOW)
    counting = CountingEngine(memory_store())
    views = build_views(opened(clock, counting))
    views.health()
    counting.reset()
    clock.step(seconds=3)
    assert views.health().age == 3 * SECOND
    assert counting.by_method() == Counter()


def test_of_ten_readers_at_once_one_looks(tmp_path: Path) -> None:
    """On a store that has no snapshot yet the others wait for the first one's."""
    file = str(tmp_path / "shared.db")
    base = open_base(environment={}, engine=SqliteEngine(file))
    init_store(base)
    begin, found = threading.Barrier(10), list[Health]()

    def read() -> None:
        with closing(SqliteEngine(file, durability="process")) as engine:
            views = build_views(open_base(environment={}, engine=engine))
            begin.wait()
            found.append(views.health(timedelta(minutes=1)))

    readers = [threading.Thread(target=read) for _ in range(10)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len({health.at for health in found}) == 1
    assert (len(found), looks(base)) == (10, 1)


def die_while_looking(base: Base) -> None:
    """Let a reader take the guard and die before it has looked."""
    store, now = base.store, base.clock.now()
    assert store.snapshot.take(store.snapshot.read(), now, now + TAKEN_FOR)


def test_while_somebody_looks_the_others_see_the_snapshot_before() -> None:
    """Nobody waits for a slow look, and the age says what one sees."""
    clock = SettableClock(NOW)
    base = opened(clock)
    before = build_views(base).health()
    clock.step(seconds=10)
    die_while_looking(base)
    health = build_views(base).health()
    assert (health.at, health.age) == (before.at, 10 * SECOND)


def test_a_taker_that_died_blocks_nobody_for_long() -> None:
    """Its guard ends by itself, whether there was a snapshot before or not."""
    for early in (False, True):
        clock = SettableClock(NOW)
        base = opened(clock)
        if early:
            build_views(base).health()
            clock.step(minutes=10)
        die_while_looking(base)
        began = clock.now()
        health = build_views(base).health()
        assert began + TAKEN_FOR <= health.at <= began + TAKEN_FOR + SECOND
        assert looks(base) == 2 + early


def test_a_guard_of_a_clock_that_was_far_ahead_holds_nobody() -> None:
    """Else it would hold until that future."""
    clock = SettableClock(NOW + timedelta(days=1))
    base = opened(clock)
    die_while_looking(base)
    clock.set(NOW)
    assert build_views(base).health().at == NOW


def test_a_reader_whose_clock_is_a_little_behind_takes_no_second_look() -> None:
    """A snapshot of the next second is as good as one of now."""
    clock = SettableClock(NOW)
    base = opened(clock)
    build_views(base).health()
    clock.set(NOW - SECOND)
    assert build_views(base).health().age == 0 * SECOND
    assert looks(base) == 1


def test_a_reader_that_may_not_write_looks_for_itself() -> None:
    """A store opened with rights to read only can be looked at all the same."""

    def refuse(call: Call) -> Fault:
        health = any(key.pk == "health" for key in call.keys)
        return Fault.UNAVAILABLE if call.method == "write" and health else Fault.NONE

    clock = SettableClock(NOW)
    base = opened(clock, FaultyEngine(memory_store(), refuse))
    assert build_views(base).health().verdicts
    assert base.store.engine.get(SNAPSHOT) is None


def test_a_reader_in_read_only_mode_reads_the_snapshot_and_writes_nothing() -> None:
    """It takes what others have stored; where that is too old it looks for itself."""
    clock = SettableClock(NOW)
    base = opened(clock)
    shared = build_views(base).health()
    clock.step(seconds=2)
    assert build_views(base, read_only=True).health().at == shared.at
    clock.step(minutes=5)
    assert build_views(base, read_only=True).health().at == clock.now()
    assert (looks(base), base.store.snapshot.read().at) == (1, shared.at)


def test_a_store_that_fails_is_not_called_healthy() -> None:
    """The failure is the answer."""
    clock = SettableClock(NOW)
    engine = FaultyEngine(memory_store(), lambda call: broken.get(call.method, Fault.NONE))
    broken: dict[str, Fault] = {}
    base = opened(clock, engine)
    broken["query"] = Fault.UNAVAILABLE
    with pytest.raises(Unavailable):
        build_views(base).health()


def test_a_snapshot_comes_back_as_it_was() -> None:
    """Every field, whatever its type; one of another version's shape is not read at all."""
    clock = SettableClock(NOW)
    base = opened(clock)
    fill(base=base, dead=200, groups=12, jobs=10, now=NOW)
    health = build_views(base).health()
    assert unpacked(Health, packed(health)) == health
    other = packed(health.cost)
    assert unpacked(Health, other) is None
    stored = base.store.snapshot.read()
    assert base.store.snapshot.put(stored, other, clock.now())
    assert build_views(base).health().dead == health.dead


@pytest.fixture(name="crowded", scope="module")
def _crowded() -> Base:
    """Return a store of 5,000 dead runs in 40 groups, with its meter."""
    clock = SettableClock(NOW)
    base = opened(clock, MeteringEngine(memory_store()))
    fill(base=base, dead=5_000, groups=40, jobs=100, now=NOW, attempts=False)
    return base


def test_what_a_look_costs_is_bounded_and_told(crowded: Base) -> None:
    """It does not grow with the dead-letter queue but by what is counted of it."""
    views = build_views(crowded)
    health = views.health()
    # A step and a count for each group, two reads for each that is shown, seventy minutes of
    # coming retries, twenty of the leases of functions, and a handful for all the rest.
    assert health.cost.requests <= 2 * 40 + 2 * 10 + 70 + 20 + 30
    assert 10_000 <= health.cost.rows <= 12_000
    row = crowded.store.engine.get(SNAPSHOT)
    assert row is not None
    assert row_size(row) < ITEM_BYTES_MAX / 20
    later = views.health(timedelta(0))
    assert later.cost.requests <= 70 + 20 + 30
    assert later.cost.groups_at == health.cost.groups_at


def test_groups_are_counted_again_before_long(crowded: Base) -> None:
    """The larger the queue, the less often; a minute at most."""
    clock = crowded.clock
    assert isinstance(clock, SettableClock)
    first = build_views(crowded).health()
    clock.step(minutes=1)
    assert build_views(crowded).health(MAX_AGE).cost.groups_at > first.cost.groups_at


def test_a_function_that_looks_each_minute_counts_jobs_and_groups_seldom() -> None:
    """Counting 10,000 jobs each minute would double what an idle store costs."""
    clock = SettableClock(NOW)
    base = opened(clock)
    add_job(base)
    reader = build_health(base)
    costs = []
    for _ in range(17):
        costs.append(reader.health(30 * SECOND).cost)
        clock.step(seconds=60)
    assert {cost.jobs_at for cost in costs} == {NOW, NOW + 15 * 60 * SECOND}
    assert {cost.groups_at for cost in costs} == {NOW, NOW + 15 * 60 * SECOND}
    assert build_views(base).health().cost.jobs_at == clock.now()  # people are told the present


def test_the_first_job_is_counted_at_once_although_jobs_are_counted_seldom() -> None:
    """Whoever has just made it is not told for a quarter of an hour that there is none."""
    clock = SettableClock(NOW)
    base = opened(clock)
    reader = build_health(base)
    assert not reader.health(30 * SECOND).jobs_by_state
    add_job(base)
    clock.step(seconds=60)
    assert reader.health(30 * SECOND).jobs_by_state == {"active": 1}
