"""Leases with a fixed end on each store: placed, walked over, and swept page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest

from dynsched.bootstrap import build_operations, build_reaper, init_store, open_base
from dynsched.clock import SystemClock
from dynsched.domain import lifecycle
from dynsched.domain.instants import from_ms, minute_of, to_ms
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings
from dynsched.storage.engine import Applied, Engine, Replace
from dynsched.storage.runs import RunApplied, run_table_key
from dynsched.testing import SettableClock
from dynsched.testing.faults import Call, Fault, FaultyEngine
from tests.contract.backends import BACKENDS, Backend
from tests.contract.dynamo_backends import BACKENDS as DYNAMO

STORES: dict[str, Backend] = {
    "sqlite": BACKENDS["sqlite-file"],
    **{name: one for name, one in DYNAMO.items() if one.threads},  # moto is slow at this
}
SECOND = timedelta(seconds=1)


class House:
    """A store, a clock that tests move, and runs that functions hold."""

    def __init__(self, engine: Engine) -> None:
        # The stand-ins tell their own time, which a reaper compares with its clock.
        self.clock = SettableClock(from_ms(to_ms(SystemClock().now())).replace(second=10))
        self.base = open_base(
            engine=FaultyEngine(engine, self._take_time),
            clock=self.clock,
            rng=Random(1),
            settings=Settings(skew_stop=timedelta(days=9), sweep_period=timedelta(minutes=80)),
            environment={},
        )
        init_store(self.base, shards=2)
        self.operations, self.store = build_operations(self.base), self.base.store
        self.job = self.operations.create(JobSpec(name="j", target=HandlerTarget("ok")))

    def _take_time(self, call: Call) -> Fault:
        """Let each page of all rows take longer than the daily sweep goes on at once."""
        if call.method == "scan":
            self.clock.step(seconds=15)
        return Fault.NONE

    def leased(self, *ends_at: datetime) -> list[Run]:
        """Return runs that invocations hold until some instants."""
        runs = self.operations.enqueue_many(self.job.job_id, [None] * len(ends_at))
        now = self.clock.now()
        moves = [
            lifecycle.claim(run, session=f"~{number}", now=now, lease_ends_at=end)
            for number, (run, end) in enumerate(zip(runs, ends_at, strict=True))
        ]
        outcomes = self.store.runs.apply_many(moves)
        assert all(isinstance(one, RunApplied) for one in outcomes)
        return [move.after for move in moves]

    def states(self, runs: list[Run]) -> list[RunState]:
        """Return the states of runs as they are stored now."""
        found = self.store.runs.get_many([run.key for run in runs])
        return [run.state for run in found if run is not None]

    def drop_entry(self, run: Run) -> None:
        """Take a run out of the index, as if its entry had never come."""
        row = self.store.engine.get(run_table_key(run.key))
        assert row is not None
        bare = replace(row, index=None, token=self.store.token(), version=row.version + 1)
        assert isinstance(self.store.engine.write(Replace(bare, row.version)), Applied)


@pytest.fixture(params=STORES)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    """Return a house on each kind of store."""
    with STORES[request.param]() as engine:
        yield House(engine)


def test_runs_are_returned_by_their_own_ends(house: House) -> None:
    """They lie by the minute of the end, the first end first, and no others are read."""
    start = house.clock.now()
    runs = house.leased(start + 20 * SECOND, start + 40 * SECOND, start + 200 * SECOND)
    reaper = build_reaper(house.base)
    reaper.sweep()
    house.clock.step(seconds=26)
    assert reaper.sweep().returned == 1
    assert house.states(runs) == [RunState.READY, RunState.LEASED, RunState.LEASED]
    house.clock.step(seconds=20)
    assert reaper.sweep().returned == 1
    minute = minute_of(start + 200 * SECOND)
    found = [run for shard in range(2) for run in house.store.runs.ending(minute, shard, most=9)]
    assert [run.run_id for run in found] == [runs[2].run_id]
    house.clock.step(minutes=15)
    report = build_reaper(house.base).sweep()
    assert (report.returned, report.late) == (1, 0)


def test_the_daily_sweep_goes_on_where_another_replica_stopped(house: House) -> None:
    """Its place in a table is text that any replica can read."""
    replicas = [build_reaper(house.base) for _ in range(2)]
    for replica in replicas:
        replica.sweep()
    house.operations.enqueue_many(house.job.job_id, [None] * 505)
    runs = house.leased(*[house.clock.now() + 9 * SECOND] * 3)
    for run in runs:
        house.drop_entry(run)
    house.clock.step(minutes=80)
    reports = [replicas[number % 2].sweep() for number in range(4)]
    assert sum(report.late for report in reports) == 3
    assert [report.behind for report in reports] == [True, True, False, False]
    assert set(house.states(runs)) == {RunState.READY}
