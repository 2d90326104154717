"""The store fails at each call of an invocation: no run is lost, and none is begun twice unseen.

Each scenario is played once without a fault to count its calls, then once for each call and fault;
afterwards healthy processes and a reaper go on with what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from dynsched.domain.job import Overlap
from dynsched.domain.run import Run, RunState
from dynsched.testing.faults import Call, Crash, Fault
from tests.functions.stage import Stage

Scenario = Callable[[Stage], list[Run]]

PASSING = (Fault.THROTTLE, Fault.UNAVAILABLE, Fault.LOST_APPLIED, Fault.LOST_UNAPPLIED)
DEADLY = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


def _plain(stage: Stage) -> list[Run]:
    """Return a run that succeeds."""
    return [stage.run()]


def _capped(stage: Stage) -> list[Run]:
    """Return a run under its tenant's cap, with a time limit."""
    stage.operations.set_tenant("t", max_running=1)
    return [stage.run(timeout=timedelta(seconds=20))]


def _alone(stage: Stage) -> list[Run]:
    """Return two runs of a job that forbids overlap; the second waits for the first."""
    job = stage.job(overlap=Overlap.QUEUE_ONE)
    return [stage.enqueue(job), stage.enqueue(job)]


def _fails(stage: Stage) -> list[Run]:
    """Return a run that fails twice, then is dead."""
    return [stage.run("fail", retry=stage.retry(max_attempts=2))]


SCENARIOS = {one.__name__: one for one in (_plain, _capped, _alone, _fails)}


def calls_of(scenario: Scenario) -> int:
    """Return how many calls of the engine a scenario's first invocation makes."""
    stage = Stage()
    scenario(stage)
    base = stage.base({})
    stage.work(stage.worker(base=base), stage.receive())
    engine = stage.faulty[-1]
    return len(engine.calls)


def down_for(stage: Stage, *, seconds: float, first: int) -> Callable[[Call], Fault]:
    """Return the plan of an outage that begins at a call and ends some seconds from now."""
    until = stage.clock.now() + timedelta(seconds=seconds)

    def fault(call: Call) -> Fault:
        down = call.number >= first and stage.clock.now() < until
        return Fault.UNAVAILABLE if down else Fault.NONE

    return fault


def explained(stage: Stage, run: Run) -> None:
    """Check that each start of a run that ended is one of its attempts."""
    now = stage.now(run)
    starts = sum(ctx.run_id == run.run_id for ctx in stage.calls)
    assert now.state in (RunState.DONE, RunState.DEAD, RunState.SKIPPED)
    if now.state is not RunState.SKIPPED:
        assert 1 <= starts <= now.attempt
    if now.state is RunState.DONE:
        lost = [one for one in stage.store.runs.attempts(run.run_id) if one.outcome == "lost"]
        assert now.attempt == 1 + len(lost)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fault_that_passes_is_not_seen(name: str) -> None:
    """A call is refused or its answer lost, once: it is settled, and each run is begun once."""
    scenario = SCENARIOS[name]
    for number in range(1, calls_of(scenario) + 1):
        for fault in PASSING:
            stage = Stage()
            runs = scenario(stage)
            stage.work(stage.worker(base=stage.base({number: fault})), stage.receive())
            stage.drain()
            for run in runs:
                explained(stage, run)
                assert stage.now(run).losses == 0, (number, fault)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_process_that_dies_at_a_call_loses_no_run(name: str) -> None:
    """Its message comes again or was dropped; the row is leased or ready: somebody goes on."""
    scenario = SCENARIOS[name]
    for number in range(1, calls_of(scenario) + 1):
        for fault in DEADLY:
            stage = Stage()
            runs = scenario(stage)
            received = stage.receive()
            worker = stage.worker(base=stage.base({number: fault}))
            with pytest.raises(Crash):
                stage.work(worker, received)
            stage.drain()
            for run in runs:
                explained(stage, run)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_outage_that_outlives_the_invocation_loses_no_run(name: str) -> None:
    """From a call on every one fails, until the sandbox is gone: messages are kept."""
    scenario = SCENARIOS[name]
    for number in range(1, calls_of(scenario) + 1):
        stage = Stage()
        runs = scenario(stage)
        stage.work(
            stage.worker(base=stage.base(down_for(stage, seconds=10**6, first=number))),
            stage.receive(),
        )
        stage.drain()
        for run in runs:
            explained(stage, run)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_outage_that_ends_in_time_is_made_good_by_the_same_process(name: str) -> None:
    """What was claimed is stepped back or written late, under its fence: no loss is counted."""
    scenario = SCENARIOS[name]
    for number in range(1, calls_of(scenario) + 1):
        stage = Stage()
        runs = scenario(stage)
        base = stage.base(down_for(stage, seconds=25, first=number))
        stage.work(stage.worker(base=base), stage.receive())
        stage.drain()
        for run in runs:
            explained(stage, run)
            assert stage.now(run).losses == 0, number


def test_the_faults_are_made() -> None:
    """The scenarios above do make the calls that they fail at."""
    assert calls_of(_plain) >= 4
