"""What a message that has arrived is worth, by the row of the run that it names.

The row alone decides: a message is dropped only if its row is absent, leased or ended, or waits
for another message. So a message that comes twice, late, or in another order does no harm.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.run import Run, RunState

AGAIN_MIN = timedelta(seconds=1)
AGAIN_MAX = timedelta(hours=11)
"""SQS allows twelve hours, counted from when it handed the message out."""
CAPPED_MAX = timedelta(minutes=5)
HELD_MAX = timedelta(minutes=15)
WAIT_MAX = timedelta(seconds=30)
"""Longest time between two looks at a run that waits for another."""
WAIT_DOUBLINGS = 5
AGE_SHARE = 4
"""A message that may not start its run is looked at again after a quarter of its age: so a long
wait costs few visits, and a queue of messages counts few receives of each."""


class Arrival(StrEnum):
    """What is to be done with a message."""

    DROP = "drop"
    EARLY = "early"
    DUE = "due"


def arrival_of(run: Run | None, now: datetime) -> tuple[Arrival, str]:
    """Return what is to be done with a message, and why.

    Args:
        run: as the row is now; None if there is none.
        now: when the message has arrived.
    """
    if run is None:
        return Arrival.DROP, "its run is gone"
    if run.state is RunState.LEASED:
        # Whoever takes the lease away, or gives the run back, sends another message.
        return Arrival.DROP, "its run is leased"
    if run.state is not RunState.READY:
        return Arrival.DROP, f"its run is {run.state.value}"
    if run.available_at > now:
        return Arrival.EARLY, "it is too early"
    return Arrival.DUE, ""


def first_due(run: Run, sent_at: datetime | None) -> datetime:
    """Return since when a message could have started its run."""
    since = max(run.available_at, run.scheduled_for)
    return since if sent_at is None else max(since, sent_at)


def again_after(age: timedelta, most: timedelta) -> timedelta:
    """Return after how long a message is looked at again that could not start its run.

    >>> again_after(timedelta(seconds=40), CAPPED_MAX).total_seconds()
    10.0
    """
    return min(max(age / AGE_SHARE, AGAIN_MIN), most)


def again_at(available_at: datetime, now: datetime) -> timedelta:
    """Return after how long a message is to be visible again whose run is due then."""
    return min(max(available_at - now, AGAIN_MIN), AGAIN_MAX)


def again_waiting(run: Run, now: datetime) -> timedelta:
    """Return after how long a message is looked at again whose run waits for another to end.

    That end pulls the run forward and sends a message of its own, so after many visits this one
    is only the net below.
    """
    waited = max(run.waits - WAIT_DOUBLINGS, 0) * WAIT_MAX
    return max(again_at(run.available_at, now), again_after(waited, CAPPED_MAX))
