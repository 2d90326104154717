"""What the crash matrix and the simulation have found, each as small as it can be told."""

from __future__ import annotations

from datetime import timedelta

from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap, Policies
from dynsched.domain.overlap import Answer
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.permits import PermitDesk
from dynsched.services.slots import Work
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings
from dynsched.storage.engine import Replace
from dynsched.storage.runs import RunApplied
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


class Losing:
    """Slots of a process that dies with its work."""

    def start(self, work: Work) -> None:
        """Lose the work."""

    def replace_one(self) -> None:
        """Do nothing."""


def test_a_reaper_alone_returns_runs_to_a_lane_that_somebody_reads() -> None:
    """A process that only reaps has to read the map too, or it writes by the default one."""
    world = World.new()  # with a single lane
    for _ in range(8):
        _enqueue(world, "free", overlap=Overlap.ALLOW)
    Process(world, slots=Losing()).worker.poll()
    world.clock.step(timedelta(seconds=36))
    assert Process(world).reaper.sweep().returned == 8
    Process(world).worker.poll()
    assert len(world.history.starts) == 8


def test_a_frozen_claim_leaves_the_permit_to_the_newer_lease_of_its_run() -> None:
    """Its write would make the permit free beside the run that holds it."""
    world = World.new()
    _enqueue(world, "alone")
    _enqueue(world, "alone")
    first, second = world.runs()
    store = Process(world).base.store
    desk = PermitDesk(store)
    frozen = store.runs.apply(lifecycle.claim(first, session="s1"))
    assert isinstance(frozen, RunApplied)
    now = world.clock.now()
    back = store.runs.apply(lifecycle.reclaim(frozen.run, now=now, signature=""))
    assert isinstance(back, RunApplied)
    newer = store.runs.apply(lifecycle.claim(back.run, session="s2"))
    other = store.runs.apply(lifecycle.claim(second, session="s3"))
    assert isinstance(newer, RunApplied)
    assert isinstance(other, RunApplied)
    answers = [
        desk.overlap([(run, Overlap.SKIP)])[run.run_id].answer
        for run in (newer.run, frozen.run, other.run)
    ]
    assert answers == [Answer.GRANT, Answer.WAIT, Answer.WAIT]


def test_a_jobs_coming_runs_do_not_hide_the_due_ones_of_another_job() -> None:
    """Where a tenant's jobs take turns, a scan passes over a job, not over its tenant."""
    world = World.new()
    operations = Process(world).operations
    for name in ("a", "b"):
        spec = JobSpec(
            name=name,
            target=HandlerTarget("ok"),
            policies=Policies(share_by_job=True, overlap=Overlap.ALLOW, timeout=None),
        )
        operations.create(spec)
    ids = sorted(operations.find(name).job_id for name in ("a", "b"))
    for _ in range(100):
        operations.enqueue(ids[0], delay=timedelta(hours=1))
    operations.enqueue(ids[1])
    assert Process(world).worker.poll().started == 1


def test_a_sweep_keeps_an_entry_of_the_map_that_others_still_write_under() -> None:
    """A changed map is in force minutes later; an idle store is no proof that it already is."""
    world = World.new(settings=Settings(sweep_period=timedelta(minutes=1)))
    process = Process(world)
    process.reaper.sweep()
    process.operations.resize(lanes=3)
    entries = []
    for minutes in (2, 90):
        world.clock.step(timedelta(minutes=minutes))
        process.reaper.sweep()
        entries.append(len(process.base.store.refresh().entries))
    assert entries == [2, 1]
