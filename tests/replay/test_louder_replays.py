"""The louder replays of one run: as a new run, and with another payload."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dynsched.bootstrap import build_operations
from dynsched.domain.explanation import Cause
from dynsched.domain.run import Run, RunState
from dynsched.errors import IllegalTransition, InvalidInput
from dynsched.storage.runs import Attempt
from dynsched.testing.faults import Crash, Fault, FaultyEngine
from tests.replay.ward import Ward

LARGE = {"text": "x" * 5_000, "n": 1}


@pytest.fixture
def ward() -> Ward:
    """Return an empty ward."""
    return Ward()


def dead_with(ward: Ward, payload: Any) -> Run:
    """Return a dead run with a payload of its own."""
    run = ward.operations.enqueue(ward.job().job_id, payload)
    ward.work()
    dead = ward.run(run)
    assert dead.state is RunState.DEAD
    return dead


def last_deed(ward: Ward, run: Run) -> Attempt:
    """Return what people did to a run last, as they are shown it."""
    return [one for one in ward.views.show_run(run.run_id).attempts if one.by][-1]


# as a new run


@pytest.mark.parametrize("payload", [None, {"n": 1}, LARGE], ids=["none", "small", "large"])
def test_a_replay_as_new_is_another_run_of_the_same_work(ward: Ward, payload: Any) -> None:
    """Its own key, the same payload; each names the other, and the old one is discarded."""
    old = dead_with(ward, payload)
    new = ward.operations.replay_as_new(old.run_id, reason="the receipt was lost")
    assert new.idempotency_key != old.idempotency_key
    assert (new.origin, new.state, new.replays) == (old.run_id, RunState.READY, 0)
    was = ward.run(old)
    assert (was.hidden, was.reason) == (True, f"replaced by {new.run_id}")
    deed = last_deed(ward, old)
    assert (deed.outcome, deed.by, deed.message, deed.detail) == (
        "replaced",
        "ada",
        "the receipt was lost",
        new.run_id,
    )
    assert ward.views.show_run(new.run_id).payload == ward.views.show_run(old.run_id).payload
    ward.work(broken=False)
    assert ward.states([new, old]) == ["done", "dead"]


def test_why_tells_a_run_that_was_replaced_or_pulled_back() -> None:
    """What people did to a dead run is no riddle, and no reason to restore it.

    Source: `cannot tell why … gives the reason 'pulled back'`.
    """
    ward = Ward()
    (first,) = ward.die(1)
    batch = ward.started()
    ward.step()
    ward.operations.abort_replay(batch.batch_id, pull_back=True)
    ward.step(30)
    told = ward.views.why_run(first.run_id)
    assert told.cause is Cause.PULLED_BACK
    assert "before it was tried; it had died of ValueError: no disk" in told.headline
    new = ward.operations.replay_as_new(first.run_id, reason="r")
    told = ward.views.why_run(first.run_id)
    assert told.cause is Cause.REPLACED
    assert told.hints == (f"dynsched run show {new.run_id}",)


def test_one_death_makes_one_new_run_however_often_it_is_asked(ward: Ward) -> None:
    """The second answer is the first one's run; another death may make another."""
    old = dead_with(ward, 1)
    new = ward.operations.replay_as_new(old.run_id, reason="r")
    assert ward.operations.replay_as_new(old.run_id, reason="r").run_id == new.run_id
    ward.operations.restore(old.run_id)
    assert ward.operations.replay_as_new(old.run_id, reason="r").run_id == new.run_id
    ward.operations.restore(old.run_id)
    ward.operations.replay(old.run_id)
    ward.work()
    assert ward.operations.replay_as_new(old.run_id, reason="r").run_id != new.run_id


def test_a_replay_as_new_that_dies_anywhere_can_be_asked_again() -> None:
    """One new run, one discarded, whatever had been written."""
    plain = Ward()
    old = dead_with(plain, LARGE)
    engine = FaultyEngine(plain.engine)
    build_operations(plain.connect(engine)).replay_as_new(old.run_id, reason="r")
    for call in engine.calls:
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            ward = Ward()
            old = dead_with(ward, LARGE)
            with pytest.raises(Crash):
                build_operations(
                    ward.connect(FaultyEngine(ward.engine, {call.number: fault}))
                ).replay_as_new(old.run_id, reason="r")
            new = ward.operations.replay_as_new(old.run_id, reason="r")
            found = ward.views.find_runs("job:j is:discarded").items
            others = ward.views.find_runs("job:j state:ready").items
            assert [run.run_id for run in found] == [old.run_id]
            assert [run.run_id for run in others] == [new.run_id]


