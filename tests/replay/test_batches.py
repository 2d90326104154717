"""Replay batches: what is previewed is what is moved, once, and everything else is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.domain.batch import BatchState
from dynsched.domain.job import Priority
from dynsched.errors import Conflict, InvalidInput
from tests.replay.ward import SECOND, Ward


@pytest.fixture
def ward() -> Ward:
    """Return an empty ward."""
    return Ward()


def test_a_batch_moves_what_was_previewed_and_ends(ward: Ward) -> None:
    """Runs come back as ready runs of priority bulk that name the batch; the work is done then."""
    dead = ward.die(7)
    batch = ward.started()
    report = ward.step()
    assert (report.moved, report.ended) == (7, 1)
    runs = [ward.run(run) for run in dead]
    assert {(run.state.value, run.priority, run.batch, run.replays) for run in runs} == {
        ("ready", Priority.BULK, batch.batch_id, 1)
    }
    found = ward.batch(batch)
    assert (found.state, found.moved, found.left) == (BatchState.FINISHED, 7, 0)
    ward.work(broken=False)
    assert set(ward.states(dead)) == {"done"}
    detail = ward.views.batch(batch.batch_id)
    assert (detail.sampled, detail.done_again, detail.dead_again) == (7, 7, 0)


def test_what_dies_after_the_preview_is_not_replayed(ward: Ward) -> None:
    """Neither before the confirm nor after it; and the batch says how many there are."""
    early = ward.die(2)
    draft = ward.operations.preview_replay("", rate=None)
    ward.clock.step(SECOND)
    late = ward.die(3)
    ward.operations.confirm_replay(draft.batch_id, reason="r")
    late += ward.die(1)
    ward.step()
    assert ward.states(early) == ["ready"] * 2
    assert ward.states(late) == ["dead"] * 4
    assert ward.views.batch(draft.batch_id).newer.count == 4


def test_a_second_confirm_is_told_who_was_first(ward: Ward) -> None:
    """One draft starts one batch."""
    ward.die(1)
    batch = ward.started()
    with pytest.raises(Conflict, match="confirmed by ada at 2026-03-01T12:00:01"):
        ward.operations.confirm_replay(batch.batch_id, reason="again")


def test_a_draft_expires_by_itself(ward: Ward) -> None:
    """It is shown as expired, and cannot be confirmed."""
    ward.die(1)
    draft = ward.operations.preview_replay("")
    ward.clock.step(timedelta(minutes=15))
    assert ward.batch(draft).state is BatchState.EXPIRED
    with pytest.raises(Conflict, match="preview it again"):
        ward.operations.confirm_replay(draft.batch_id)
    assert not ward.step().running


def test_an_empty_preview_says_so(ward: Ward) -> None:
    """There is nothing to confirm."""
    with pytest.raises(InvalidInput, match="no dead run"):
        ward.operations.preview_replay("")
