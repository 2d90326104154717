"""Starting: what a handler gets, and the piece of work that calls it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from dynsched.domain.instants import Clock
from dynsched.domain.job import Job, Policies
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.run import Run
from dynsched.domain.target import Target
from dynsched.errors import StoreError
from dynsched.services.callbacks import CallbackOpener
from dynsched.services.hand import InHand
from dynsched.services.parts import PartCache
from dynsched.storage.jobs import target_of
from dynsched.targets.context import Context, Progress
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import Limits

log = logging.getLogger("dynsched.run")

SOFT_SHARE = 0.9


class MissingPart(Exception):
    """A payload or target that lies apart is gone; the run cannot succeed."""


class Starter:
    """Prepares runs that may start.

    Args:
        on_end: told when a handler has returned, on its slot's thread.
        callbacks: lets runs go on elsewhere that are to call back.
    """

    def __init__(
        self,
        *,
        runner: TargetRunner,
        clock: Clock,
        parts: PartCache,
        on_end: Callable[[InHand], None],
        callbacks: CallbackOpener,
    ) -> None:
        self._runner = runner
        self._clock = clock
        self._parts = parts
        self._on_end = on_end
        self._callbacks = callbacks

    def prepare(self, items: Sequence[InHand]) -> list[tuple[InHand, Callable[[], None]]]:
        """Return the work of each run, with its target and payload read.

        A run that cannot be prepared, whatever its job's row holds, fails; the others start.

        Raises:
            StoreError: a large part could not be read; nothing was started.
        """
        return [(item, self._work(item)) for item in items]

    def _work(self, item: InHand) -> Callable[[], None]:
        job = item.job
        assert job is not None
        try:
            target = self._target(job)
            context = self._context(item, job)
        except StoreError:
            raise
        except MissingPart as error:
            return self._failing(item, error)
        except Exception as error:
            log.exception("run %s of job %s cannot be prepared", item.run.run_id, job.name)
            return self._failing(item, error)
        return lambda: self._run(item, target, context)

    def _failing(self, item: InHand, error: Exception) -> Callable[[], None]:
        failed = Failed(
            error_type=type(error).__name__,
            message=" ".join(str(error).split()),
            hint=Hint.PERMANENT,
        )
        return lambda: self._end(item, failed)

    def _run(self, item: InHand, target: Target, context: Context[object]) -> None:
        result = self._runner.run(target, context, open_callback=lambda: self._callbacks.open(item))
        if item.given_up:
            item.late = result
        else:
            item.result = result
        self._on_end(item)

    def _end(self, item: InHand, failed: Failed) -> None:
        item.result = failed
        self._on_end(item)

    def _target(self, job: Job) -> Target:
        if job.target is not None:
            return job.target
        return target_of(self._part(job, job.target_ref or ""))

    def _part(self, job: Job, digest: str) -> str:
        text = self._parts.text(job.job_id, digest)
        if text is None:
            raise MissingPart(f"part {digest} of job {job.name} is gone from the store")
        return text

    def _payload(self, item: InHand, job: Job) -> object:
        """Return the run's own payload, else the job's."""
        for text, digest in (
            (item.run.payload, item.run.payload_ref),
            (job.payload, job.payload_ref),
        ):
            if text is not None:
                return json.loads(text)
            if digest is not None:
                return json.loads(self._part(job, digest))
        return None

    def _context(self, item: InHand, job: Job) -> Context[object]:
        run = item.run
        limits = limits_of(job.policies)
        return Context(
            payload=self._payload(item, job),
            idempotency_key=run.idempotency_key,
            job_id=job.job_id,
            job_name=job.name,
            run_id=run.run_id,
            tenant=run.tenant,
            scheduled_for=run.scheduled_for,
            attempt=run.attempt + 1,
            fence=run.fence,
            deadline=self._deadline(run, limits),
            limits=limits,
            stop=item.stop,
            sink=lambda progress: _note_progress(item, progress),
        )

    def _deadline(self, run: Run, limits: Limits) -> datetime | None:
        """Return by when an attempt is to have ended: its soft limit, or its function's end."""
        soft = None if limits.soft is None else self._clock.now() + limits.soft
        return min((at for at in (soft, run.lease_ends_at) if at is not None), default=None)


def _note_progress(item: InHand, progress: Progress) -> None:
    item.progress = progress


def limits_of(policies: Policies) -> Limits:
    """Return the time limits of an attempt: the soft one is nine tenths of the hard one."""
    hard, soft = policies.timeout, policies.soft_timeout
    if soft is None and hard is not None:
        soft = timedelta(seconds=hard.total_seconds() * SOFT_SHARE)
    return Limits(soft=soft, hard=hard)
