"""What all verbs of operations share."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from dynsched.domain.access import Access
from dynsched.domain.instants import EPOCH, Clock
from dynsched.domain.job import (
    Job,
    JobState,
)
from dynsched.domain.target import Target
from dynsched.errors import NotFound
from dynsched.services.serving import JobServer
from dynsched.settings import Settings
from dynsched.storage.jobs import target_of
from dynsched.storage.store import Store

CHANGE_TRIES = 20
INLINE_MAX = 256  # characters of a payload or target that stay in the row


class Verbs:
    """A store with what is needed to change it.

    Args:
        store: where everything lies.
        clock: the source of time.
        rng: for ids.
        settings: bounds of the services.
        access: who acts, and what that actor may do.
    """

    def __init__(
        self, store: Store, *, clock: Clock, rng: Random, settings: Settings, access: Access
    ) -> None:
        self.access = access
        self._store = store
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._server = JobServer(store, settings=settings)

    def _get(self, job_id: str) -> Job:
        job = self._store.jobs.get(job_id)
        if job is None or job.state is JobState.DELETED:
            raise NotFound("job", job_id)
        return job

    def _target_of(self, job: Job) -> Target | None:
        """Return what a job does, read where it lies apart; None if that is gone."""
        if job.target is not None:
            return job.target
        text = self._store.jobs.part(job.job_id, job.target_ref or "")
        return None if text is None else target_of(text)


def expiry_s(since: datetime, kept: timedelta) -> int:
    """Return when a row may go, in epoch seconds; it may lie beyond the calendar."""
    return (since - EPOCH + kept) // timedelta(seconds=1)
