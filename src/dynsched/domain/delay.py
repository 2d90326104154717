"""Scheduling delay: how much later than it was to start a run started, or is by now."""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.domain.run import Run, RunState

WAITING = frozenset({RunState.READY, RunState.FAILED})


def scheduling_delay(
    run: Run, now: datetime, *, started: datetime | None = None
) -> timedelta | None:
    """Return a run's delay; None if it never started and never will, or need not start yet.

    It is due at its scheduled instant, or later if it was made to wait: pacing and a spread over a
    window are no delay, waiting at a cap or for another run is. A retry is no first start.

    Args:
        run: as it is stored.
        now: the present instant.
        started: when it is being started for the first time, before its row says so.
    """
    started, claims = started or run.first_started_at, 1
    if started is None and run.state is RunState.LEASED:
        started = run.leased_at
    if started is None:
        if run.state not in WAITING or run.attempt:
            return None
        started, claims = now, 0
    due = run.scheduled_for
    if run.fence <= claims and (run.available_at <= started or not claims):
        due = max(due, run.available_at)
    return started - due if started >= due else None
