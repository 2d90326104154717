"""Asking the holder of a run to stop."""

from __future__ import annotations

from dynsched.domain import lifecycle
from dynsched.domain.run import Run, RunState
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store

TRIES = 10


def request_cancel(store: Store, run: Run, *, reason: str) -> Run | None:
    """Ask the holder of a leased run to stop: the flag in its row first, the mailbox second.

    Returns:
        The run as stored now, None if it is gone.
    """
    current: Run | None = run
    for _ in range(TRIES):
        if current is None or current.state is not RunState.LEASED:
            return current
        outcome = store.runs.apply(lifecycle.ask_cancel(current, reason=reason))
        if isinstance(outcome, RunApplied):
            current = outcome.run
            break
        current = outcome.current
    # An invocation has no mailbox; it looks at the row.
    if current is not None and current.session is not None and not current.fixed_lease:
        store.control.leave_mail(current.session, f"{current.run_id}#{current.fence}")
    return current
