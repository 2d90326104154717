"""The look: what stands between a claim and its start, for a batch of claimed runs.

Permits first, the job last: that strong read of the job is the start's place in the store's
order. A read before the claim may refuse, never permit.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.instants import Clock, within
from dynsched.domain.job import Job, Overlap, SkipReason
from dynsched.domain.overlap import Answer, OverlapDecision
from dynsched.domain.run import Run
from dynsched.domain.verdict import judge, needs_old_generations, needs_old_spans
from dynsched.services.permits import PermitDesk, Taken
from dynsched.storage.control import Tenant
from dynsched.storage.jobs import Unreadable
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.worker")

JOBS_KNOWN = 20_000  # jobs whose policy is remembered between looks
CAP_AGE = timedelta(seconds=5)  # a changed cap holds at the latest after this


class Found(StrEnum):
    """What a look found."""

    START = "start"
    SKIP = "skip"
    WAIT = "wait"  # for another run of the job
    CAP = "cap"  # its tenant's cap
    HOLD = "hold"  # the job is paused with hold
    ELSEWHERE = "elsewhere"  # its job was given a target that this worker does not know
    AGAIN = "again"  # something changed under the look


@dataclass(frozen=True, slots=True)
class Looked:
    """What the look found for one run.

    Attributes:
        run: as claimed.
        found: what is to be done with it.
        job: as read last; present when it may start.
        reason: why it is skipped.
        blocker: the run that stands in the way.
        ask_cancel: the blocker is to be asked to stop.
        permit: the tenant's permit that it holds.
    """

    run: Run
    found: Found
    job: Job | None = None
    reason: SkipReason | None = None
    blocker: Run | None = None
    ask_cancel: bool = False
    permit: Taken | None = None


class Look:
    """Looks at claimed runs; remembers jobs' policies, which are hints only."""

    def __init__(self, store: Store, *, clock: Clock, desk: PermitDesk) -> None:
        self._store = store
        self._clock = clock
        self._desk = desk
        self._known: OrderedDict[str, Overlap] = OrderedDict()
        self._tenants: dict[str, tuple[datetime, Tenant]] = {}

    def at(self, claimed: Sequence[Run]) -> list[Looked]:
        """Look at runs that this process has just claimed, in order."""
        policies = self._policies(claimed)
        wanted = [
            (run, policies[run.job_id])
            for run in claimed
            if policies[run.job_id] is not Overlap.ALLOW and not run.forced
        ]
        overlaps = self._desk.overlap(wanted) if wanted else {}
        permits = self._caps(claimed, overlaps)
        ids = list(dict.fromkeys(run.job_id for run in claimed))
        jobs = self._store.jobs.read_many(ids)
        for job in jobs.values():
            self.learn(job)
        now = self._clock.now()
        looks: list[Looked] = []
        for run in claimed:
            verdict = self._verdict(run, jobs[run.job_id], now)
            if verdict.found is Found.START:
                policy = Overlap.ALLOW if run.forced else policies[run.job_id]
                verdict = _permitted(verdict, policy, overlaps.get(run.run_id), permits)
            looks.append(verdict)
        return looks

    def _policies(self, claimed: Sequence[Run]) -> dict[str, Overlap]:
        unknown = list(
            dict.fromkeys(run.job_id for run in claimed if run.job_id not in self._known)
        )
        if unknown:
            for job in self._store.jobs.read_many(unknown).values():
                self.learn(job)
        return {run.job_id: self._known.get(run.job_id, Overlap.ALLOW) for run in claimed}

    def learn(self, job: Job | Unreadable | None) -> None:
        """Remember the policy of a job that was read."""
        if not isinstance(job, Job):
            return
        self._known[job.job_id] = job.policies.overlap
        self._known.move_to_end(job.job_id)
        if len(self._known) > JOBS_KNOWN:
            self._known.popitem(last=False)

    def one_of_each(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs without those that would only wait for another one of them.

        Of a job that forbids overlap, as far as is remembered, the earliest is taken.
        """
        first: dict[str, Run] = {}
        for run in runs:
            if not run.forced and self._known.get(run.job_id, Overlap.ALLOW) is not Overlap.ALLOW:
                other = first.setdefault(run.job_id, run)
                if run.scheduled_for < other.scheduled_for:
                    first[run.job_id] = run
        return [run for run in runs if first.get(run.job_id, run) is run or run.forced]

    def tenant(self, name: str) -> Tenant:
        """Return a tenant's settings, at most `CAP_AGE` old."""
        return self._read_tenants([name])[name]

    def _read_tenants(self, names: Sequence[str]) -> dict[str, Tenant]:
        now = self._clock.now()
        old = [
            name
            for name in names
            if name not in self._tenants or not within(now, self._tenants[name][0], CAP_AGE)
        ]
        if old:
            for name, tenant in self._store.control.tenants(old).items():
                self._tenants[name] = (now, tenant)
        return {name: self._tenants[name][1] for name in names}

    def _caps(
        self, claimed: Sequence[Run], overlaps: dict[str, OverlapDecision]
    ) -> dict[str, Taken | None]:
        """Take tenants' permits for the runs that no other run stands in the way of."""
        by_tenant: dict[str, list[Run]] = {}
        for run in claimed:
            decision = overlaps.get(run.run_id)
            if decision is None or decision.answer is Answer.GRANT:
                by_tenant.setdefault(run.tenant, []).append(run)
        taken: dict[str, Taken | None] = {}
        for name, tenant in self._read_tenants(list(by_tenant)).items():
            if tenant.max_running is not None:
                taken |= self._desk.tenant(name, tenant.max_running, by_tenant[name])
        return taken

    def _verdict(self, run: Run, job: Job | Unreadable | None, now: datetime) -> Looked:
        if isinstance(job, Unreadable):
            log.error("job %s cannot be read: %s; its runs wait", job.job_id, job.problem)
            return Looked(run, Found.HOLD)
        span, generations = None, []
        if job is not None and needs_old_spans(run, job):
            span = self._store.jobs.old_span_at(job.job_id, run.scheduled_for)
        if job is not None and needs_old_generations(run, job):
            generations = self._store.jobs.old_generations(job.job_id)
        verdict = judge(run, job, now=now, old_span=span, old_generations=generations)
        if verdict.skip is not None:
            return Looked(run, Found.SKIP, job, verdict.skip)
        return Looked(run, Found.HOLD if verdict.hold else Found.START, job)


def _permitted(
    looked: Looked,
    policy: Overlap,
    decision: OverlapDecision | None,
    permits: Mapping[str, Taken | None],
) -> Looked:
    """Return the look of a run that its job lets start, with what its permits say."""
    run, job = looked.run, looked.job
    assert job is not None
    if not run.forced and job.policies.overlap is not policy:
        return Looked(run, Found.AGAIN)  # the permits taken are not the ones it needs now
    if policy is not Overlap.ALLOW:
        if decision is None:
            return Looked(run, Found.AGAIN)
        blocker = decision.blocker
        if decision.answer is Answer.SKIP:
            return Looked(run, Found.SKIP, job, SkipReason.OVERLAP, blocker)
        if decision.answer is Answer.WAIT:
            return Looked(run, Found.WAIT, job, None, blocker, ask_cancel=decision.ask_cancel)
    if run.run_id in permits and permits[run.run_id] is None:
        return Looked(run, Found.CAP)
    return replace(looked, permit=permits.get(run.run_id))
