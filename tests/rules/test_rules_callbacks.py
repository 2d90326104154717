"""The rules of runs that wait for their callbacks: who ends them, once, and that somebody does."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.run import RunState
from dynsched.errors import Conflict, Forbidden
from dynsched.services.callbacks import CallbackOpener
from dynsched.services.cancelling import request_cancel
from dynsched.storage.engine import Table
from dynsched.targets.result import WasCancelled
from dynsched.targets.stop import StopReason
from tests.rules.callback_stage import LIMIT, Stage


@pytest.fixture
def stage() -> Stage:
    """Return a store in memory with a job that calls back."""
    return Stage()


def token_of(event: dict[str, dict[str, str]]) -> str:
    """Return the token that a function was given."""
    return event["dynsched"]["token"]


def test_no_row_holds_the_token(stage: Stage) -> None:
    """Whoever reads the store cannot answer in the function's name."""
    _, event = stage.start()
    rows = [row for table in Table for row in stage.base.store.engine.scan(table, 1_000).rows]
    assert rows
    assert not [row for row in rows if token_of(event) in repr(row)]


def test_a_failure_is_tried_again_by_its_policy_and_then_dead(stage: Stage) -> None:
    """Each attempt has a token of its own, and the old one is good for nothing."""
    run, first = stage.start()
    failed = stage.client.fail_run(run.run_id, token_of(first), "OutOfStock", "no 7 left")
    assert (failed.state, failed.spent, failed.error) == (
        RunState.READY, 1, "OutOfStock: no 7 left",
    )  # fmt: skip
    stage.clock.step(seconds=1)
    stage.work()
    second = stage.played.events[-1]
    assert second["dynsched"]["attempt"] == 2
    with pytest.raises(Forbidden, match="earlier attempt"):
        stage.client.complete_run(run.run_id, token_of(first))
    dead = stage.client.fail_run(run.run_id, token_of(second), "OutOfStock", "no 7 left")
    assert (dead.state, dead.spent) == (RunState.DEAD, 2)


def test_a_second_answer_is_refused_and_changes_nothing(stage: Stage) -> None:
    """The first one has it."""
    run, event = stage.start()
    done = stage.client.complete_run(run.run_id, token_of(event), 1)
    with pytest.raises(Conflict, match="has been answered or called off: it is done"):
        stage.client.fail_run(run.run_id, token_of(event), "Oops")
    assert stage.verbs.get_run(run.run_id) == done


@pytest.mark.parametrize("token", ["", "nonsense", "0" * 64])
def test_a_wrong_token_is_refused(stage: Stage, token: str) -> None:
    """And nothing is told of the run."""
    run, _ = stage.start()
    with pytest.raises(Forbidden, match="does not belong") as caught:
        stage.client.complete_run(run.run_id, token)
    assert stage.verbs.get_run(run.run_id) == run
    waiting = stage.verbs.enqueue(stage.job.job_id)
    for run_id in (waiting.run_id, run.run_id.replace(run.job_id, "zzzz1111")):
        with pytest.raises(Forbidden) as same:
            stage.client.complete_run(run_id, token)
        assert str(same.value).replace(run_id, "") == str(caught.value).replace(run.run_id, "")


def test_a_cancel_ends_an_awaiting_run_at_once(stage: Stage) -> None:
    """No worker is there to be asked, and the function's answer is refused."""
    run, event = stage.start()
    gone = stage.verbs.cancel(run.run_id, reason="not needed")
    assert (gone.state, gone.reason, gone.attempt) == (RunState.CANCELLED, "not needed", 1)
    with pytest.raises(Conflict, match="called off: it is cancelled"):
        stage.client.complete_run(run.run_id, token_of(event))


def test_a_run_that_is_called_off_before_its_wait_begins_is_not_invoked(stage: Stage) -> None:
    """The row is written before the function is invoked, so there is a last look."""
    run = stage.verbs.enqueue(stage.job.job_id)
    item = stage.claimed(run)
    request_cancel(stage.base.store, item.run, reason="not needed")
    opener = CallbackOpener(stage.base.store, clock=stage.clock, rng=Random(1))
    assert opener.open(item) == WasCancelled(reason=StopReason.CANCELLED)
    assert not stage.verbs.get_run(run.run_id).awaits_callback


def test_a_lost_lease_waits_for_no_callback(stage: Stage) -> None:
    """Another worker may have the run by now."""
    item = stage.claimed(stage.verbs.enqueue(stage.job.job_id))
    taken = lifecycle.reclaim(item.run, now=stage.clock.now(), signature="g")
    stage.base.store.runs.apply(taken)
    opener = CallbackOpener(stage.base.store, clock=stage.clock, rng=Random(1))
    assert opener.open(item) == WasCancelled(reason=StopReason.LEASE_LOST)


def test_a_wait_that_ends_without_an_answer_is_a_failure_and_no_loss(stage: Stage) -> None:
    """The function had its time; that it said nothing says nothing about any worker."""
    run, event = stage.start()
    stage.clock.step(seconds=LIMIT.total_seconds() - 1)
    assert stage.reaper.sweep().unanswered == 0
    stage.clock.step(seconds=60)
    assert stage.reaper.sweep().unanswered == 1
    after = stage.verbs.get_run(run.run_id)
    assert (after.state, after.spent, after.losses, after.attempt) == (RunState.READY, 1, 0, 1)
    assert after.error.startswith("CallbackTimeout: nobody reported within 10m")
    with pytest.raises(Conflict, match="came too late"):
        stage.client.complete_run(run.run_id, token_of(event))


def test_an_answer_may_come_while_the_function_is_being_invoked(stage: Stage) -> None:
    """The row can take it before anybody has the token."""

    def answer(event: dict[str, Any]) -> None:
        stage.client.complete_run(event["dynsched"]["run_id"], token_of(event))

    stage.played.on_event = answer
    run, _ = stage.start()
    assert (run.state, run.attempt) == (RunState.DONE, 1)
    assert stage.worker.idle
