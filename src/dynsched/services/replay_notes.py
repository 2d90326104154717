"""Replay notes: what people did to a dead run, kept among its attempts."""

from __future__ import annotations

from datetime import datetime

from dynsched.domain.batch import Batch
from dynsched.domain.batch_entry import Entry
from dynsched.domain.run import Run
from dynsched.services.endings import attempt_expiry
from dynsched.storage.runs import REPLAYED, Attempt


def note_by_hand(
    run: Run,
    outcome: str,
    *,
    now: datetime,
    by: str,
    reason: str,
    detail: str = "",
    output: str = "",
) -> Attempt:
    """Return the note that somebody did something to one dead run.

    Args:
        run: as it was dead.
        outcome: one of `dynsched.storage.runs.PEOPLES`.
        now: when.
        by: who.
        reason: why.
        detail: of an edit the difference, of a replacement the new run's id.
        output: of an edit the payload that was replaced.
    """
    return Attempt(
        run_id=run.run_id,
        number=run.attempt,
        fence=run.fence,
        session="",
        outcome=outcome,
        started_at=None,
        ended_at=now,
        message=reason,
        detail=detail,
        output=output,
        by=by,
        order=run.version,
        expires_at_s=attempt_expiry(run, now),
    )


def note_by_batch(
    entry: Entry, run: Run, batch: Batch, *, now: datetime, outcome: str = REPLAYED
) -> Attempt:
    """Return the note that a batch moved a run; the same whoever writes it, and when."""
    return Attempt(
        run_id=entry.run_id,
        number=entry.attempt,
        fence=entry.fence,
        session="",
        outcome=outcome,
        started_at=None,
        ended_at=now,
        message=batch.reason,
        by=batch.confirmed_by,
        batch=batch.batch_id,
        expires_at_s=attempt_expiry(run, now),
    )