def test_a_louder_replay_needs_a_reason_and_a_dead_run(ward: Ward) -> None:
    """What was discarded by hand must be restored first."""
    old = dead_with(ward, 1)
    with pytest.raises(InvalidInput, match="reason"):
        ward.operations.replay_as_new(old.run_id, reason=" ")
    with pytest.raises(InvalidInput, match="reason"):
        ward.operations.replay_edited(old.run_id, 2)
    ward.operations.discard(old.run_id)
    with pytest.raises(IllegalTransition, match="restore it first"):
        ward.operations.replay_as_new(old.run_id, reason="r")
    ward.operations.restore(old.run_id)
    ward.operations.replay(old.run_id)
    with pytest.raises(IllegalTransition, match="it is ready"):
        ward.operations.replay_as_new(old.run_id, reason="r")
    with pytest.raises(IllegalTransition, match="it is ready"):
        ward.operations.replay_edited(old.run_id, 2, reason="r")


# with another payload


@pytest.mark.parametrize("new", [{"n": 2}, {"text": "y" * 5_000}], ids=["small", "large"])
def test_an_edited_replay_keeps_the_key_and_the_payload_that_it_had(ward: Ward, new: Any) -> None:
    """Same row; what was replaced stays readable, with the difference."""
    old = dead_with(ward, {"n": 1})
    after = ward.operations.replay_edited(old.run_id, new, reason="wrong order")
    assert (after.run_id, after.replays, after.state) == (old.run_id, 1, RunState.READY)
    shown = ward.views.show_run(old.run_id)
    assert shown.payload is not None
    assert json.loads(shown.payload) == new
    deed = last_deed(ward, old)
    assert (deed.outcome, deed.by, deed.message) == ("payload edited", "ada", "wrong order")
    assert json.loads(deed.output) == {"n": 1}
    assert '-  "n": 1' in deed.detail.splitlines()
    ward.work(broken=False)
    assert ward.states([old]) == ["done"]


def test_an_edit_may_leave_masked_what_it_was_shown_masked(ward: Ward) -> None:
    """The secret stays as it was, and neither the difference nor the history shows it."""
    old = dead_with(ward, {"n": 1, "password": "hush"})
    ward.operations.replay_edited(old.run_id, {"n": 2, "password": "***"}, reason="r")
    stored = ward.run(old)
    assert json.loads(stored.payload or "") == {"n": 2, "password": "hush"}
    deed = last_deed(ward, old)
    assert "hush" not in deed.detail + deed.output
    assert "***" in deed.output
    plain = ward.operations.unmask_run(old.run_id, reason="to compare")
    assert "hush" in plain.attempts[-1].output


def test_an_edit_that_changes_nothing_or_invents_a_mask_is_refused(ward: Ward) -> None:
    """The run stays dead."""
    old = dead_with(ward, {"n": 1})
    with pytest.raises(InvalidInput, match="it is what the run has"):
        ward.operations.replay_edited(old.run_id, {"n": 1}, reason="r")
    with pytest.raises(InvalidInput, match="in the place of a secret"):
        ward.operations.replay_edited(old.run_id, {"n": 2, "password": "***"}, reason="r")
    assert ward.states([old]) == ["dead"]


def test_an_edit_that_dies_anywhere_loses_no_payload() -> None:
    """The run and the note of what it had are written together, or neither is."""
    plain = Ward()
    old = dead_with(plain, {"n": 1})
    engine = FaultyEngine(plain.engine)
    build_operations(plain.connect(engine)).replay_edited(old.run_id, {"n": 2}, reason="r")
    for call in engine.calls:
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            ward = Ward()
            old = dead_with(ward, {"n": 1})
            with pytest.raises(Crash):
                build_operations(
                    ward.connect(FaultyEngine(ward.engine, {call.number: fault}))
                ).replay_edited(old.run_id, {"n": 2}, reason="r")
            changed = ward.run(old).payload == '{"n":2}'
            deeds = [one.output for one in ward.store.runs.attempts(old.run_id) if one.by]
            assert deeds == (['{"n":1}'] if changed else [])


def test_a_replay_by_hand_is_noted_among_the_attempts(ward: Ward) -> None:
    """Who did it and why, behind the attempt that had ended."""
    old = dead_with(ward, 1)
    ward.operations.replay(old.run_id, reason="the disk has room")
    ward.work()
    told = [
        (one.number, one.outcome, one.by, one.message)
        for one in ward.views.show_run(old.run_id).attempts
    ]
    assert told == [
        (1, "failed", "", "no disk"),
        (1, "replayed", "ada", "the disk has room"),
        (2, "failed", "", "no disk"),
    ]
