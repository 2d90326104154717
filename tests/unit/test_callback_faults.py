"""Callbacks while the store fails or the worker dies: all runs end, and none twice."""

from __future__ import annotations

from typing import Any

import pytest

from dynsched.domain.run import RunState
from dynsched.errors import StoreError
from dynsched.storage.engine import Replace, Table
from dynsched.testing import memory_store
from dynsched.testing.faults import Call, Crash, Fault, FaultyEngine
from tests.rules.callback_stage import Stage

FAULTS = [fault for fault in Fault if fault is not Fault.NONE and "halfway" not in fault.value]
CLAIM, OPEN, ANSWER = range(3)


class Breaker:
    """Lets one of the guarded writes to runs fail, once.

    Attributes:
        seen: how many there were since it was armed; None is not armed.
    """

    def __init__(self, which: int, fault: Fault) -> None:
        self.which, self.fault = which, fault
        self.seen: int | None = None

    def __call__(self, call: Call) -> Fault:
        """Return what becomes of a call."""
        to_runs = [one for one in call.writes if one.key.table is Table.RUNS]
        if self.seen is None or not any(isinstance(one, Replace) for one in to_runs):
            return Fault.NONE
        self.seen += 1
        return self.fault if self.seen == self.which + 1 else Fault.NONE


def answer(stage: Stage, event: dict[str, Any]) -> None:
    """Answer as a function does that has done its work."""
    with stage.client.callback(event):
        pass


@pytest.mark.parametrize("which", [CLAIM, OPEN, ANSWER])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_its_way_leaves_no_run_behind(which: int, fault: Fault) -> None:
    """Its attempts are as many as its function's invocations at least, and one answer ends it."""
    breaker, engine = Breaker(which, fault), memory_store()
    broken = Stage(FaultyEngine(engine, breaker))
    sound = Stage(engine, beside=broken)
    run = broken.verbs.enqueue(broken.job.job_id)
    breaker.seen = 0
    try:
        broken.work()
        for event in broken.played.events:
            answer(broken, event)
    except (Crash, StoreError):
        pass
    assert breaker.seen > which
    breaker.seen = None
    events = list(broken.played.events)
    sound.clock.step(seconds=700)
    for _ in range(4):
        sound.reaper.sweep()
        sound.clock.step(seconds=20)
        sound.work()
        events += sound.played.events
        for event in sound.played.events:
            answer(sound, event)
        sound.played.events.clear()
    ended = sound.verbs.get_run(run.run_id)
    assert ended.state is RunState.DONE
    assert len(events) <= ended.attempt
