"""Views of jobs: one by its name or id, with all that belongs to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from dynsched.domain.instants import MILLISECOND, Clock
from dynsched.domain.job import Job, JobState, Span
from dynsched.domain.masking import PLAIN, Masker
from dynsched.domain.names import JOB_ID, NAME
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.run import Run
from dynsched.domain.target import Target
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.masked import Masked, masked_target
from dynsched.storage.jobs import Unreadable, target_of
from dynsched.storage.store import Store

T = TypeVar("T")

TENANTS_MAX = 1_000
BATCH = 100  # jobs that are read together
COMING = 5
ASKED_MAX = 200  # tenants that are asked for a name that one has not
SUGGESTED_FROM = 1_000  # names of a tenant among which the one that was meant is looked for
OFFERED = 3
HISTORY = 10
OUTCOMES = 10
OUTCOMES_JOBS_MAX = 100  # jobs whose outcomes one call reads


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """One job.

    Attributes:
        job: its row.
        target: what it does, wherever that lies; None if its large part is gone.
        payload: its payload as JSON text; None if there is none.
        coming: its next instants.
        older_spans: skipped spans that have left the row.
        runs: its newest runs, those that are still to come included.
    """

    job: Job
    target: Target | None
    payload: str | None
    coming: tuple[datetime, ...]
    older_spans: tuple[Span, ...]
    runs: tuple[Run, ...]


def coming(job: Job, now: datetime, count: int) -> list[datetime]:
    """Return a job's next instants; none for one that is paused, parked, deleted or broken."""
    schedule = job.schedule
    if schedule is None or isinstance(schedule, BrokenSchedule):
        return []
    if job.state not in (JobState.ACTIVE, JobState.FINISHED):
        return []
    found: list[datetime] = []
    at = schedule.next_after(now)
    while at is not None and len(found) < count:
        found.append(at)
        at = schedule.next_after(at)
    return found


