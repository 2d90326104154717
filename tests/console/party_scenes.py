"""Scenes of jobs, tenants, workers and the audit."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta

from dynsched.domain.access import Access, Role
from dynsched.domain.target import HandlerTarget, HttpTarget
from dynsched.errors import DynschedError
from dynsched.services.specs import CronSpec, EverySpec, JobSpec
from dynsched.storage.control import Session
from tests.console.snapshots import Scene
from tests.console.stage import NOW, Stage


def jobs(stage: Stage) -> None:
    """Put jobs of several kinds onto the stage: with schedules, paused, by hand, with secrets."""
    operations = stage.source.operations
    mail = HandlerTarget("mail")
    hook = HttpTarget(
        "https://ledger.example/close?token=s3cret",
        headers={"Authorization": "Bearer s3cret", "Accept": "application/json"},
    )
    specs = (
        JobSpec(name="report", tenant="acme", target=mail, payload="good",
                schedule=CronSpec(expr="30 9 * * mon-fri", tz="Europe/Riga"),
                tags={"team": "ops", "tier": "1"}),
        JobSpec(name="ledger-close", tenant="globex", target=hook,
                schedule=CronSpec(expr="0 3 1 * *", tz="America/New_York"),
                payload={"month": 3, "password": "s3cret", "books": ["main", "tax"]}),
        JobSpec(name="poll", tenant="globex", target=mail, payload="good",
                schedule=EverySpec(every=timedelta(minutes=5))),
        JobSpec(name="import", tenant="initech", target=mail, payload="good"),
    )  # fmt: skip
    made = [operations.create(spec) for spec in specs]
    operations.pause(made[2].job_id, reason="the disk is full")
    for payload in ("good", "bad@", "good", "good"):
        operations.enqueue(made[3].job_id, payload)
        stage.scheduler.run_due()
        stage.clock.step(seconds=1)
    operations.set_tenant("initech", max_running=2, reason="it starved the others")
    for _ in range(3):
        operations.enqueue(made[3].job_id, "good")


def crew(stage: Stage) -> None:
    """Put tenants with work and workers in three states onto the stage."""
    jobs(stage)
    session = Session(
        session="blue-0001", started_at=NOW, expires_at=stage.clock.now() + timedelta(seconds=20),
        host="blue.example", pid=31, slots=8, queues=("main", "mail"),
    )  # fmt: skip
    over = replace(
        session, session="green-0001", host="green.example", pid=7,
        expires_at=NOW - timedelta(minutes=4),
    )  # fmt: skip
    for one in (session, over):
        stage.base.store.control.write_session(one)


def deeds(stage: Stage) -> None:
    """Let people do things, one of which is refused and one of which fails."""
    jobs(stage)
    operations = stage.source.operations
    job = stage.source.find_jobs("name:import", limit=1).items[0]
    operations.run_now(job.job_id, reason="the file came late")
    gate = operations.gate.access
    for access, call in (
        (Access(actor="eve@desk", role=Role.VIEWER, via="tui"), operations.pause),
        (gate, operations.resume),
    ):
        operations.gate.access = access
        stage.clock.step(seconds=1)
        with contextlib.suppress(DynschedError):
            call(job.job_id, reason="let us see")
    operations.gate.access = gate


VIEWER = Access(actor="eve@desk", role=Role.VIEWER, read_only=True, via="tui")

PARTY_SCENES = (
    Scene(
        name="jobs",
        sentence="Jobs: state, next time, the last runs as letters, the schedule in words.",
        place="jobs",
        set=jobs,
    ),
    Scene(
        name="jobs-empty",
        sentence="A store without jobs says how to make one.",
        place="jobs",
        filter="name:nobody",
        themes=("dark",),
    ),
    Scene(
        name="jobs-pause",
        sentence="Pausing asks for a reason even for one job, as whoever asks why is told it.",
        place="jobs",
        filter="name:report",
        keys=("P",),
        set=jobs,
        themes=("dark",),
    ),
    Scene(
        name="job",
        sentence="A job: next times in UTC and on the wall clock of its zone, policies in words.",
        place="jobs",
        filter="name:report",
        keys=("enter",),
        set=jobs,
    ),
    Scene(
        name="job-secrets",
        sentence="A job whose address, header and payload hold secrets: they are stars.",
        place="jobs",
        filter="name:ledger-close",
        keys=("enter", "G"),
        set=jobs,
        themes=("dark",),
    ),
    Scene(
        name="job-runs",
        sentence="A job made by hand: a strip of its last runs, each of which opens.",
        place="jobs",
        filter="name:import",
        keys=("enter",),
        set=jobs,
    ),
    Scene(
        name="why",
        sentence="What is to become of a coming instant: the cause first, then what it rests on.",
        place="jobs",
        filter="name:report",
        keys=("enter", "tab", "enter"),
        set=jobs,
    ),
    Scene(
        name="why-ask",
        sentence="W asks for an instant; what is none is told, with an example.",
        place="jobs",
        filter="name:report",
        keys=("W", "n", "o", "enter"),
        set=jobs,
        themes=("dark",),
    ),
    Scene(
        name="tenants",
        sentence="Tenants: those that wait most first, each with its cap and its share.",
        place="tenants",
        set=crew,
    ),
    Scene(
        name="tenants-cap",
        sentence="A cap is asked in a line, then confirmed with the command that does the same.",
        place="tenants",
        keys=("C", "home", "delete", "5", "enter"),
        set=crew,
        themes=("dark",),
    ),
    Scene(
        name="workers",
        sentence="Workers: what they hold of their slots; one that was not heard in time is red.",
        place="workers",
        set=crew,
    ),
    Scene(
        name="audit",
        sentence="The audit: who did what, the newest first, what was refused told as such.",
        place="audit",
        set=deeds,
    ),
    Scene(
        name="audit-detail",
        sentence="The detail of an entry: all that is kept of it.",
        place="audit",
        keys=("i",),
        set=deeds,
        access=None,
        themes=("dark",),
    ),
    Scene(
        name="jobs-read-only",
        sentence="The jobs for a viewer: keys that change something are marked and grey.",
        place="jobs",
        set=lambda stage: None,
        access=VIEWER,
        themes=("dark",),
    ),
)
