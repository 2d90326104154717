"""A person who changes everything at random, and the jobs that there are in the beginning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

from dynsched.domain.instants import Clock
from dynsched.domain.job import CatchUp, Overlap, Policies, Priority
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import TERMINAL, Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.errors import DynschedError
from dynsched.services.operations import Operations
from dynsched.services.specs import CronSpec, EverySpec, JobSpec, ScheduleSpec
from tests.sim.work import TOXIC

TENANTS = ("acme", "bolt")
CAPPED = "bolt"


def any_schedule(rng: Random) -> ScheduleSpec:
    """Return a schedule that names an instant every few seconds."""
    if rng.random() < 0.5:
        return EverySpec(every=timedelta(seconds=rng.choice([3, 5, 8, 13, 40])))
    fields = rng.choice(["*/4 * * * * *", "*/7 * * * * *", "5,6,30 * * * * *", "10 * * * * *"])
    return CronSpec(expr=fields, seconds=True)


def any_policies(rng: Random) -> Policies:
    """Return policies of every kind."""
    return Policies(
        catch_up=rng.choice(list(CatchUp)),
        catch_up_max=rng.choice([1, 3, 100]),
        overlap=rng.choice(list(Overlap)),
        start_deadline=rng.choice([None, None, timedelta(seconds=20)]),
        flex=timedelta(seconds=rng.choice([0, 0, 0, 5])),
        share_by_job=rng.random() < 0.3,
        timeout=rng.choice([None, timedelta(seconds=3), timedelta(seconds=8)]),
        retry=RetryPolicy(
            max_attempts=rng.choice([1, 2, 3, 5]),
            base=timedelta(seconds=rng.choice([0, 1, 4])),
            cap=timedelta(seconds=25),
        ),
    )


def first_jobs(rng: Random, *, toxic: bool) -> list[JobSpec]:
    """Return the jobs that there are in the beginning."""
    jobs = [
        JobSpec(
            name=f"job{number}",
            target=HandlerTarget("work"),
            schedule=any_schedule(rng) if rng.random() < 0.85 else None,
            tenant=rng.choice(TENANTS),
            priority=rng.choice(list(Priority)),
            policies=any_policies(rng),
            payload={"text": "x" * rng.choice([3, 300])},
        )
        for number in range(rng.randint(2, 5))
    ]
    if toxic:
        schedule = EverySpec(every=timedelta(seconds=rng.choice([4, 15])))
        policies = Policies(overlap=rng.choice([Overlap.ALLOW, Overlap.SKIP]), timeout=None)
        jobs.append(
            JobSpec(
                name=TOXIC,
                target=HandlerTarget(TOXIC),
                schedule=schedule,
                tenant=TENANTS[0],
                policies=policies,
            )
        )
    if rng.random() < 0.3:
        jobs.append(
            JobSpec(name="unknown", target=HandlerTarget("nobody-has-it"), tenant=TENANTS[0])
        )
    return jobs


class Operator:
    """One who does what people do, in any order.

    Args:
        runs: what there is, to choose from.
    """

    def __init__(
        self,
        operations: Operations,
        rng: Random,
        *,
        clock: Clock,
        runs: Callable[[], list[Run]],
        names: list[tuple[str, str]],
    ) -> None:
        self._do = operations
        self._rng = rng
        self._clock = clock
        self._runs = runs
        self._names = names
        self._acts: tuple[Callable[[], object], ...] = (
            self._pause,
            self._resume,
            self._resume,
            self._reschedule,
            self._edit,
            self._enqueue,
            self._enqueue,
            self._cancel,
            self._cancel,
            self._replay,
            self._discard,
            self._cap,
            self._resize,
            self._delete,
        )

    def act(self) -> str:
        """Do one thing; return its name."""
        act = self._rng.choice(self._acts)
        act()
        return act.__name__.strip("_")

    def end_schedules(self) -> bool:
        """Pause every job, so that nothing new comes and what was held goes on; True when done."""
        for tenant, name in self._names:
            try:
                job = self._do.find(name, tenant)
            except DynschedError:
                continue
            if job.state.value == "paused" and job.policies.hold:
                self._do.resume(job.job_id)
                job = self._do.find(name, tenant)
            if job.state.value == "active":
                self._do.pause(job.job_id, reason="the end")
        return True

    def _job(self) -> str:
        tenant, name = self._rng.choice(self._names)
        return self._do.find(name, tenant).job_id

    def _run(self, *states: RunState) -> str | None:
        runs = [run.run_id for run in self._runs() if run.state in states]
        return self._rng.choice(sorted(runs)) if runs else None

    def _pause(self) -> None:
        self._do.pause(self._job(), reason="for now", hold=self._rng.random() < 0.3)

    def _resume(self) -> None:
        self._do.resume(self._job())

    def _reschedule(self) -> None:
        self._do.reschedule(self._job(), any_schedule(self._rng))

    def _edit(self) -> None:
        self._do.edit(
            self._job(),
            policies={"overlap": self._rng.choice(list(Overlap))},
            payload={"text": "y" * self._rng.choice([3, 300])},
        )

    def _enqueue(self) -> None:
        rng = self._rng
        self._do.enqueue(
            self._job(),
            {"n": "z" * rng.choice([1, 300])} if rng.random() < 0.5 else None,
            delay=timedelta(seconds=rng.choice([0, 0, 2, 30])),
            key=rng.choice([None, "a", "b"]),
            priority=rng.choice([None, *Priority]),
            force=rng.random() < 0.2,
        )

    def _cancel(self) -> None:
        run_id = self._run(*(set(RunState) - TERMINAL))
        if run_id is not None:
            self._do.cancel(run_id)

    def _replay(self) -> None:
        run_id = self._run(RunState.DEAD)
        if run_id is not None:
            self._do.replay(run_id)

    def _discard(self) -> None:
        run_id = self._run(RunState.DEAD)
        if run_id is not None:
            self._rng.choice([self._do.discard, self._do.restore])(run_id)

    def _cap(self) -> None:
        self._do.set_tenant(CAPPED, max_running=self._rng.choice([1, 2, 3]))

    def _resize(self) -> None:
        if self._rng.random() < 0.3:
            self._do.resize(shards=self._rng.choice([1, 2]), lanes=self._rng.choice([1, 2, 3]))

    def _delete(self) -> None:
        if self._rng.random() < 0.2:
            self._do.delete(self._job())
