"""A worker that is asked to end."""

from __future__ import annotations

import signal
from time import monotonic

from dynsched.domain.run import RunState
from tests.processes.conftest import Figure, NewStage
from tests.processes.stage import wait_until

GRACE_S = 2.0


def test_a_draining_worker_ends_what_it_has_in_hand(new_stage: NewStage) -> None:
    """SIGTERM in the middle of a handler of one second: the run is done, the exit code is 0."""
    stage = new_stage()
    stage.init()
    worker = stage.start("worker")
    run_id = stage.work(1.0)
    stage.wait_for_start(run_id, fence=1, seconds=15)
    assert worker.stop() == 0
    run = stage.run(run_id)
    assert (run.state, run.fence, run.attempt) == (RunState.DONE, 1, 1)


def test_a_draining_worker_claims_nothing_more(new_stage: NewStage) -> None:
    """What was enqueued after SIGTERM waits untouched for another worker."""
    stage = new_stage()
    stage.init()
    worker = stage.start("worker")
    first = stage.work(1.5)
    stage.wait_for_start(first, fence=1, seconds=15)
    worker.send(signal.SIGTERM)
    wait_until(lambda: "draining" in worker.said(), 10, "the beginning of the drain")
    second = stage.work(0.0)
    assert worker.process.wait(15) == 0
    assert (stage.run(second).state, stage.run(second).fence) == (RunState.READY, 0)


def test_a_draining_worker_hands_back_what_outlasts_the_grace(
    new_stage: NewStage, figure: Figure
) -> None:
    """The attempt is counted, nothing is spent or lost, and another worker takes the run."""
    stage = new_stage(DYNSCHED_DRAIN_GRACE_S=f"{GRACE_S:g}")
    stage.init()
    draining = stage.start("worker")
    run_id = stage.work(60.0)
    stage.wait_for_start(run_id, fence=1, seconds=15)
    began = monotonic()
    assert draining.stop(GRACE_S + 5) == 0
    figure(f"drain with a grace of {GRACE_S:g} s: exit after {monotonic() - began:.1f} s")
    run = stage.run(run_id)
    assert (run.state, run.attempt, run.spent, run.losses) == (RunState.READY, 1, 0, 0)
    assert stage.outcomes(run_id) == [(1, "handed back")]
    stage.start("worker")
    assert stage.wait_for_start(run_id, fence=2, seconds=5).attempt == 2


def test_a_process_that_was_asked_to_end_while_frozen_ends_when_it_thaws(
    new_stage: NewStage,
) -> None:
    """The signal may reach a thread that cannot heed it, and must be heeded all the same."""
    stage = new_stage()
    stage.init()
    run_id = stage.work(0.0)
    workers = [stage.start("worker") for _ in range(3)]
    wait_until(lambda: len(stage.base.store.control.sessions()) == len(workers), 15, "sessions")
    wait_until(lambda: stage.run(run_id).terminal, 15, "a run")
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        for worker in workers:
            worker.send(number)
    assert [worker.process.wait(15) for worker in workers] == [0] * len(workers)
