"""Runs that wait for their callbacks: who may answer, and what happens if nobody does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.bootstrap import build_message_worker
from dynsched.domain.job import Overlap
from dynsched.domain.lease_words import holder_words
from dynsched.domain.lifecycle import CANCEL_REQUESTED
from dynsched.domain.message import encode_message
from dynsched.domain.run import RunState
from dynsched.domain.time_words import stamp
from dynsched.errors import Conflict, DynschedError, Forbidden, InvalidInput
from dynsched.services.callbacks import Answer
from dynsched.services.capacity import why_words
from dynsched.services.message_worker import Message
from dynsched.services.slots import InlineSlots
from dynsched.targets.aws import AwsClients
from dynsched.targets.context import Permanent
from tests.rules.callback_stage import LIMIT, Stage


@pytest.fixture
def stage() -> Stage:
    """Return a store in memory with a job that calls back."""
    return Stage()


def token_of(event: dict[str, dict[str, str]]) -> str:
    """Return the token that a function was given."""
    return event["dynsched"]["token"]


def test_a_run_awaits_its_callback_under_its_fence_and_frees_its_slot(stage: Stage) -> None:
    """The function has what it needs to answer, and the worker has nothing left to do."""
    run, event = stage.start()
    assert run.awaits_callback
    assert (run.state, run.fence, run.attempt) == (RunState.LEASED, 1, 0)
    assert run.lease_ends_at == stage.clock.now() + LIMIT
    assert event["payload"] == {"day": 7}
    assert event["dynsched"]["run_id"] == run.run_id
    assert event["dynsched"]["idempotency_key"] == run.idempotency_key
    assert stage.worker.idle


def test_the_answer_ends_the_run_with_its_output(stage: Stage) -> None:
    """As a handler that returned."""
    run, event = stage.start()
    stage.clock.step(seconds=90)
    done = stage.client.complete_run(run.run_id, token_of(event), {"rows": 3})
    assert (done.state, done.attempt, done.spent) == (RunState.DONE, 1, 0)
    assert done.ended_at == stage.clock.now()
    (attempt,) = stage.views.show_run(run.run_id).attempts
    assert (attempt.outcome, attempt.detail) == ("done", '{"rows": 3}')


def test_a_permanent_failure_buries_the_run(stage: Stage) -> None:
    """The function knows better than the policy."""
    run, event = stage.start()
    dead = stage.client.fail_run(run.run_id, token_of(event), "NoSuchOrder", permanent=True)
    assert (dead.state, dead.spent) == (RunState.DEAD, 1)


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


def test_a_newer_run_that_replaces_it_starts_at_once(stage: Stage) -> None:
    """The way of cancel_running reaches work that nobody in a worker has in hand."""
    job = stage.make_job("replaces", Overlap.CANCEL_RUNNING)
    old, _ = stage.start(job)
    new = stage.verbs.enqueue(job.job_id)
    stage.work(5)
    assert stage.verbs.get_run(old.run_id).state is RunState.CANCELLED
    assert stage.verbs.get_run(new.run_id).awaits_callback


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
    """It waited already; its token dies with it."""
    stage.played.refusal = "TooManyRequestsException"
    run = stage.verbs.enqueue(stage.job.job_id)
    stage.work()
    after = stage.verbs.get_run(run.run_id)
    assert (after.state, after.spent) == (RunState.READY, 1)
    assert after.error == "TooManyRequestsException: no"
    assert not after.awaits_callback


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
    assert not stage.verbs.get_run(run.run_id).awaits_callback


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


@pytest.mark.parametrize("token", ["", "\udcff", "\u00e4", "0" * 100_000])
def test_a_token_that_is_none_is_a_wrong_one_and_no_fault(stage: Stage, token: str) -> None:
    """A command line may hold bytes that are no text."""
    run, _ = stage.start()
    with pytest.raises(Forbidden):
        stage.verbs.answer_run(run.run_id, token, Answer.done())
    assert stage.verbs.get_run(run.run_id).awaits_callback


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


def test_lists_say_what_a_run_waits_for(stage: Stage) -> None:
    """Not the name of a session that nobody can look up."""
    run, _ = stage.start()
    told = f"waits for its callback until {stamp(stage.clock.now() + LIMIT)}"
    assert why_words(run) == told
    assert holder_words(run) == told


def test_a_function_can_wait_for_callbacks_too(stage: Stage) -> None:
    """Its message is done with, and the function of the job has longer than that of the worker."""
    worker = build_message_worker(
        stage.base, slots=InlineSlots(), aws=AwsClients(stage.clock, make=stage.played.make)
    )
    run = stage.verbs.enqueue(stage.job.job_id)
    message = Message(id="m1", body=encode_message(run.run_id))
    ends_at = stage.clock.now() + timedelta(minutes=2)
    (fate,) = worker.work([message], ends_at=ends_at, invocation="i1")
    assert not fate.keep
    handed = stage.verbs.get_run(run.run_id)
    assert handed.awaits_callback
    assert handed.lease_ends_at == stage.clock.now() + LIMIT
    (event,) = stage.played.events
    assert stage.client.complete_run(run.run_id, token_of(event)).state is RunState.DONE
