"""Serving jobs: give each due occurrence its row, then advance the job's pointer.

The order is what makes it safe without transactions: rows first (a key that exists is success),
spans that leave the job's row second, the one guarded advance last. A crash in between leaves the
pointer where it was, and the next tick of any replica repeats the same plan.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dynsched.domain.catchup import Plan, plan_service
from dynsched.domain.job import Job
from dynsched.domain.run import Run, RunKey, RunKind, occur
from dynsched.settings import Settings
from dynsched.storage.codec import decode_job
from dynsched.storage.engine import Row
from dynsched.storage.jobs import JobStale
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.dispatcher")

CHUNK = 200  # rows of one write_many: one commit on SQLite, concurrent calls on DynamoDB
ROUNDS = 4  # how often a serve plans again after somebody else changed the job


@dataclass(slots=True)
class Served:
    """What a serve did: counts of jobs, rows made, rows found made, occurrences skipped, parked."""

    jobs: int = 0
    created: int = 0
    existed: int = 0
    skipped: int = 0
    parked: int = 0

    def add(self, other: Served) -> None:
        """Add another serve's counts."""
        self.jobs += other.jobs
        self.created += other.created
        self.existed += other.existed
        self.skipped += other.skipped
        self.parked += other.parked


class JobServer:
    """Serves jobs; used by the dispatcher for what is due and by operations around an edit."""

    def __init__(self, store: Store, *, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def serve_rows(self, rows: Sequence[Row], *, now: datetime, before: datetime) -> Served:
        """Serve jobs from raw rows of the due index, each parked if it cannot be evaluated.

        Args:
            rows: as the index showed them; a stale one fails its guard and is read again.
            now: the tick's instant.
            before: end of the look-ahead, exclusive.
        """
        served = Served()
        jobs = []
        for row in rows:
            job = self._decode(row, served)
            if job is not None and job.due:
                jobs.append(job)
        for start in range(0, len(jobs), CHUNK):
            served.add(self._serve(jobs[start : start + CHUNK], now, before))
        return served

    def serve_job(self, job: Job, *, now: datetime, before: datetime) -> Served:
        """Serve one job that was just read."""
        return self._serve([job], now, before) if job.due else Served()

    def _decode(self, row: Row, served: Served) -> Job | None:
        try:
            return decode_job(row)
        except Exception as error:  # noqa: BLE001  a broken row must not pin its shard
            self._park(row, f"its row cannot be read: {error}", served)
            return None

    def _park(self, row: Row, reason: str, served: Served) -> None:
        if self._store.jobs.park(row, reason):
            served.parked += 1
            log.error("job %s is parked: %s; edit it to bring it back", row.key.pk, reason)

    def _serve(self, jobs: Sequence[Job], now: datetime, before: datetime) -> Served:
        served = Served(jobs=len(jobs))
        todo = list(jobs)
        for _ in range(ROUNDS):
            plans = [plan for job in todo if (plan := self._plan(job, now, before, served))]
            self._create(plans, now, served)
            todo = self._advance(plans, before, served)
            if not todo:
                break
        return served

    def _plan(
        self, job: Job, now: datetime, before: datetime, served: Served
    ) -> tuple[Job, Plan] | None:
        try:
            pace = self._settings.catch_up_pace
            plan = plan_service(job, now=now, before=before, pace=pace)
        except Exception as error:  # noqa: BLE001  one broken job must not pin its shard
            row = self._store.jobs.row_of(job)
            self._park(row, f"its schedule cannot be evaluated: {error}", served)
            return None
        return None if plan.after is job else (job, plan)

    def _create(self, plans: Sequence[tuple[Job, Plan]], now: datetime, served: Served) -> None:
        runs: list[Run] = [
            occur(
                job,
                RunKey(job.job_id, item.scheduled_for, RunKind.CRON),
                available_at=item.available_at,
                now=now,
                priority=item.priority,
                generation=item.generation,
            )
            for job, plan in plans
            for item in plan.occurrences
        ]
        for start in range(0, len(runs), CHUNK):
            made = self._store.runs.create_many(runs[start : start + CHUNK])
            served.created += sum(made)
            served.existed += len(made) - sum(made)

    def _advance(
        self, plans: Sequence[tuple[Job, Plan]], before: datetime, served: Served
    ) -> list[Job]:
        """Advance the served jobs; return those that somebody else changed and that are due."""
        for job, plan in plans:
            if plan.apart:
                self._store.jobs.put_spans(job.job_id, plan.apart)
        changes = [
            (replace(plan.after, version=job.version + 1), job.version) for job, plan in plans
        ]
        again: list[Job] = []
        outcomes = self._store.jobs.replace_many(changes)
        for (job, plan), outcome in zip(plans, outcomes, strict=True):
            if not isinstance(outcome, JobStale):
                served.skipped += plan.after.skipped - job.skipped
                continue
            current = outcome.current
            if current is not None and current.due and current.next_at < before:  # type: ignore[operator]
                again.append(current)
        return again
