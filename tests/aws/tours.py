"""Tours: what each role does with a deployment, so that its calls can be held against its policy.

A tour takes every way to the store that its role has; one that it leaves out shows as a permission
that is granted and never used.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from dynsched.bootstrap import build_operations, build_worker, open_base
from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import FIXED_SESSION, Run, RunState
from dynsched.services.specs import EverySpec
from dynsched.storage.runs import RunApplied
from tests.aws.deployment import Deployment
from tests.contract.dynamo_backends import dummy_credentials
from tests.integration.program import Program

WHY = ("--reason", "tour")


def operator_tour(deployment: Deployment, folder: Path) -> None:
    """Look at everything, and change what operators and admins may change."""
    with dummy_credentials():
        program = Program(folder, made=False)
        program.url = deployment.store_url("operator")
        _define(program)
        batch = _triage(program)
        deployment.invoke("reaper")
        program("replay", "rest", batch, *WHY)
        _look(program)


def _define(program: Program) -> None:
    program("job", "add", "tour", "--cron", "*/5 * * * *", "--handler", "touch", *WHY)
    program(
        "job", "add", "by-hand", "--manual", "--handler", "touch", "--payload", '{"n": 1}', *WHY
    )
    program("job", "edit", "tour", "--cron", "*/7 * * * *", *WHY)
    program("job", "pause", "tour", *WHY)
    program("job", "resume", "tour", *WHY)
    (run,) = [program.json("job", "run-now", "by-hand", *WHY)]
    program("run", "cancel", run["run_id"], *WHY)
    program("tenant", "set", "default", "--max-running", "50", *WHY)
    program("token", "create", "tour", *WHY)
    program("token", "revoke", "tour", *WHY)
    program("job", "add", "gone", "--manual", "--handler", "touch", *WHY)
    program("job", "delete", "gone", *WHY)


def _triage(program: Program) -> str:
    """Bring dead runs back, of which there are four at least; return the batch that was ended."""
    dead = [run["run_id"] for run in program.json("dlq", "list")]
    assert len(dead) >= 4, "the tour begins with dead runs"
    program("dlq", "show", dead[0])
    program("dlq", "discard", dead[0], *WHY)
    program("dlq", "restore", dead[0], *WHY)
    program("dlq", "replay", dead[1], *WHY)
    program("replay", "as-new", dead[2], *WHY)
    program("replay", "edit", dead[3], "--payload", '{"n": 2}', *WHY)
    batch: str = program.json("replay", "preview", *WHY)["batch_id"]
    program("replay", "confirm", batch, *WHY)
    program("replay", "pause", batch, *WHY)
    program("replay", "pace", batch, "50", *WHY)
    program("replay", "resume", batch, *WHY)
    program("replay", "abort", batch, *WHY)
    program("replay", "status", batch)
    program("replay", "entries", batch)
    program("replay", "list")
    return batch


def _look(program: Program) -> None:
    (run, *_) = program.json("run", "list")
    program("run", "list", "state:dead", "--since", "6h")
    program("run", "list", "--job", "tour")
    program("run", "show", run["run_id"])
    program("why", run["run_id"])
    program("job", "list")
    program("job", "show", "tour")
    program("groups")
    program("stats")
    program("health", code=None)
    program("tenant", "list")
    program("token", "list")
    program("audit", "--since", "1h")


def producer_tour(deployment: Deployment) -> None:
    """Enqueue runs, one and many, and look at one."""
    with dummy_credentials():
        base = open_base(deployment.store_url("producer"), environment={})
        operations = build_operations(base)
        job = operations.find("by-hand")
        run = operations.enqueue(job.job_id, {"n": 3}, key="order-7")
        operations.enqueue(job.job_id, {"n": 3}, key="order-7")
        operations.enqueue_many(job.job_id, [{"n": n} for n in range(12)])
        operations.get_run(run.run_id)
        base.store.engine.close()


def puller_tour(deployment: Deployment, folder: Path) -> None:
    """Run what is due as a process that pulls."""
    with dummy_credentials():
        program = Program(folder, made=False)
        program.url = deployment.store_url("puller")
        program("worker", "--once", "--app", "tests.aws.program.tried_app:app")


def functions_tour(deployment: Deployment) -> None:
    """Give the functions all kinds of work, and let a day pass."""
    operations = deployment.operations
    operations.set_tenant("default", max_running=50, reason="tour")
    deployment.add("touch", every=EverySpec(every=timedelta(minutes=1)), overlap=Overlap.SKIP)
    large = deployment.add("touch")
    operations.enqueue(large.job_id, {"until": "x" * 100_000})
    operations.enqueue(large.job_id, delay=timedelta(minutes=20))  # beyond what SQS can delay
    operations.enqueue(large.job_id, delay=timedelta(seconds=2))
    again = RetryPolicy(max_attempts=3, base=timedelta(minutes=30), cap=timedelta(hours=1))
    failing = deployment.add("fail", retry=again)
    operations.enqueue(failing.job_id, {"until": "/nowhere"})
    soon = RetryPolicy(max_attempts=2, base=timedelta(seconds=1), cap=timedelta(seconds=1))
    dead = deployment.add("fail", retry=soon)
    run = operations.enqueue(dead.job_id, {"until": "/nowhere"})
    early = operations.enqueue(large.job_id, delay=timedelta(seconds=3))
    deployment.send(early)
    _lose_a_lease(deployment, operations.enqueue(large.job_id))
    for _ in range(3):
        _turn(deployment)
    while run.run_id not in dead_ids(deployment):
        _turn(deployment)
    draft = operations.preview_replay(f"job:{dead.name}", reason="tour", rate=None)
    operations.confirm_replay(draft.batch_id, reason="tour")
    for shift in (timedelta(0), timedelta(minutes=15), timedelta(hours=2), timedelta(hours=25)):
        deployment.ahead(shift)
        for _ in range(2):
            _turn(deployment)


def _turn(deployment: Deployment) -> None:
    deployment.invoke("dispatcher")
    deployment.invoke("reaper")
    deployment.deliver()


def dead_ids(deployment: Deployment) -> set[str]:
    """Return the ids of the runs that are dead now."""
    return {run.run_id for run in deployment.runs() if run.state is RunState.DEAD}


def _lose_a_lease(deployment: Deployment, run: Run) -> None:
    """Let a run be held by an invocation that is gone, and a session by a worker that is gone."""
    now = deployment.base.clock.now()
    taken = lifecycle.claim(run, session=f"{FIXED_SESSION}gone", now=now, lease_ends_at=now)
    assert isinstance(deployment.base.store.runs.apply(taken), RunApplied)
    build_worker(deployment.base).keeper.open()
