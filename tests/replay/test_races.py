"""A stepper between any two requests of an operator who takes back what it moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.bootstrap import build_operations
from dynsched.domain.access import Access
from dynsched.domain.batch import Batch
from dynsched.testing.faults import Call, Fault, FaultyEngine
from tests.replay.ward import Ward

LONG = timedelta(seconds=30)  # longer than a batch is owned
COUNT = 3
REQUESTS_MAX = 8  # that an abort makes, and more


def batch_of(ward: Ward, *, ended: bool) -> Batch:
    """Return a batch that is running, or one that has moved everything."""
    ward.die(COUNT)
    batch = ward.started()
    if ended:
        ward.step()
    return batch


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
@pytest.mark.parametrize("number", range(1, REQUESTS_MAX))
def test_a_pull_back_holds_whenever_the_batch_ends(number: int, *, ended: bool) -> None:
    """The stepper ends or forgets the batch at any request of the abort, which holds all the same.

    Source: a pull back that came while the last run was moved was never begun.
    """
    ward = Ward()
    batch = batch_of(ward, ended=ended)

    def meanwhile(call: Call) -> Fault:
        if call.number == number:
            for _ in range(3):
                ward.step()
        return Fault.NONE

    base = ward.connect(FaultyEngine(ward.engine, meanwhile))
    verbs = build_operations(base, Access(actor="ada"))
    verbs.abort_replay(batch.batch_id, reason="no", pull_back=True)
    ward.clock.step(LONG)
    ward.step()
    found = ward.batch(batch)
    assert found.settled
    assert found.moved == 0
    assert ward.operations.rest_of_replay(batch.batch_id).planned == COUNT


def test_a_batch_shows_after_its_job_is_gone() -> None:
    """A filter that names a deleted job finds nothing newer; the batch is told all the same."""
    ward = Ward()
    ward.die(COUNT)
    batch = ward.started("job:j")
    ward.operations.delete(ward.job().job_id, reason="gone")
    ward.step()
    detail = ward.views.batch(batch.batch_id)
    assert (sum(detail.batch.skipped.values()), detail.newer.count) == (COUNT, 0)


@pytest.mark.parametrize(
    "text",
    [" ".join(f"-err:no{number}" for number in range(49)), f'-err:"{"z" * 39_980}"'],
    ids=["terms", "letters"],
)
def test_a_batch_shows_however_long_its_filter_is(text: str) -> None:
    """What the search of newer runs adds to a filter counts not against the filter's bounds."""
    ward = Ward()
    ward.die(1)
    batch = ward.started(text)
    ward.clock.step(LONG)
    ward.die(1)
    assert ward.views.batch(batch.batch_id).newer.count == 1
