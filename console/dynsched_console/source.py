"""The source: the one object through which the console reads and changes a store.

It owns the store, its views and its operations, and offers plain calls that block; screens send
each of them to a thread by `Source.ask`, so that the event loop never waits for a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from dynsched.bootstrap import Base, build_operations, build_views
from dynsched.domain.access import Access, Action
from dynsched.domain.audit import AuditEntry
from dynsched.domain.explanation import Explanation
from dynsched.domain.health import Health, WorkerLine
from dynsched.domain.instants import from_text
from dynsched.domain.job import Job
from dynsched.domain.run import Run
from dynsched.services.audit_views import AuditQuery
from dynsched.services.job_views import JobDetail
from dynsched.services.run_views import RunDetail
from dynsched.services.search import Found
from dynsched.services.tenant_views import TenantShare
from dynsched.storage.control import Tenant
from dynsched_console.replaying import ReplaySource

T = TypeVar("T")

AUDIT_SHOWN = 20  # newest entries on one run or job
OUTCOMES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScene:
    """All that the screen of one run shows.

    Attributes:
        detail: the run with its attempts, secrets masked.
        why: where it is and why, in sentences.
        audit: what people did to it, newest first.
        at: when it was read.
    """

    detail: RunDetail
    why: Explanation
    audit: tuple[AuditEntry, ...] = ()
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScene:
    """All that the screen of one job shows.

    Attributes:
        detail: the job with its parts and its next instants, secrets masked.
        outcomes: its newest runs, newest first, without those to come.
        audit: what people did to it, newest first.
        at: when it was read.
    """

    detail: JobDetail
    outcomes: tuple[Run, ...]
    audit: tuple[AuditEntry, ...] = ()
    at: datetime


class Source(ReplaySource):
    """A store, as the console sees it.

    Args:
        base: the store.
        access: who acts.
        url: the store's URL, for the header and for command lines.
        environment: what this store is for (`prod`, `staging`); a badge.
    """

    def __init__(self, base: Base, access: Access, *, url: str, environment: str = "") -> None:
        self.base = base
        self.access = access
        self.url = url
        self.environment = environment
        self._errors = {}
        self.views = build_views(base, read_only=access.read_only)
        self.operations = build_operations(base, access)

    async def ask(self, call: Callable[[], T]) -> T:
        """Make one blocking call in a thread and wait for it without blocking the screen."""
        return await asyncio.to_thread(call)

    def why_not(self, action: Action) -> str:
        """Return why this operator may not do something; empty if it may."""
        return self.access.why_not(action, tenant=self.access.tenant)

    # reading

    def health(self) -> Health:
        """Return the store's state at a glance."""
        return self.views.health()

    def find_runs(self, text: str, *, limit: int, cursor: str | None = None) -> Found[Run]:
        """Return one page of the runs that a filter names."""
        return self.views.find_runs(text, limit=limit, cursor=cursor)

    def job_names(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs by their ids."""
        return self.views.job_names(job_ids)

    def run(self, run_id: str) -> RunScene:
        """Return one run with all that belongs to it."""
        return RunScene(
            detail=self.views.show_run(run_id),
            why=self.views.why_run(run_id),
            audit=tuple(self.views.audit_of(f"run:{run_id}", AUDIT_SHOWN)),
            at=self.now(),
        )

    def find_jobs(self, text: str, *, limit: int, cursor: str | None = None) -> Found[Job]:
        """Return one page of the jobs that a filter names."""
        return self.views.find_jobs(text, limit=limit, cursor=cursor)

    def outcomes(self, job_ids: Sequence[str], *, each: int) -> Mapping[str, tuple[Run, ...]]:
        """Return the newest runs of some jobs, newest first."""
        return self.views.outcomes(job_ids, each=each)

    def job(self, job_id: str) -> JobScene:
        """Return one job with all that belongs to it; also one that was deleted."""
        return JobScene(
            detail=self.views.show_job(self.views.find_job(job_id, deleted=True)),
            outcomes=self.views.outcomes([job_id], each=OUTCOMES_SHOWN)[job_id],
            audit=tuple(self.views.audit_of(f"job:{job_id}", AUDIT_SHOWN)),
            at=self.now(),
        )

    def why_instant(self, job_id: str, instant: str) -> Explanation:
        """Return what became of an instant of a job."""
        return self.views.why_instant(job_id, from_text(instant))

    def find_tenants(
        self, text: str, *, limit: int, cursor: str | None = None
    ) -> Found[TenantShare]:
        """Return one page of the tenants that a filter names."""
        return self.views.find_tenants(text, limit=limit, cursor=cursor)

    def find_workers(self, text: str) -> Found[WorkerLine]:
        """Return the worker sessions that a filter names."""
        return self.views.find_workers(text)

    def audit(self, text: str, *, limit: int, cursor: str | None = None) -> Found[AuditEntry]:
        """Return one page of the audit, newest first."""
        return self.views.audit(AuditQuery(filter=text, limit=limit, cursor=cursor))

    # changing: each of these passes the gate of the core

    def cancel(self, run_id: str, *, reason: str) -> Run:
        """Cancel a run, or ask the worker that has it to stop."""
        return self.operations.cancel(run_id, reason=reason)

    def replay(self, run_id: str, *, reason: str) -> Run:
        """Bring a dead run back."""
        return self.operations.replay(run_id, reason=reason)

    def discard(self, run_id: str, *, reason: str) -> Run:
        """Hide a dead run."""
        return self.operations.discard(run_id, reason=reason)

    def pause_job(self, job_id: str, *, reason: str) -> Job:
        """Pause a job."""
        return self.operations.pause(job_id, reason=reason).job

    def resume_job(self, job_id: str, *, reason: str) -> Job:
        """Resume a paused job."""
        return self.operations.resume(job_id, reason=reason).job

    def run_now(self, job_id: str, *, reason: str) -> Run:
        """Make a manual run of a job."""
        return self.operations.run_now(job_id, reason=reason)

    def set_cap(self, tenant: str, most: int | None, *, reason: str) -> Tenant:
        """Cap how many runs of a tenant run at once; None lifts the cap."""
        return self.operations.set_tenant(tenant, max_running=most, reason=reason)
