"""What all verbs of operations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from dynsched.domain.access import Access
from dynsched.domain.instants import EPOCH, Clock
from dynsched.domain.job import (
    Job,
    JobState,
)
from dynsched.domain.masking import MASK, Masker
from dynsched.domain.payload import Json
from dynsched.domain.run import Run, parse_run_id
from dynsched.domain.target import Target
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.gate import Gate, Subject
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
        self.gate = Gate(access, store.audit, clock=clock, rng=rng)
        self._store = store
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._masker = Masker(settings.mask_keys)
        self._server = JobServer(store, settings=settings)

    @property
    def access(self) -> Access:
        """Who acts, and what that actor may do."""
        return self.gate.access

    def get_job(self, job_id: str) -> Job:
        """Return a job by its id.

        Raises:
            NotFound: there is none.
        """
        job = self._store.jobs.get(job_id)
        if job is None or job.state is JobState.DELETED:
            raise NotFound("job", job_id)
        return job

    def get_run(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            InvalidInput: the text is no run id.
            NotFound: there is no such run.
        """
        run = self._store.runs.get(parse_run_id(run_id))
        if run is None:
            raise NotFound("run", run_id, "it never was, or its retention is over")
        return run

    def _refuse_masked(self, field: str, value: Json) -> None:
        """Refuse a value that people were shown masked and give back as it was shown.

        Raises:
            InvalidInput: it holds the mask in the place of a secret.
        """
        if self._masker.shows_mask(value):
            raise InvalidInput(
                field, f"it holds {MASK} in the place of a secret", "give the secret itself"
            )

    def _restored(self, edited: Json, original: Callable[[], Json]) -> Json:
        """Return an edited payload with the secrets of the original where it shows them masked.

        Args:
            edited: what people made of what they were shown.
            original: reads the payload as it is; called only if the edited one shows the mask.

        Raises:
            InvalidInput: it shows the mask where the original has no secret.
        """
        if not self._masker.shows_mask(edited):
            return edited
        payload = self._masker.restored(edited, original())
        self._refuse_masked("payload", payload)
        return payload

    def target_of(self, job: Job) -> Target | None:
        """Return what a job does, read where it lies apart; None if that is gone."""
        if job.target is not None:
            return job.target
        text = self._store.jobs.part(job.job_id, job.target_ref or "")
        return None if text is None else target_of(text)


def expiry_s(since: datetime, kept: timedelta) -> int:
    """Return when a row may go, in epoch seconds; it may lie beyond the calendar."""
    return (since - EPOCH + kept) // timedelta(seconds=1)


def on_store(_: Verbs, __: Mapping[str, Any]) -> Subject:
    """Find the subject of a verb on the store itself."""
    return Subject()


def on_job(verbs: Verbs, given: Mapping[str, Any]) -> Subject:
    """Find the subject of a verb that takes `job_id`.

    Raises:
        NotFound: there is no such job.
    """
    job = verbs.get_job(given["job_id"])
    return Subject(target=f"job:{job.job_id}", tenant=job.tenant, details={"job": job.name})


def on_run(verbs: Verbs, given: Mapping[str, Any]) -> Subject:
    """Find the subject of a verb that takes `run_id`.

    Raises:
        InvalidInput: the text is no run id.
        NotFound: there is no such run.
    """
    run = verbs.get_run(given["run_id"])
    return Subject(target=f"run:{run.run_id}", tenant=run.tenant)
