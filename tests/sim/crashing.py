"""Crash, fail and lose answers at every call that an operation makes to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from dynsched.errors import DynschedError
from dynsched.testing.faults import Call, Crash, Fault, Plan
from tests.sim.world import Process, World

TRIES = 6  # of the engine that repeats: so many faults in a row are one that is seen above


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault at one call.

    Attributes:
        call: number of the call, from 1.
        fault: what happens to it.
        then: what happens to the calls right after it, as many as are tried.
    """

    call: int
    fault: Fault
    then: Fault = Fault.NONE

    def plan(self, call: Call) -> Fault:
        """Return what becomes of a call."""
        if call.number == self.call:
            return self.fault
        return self.then if self.call < call.number < self.call + TRIES else Fault.NONE


READS = ((Fault.CRASH_BEFORE, Fault.NONE), (Fault.THROTTLE, Fault.THROTTLE))
WRITES = (
    *READS,
    (Fault.CRASH_AFTER, Fault.NONE),
    (Fault.LOST_APPLIED, Fault.NONE),
    (Fault.LOST_UNAPPLIED, Fault.NONE),
    (Fault.LOST_APPLIED, Fault.THROTTLE),
    (Fault.LOST_UNAPPLIED, Fault.THROTTLE),
)
BATCHES = (*WRITES, (Fault.CRASH_HALFWAY, Fault.NONE), (Fault.LOST_HALFWAY, Fault.THROTTLE))


def blows(calls: list[Call]) -> Iterator[Blow]:
    """Return every fault at every call."""
    for call in calls:
        faults = READS if not call.writes else BATCHES if len(call.writes) > 1 else WRITES
        for fault, then in faults:
            yield Blow(call.number, fault, then)


@dataclass(frozen=True, slots=True)
class Scenario:
    """An operation, and what it is done to.

    Attributes:
        prepare: makes a world in which the operation has something to do.
        ready: what the process does before it is struck.
        act: the operation, by the process that is struck.
        again: what was refused or cut off is asked for once more.
        acked: what must hold in the end if the operation was acknowledged.
    """

    prepare: Callable[[Process], None]
    act: Callable[[Process], object]
    again: bool = False
    acked: Callable[[World], bool] | None = None
    ready: Callable[[Process], None] | None = None


@dataclass(slots=True)
class Trial:
    """One run of a scenario, under one fault or none."""

    world: World
    process: Process
    acted_at: datetime
    calls: list[Call] = field(default_factory=list)
    done: bool = False
    crashed: bool = False
    failures: list[str] = field(default_factory=list)


def run_trial(scenario: Scenario, blow: Blow | None) -> Trial:
    """Prepare, act under the fault, and let everything settle with new processes."""
    world = World.new()
    maker = _process(world, None)
    scenario.prepare(maker)
    process = _process(world, None if blow is None else blow.plan)
    if scenario.ready is not None:
        scenario.ready(process)
    trial = Trial(world, process, world.clock.now())
    before = len(process.engine.calls)
    _act(scenario, trial, process)
    trial.calls = process.engine.calls[before:]
    heir = _process(world, None)
    if scenario.again and not trial.done:
        _act(scenario, trial, heir if trial.crashed else process)
    world.settle(*([heir] if trial.crashed else [process, heir]))
    process.runner.close()
    trial.failures += world.found()
    if trial.done and scenario.acked is not None and not scenario.acked(world):
        trial.failures.append("3: what was acknowledged does not hold")
    return trial


def _process(world: World, plan: Plan | None) -> Process:
    process = Process(world, plan)
    process.base.store.refresh()
    return process


def _act(scenario: Scenario, trial: Trial, process: Process) -> None:
    try:
        scenario.act(process)
    except Crash:
        trial.crashed = True
    except DynschedError:
        pass
    else:
        trial.done = True


def strike(scenario: Scenario) -> list[str]:
    """Run a scenario with each fault at each of its calls; return what broke, and where."""
    plain = run_trial(scenario, None)
    assert plain.done
    found = [f"without a fault: {failure}" for failure in plain.failures]
    until = plain.acted_at
    expected = plain.world.outcome(until)
    for blow in blows(plain.calls):
        try:
            trial = run_trial(scenario, blow)
        except Exception as error:  # noqa: BLE001  the report names the fault that led to it
            found.append(f"{_told(plain, blow)}: raised {error!r}")
            continue
        broken = trial.failures
        if trial.done and (outcome := trial.world.outcome(until)) != expected:
            broken = [*broken, f"ended as {_differing(outcome, expected)}"]
        found += [f"{_told(plain, blow)}: {failure}" for failure in broken]
    return found


def _told(plain: Trial, blow: Blow) -> str:
    call = next(call for call in plain.calls if call.number == blow.call)
    rest = f", then {blow.then}" if blow.then is not Fault.NONE else ""
    keys = " ".join(f"{key.pk}/{key.sk}" for key in call.keys[:2])
    return f"{blow.fault}{rest} at call {blow.call} ({call.method} {keys})"


def _differing(got: dict[str, list[str]], expected: dict[str, list[str]]) -> str:
    names = sorted(got.keys() | expected.keys())
    return "; ".join(
        f"{name}: {got.get(name)} instead of {expected.get(name)}"
        for name in names
        if got.get(name) != expected.get(name)
    )