class JobViews(Masked):
    """Reads jobs for people; only reading, secrets masked."""

    def __init__(self, store: Store, *, clock: Clock, masker: Masker = PLAIN) -> None:
        Masked.__init__(self, masker)
        self._store = store
        self._clock = clock

    def read_jobs(self, job_ids: Sequence[str], notes: list[str]) -> list[Job]:
        """Read jobs; one whose row is damaged is named in the notes and hides no other."""
        found = list(self._store.jobs.read_many(job_ids).values())
        notes += [
            f"job {one.job_id} is damaged and cannot be shown: {one.problem}"
            for one in found
            if isinstance(one, Unreadable)
        ]
        return [self.masked(one) for one in found if isinstance(one, Job)]

    def job_names(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the names of jobs by their ids; one that is gone has none."""
        names: dict[str, str] = {}
        for batch in _batches(iter(dict.fromkeys(job_ids)), BATCH):
            names |= {job.job_id: job.name for job in self.read_jobs(batch, [])}
        return names

    def outcomes(
        self, job_ids: Sequence[str], *, each: int = OUTCOMES
    ) -> Mapping[str, tuple[Run, ...]]:
        """Return the newest runs of some jobs, newest first; those that are to come left out.

        Cost: a query for each job and spread partition, 100 jobs at most; so a console asks for
        the rows that are seen, and not more often than they are looked at.

        Args:
            job_ids: whose.
            each: at most so many runs of a job.

        Raises:
            InvalidInput: these are too many jobs.
        """
        if len(job_ids) > OUTCOMES_JOBS_MAX:
            raise InvalidInput("jobs", "too many at once", f"give {OUTCOMES_JOBS_MAX} at most")
        before = self._clock.now() + MILLISECOND
        self._store.refresh_by(before)
        return {
            job_id: tuple(
                map(self.masked, self._store.runs.history(job_id, most=each, before=before))
            )
            for job_id in dict.fromkeys(job_ids)
        }

    def find_job(self, name_or_id: str, tenant: str = "default", *, deleted: bool = False) -> Job:
        """Return a job by its name in a tenant, or by its id.

        Args:
            name_or_id: one of them.
            tenant: whose job it is, if it is a name.
            deleted: an id finds a deleted job too, while its runs are kept.

        Raises:
            NotFound: there is none; it says where there is one, or which was probably meant.
        """
        named = NAME.fullmatch(name_or_id) and NAME.fullmatch(tenant)
        job_id = self._store.jobs.find(tenant, name_or_id) if named else None
        if job_id is None and JOB_ID.fullmatch(name_or_id):
            job_id = name_or_id  # anything else may be the key of a row that is no job's
        job = None if job_id is None else self._store.jobs.get(job_id)
        if job is not None and job.state is JobState.DELETED and not deleted:
            raise NotFound("job", name_or_id, f"{job.name} was deleted")
        if job is None:
            raise NotFound("job", name_or_id, self._whereabouts(name_or_id, tenant))
        return self.masked(job)

    def job_labels(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return what tells jobs apart, by their ids: the name, the tenant too where two share it.

        Args:
            job_ids: at most as many as one reading takes, which is what a batch names.
        """
        jobs = self.read_jobs(list(dict.fromkeys(job_ids))[:BATCH], [])
        names = [job.name for job in jobs]
        return {
            job.job_id: f"{job.name} ({job.tenant})" if names.count(job.name) > 1 else job.name
            for job in jobs
        }

    def find_job_of_any(self, name_or_id: str, tenant: str | None, *, deleted: bool = False) -> Job:
        """Return a job to look at, also where nobody said whose it is.

        Args:
            name_or_id: one of them.
            tenant: whose job it is; with None the default tenant's, else that of the one tenant
                which has such a job.
            deleted: an id finds a deleted job too, while its runs are kept.

        Raises:
            NotFound: there is none, or several tenants have one.
        """
        if tenant is not None:
            return self.find_job(name_or_id, tenant, deleted=deleted)
        try:
            return self.find_job(name_or_id, deleted=deleted)
        except NotFound:
            having = self._having(name_or_id)
            if len(having) != 1:
                raise
            return self.find_job(name_or_id, having[0], deleted=deleted)

    def _having(self, name: str) -> list[str]:
        """Return the tenants that have a job of that name."""
        tenants = [one.name for one in self._store.control.all_tenants(most=ASKED_MAX)]
        return [one for one in tenants if self._store.jobs.find(one, name) is not None]

    def _whereabouts(self, name: str, tenant: str) -> str:
        """Return what to do about a name that a tenant has not."""
        if not (NAME.fullmatch(name) and NAME.fullmatch(tenant)):
            return "`dynsched job list` shows all names"  # no store holds such a key
        having = [one for one in self._having(name) if one != tenant]
        if having:
            owners = (
                f"tenant {having[0]} has"
                if len(having) == 1
                else (f"tenants {', '.join(having[:OFFERED])} have")
            )
            return f"tenant {tenant} has none, {owners} one: --tenant {having[0]}"
        names = [known for known, _ in self._store.jobs.named(tenant, most=SUGGESTED_FROM)]
        close = difflib.get_close_matches(name, names, n=OFFERED)
        if close:
            return f"did you mean {' or '.join(close)}?"
        return f"`dynsched job list --tenant {tenant}` shows them"

    def show_job(self, job: Job, unmask: bool = False) -> JobDetail:
        """Return a job with its parts, its next instants and its newest runs.

        Args:
            job: its row.
            unmask: hide nothing; for programs of the owner, never for a console.
        """
        if unmask:
            job = self._store.jobs.get(job.job_id) or job
        now = self._clock.now()
        self._store.refresh_by(now)
        target, payload = job.target, job.payload
        if target is None and job.target_ref is not None:
            text = self._store.jobs.part(job.job_id, job.target_ref)
            target = None if text is None else target_of(text)
        if payload is None and job.payload_ref is not None:
            payload = self._store.jobs.part(job.job_id, job.payload_ref)
        detail = JobDetail(
            job=job,
            target=target,
            payload=payload,
            coming=tuple(coming(job, now, COMING)),
            older_spans=tuple(self._store.jobs.old_spans(job.job_id)) if job.older_spans else (),
            runs=tuple(self._store.runs.history(job.job_id, most=HISTORY)),
        )
        return detail if unmask else self._masked_job_detail(detail)

    def _masked_job_detail(self, detail: JobDetail) -> JobDetail:
        target, payload = detail.target, detail.payload
        return replace(
            detail,
            job=self.masked(detail.job),
            target=None if target is None else masked_target(self.masker, target),
            payload=None if payload is None else self.masker.json_text(payload),
            runs=tuple(map(self.masked, detail.runs)),
        )


def _batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(islice(items, size)):
        yield batch
