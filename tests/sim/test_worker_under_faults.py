"""What a worker does when the store fails it in the middle of a poll."""

from __future__ import annotations

from datetime import timedelta

from dynsched.domain.job import Overlap, Policies
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.storage.engine import Replace
from dynsched.testing.faults import Call, Fault
from tests.sim.world import Process, World


class Refusing:
    """A store that refuses calls of one kind while told to."""

    def __init__(self, of: str) -> None:
        self.of = of
        self.on = False

    def __call__(self, call: Call) -> Fault:
        """Return what becomes of a call."""
        wanted = any(_tells(write) == self.of for write in call.writes)
        wanted = wanted or any(self.of in key.pk for key in call.keys)
        return Fault.THROTTLE if self.on and wanted else Fault.NONE


def _tells(write: object) -> str:
    return str(write.row.body.get("r", "")) if isinstance(write, Replace) else ""


def _enqueue(world: World, name: str, **policies: object) -> None:
    process = Process(world)
    operations = process.operations
    if operations.find_id("default", name) is None:
        chosen = Policies(timeout=None, **policies)  # type: ignore[arg-type]
        operations.create(JobSpec(name=name, target=HandlerTarget("ok"), policies=chosen))
    operations.enqueue(operations.find(name).job_id)


def _states(world: World) -> list[RunState]:
    def made(run: Run) -> str:
        return run.run_id

    return sorted(run.state for run in sorted(world.runs(), key=made))


def test_runs_start_although_another_one_of_the_same_poll_cannot_be_put_back() -> None:
    """A claimed run that must wait and cannot be written does not hold up those that may start."""
    world, refusing = World.new(), Refusing("job paused with hold")
    _enqueue(world, "held", overlap=Overlap.ALLOW)
    operations = Process(world).operations
    operations.pause(operations.find("held").job_id, reason="", hold=True)
    _enqueue(world, "free", overlap=Overlap.ALLOW)
    process = Process(world, refusing)
    refusing.on = True
    process.worker.poll()
    refusing.on = False
    process.worker.poll()
    assert _states(world) == [RunState.DONE, RunState.READY]


def test_a_hint_that_cannot_be_written_does_not_stop_the_worker() -> None:
    """The freed mark of a tenant's permit is a hint; its loss costs a look, not the worker."""
    world, refusing = World.new(), Refusing("permit#t:default")
    Process(world).operations.set_tenant("default", max_running=1)
    _enqueue(world, "capped", overlap=Overlap.ALLOW)
    process = Process(world, refusing)
    process.worker.poll()
    refusing.on = True
    process.worker.poll()
    refusing.on = False
    _enqueue(world, "capped")
    for _ in range(3):
        world.clock.step(timedelta(seconds=4))
        process.worker.poll()
    assert _states(world) == [RunState.DONE, RunState.DONE]
