"""Every operation survives a crash, a lost answer and a refusal at every call that it makes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.domain.job import CatchUp, JobState, Overlap, Policies
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.slots import Work
from dynsched.services.specs import AtSpec, CronSpec, JobSpec
from dynsched.storage.codec import decode_job
from tests.sim.crashing import Scenario, strike
from tests.sim.world import BEGIN, LARGE, Process, World

NO_WAIT = Policies(
    overlap=Overlap.ALLOW,
    timeout=None,
    retry=RetryPolicy(base=timedelta(seconds=20), jitter=Jitter.NONE),
)
MINUTE = timedelta(minutes=1)


def job(name: str, handler: str = "ok", **fields: object) -> JobSpec:
    """Return a job that nothing but its own schedule holds up."""
    policies = fields.pop("policies", NO_WAIT)
    return JobSpec(name=name, target=HandlerTarget(handler), policies=policies, **fields)  # type: ignore[arg-type]


def forbids(overlap: Overlap = Overlap.SKIP) -> Policies:
    """Return the policies of a job whose runs do not overlap."""
    return Policies(overlap=overlap, timeout=None)


class Losing:
    """Slots of a process that dies with its work."""

    def start(self, work: Work) -> None:
        """Lose the work."""

    def replace_one(self) -> None:
        """Do nothing."""


def due_jobs(maker: Process) -> None:
    """Leave jobs that are due: for now, after an outage, for a retry, with spans to be archived."""
    create = maker.operations.create
    create(job("once", "once"))
    maker.operations.enqueue(maker.operations.find("once").job_id, at=BEGIN)
    for catch_up in CatchUp:
        policies = Policies(catch_up=catch_up, catch_up_max=3, overlap=Overlap.ALLOW, timeout=None)
        schedule = CronSpec(expr="*/20 * * * * *", seconds=True, end=BEGIN + 10 * MINUTE)
        create(job(catch_up.value, "quiet", schedule=schedule, policies=policies))
    create(job("later", "later", schedule=CronSpec(expr="30 */4 * * * *", seconds=True)))
    # Each outage is a span; the third one does not fit in the row and pushes the first one out.
    for _ in range(2):
        maker.world.clock.step(timedelta(minutes=3))
        maker.dispatcher.tick()
        run_all(maker)
    maker.world.clock.step(timedelta(minutes=3))


def run_all(process: Process) -> None:
    """Run what is due, and write how it ended."""
    for _ in range(3):
        process.worker.look_again()
        process.worker.poll()
    process.keeper.close()


def ready_runs(maker: Process) -> None:
    """Leave runs that may start, that must wait, that are skipped and that have a large payload."""
    operations = maker.operations
    operations.set_tenant("capped", max_running=1)
    for name, overlap in (("skips", Overlap.SKIP), ("queues", Overlap.QUEUE_ONE)):
        schedule = CronSpec(expr="* * * * *")
        operations.create(job(name, schedule=schedule, policies=forbids(overlap)))
    late = Policies(start_deadline=timedelta(seconds=30), overlap=Overlap.ALLOW, timeout=None)
    operations.create(job("late", schedule=AtSpec(at=BEGIN + MINUTE), policies=late))
    for name, handler, tenant in (("free", "ok", "t"), ("a", "quiet", "capped")):
        operations.create(job(name, handler, tenant=tenant, payload=LARGE))
    for name, tenant in (("free", "t"), ("a", "capped"), ("a", "capped")):
        operations.enqueue(operations.find(name, tenant).job_id)
    operations.enqueue(operations.find("free", "t").job_id, payload=LARGE)
    maker.world.clock.step(MINUTE)
    maker.dispatcher.tick()
    maker.world.clock.step(MINUTE)
    maker.dispatcher.tick()
    maker.world.clock.step(timedelta(seconds=1))  # both minutes are late: they take turns
    for name in ("skips", "queues"):
        operations.pause(operations.find(name).job_id, reason="two minutes are enough")


def ending_runs(maker: Process) -> None:
    """Leave runs whose handlers will end in each way that there is."""
    operations = maker.operations
    operations.set_tenant("capped", max_running=1)
    for name in ("ok", "quiet", "once", "never", "later"):
        operations.create(job(name, name))
        operations.enqueue(operations.find(name).job_id)
    operations.create(job("capped", tenant="capped"))
    operations.enqueue(operations.find("capped", "capped").job_id)
    operations.create(job("queues", policies=forbids(Overlap.QUEUE_ONE)))
    for _ in range(2):
        operations.enqueue(operations.find("queues").job_id)


def start_all(process: Process) -> None:
    """Start what is due."""
    process.worker.poll()


def lost_runs(maker: Process) -> None:
    """Leave the runs of workers that died: one twice lost before, one free, one waited for."""
    operations = maker.operations
    operations.create(job("poison"))
    operations.enqueue(operations.find("poison").job_id, at=BEGIN)
    for _ in range(2):
        lose_worker(maker.world)
        maker.world.clock.step(timedelta(seconds=36))
        maker.reaper.sweep()
    lose_worker(maker.world)
    for name, policies in (("free", NO_WAIT), ("queues", forbids(Overlap.QUEUE_ONE))):
        operations.create(job(name, policies=policies))
        operations.enqueue(operations.find(name).job_id)
    lose_worker(maker.world)
    operations.enqueue(operations.find("queues").job_id)
    maker.worker.poll()
    maker.keeper.close()
    maker.world.clock.step(timedelta(seconds=36))


def lose_worker(world: World) -> None:
    """Let a worker claim and start what is due, and die of it."""
    lost = Process(world, slots=Losing())
    lost.worker.poll()
    lost.runner.close()


def one_job(maker: Process) -> None:
    """Leave a job that is due every half minute, served some way ahead."""
    maker.operations.create(
        job("j", "quiet", schedule=CronSpec(expr="*/15 * * * * *", seconds=True))
    )
    maker.world.clock.step(timedelta(seconds=20))
    maker.dispatcher.tick()
    run_all(maker)
    maker.world.clock.step(timedelta(seconds=41))


def paused_job(maker: Process) -> None:
    """Leave a paused job with instants behind it."""
    one_job(maker)
    maker.operations.pause(maker.operations.find("j").job_id, reason="for now")
    maker.world.clock.step(timedelta(seconds=95))


def dead_run(maker: Process) -> None:
    """Leave a dead run."""
    maker.operations.create(job("never", "never"))
    maker.operations.enqueue(maker.operations.find("never").job_id)
    run_all(maker)


def dead_runs(maker: Process) -> None:
    """Leave dead runs, one of them discarded and one with a large payload."""
    job_id = maker.operations.create(job("never", "never")).job_id
    made = [maker.operations.enqueue(job_id, payload) for payload in (1, 2, LARGE)]
    run_all(maker)
    maker.operations.discard(made[0].run_id)
    maker.world.clock.step(timedelta(seconds=1))


def draft(maker: Process) -> None:
    """Leave a draft of three runs, of which one was discarded since."""
    dead_runs(maker)
    hidden = next(run for run in maker.world.runs() if run.hidden)
    maker.operations.restore(hidden.run_id)
    maker.operations.preview_replay("", reason="mended", rate=None)
    maker.operations.discard(hidden.run_id)


def batch_id(process: Process) -> str:
    """Return the id of the only batch."""
    (batch,) = process.base.store.batches.newest(most=2)
    return batch.batch_id


def confirm(process: Process) -> None:
    """Start the draft."""
    process.operations.confirm_replay(batch_id(process))


def running_batch(maker: Process) -> None:
    """Leave a batch that is to be moved."""
    draft(maker)
    confirm(maker)


def aborted_batch(maker: Process) -> None:
    """Leave a batch that was moved, and is to be taken back."""
    running_batch(maker)
    maker.stepper.step()
    maker.operations.abort_replay(batch_id(maker), pull_back=True)
    maker.stepper.close()


def moved_once(world: World) -> bool:
    """Return whether the two runs of the batch were moved once, and the third was not."""
    return sorted(run.replays for run in world.runs()) == [0, 1, 1]


def replay_edited(process: Process) -> None:
    """Replay the dead runs with another payload."""
    for run in list(process.world.runs()):
        if run.state is RunState.DEAD and not run.hidden:
            process.operations.replay_edited(run.run_id, {"n": 7}, reason="typo")


def job_to_enqueue(maker: Process) -> None:
    """Leave a job without a schedule."""
    maker.operations.create(job("j"))


def nothing(maker: Process) -> None:
    """Leave the world empty."""


def id_of(process: Process, name: str = "j") -> str:
    """Return a job's id."""
    return process.operations.find(name).job_id


