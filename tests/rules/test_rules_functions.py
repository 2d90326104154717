"""The worker's function: a lease that ends with its invocation, and messages that are only hints.

Each docstring tells the schedule of events by which the rule's absence shows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from dynsched.domain.run import Run, RunState
from dynsched.testing.faults import Fault
from tests.rules.functions import MINUTE, FunctionProcess, function
from tests.rules.small_world import World
from tests.rules.wire import claims


@pytest.fixture
def world() -> World:
    """Return a world whose main queue is handed off by messages."""
    return World(lanes=1, handed_off=True)


@pytest.fixture
def run(world: World) -> Run:
    """Return a run that is ready; its message is not needed."""
    return world.enqueue(world.job())[0]


def before_the_look(sandbox: FunctionProcess, event: Callable[[], object]) -> None:
    """Let something happen between a claim and the look behind it."""
    sandbox.wire.after(claims, event)


# lamend: a lease is over at its end, for its holder first of all


def test_a_sandbox_that_was_frozen_past_its_end_starts_nothing(world: World, run: Run) -> None:
    """It freezes after its claim; the run is returned, started by another, and it wakes."""
    frozen = function(world)

    def meanwhile() -> None:
        world.clock.step(seconds=70)
        assert world.reaper().sweep().returned == 1
        function(world).visit(run, invocation="b")

    before_the_look(frozen, meanwhile)
    frozen.visit(run)
    assert len(world.calls) == 1
    assert (world.run(run).state, world.run(run).attempt) == (RunState.DONE, 2)


def test_the_wall_clock_ends_a_lease(world: World, run: Run) -> None:
    """While a sandbox is frozen its monotonic clock may stand still."""
    frozen = function(world)
    before_the_look(frozen, lambda: world.clock.set(world.now + timedelta(seconds=70)))
    frozen.visit(run)
    assert world.calls == []


def test_the_monotonic_clock_ends_a_lease(world: World, run: Run) -> None:
    """The wall clock may be set back meanwhile."""
    frozen = function(world)

    def meanwhile() -> None:
        began = world.now
        world.clock.step(seconds=70)
        world.clock.set(began)

    before_the_look(frozen, meanwhile)
    frozen.visit(run)
    assert world.calls == []


def test_a_lease_that_its_time_limit_has_shortened_must_still_hold_all_of_it(
    world: World,
) -> None:
    """It is frozen for some seconds only; its handler would run on past the end of the lease."""
    (run,) = world.enqueue(world.job("b", timeout=timedelta(seconds=20)))
    frozen = function(world)
    before_the_look(frozen, lambda: world.clock.step(seconds=6))
    (fate,) = frozen.visit(run)
    assert (world.calls, fate.keep) == ([], True)
    assert (world.run(run).state, world.run(run).attempt) == (RunState.READY, 0)


# lamid: a lease names its invocation


@pytest.mark.parametrize("invocation", ["a", "b"])
def test_an_invocation_takes_no_lease_of_another_for_its_own(
    world: World, run: Run, invocation: str
) -> None:
    """Two claims of a run are under way, to end in one minute; AWS repeats an invocation's id."""
    slow = function(world)
    ends_at = world.now + MINUTE
    slow.wire.before(claims, lambda: world.claim_fixed(run, invocation, ends_at))
    (fate,) = slow.visit(run, invocation="a")
    assert (world.calls, fate.keep) == ([], True)
    assert world.run(run).session == f"~{invocation}"


def test_a_repeated_invocation_hands_nothing_back_that_is_anothers(world: World, run: Run) -> None:
    """Its claim's answer is lost for good; meanwhile another holds the run under the same id."""
    slow = function(world)
    ends_at = world.now + MINUTE
    slow.wire.before(claims, lambda: world.claim_fixed(run, "a", ends_at))
    slow.wire.before(claims, fault=Fault.LOST_UNAPPLIED, times=6)
    slow.visit(run, invocation="a")
    assert world.run(run).state is RunState.LEASED


# sqsearly: a message that comes too early stays


def test_an_early_message_comes_again_when_its_run_is_due(world: World) -> None:
    """Its delay was cut by a clock that is behind; no resend is needed for the start."""
    run = world.operations.enqueue(world.job().job_id, None, delay=timedelta(seconds=40))
    (message,) = world.messages.messages()
    sandbox = function(world)
    (fate,) = sandbox.visit(run)
    assert fate.keep
    assert fate.again_in == timedelta(seconds=40)
    world.clock.step(seconds=40)
    assert message in world.messages.messages()
    sandbox.receive()
    assert world.run(run).state is RunState.DONE


# onemessage: a step back keeps the message that it came by


def test_a_run_at_its_cap_starts_by_the_message_that_came_too_soon(world: World) -> None:
    """It was put back without a message of its own, and nobody sends another."""
    world.operations.set_tenant("default", max_running=1)
    first, second = world.enqueue(world.job(), 2)
    worker = world.worker(slots=1)
    worker.poll()
    held = next(one for one in (first, second) if world.run(one).state is RunState.LEASED)
    other = second if held is first else first
    sandbox = function(world)
    sandbox.receive()
    assert world.run(other).state is RunState.READY
    worker.finish()
    world.clock.step(seconds=5)
    sandbox.receive()
    assert world.states(first, second) == [RunState.DONE] * 2
    assert world.messages.messages() == []
