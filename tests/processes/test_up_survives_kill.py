"""`dynsched up` that is killed in the middle of its work, and started again."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from dynsched.domain.run import RunState
from tests.processes.conftest import Figure, NewStage
from tests.processes.stage import Actor, Line, Stage, wait_until

SECONDS = 20
LONG_S, LONG_EVERY_S = 2.0, 3
RESTART_S = 5.0


Long = Callable[[], list[Line]]
"""Returns the long runs that are in the middle of their work."""


def in_the_middle_of_long_runs(stage: Stage, long: Long) -> None:
    """Wait until a short run ends beside long ones."""
    wait_until(long, 15, "long runs")
    ended = len(stage.journal("end"))
    wait_until(lambda: len(stage.journal("end")) > ended, 15, "a short run beside them")


def at_the_start_of_long_runs(_: Stage, long: Long) -> None:
    """Wait until no long run is in hand (two lost leases would isolate it), then for a start."""
    wait_until(lambda: not long(), 15, "a pause between long runs")
    wait_until(long, 15, "the start of a long run")


MOMENTS = (in_the_middle_of_long_runs, at_the_start_of_long_runs)


def start_again(stage: Stage, interrupted: list[Line]) -> tuple[Actor, float]:
    """Start `up`; return it, and after how long the last interrupted run had started again."""
    began = monotonic()
    up = stage.start("up")
    for line in interrupted:
        stage.wait_for_start(line.run_id, line.fence + 1, RESTART_S)
    return up, monotonic() - began


def test_up_that_is_killed_twice_loses_no_job_and_doubles_no_occurrence(
    new_stage: NewStage, figure: Figure
) -> None:
    """Each instant has one row that is done; interrupted runs start again within five seconds."""
    stage = new_stage()
    stage.init(look_ahead_s=2)
    count = SECONDS // LONG_EVERY_S
    expected = stage.each_second("work", jobs=2, count=count, every_s=LONG_EVERY_S, payload=LONG_S)
    long_ids = {job_id for job_id, _ in expected}
    expected |= stage.each_second("touch", jobs=3, count=SECONDS)
    up, interrupted = stage.start("up"), list[Line]()
    for moment in MOMENTS:
        moment(stage, lambda: [line for line in stage.unended() if line.job_id in long_ids])
        up.kill()
        lines = stage.forget_unended()
        up, restart_s = start_again(stage, lines)
        figure(f"up killed with {len(lines)} runs in hand: restarted after {restart_s:.1f} s")
        interrupted += lines
    wait_until(lambda: all_done(stage, len(expected)), 40, "the end of all runs")
    assert up.stop() == 0
    rows = stage.runs()
    assert sorted((run.job_id, run.scheduled_for) for run in rows) == sorted(expected)
    assert {run.state for run in rows} == {RunState.DONE}
    assert stage.unexplained(rows) == []
    for line in interrupted:
        told = stage.outcomes(line.run_id)
        assert (line.attempt, "lost") in told
        assert stage.run(line.run_id).attempt > line.attempt


def all_done(stage: Stage, count: int) -> bool:
    """Return whether that many runs are done."""
    return sum(run.state is RunState.DONE for run in stage.runs()) >= count
