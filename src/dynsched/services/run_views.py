"""Views of runs: one run with its attempts, and what the living workers can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dynsched.domain.instants import Clock
from dynsched.domain.job import Job
from dynsched.domain.masking import PLAIN, Masker
from dynsched.domain.run import Run, parse_run_id
from dynsched.errors import NotFound
from dynsched.services.capacity import Capacity, alive_sessions, is_overdue
from dynsched.services.masked import Masked, masked_attempt, masked_progress
from dynsched.services.search_sources import moment
from dynsched.storage.runs import Attempt, ProgressNote
from dynsched.storage.store import Store

__all__ = ["RunDetail", "RunViews", "moment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """One run.

    Attributes:
        run: its row.
        attempts: what is kept of its tries, oldest first.
        job: its job; None if that is gone.
        payload: its own payload as JSON text; None if it carries its job's.
        progress: what its handler reported last; None if it reported nothing.
        lack: why no living worker can run it, if it should have been taken by now.
    """

    run: Run
    attempts: tuple[Attempt, ...]
    job: Job | None
    payload: str | None
    progress: ProgressNote | None
    lack: str = ""


class RunViews(Masked):
    """Reads runs for people; only reading, secrets masked."""

    def __init__(self, store: Store, *, clock: Clock, masker: Masker = PLAIN) -> None:
        Masked.__init__(self, masker)
        self._store = store
        self._clock = clock

    def show_run(self, run_id: str, unmask: bool = False) -> RunDetail:
        """Return a run with its attempts.

        Args:
            run_id: the run.
            unmask: hide nothing; for `Operations.unmask_run`, which asks who may see that.

        Raises:
            InvalidInput: the text is no run id.
            NotFound: there is no such run.
        """
        run = self._store.runs.get(parse_run_id(run_id))
        if run is None:
            raise NotFound("run", run_id, "it never was, or its retention is over")
        payload = run.payload
        if payload is None and run.payload_ref is not None:
            payload = self._store.jobs.part(run.job_id, run.payload_ref)
        job = self._store.jobs.read_many([run.job_id])[run.job_id]
        detail = RunDetail(
            run=run,
            attempts=tuple(self._store.runs.attempts(run_id)),
            job=job if isinstance(job, Job) else None,
            payload=payload,
            progress=self._store.runs.progress(run_id),
            lack=self.lacks([run]).get(run_id, ""),
        )
        return detail if unmask else self._masked_detail(detail)

    def _masked_detail(self, detail: RunDetail) -> RunDetail:
        payload, progress = detail.payload, detail.progress
        return replace(
            detail,
            run=self.masked(detail.run),
            attempts=tuple(masked_attempt(self.masker, one) for one in detail.attempts),
            job=None if detail.job is None else self.masked(detail.job),
            payload=None if payload is None else self.masker.json_text(payload),
            progress=None if progress is None else masked_progress(self.masker, progress),
        )

    def capacity(self) -> Capacity:
        """Return what the living workers say they can run. Cost: one query."""
        now = self._clock.now()
        handed_off = self._store.refresh_by(now).message_queues
        return Capacity(alive_sessions(self._store.control.sessions(), now), handed_off)

    def lacks(self, runs: Sequence[Run]) -> dict[str, str]:
        """Return by run id why no living worker can run what should have been taken by now.

        Cost: one query of the sessions, and none if nothing is overdue.
        """
        now = self._clock.now()
        overdue = [run for run in runs if is_overdue(run, now)]
        if not overdue:
            return {}
        capacity = self.capacity()
        found = {run.run_id: capacity.lack_of(run, now) for run in overdue}
        return {run_id: lack for run_id, lack in found.items() if lack}
