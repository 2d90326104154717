"""Callbacks that are still to come when the time of the worker's own function ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.bootstrap import build_message_worker, build_reaper
from dynsched.domain.run import RunState
from dynsched.domain.target_aws import Invocation, LambdaTarget
from dynsched.services.message_worker import MessageWorker
from dynsched.services.slots import Work
from dynsched.services.specs import JobSpec
from dynsched.targets.aws import AwsClients
from tests.functions.stage import PLAIN, Stage
from tests.rules.callback_stage import PlayedLambda

LIMIT = timedelta(hours=3)


class Pending:
    """A slot whose handler has invoked a function that goes on, and waits for the answer.

    Attributes:
        played: the Lambda that it invokes.
    """

    def __init__(self) -> None:
        self.played = PlayedLambda()
        self.played.on_event = lambda _: self._wait()
        self._invoked, self._answered = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def _wait(self) -> None:
        self._invoked.set()
        assert self._answered.wait(10)

    def start(self, work: Work) -> None:
        """Run a piece of work until its function was invoked."""
        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()
        assert self._invoked.wait(10)

    def replace_one(self) -> None:
        """Do nothing."""

    def answer(self) -> None:
        """Let the invocation be answered, and the handler return."""
        self._answered.set()
        for thread in self._threads:
            thread.join(10)


def worker_on(stage: Stage, slot: Pending) -> MessageWorker:
    """Return a message worker that invokes functions by a slot's Lambda."""
    aws = AwsClients(stage.clock, make=slot.played.make)
    return build_message_worker(stage.base(), slots=slot, aws=aws)


@pytest.mark.parametrize("frozen_s", [0, 50, 57, 120])
def test_what_awaits_its_callback_is_not_begun_again_when_its_workers_time_ends(
    stage: Stage, frozen_s: int
) -> None:
    """The invocation may have been taken: its function goes on, and only it ends the run.

    At the margins before the end of the worker's lease its own handlers are stopped and failed,
    and behind it they are given back; each of them would start the function a second time.
    """
    target = LambdaTarget("report", invocation=Invocation.CALLBACK)
    policies = replace(PLAIN, timeout=LIMIT)
    job = stage.operations.create(JobSpec(name="report", target=target, policies=policies))
    run, slot = stage.enqueue(job), Pending()
    stage.clock.after(1, lambda: stage.clock.step(seconds=frozen_s))
    worker = worker_on(stage, slot)
    (fate,) = stage.work(worker, stage.receive())
    assert (fate.keep, fate.why) == (False, "its run is leased")
    stage.clock.step(seconds=120)
    build_reaper(stage.base()).sweep()
    assert stage.now(run).awaits_callback
    slot.answer()
    stage.work(worker, stage.receive(), invocation="next")
    stage.drain(60)
    after = stage.now(run)
    assert (after.state, after.awaits_callback, len(slot.played.events)) == (
        RunState.LEASED,
        True,
        1,
    )
