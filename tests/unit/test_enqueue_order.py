"""Enqueued runs lie in the order in which they were enqueued, also those of one instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from dynsched.bootstrap import Base, build_operations, init_store, open_base
from dynsched.domain.job import Priority
from dynsched.domain.target import HandlerTarget
from dynsched.errors import InvalidInput
from dynsched.services.specs import JobSpec
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.clock import SettableClock

COUNT = 200
JOB = JobSpec(name="bulk", target=HandlerTarget("work"))
LATER = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.fixture
def clock() -> SettableClock:
    """Return a clock that stands still."""
    return SettableClock(datetime(2026, 3, 2, 9, tzinfo=UTC))


@pytest.fixture
def base(clock: SettableClock) -> Base:
    """Return a store with one lane."""
    made = open_base(engine=SqliteEngine(None), environment={}, clock=clock, rng=Random(1))
    init_store(made, lanes=1)
    return made


def lane(base: Base) -> list[int]:
    """Return the payloads of the lane, in the order in which a worker reads it."""
    runs = base.store.runs.ready("main", Priority.BULK, 0, limit=COUNT)
    return [int(run.payload or "") for run in runs]


def test_runs_of_one_bulk_are_ready_in_the_order_of_their_payloads(base: Base) -> None:
    """They share an instant, so only their ids tell them apart."""
    operations = build_operations(base)
    job = operations.create(JOB)
    operations.enqueue_many(job.job_id, list(range(COUNT)))
    assert lane(base) == list(range(COUNT))


def test_runs_enqueued_one_by_one_for_one_instant_keep_their_order(
    base: Base, clock: SettableClock
) -> None:
    """Rows that are claimed together lie together in the file, whatever instant they are for."""
    operations = build_operations(base)
    job = operations.create(JOB)
    for number in range(COUNT):
        operations.enqueue(job.job_id, number, at=LATER, priority=Priority.BULK)
        clock.step(timedelta(milliseconds=1))
    assert lane(base) == list(range(COUNT))


def test_a_bulk_may_be_for_a_coming_instant(base: Base) -> None:
    """All its runs name that instant and may not start before."""
    operations = build_operations(base)
    runs = operations.enqueue_many(operations.create(JOB).job_id, [None, None], at=LATER)
    assert {(run.scheduled_for, run.available_at) for run in runs} == {(LATER, LATER)}
    with pytest.raises(InvalidInput, match="zone"):
        operations.enqueue_many(runs[0].job_id, [None], at=datetime(2026, 3, 2, 10))  # noqa: DTZ001
