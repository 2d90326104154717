"""Tours: what each role does with a deployment, so that its calls can be held against its policy.

A tour takes every way to the store that its role has; one that it leaves out shows as a permission
that is granted and never used.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from dynsched.bootstrap import build_worker, open_base
from dynsched.client import Client
from dynsched.domain import lifecycle
from dynsched.domain.job import Job, Overlap, Priority
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import FIXED_SESSION, Run, RunState
from dynsched.services.specs import CronSpec
from dynsched.storage.runs import RunApplied
from dynsched.targets.app import App
from tests.aws.deployment import Deployment
from tests.integration.program import Program

APP = "tests.aws.program.tried_app:app"
EVERY_MINUTE = CronSpec(expr="* * * * *")
ZONES = ("Europe/Riga", "Asia/Tokyo")
SOON = RetryPolicy(max_attempts=2, base=timedelta(seconds=1), cap=timedelta(seconds=1))
LARGE = {"until": "x" * 100_000}
EDITS = 12  # more than a job's row holds
WHY = ("--reason", "tour")


def operator_tour(deployment: Deployment, folder: Path) -> None:
    """Look at everything, and change what operators and admins may change."""
    with patch.dict(os.environ, deployment.clock_settings()):
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
    program("job", "add", "urgent", "--manual", "--handler", "touch", "--priority", "high", *WHY)
    program("job", "run-now", "urgent", *WHY)
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
    queues = program.json("handoff", "list", "--depth")
    assert len(queues) == 3
    for queue in queues:
        program("handoff", "set", queue["queue"], queue["priority"], queue["url"], *WHY)
    program("resize", "--lanes", "3", *WHY)


def producer_tour(deployment: Deployment) -> None:
    """Make a job from Python, and enqueue runs, one and many, large and with a key."""
    app = App()
    app.job("touch")(lambda: None)
    base = open_base(deployment.store_url("producer"), environment=deployment.clock_settings())
    client = Client(base, app)
    client.enqueue("touch", {"n": 3}, key="order-7")
    client.enqueue("touch", {"n": 3}, key="order-7")
    client.enqueue_many("touch", [{"n": n} for n in range(12)])
    client.enqueue("touch", priority="high")
    client.enqueue("touch", priority="default")
    client.enqueue("touch", priority="bulk")
    client.enqueue("touch", LARGE, delay=timedelta(minutes=20))
    base.store.engine.close()


def puller_tour(deployment: Deployment, folder: Path) -> None:
    """Run what is due as a process that pulls."""
    edited = deployment.add("touch", every=EVERY_MINUTE)
    deployment.invoke("dispatcher")
    deployment.ahead(timedelta(minutes=4))
    _edit_often(deployment, edited)
    _fail_soon(deployment)
    deployment.operations.enqueue(deployment.add("touch").job_id, LARGE)
    with patch.dict(os.environ, deployment.clock_settings()):
        program = Program(folder, made=False)
        program.url = deployment.store_url("puller")
        program("worker", "--once", "--app", APP)
        program("worker", "--for", "2s", "--app", APP)


def functions_tour(deployment: Deployment) -> None:
    """Give the functions all kinds of work, and let some time pass."""
    operations = deployment.operations
    operations.set_tenant("default", max_running=50, reason="tour")
    for priority in Priority:
        deployment.add("touch", every=EVERY_MINUTE, priority=priority)
    edited = deployment.add("touch", every=EVERY_MINUTE, overlap=Overlap.SKIP)
    for _ in range(4):  # whose rows nobody touches before the sweep does
        deployment.add("touch", every=CronSpec(expr="0 0 1 1 *"))
    large = deployment.add("touch")
    operations.enqueue(large.job_id, LARGE)
    operations.enqueue(large.job_id, delay=timedelta(minutes=20))  # beyond what SQS can delay
    operations.enqueue(large.job_id, delay=timedelta(seconds=2))
    for priority in Priority:
        early = operations.enqueue(large.job_id, delay=timedelta(seconds=30), priority=priority)
        deployment.send(early)
    again = RetryPolicy(max_attempts=3, base=timedelta(minutes=7), jitter=Jitter.NONE)
    failing = deployment.add("fail", retry=again)
    operations.enqueue(failing.job_id, {"until": "/nowhere"})
    _fail_soon(deployment)
    dead = deployment.add("fail", retry=SOON)
    dying = [operations.enqueue(dead.job_id, {"until": "/nowhere"}) for _ in range(6)]
    _lose_a_lease(deployment, operations.enqueue(large.job_id))
    for _ in range(3):
        _turn(deployment)
    while {run.run_id for run in dying} - dead_ids(deployment):
        _turn(deployment)
    draft = operations.preview_replay(f"job:{dead.name}", reason="tour", rate=None, breaker=1.0)
    operations.confirm_replay(draft.batch_id, reason="tour")
    operations.resize(shards=2, reason="tour")
    for minutes in (8, 11):
        deployment.ahead(timedelta(minutes=minutes))
        _edit_often(deployment, edited)
        for _ in range(2):
            _turn(deployment)


def _edit_often(deployment: Deployment, job: Job) -> None:
    """Push the generations of a job's runs out of its row, and let runs from then be looked at."""
    for number in range(EDITS):
        spec = CronSpec(expr="* * * * *", tz=ZONES[number % len(ZONES)])
        deployment.operations.reschedule(job.job_id, spec, reason="tour")
    for run in deployment.runs():
        if run.job_id == job.job_id and run.state is RunState.READY:
            deployment.send(run)


def _turn(deployment: Deployment) -> None:
    deployment.invoke("dispatcher")
    deployment.invoke("reaper")
    deployment.deliver()


def dead_ids(deployment: Deployment) -> set[str]:
    """Return the ids of the runs that are dead now."""
    return {run.run_id for run in deployment.runs() if run.state is RunState.DEAD}


def _fail_soon(deployment: Deployment) -> None:
    """Let runs of each priority fail that may start again at once."""
    job = deployment.add("fail", retry=SOON)
    for priority in Priority:
        deployment.operations.enqueue(job.job_id, {"until": "/nowhere"}, priority=priority)


def _lose_a_lease(deployment: Deployment, run: Run) -> None:
    """Let a run be held by an invocation that is gone, and a session by a worker that is gone."""
    now = deployment.base.clock.now()
    taken = lifecycle.claim(run, session=f"{FIXED_SESSION}gone", now=now, lease_ends_at=now)
    assert isinstance(deployment.base.store.runs.apply(taken), RunApplied)
    build_worker(deployment.base).keeper.open()
