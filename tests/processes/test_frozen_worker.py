"""A worker that is frozen past its lease, and wakes up with a run that is not its own any more."""

from __future__ import annotations

import signal

from dynsched.domain.run import RunState
from tests.processes.conftest import NewStage
from tests.processes.stage import Stage, wait_until

SHORT = {
    "DYNSCHED_LEASE_S": "4",
    "DYNSCHED_LEASE_MARGIN_S": "0.5",
    "DYNSCHED_REAPER_PERIOD_S": "0.5",
}
WORK_S = 2.0


def frozen_and_thawed(stage: Stage) -> str:
    """Freeze a worker in mid-run until another one has done its run, thaw it; return the run."""
    stage.init()
    frozen = stage.start("worker")
    run_id = stage.work(WORK_S)
    stage.wait_for_start(run_id, fence=1, seconds=15)
    frozen.send(signal.SIGSTOP)
    stage.start("reaper")
    stage.start("worker")
    stage.wait_for_start(run_id, fence=2, seconds=20)
    wait_until(lambda: stage.run(run_id).state is RunState.DONE, 15, "the other worker's end")
    frozen.send(signal.SIGCONT)
    wait_until(lambda: (1, "late") in stage.outcomes(run_id), 15, "the note of the late result")
    assert frozen.stop() == 0
    return run_id


def test_a_frozen_worker_cannot_complete_a_run_that_another_has_done(new_stage: NewStage) -> None:
    """The fence refuses the late result, and the history tells what became of each attempt."""
    stage = new_stage(**SHORT)
    run_id = frozen_and_thawed(stage)
    run = stage.run(run_id)
    assert (run.state, run.fence, run.attempt, run.spent) == (RunState.DONE, 2, 2, 0)
    told = [(item.number, item.fence, item.outcome) for item in stage.attempts(run_id)]
    assert told == [(1, 1, "late"), (1, 1, "lost"), (2, 2, "done")]
    late, lost, done = stage.attempts(run_id)
    assert late.session == lost.session != done.session
    assert [(line.word, line.fence) for line in stage.journal()] == [
        ("start", 1),
        ("start", 2),
        ("end", 2),
        ("end", 1),
    ]
    assert "came after its lease was lost" in stage.actors[0].said()
