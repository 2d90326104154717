"""Permits of overlap: whether a claimed run of a job that forbids overlap may start.

The permit names its holder (run and fence). It is free when the run that it names is not leased
under the fence that it names, so nothing has to release it. An older claim of the same run has
another fence: it does not count as the holder, and does not write itself over a newer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dynsched.domain.job import Overlap
from dynsched.domain.run import Run, RunKind, RunState

Holder = tuple[str, int]


# A waiter that is leased is being looked at just now: granted, it would be no waiter any more.
WAITING = (RunState.READY, RunState.LEASED)


class Answer(StrEnum):
    """What a run is told."""

    GRANT = "grant"
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class OverlapDecision:
    """The answer, what the permit shall say, and what follows.

    Attributes:
        answer: what the run is told.
        holder: the permit's holder afterwards.
        waiter: the permit's waiter afterwards.
        blocker: the run that stands in the way.
        ask_cancel: the blocker is to be asked to stop.
    """

    answer: Answer
    holder: Holder | None
    waiter: str | None
    blocker: Run | None = None
    ask_cancel: bool = False


def holds(holder: Holder | None, holder_run: Run | None) -> bool:
    """Return whether the named holder still holds: leased, under the named fence."""
    return (
        holder is not None
        and holder_run is not None
        and holder_run.state is RunState.LEASED
        and holder_run.fence == holder[1]
    )


def decide_overlap(
    run: Run,
    policy: Overlap,
    *,
    holder: Holder | None,
    waiter: str | None,
    holder_run: Run | None,
    waiter_run: Run | None,
) -> OverlapDecision:
    """Decide for a run that is leased under its present fence.

    Args:
        run: the claimed run.
        policy: the job's policy; not `allow`, which has no permit.
        holder: whom the permit names.
        waiter: the run id that waits for it.
        holder_run: the named holder's row, read after the claim.
        waiter_run: the named waiter's row.
    """
    me = (run.run_id, run.fence)
    if holder is not None and holder[0] == me[0] and holder[1] > me[1]:
        # The run has changed hands since this claim, which may only step back: if it wrote itself
        # in, nobody would see the newer lease any more.
        return OverlapDecision(Answer.WAIT, holder, waiter)
    first = run.key.kind is RunKind.CRON and run.replays == 0 and run.attempt == 0
    blocked = holder != me and holds(holder, holder_run)
    waiting = (
        waiter is not None
        and waiter != run.run_id
        and waiter_run is not None
        and waiter_run.state in WAITING
    )
    if first and policy is Overlap.SKIP and blocked:
        return OverlapDecision(Answer.SKIP, holder, waiter, holder_run)
    if first and waiting and policy is Overlap.QUEUE_ONE:
        return OverlapDecision(Answer.SKIP, holder, waiter, waiter_run)
    if first and waiting and policy is Overlap.CANCEL_RUNNING and str(waiter) > run.run_id:
        return OverlapDecision(Answer.SKIP, holder, waiter, waiter_run)
    if blocked:
        return OverlapDecision(
            Answer.WAIT,
            holder,
            run.run_id if first else waiter,
            holder_run,
            policy is Overlap.CANCEL_RUNNING,
        )
    return OverlapDecision(Answer.GRANT, me, None if waiter == run.run_id else waiter)
