"""Runs in hand: one table per process, entered before the claim.

A run in hand is not claimed again, else "my session and my fence" would be true for two slots.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.job import Job
from dynsched.domain.run import Run
from dynsched.services.permits import Taken
from dynsched.targets.context import Progress
from dynsched.targets.result import Result
from dynsched.targets.stop import Stop, StopReason


@dataclass(slots=True)
class InHand:
    """A run that this process works on.

    Attributes:
        run: as last seen in the store.
        session: the session that its lease names.
        job: as read by the look; None until then.
        permit: the tenant's permit that it holds.
        stop: asks its handler to end.
        started_at: when the handler was called; None before.
        given_up: it was handed back or failed while its handler still runs.
        result: what the handler answered, or what was decided in its place.
        late: what it answered after it was given up.
        number: the attempt's number, once it has started.
        fence: the claim's fence, once it has started.
        progress: what the handler reported last.
        progress_written: the report that the store has.
    """

    run: Run
    session: str
    stop: Stop
    job: Job | None = None
    permit: Taken | None = None
    started_at: datetime | None = None
    given_up: bool = False
    result: Result | None = None
    late: Result | None = None
    number: int = 0
    fence: int = 0
    progress: Progress | None = None
    progress_written: Progress | None = None


class Hand:
    """The table. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, InHand] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._items

    def enter(self, run: Run, session: str) -> InHand | None:
        """Enter a run before its claim; None if it is in hand already."""
        with self._lock:
            if run.run_id in self._items:
                return None
            item = self._items[run.run_id] = InHand(run, session, Stop())
            return item

    def leave(self, item: InHand) -> None:
        """Take a run out, once its last write is made and its handler has returned."""
        with self._lock:
            if self._items.get(item.run.run_id) is item:
                del self._items[item.run.run_id]

    def items(self) -> list[InHand]:
        """Return what is in hand now."""
        with self._lock:
            return list(self._items.values())

    def ask_cancel(self, mail: str) -> None:
        """Ask the handler of a run to stop; mail is `{run id}#{fence}`."""
        run_id, _, fence = mail.rpartition("#")
        with self._lock:
            item = self._items.get(run_id)
        if item is not None and str(item.run.fence) == fence:
            item.stop.set(StopReason.CANCELLED)
