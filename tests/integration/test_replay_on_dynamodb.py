"""Replay batches where they are meant to run: on DynamoDB's stand-ins, and by its prices."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.clock import SystemClock
from dynsched.domain.batch import Batch, BatchState
from dynsched.domain.instants import from_ms, to_ms
from dynsched.domain.run import Run
from dynsched.errors import Conflict
from dynsched.storage.engine import Engine
from dynsched.storage.metering import UNLABELLED, MeteringEngine
from dynsched.testing import memory_store
from dynsched.testing.faults import Crash, Fault, FaultyEngine
from tests.replay.ward import SECOND, Ward


@pytest.fixture(params=["moto_engine", "ministack_engine"])
def ward(request: pytest.FixtureRequest) -> Ward:
    """Return a ward on a stand-in of DynamoDB."""
    engine: Engine = request.getfixturevalue(request.param)
    # The stand-ins tell their own time, which a worker compares with its clock.
    start = from_ms(to_ms(SystemClock().now()))
    return Ward(engine, start=start, skew_stop=timedelta(days=1), batch_chunk=3, step_runs=2)


def started(ward: Ward) -> tuple[list[Run], Batch]:
    """Return seven dead runs and the batch of them that has been started."""
    dead = ward.die(7)
    draft = ward.operations.preview_replay("", rate=None)
    ward.operations.discard(dead[3].run_id)
    return dead, ward.operations.confirm_replay(draft.batch_id, reason="r")


def test_a_batch_runs_to_its_end_on_dynamodb(ward: Ward) -> None:
    """Confirmed once, moved once, counted, listed and audited."""
    dead, batch = started(ward)
    with pytest.raises(Conflict, match="was confirmed by ada"):
        ward.operations.confirm_replay(batch.batch_id, reason="r")
    ward.step()
    found = ward.batch(batch)
    assert (found.state, found.moved, found.skipped) == (
        BatchState.FINISHED,
        6,
        {"discarded": 1},
    )
    assert [ward.run(run).replays for run in dead] == [1, 1, 1, 0, 1, 1, 1]
    assert [one.batch_id for one in ward.views.batches().items] == [batch.batch_id]
    (told,) = (
        entry
        for entry in ward.store.audit.of_target(f"batch:{batch.batch_id}", most=9)
        if entry.action == "batch.finish"
    )
    assert told.note == "finished: 6 moved, 1 skipped (discarded), 0 left"


def test_another_stepper_finishes_and_pulls_back_on_dynamodb(ward: Ward) -> None:
    """The first dies after it has moved two and before it says so."""
    dead, batch = started(ward)
    engine = FaultyEngine(
        ward.engine,
        lambda call: (
            Fault.CRASH_BEFORE
            if any(write.key.pk == f"batch#{batch.batch_id}" for write in call.writes)
            else Fault.NONE
        ),
    )
    with pytest.raises(Crash):
        ward.another(engine).step()
    ward.step(30)
    assert [ward.run(run).replays for run in dead] == [1, 1, 1, 0, 1, 1, 1]
    ward.operations.abort_replay(batch.batch_id, pull_back=True)
    ward.step(30)
    assert [ward.run(run).replays for run in dead] == [0] * 7
    assert ward.batch(batch).skipped == {"discarded": 1, "pulled back": 6}
    ward.adds_up(batch)


def test_a_moved_run_costs_little_more_than_its_own_write() -> None:
    """By DynamoDB's rules: 3 units for the run's row and index, 1 for the note, a tenth besides."""
    engine = MeteringEngine(memory_store())
    ward = Ward(engine)
    count = 200
    ward.die(count)
    engine.reset()
    draft = ward.operations.preview_replay("", reason="bug 71 is fixed")
    preview = engine.report()[UNLABELLED]
    assert preview["write"] <= 0.2 * count
    assert preview["read"] <= 0.2 * count
    ward.operations.confirm_replay(draft.batch_id, count=count)
    engine.reset()
    while ward.batch(draft).left:
        ward.clock.step(SECOND)
        ward.stepper.step()
    assert engine.report()[UNLABELLED]["write"] <= 4.2 * count


def test_an_idle_stepper_makes_one_read() -> None:
    """However many batches there were; it is made every five seconds."""
    engine = MeteringEngine(memory_store())
    ward = Ward(engine)
    ward.die(3)
    for _ in range(3):
        ward.operations.preview_replay("")
    ward.started()
    ward.step()
    ward.clock.step(timedelta(hours=1))
    engine.reset()
    ward.stepper.step()
    report = engine.report()[UNLABELLED]
    assert (report["read"], report["write"]) == (1, 0)
    assert sum(report["requests"].values()) == 1
    assert ward.settings.step_idle == timedelta(seconds=5)
