"""Runs that are handed over: who may answer for them, and what becomes of them if nobody does."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap
from dynsched.domain.lifecycle import CANCEL_REQUESTED
from dynsched.domain.run import RunState
from dynsched.domain.time_words import stamp
from dynsched.errors import Conflict, DynschedError, Forbidden, InvalidInput
from dynsched.services.callbacks import Answer, Handover
from dynsched.services.cancelling import request_cancel
from dynsched.storage.engine import Table
from dynsched.targets.context import Permanent
from dynsched.targets.result import WasCancelled
from dynsched.targets.stop import StopReason
from tests.unit.callback_stage import LIMIT, Stage


@pytest.fixture
def stage() -> Stage:
    """Return a store in memory with a job that calls back."""
    return Stage()


def token_of(event: dict[str, dict[str, str]]) -> str:
    """Return the token that a function was given."""
    return event["dynsched"]["token"]


def test_a_run_is_handed_over_under_its_fence_and_frees_its_slot(stage: Stage) -> None:
    """The function has what it needs to answer, and the worker has nothing left to do."""
    run, event = stage.start()
    assert run.handed_over
    assert (run.state, run.fence, run.attempt) == (RunState.LEASED, 1, 0)
    assert run.lease_ends_at == stage.clock.now() + LIMIT
    assert event["payload"] == {"day": 7}
    assert event["dynsched"]["run_id"] == run.run_id
    assert event["dynsched"]["idempotency_key"] == run.idempotency_key
    assert stage.worker.idle


def test_no_row_holds_the_token(stage: Stage) -> None:
    """Whoever reads the store cannot answer in the function's name."""
    _, event = stage.start()
    rows = [row for table in Table for row in stage.base.store.engine.scan(table, 1_000).rows]
    assert rows
    assert not [row for row in rows if token_of(event) in repr(row)]


def test_the_answer_ends_the_run_with_its_output(stage: Stage) -> None:
    """As a handler that returned."""
    run, event = stage.start()
    stage.clock.step(seconds=90)
    done = stage.client.complete_run(run.run_id, token_of(event), {"rows": 3})
    assert (done.state, done.attempt, done.spent) == (RunState.DONE, 1, 0)
    assert done.ended_at == stage.clock.now()
    (attempt,) = stage.views.show_run(run.run_id).attempts
    assert (attempt.outcome, attempt.detail) == ("done", '{"rows": 3}')


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


def test_a_permanent_failure_buries_the_run(stage: Stage) -> None:
    """The function knows better than the policy."""
    run, event = stage.start()
    dead = stage.client.fail_run(run.run_id, token_of(event), "NoSuchOrder", permanent=True)
    assert (dead.state, dead.spent) == (RunState.DEAD, 1)


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


def test_a_run_that_waits_for_nothing_cannot_be_ended_by_hand(stage: Stage) -> None:
    """Its worker does that."""
    run = stage.verbs.enqueue(stage.job.job_id)
    with pytest.raises(Conflict, match="waits for no callback: it is ready"):
        stage.verbs.end_run(run.run_id, Answer.done(), reason="impatient")


def test_an_operator_may_end_a_run_whose_function_will_not(stage: Stage) -> None:
    """Without the token, and the audit says who."""
    run, event = stage.start()
    assert stage.verbs.end_run(run.run_id, Answer.done(), reason="seen").state is RunState.DONE
    with pytest.raises(Conflict):
        stage.client.complete_run(run.run_id, token_of(event))


def test_a_cancel_ends_a_handed_over_run_at_once(stage: Stage) -> None:
    """No worker is there to be asked, and the function's answer is refused."""
    run, event = stage.start()
    gone = stage.verbs.cancel(run.run_id, reason="not needed")
    assert (gone.state, gone.reason, gone.attempt) == (RunState.CANCELLED, "not needed", 1)
    with pytest.raises(Conflict, match="called off: it is cancelled"):
        stage.client.complete_run(run.run_id, token_of(event))


def test_a_newer_run_that_replaces_it_starts_at_once(stage: Stage) -> None:
    """The way of cancel_running reaches work that nobody in a worker has in hand."""
    job = stage.make_job("replaces", Overlap.CANCEL_RUNNING)
    old, _ = stage.start(job)
    new = stage.verbs.enqueue(job.job_id)
    stage.work(5)
    assert stage.verbs.get_run(old.run_id).state is RunState.CANCELLED
    assert stage.verbs.get_run(new.run_id).handed_over


def test_its_end_pulls_the_run_forward_that_waits_for_it(stage: Stage) -> None:
    """As the end of any run of a job that forbids overlap."""
    job = stage.make_job("queues", Overlap.QUEUE_ONE)
    first, event = stage.start(job)
    waiting = stage.verbs.enqueue(job.job_id)
    stage.work()
    assert stage.verbs.get_run(waiting.run_id).available_at > stage.clock.now()
    stage.client.complete_run(first.run_id, token_of(event))
    assert stage.verbs.get_run(waiting.run_id).available_at == stage.clock.now()


