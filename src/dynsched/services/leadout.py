"""Leading out: what becomes of claimed runs that may not start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from dynsched.domain import lifecycle
from dynsched.domain.arrival import WAIT_DOUBLINGS, WAIT_MAX
from dynsched.domain.instants import Clock
from dynsched.domain.job import JobState
from dynsched.domain.retry import signature
from dynsched.domain.run import Run, RunState
from dynsched.errors import StoreError
from dynsched.services.callbacks import end_callback
from dynsched.services.cancelling import request_cancel
from dynsched.services.endings import Ending, Endings
from dynsched.services.hand import InHand
from dynsched.services.look import Found, Looked
from dynsched.services.refusals import Refusals
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store
from dynsched.targets.result import WasCancelled
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")


def step_back(
    item: InHand, at: datetime, now: datetime, reason: str, waits: int | None = None
) -> Ending:
    """Return the way out of a run that was claimed but not started."""
    return Ending(
        item,
        lambda run: lifecycle.step_back(run, available_at=at, now=now, reason=reason, waits=waits),
    )


class LeadOut:
    """Writes what the look decided for runs that may not start.

    Args:
        write: writes ways out and takes the runs out of the hand; False if it will do so later.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        refusals: Refusals,
        endings: Endings,
        write: Callable[[Sequence[Ending]], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._refusals = refusals
        self._endings = endings
        self._write = write

    def refused(self, refused: Sequence[tuple[InHand, Looked]]) -> None:
        """Write each refusal; those that wait for another run leave their mark at it."""
        if not refused:
            return
        now = self._clock.now()
        if not self._write([self._refusal(item, looked, now) for item, looked in refused]):
            return
        try:
            for item, looked in refused:
                if looked.found is Found.WAIT and looked.blocker is not None:
                    self._wait_for(item.run, looked.blocker, ask_cancel=looked.ask_cancel)
        except StoreError as error:
            log.warning("who waits for another run looks again by itself: %s", error)

    def unknown(self, item: InHand, bound: timedelta) -> Ending:
        """Return the way out of a run whose handler no worker knew for so long."""
        now, needs = self._clock.now(), item.run.needs
        hours = bound / timedelta(hours=1)
        error = f"no worker of queue {item.run.queue} had {needs} for {hours:g} h"
        group = signature("NoHandler", needs)
        return Ending(
            item,
            lambda run: lifecycle.bury(
                run,
                now=now,
                reason="no handler",
                error=error,
                signature=group,
                started_at=None,
            ),
        )

    def _refusal(self, item: InHand, looked: Looked, now: datetime) -> Ending:
        run = item.run
        if looked.found is Found.SKIP:
            reason = str(looked.reason.value) if looked.reason is not None else ""
            if looked.blocker is not None:
                reason = f"{reason}: {looked.blocker.run_id}"
            return Ending(item, lambda row: lifecycle.skip(row, now=now, reason=reason))
        if looked.found is Found.WAIT:
            delay = min(WAIT_MAX, timedelta(seconds=2 ** min(run.waits, WAIT_DOUBLINGS)))
            blocker = looked.blocker.run_id if looked.blocker is not None else ""
            self._refusals.waits(run.job_id, now)
            return step_back(item, now + delay, now, f"waits for {blocker}", run.waits + 1)
        if looked.found is Found.CAP:
            self._refusals.cap(run.tenant, now)
            return step_back(item, run.available_at, now, "tenant at its cap")
        if looked.found is Found.HOLD:
            paused = looked.job is not None and looked.job.state is JobState.PAUSED
            reason = "job paused with hold" if paused else "its job cannot be evaluated here"
            return step_back(item, now + WAIT_MAX, now, reason)
        if looked.found is Found.ELSEWHERE and looked.job is not None:
            needs = looked.job.needs
            return Ending(
                item,
                lambda row: lifecycle.step_back(
                    row, available_at=run.available_at, now=now, needs=needs
                ),
            )
        return step_back(item, run.available_at, now, "")

    def _wait_for(self, run: Run, blocker: Run, *, ask_cancel: bool) -> None:
        """Leave a mark at the run that stands in the way, so that its end pulls this one forward.

        The step back came first: if the blocker has ended meanwhile, nobody would pull.
        """
        current: Run | None = blocker
        if ask_cancel and not blocker.cancel_requested:
            reason = f"overlap: makes way for {run.run_id}"
            current = request_cancel(self._store, blocker, reason=reason)
            if current is not None and current.awaits_callback:
                called_off = WasCancelled(reason=StopReason.CANCELLED)
                end_callback(
                    self._endings,
                    current,
                    called_off,
                    job=None,
                    now=self._clock.now(),
                    look_ahead=self._store.topology.look_ahead,
                )
                current = None
        if current is not None and current.state is RunState.LEASED:
            outcome = self._store.runs.apply(lifecycle.mark_waiter(current, waiter=run.run_id))
            if isinstance(outcome, RunApplied) or (
                outcome.current is not None
                and outcome.current.fence == blocker.fence
                and outcome.current.state is RunState.LEASED
            ):
                return
        self._endings.pull_forward(run.run_id)