def stored(world: World, name: str = "j") -> JobState:
    """Return the state of the only job of that name."""
    jobs = [decode_job(row) for row in world.history.rows.values() if row.key.sk == "job"]
    return next(job.state for job in jobs if job.name == name)


def replay_dead(process: Process) -> None:
    """Replay the one dead run."""
    dead = [run for run in process.world.runs() if run.state is RunState.DEAD]
    for run in dead:
        process.operations.replay(run.run_id)


def cancel_leased(process: Process) -> None:
    """Cancel the runs that are leased."""
    for run in list(process.world.runs()):
        if run.state in (RunState.LEASED, RunState.READY):
            process.operations.cancel(run.run_id)


def end_process(process: Process) -> None:
    """Drain and close, as after SIGTERM."""
    process.worker.drain()
    process.world.clock.step(timedelta(seconds=21))
    process.worker.poll()
    process.worker.close()


SCENARIOS = {
    "tick": Scenario(due_jobs, lambda p: p.dispatcher.tick()),
    "claim": Scenario(ready_runs, lambda p: p.worker.poll()),
    "finish": Scenario(ending_runs, lambda p: p.worker.poll(), ready=start_all),
    "renew": Scenario(ending_runs, lambda p: p.keeper.beat(), ready=start_all),
    "reap": Scenario(lost_runs, lambda p: p.reaper.sweep()),
    "drain": Scenario(ending_runs, end_process, ready=start_all),
    "pause": Scenario(
        one_job,
        lambda p: p.operations.pause(id_of(p), reason="stop"),
        acked=lambda w: stored(w) is JobState.PAUSED,
    ),
    "resume": Scenario(
        paused_job,
        lambda p: p.operations.resume(id_of(p)),
        acked=lambda w: stored(w) is JobState.ACTIVE,
    ),
    "edit": Scenario(
        one_job,
        lambda p: p.operations.reschedule(id_of(p), CronSpec(expr="*/25 * * * * *", seconds=True)),
    ),
    "delete": Scenario(
        one_job,
        lambda p: p.operations.delete(id_of(p)),
        acked=lambda w: stored(w) is JobState.DELETED,
    ),
    "replay": Scenario(dead_run, replay_dead, again=True),
    "preview": Scenario(
        dead_runs, lambda p: p.operations.preview_replay("", reason="mended"), again=True
    ),
    "confirm": Scenario(draft, confirm, again=True, acked=moved_once),
    "step": Scenario(running_batch, lambda p: p.stepper.step(), again=True, acked=moved_once),
    "pull back": Scenario(aborted_batch, lambda p: p.stepper.step()),
    "replay edited": Scenario(dead_runs, replay_edited),
    "cancel": Scenario(ending_runs, cancel_leased, ready=start_all),
    "create": Scenario(
        nothing,
        lambda p: p.operations.create(job("j", schedule=AtSpec(at=BEGIN), payload=LARGE)),
        again=True,
        acked=lambda w: len(list(w.runs())) == 1,
    ),
    "enqueue": Scenario(
        job_to_enqueue,
        lambda p: p.operations.enqueue(id_of(p), LARGE, key="order-7", at=BEGIN),
        again=True,
        acked=lambda w: len(list(w.runs())) == 1,
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_operation_survives_every_fault_at_each_of_its_calls(name: str) -> None:
    """Invariants 1 to 10 hold after it, and whatever was due has run or is a counted skip."""
    found = strike(SCENARIOS[name])
    assert not found, f"{len(found)} failures\n" + "\n".join(found[:30])