def test_an_invocation_that_is_refused_is_a_failed_attempt(stage: Stage) -> None:
    """It had been handed over already; its token dies with it."""
    stage.played.refusal = "TooManyRequestsException"
    run = stage.verbs.enqueue(stage.job.job_id)
    stage.work()
    after = stage.verbs.get_run(run.run_id)
    assert (after.state, after.spent) == (RunState.READY, 1)
    assert after.error == "TooManyRequestsException: no"
    assert not after.handed_over


def test_a_run_that_is_called_off_before_the_hand_over_is_not_invoked(stage: Stage) -> None:
    """The row is written before the function is invoked, so there is a last look."""
    run = stage.verbs.enqueue(stage.job.job_id)
    item = stage.claimed(run)
    request_cancel(stage.base.store, item.run, reason="not needed")
    handover = Handover(stage.base.store, clock=stage.clock, rng=Random(1))
    assert handover.hand_over(item) == WasCancelled(reason=StopReason.CANCELLED)
    assert not stage.verbs.get_run(run.run_id).handed_over


def test_a_lost_lease_is_not_handed_over(stage: Stage) -> None:
    """Another worker may have the run by now."""
    item = stage.claimed(stage.verbs.enqueue(stage.job.job_id))
    taken = lifecycle.reclaim(item.run, now=stage.clock.now(), signature="g")
    stage.base.store.runs.apply(taken)
    handover = Handover(stage.base.store, clock=stage.clock, rng=Random(1))
    assert handover.hand_over(item) == WasCancelled(reason=StopReason.LEASE_LOST)


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


def test_a_run_that_nobody_ever_answers_is_dead_in_the_end(stage: Stage) -> None:
    """The retry policy counts its failures as those of any handler."""
    run, _ = stage.start()
    for _ in range(2):
        stage.clock.step(seconds=700)
        stage.reaper.sweep()
        stage.clock.step(seconds=10)
        stage.work()
    dead = stage.verbs.get_run(run.run_id)
    assert (dead.state, dead.spent, dead.losses) == (RunState.DEAD, 2, 0)
    assert len(stage.played.events) == 2


def test_an_answer_between_the_end_of_the_wait_and_the_reapers_look_counts(stage: Stage) -> None:
    """The work is done, so why do it again?"""
    run, event = stage.start()
    stage.clock.step(seconds=700)
    assert stage.client.complete_run(run.run_id, token_of(event)).state is RunState.DONE
    assert stage.reaper.sweep().unanswered == 0


def test_a_job_that_is_gone_leaves_no_run_waiting(stage: Stage) -> None:
    """There is nothing to try again."""
    run, _ = stage.start()
    stage.verbs.delete(stage.job.job_id)
    stage.clock.step(seconds=700)
    stage.reaper.sweep()
    assert stage.verbs.get_run(run.run_id).spent == 1
    assert not stage.verbs.get_run(run.run_id).handed_over


def test_the_explanation_says_what_is_waited_for(stage: Stage) -> None:
    """With the instant until which, and how it can be ended."""
    run, _ = stage.start()
    found = stage.views.why_run(run.run_id)
    assert f"waits for its callback until {stamp(stage.clock.now() + LIMIT)}" in found.headline
    assert f"dynsched run complete {run.run_id}" in found.hints


def test_a_function_helper_reports_what_its_block_does(stage: Stage) -> None:
    """A return with its output, an exception with its kind, and nothing is raised further."""
    run, event = stage.start()
    with stage.client.callback(event) as work:
        work.output = {"day": work.payload["day"]}
    assert stage.views.show_run(run.run_id).attempts[0].detail == '{"day": 7}'
    other, event = stage.start()
    with stage.client.callback(event):
        raise Permanent("no such order")
    dead = stage.verbs.get_run(other.run_id)
    assert (dead.state, dead.error) == (RunState.DEAD, "Permanent: no such order")


def test_a_function_helper_whose_answer_is_not_taken_ends_in_peace(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """An error would make Lambda invoke the function again for nothing."""
    run, event = stage.start()
    stage.verbs.cancel(run.run_id)
    with stage.client.callback(event) as work:
        work.output = 1
    assert "the answer is not taken" in caplog.text


@pytest.mark.parametrize("event", [{}, {"payload": 1}, {"dynsched": {"run_id": "a"}}])
def test_an_event_without_a_token_is_told_as_such(stage: Stage, event: dict[str, object]) -> None:
    """The job is one of the other invocations."""
    with pytest.raises(InvalidInput, match="it has no token"), stage.client.callback(event):
        pass


def test_an_answer_that_contradicts_itself_is_refused() -> None:
    """Before anything is written."""
    with pytest.raises(DynschedError, match="error_type"):
        Answer.failed(" ")
    with pytest.raises(DynschedError, match="retry_after"):
        Answer.failed("X", permanent=True, retry_after=timedelta(seconds=1))


def test_a_cancel_before_the_end_of_the_wait_has_its_reason(stage: Stage) -> None:
    """Without one it says what was asked."""
    run, _ = stage.start()
    assert stage.verbs.cancel(run.run_id).reason in ("cancelled by hand", CANCEL_REQUESTED)
