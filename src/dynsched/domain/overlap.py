"""Permits of overlap: whether a claimed run of a job that forbids overlap may start.

The permit names its holder (run and fence). It is free when the run that it names is not leased
under the fence that it names, so nothing has to release it. An older claim of the same run has
another fence: it does not count as the holder, and does not write itself over a newer one.

Only a run that became due while another was running is skipped, or is the one that waits. Runs that
were due before the other one was claimed are late together: they take turns.
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
    blocker = holder_run if holder != me and holds(holder, holder_run) else None
    late = blocker is not None and _was_due_before(run, blocker)
    waits = waiter != run.run_id and waiter_run is not None and waiter_run.state in WAITING
    preferred = _preferred(policy, run, blocker, waiter_run if waits else None, late=late)
    if first and preferred is not None:
        return OverlapDecision(Answer.SKIP, holder, waiter, preferred)
    if blocker is None:
        return OverlapDecision(Answer.GRANT, me, None if waiter == run.run_id else waiter)
    return OverlapDecision(
        Answer.WAIT,
        holder,
        run.run_id if first and not late else waiter,
        blocker,
        policy is Overlap.CANCEL_RUNNING and blocker.scheduled_for <= run.scheduled_for,
    )


def _preferred(
    policy: Overlap, run: Run, blocker: Run | None, waiting: Run | None, *, late: bool
) -> Run | None:
    """Return the run for whose sake a first start is skipped, None if it is not.

    Args:
        policy: the job's.
        run: the claimed run.
        blocker: the run that holds the permit.
        waiting: another run that waits for it.
        late: the claimed run was due before the blocker was claimed.
    """
    if policy is Overlap.SKIP:
        return None if late else blocker
    if policy is Overlap.QUEUE_ONE:
        return waiting if waiting is not None and waiting.run_id < run.run_id else None
    for other in (waiting, blocker):
        if other is not None and other.scheduled_for > run.scheduled_for:
            return other
    return None


def _was_due_before(run: Run, blocker: Run) -> bool:
    """Return whether a run was due before the one that stands in its way was claimed.

    Then they do not overlap, they are both late (after an outage, or for want of slots): each
    gets its turn. A run that became due while another was running is what the policy is about.
    """
    return blocker.leased_at is not None and run.available_at < blocker.leased_at
