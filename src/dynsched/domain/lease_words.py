"""Who holds a leased run, in the same words in every console."""

from __future__ import annotations

from dynsched.domain.run import CALLBACK_SESSION, FIXED_SESSION, Run
from dynsched.domain.time_words import stamp


def holder_words(run: Run) -> str:
    """Return who holds a run: a worker's session, or an invocation until its lease's end.

    It is empty while nobody does.
    """
    if run.session is None:
        return ""
    if run.awaits_callback and run.lease_ends_at is not None:
        return f"waits for its callback until {stamp(run.lease_ends_at)}"
    if run.lease_ends_at is None:
        return f"session {run.session}"
    return f"{session_words(run.session)} until {stamp(run.lease_ends_at)}"


def session_words(session: str) -> str:
    """Return what the name says of a session that has no row.

    >>> session_words("~8e1c")
    'function invocation 8e1c'
    >>> session_words("~callback:8e1c")
    'callback 8e1c'
    """
    if session.startswith(CALLBACK_SESSION):
        return f"callback {session.removeprefix(CALLBACK_SESSION)}"
    return f"function invocation {session.removeprefix(FIXED_SESSION)}"
