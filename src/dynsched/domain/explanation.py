"""Explanations: what is the case with a run or an instant, and the cause, by name.

A `Finding` is one cause with its words; an `Explanation` is the finding with whom it is about and
what happened when. Nothing here is a guess: where the evidence is missing the cause is
`CANNOT_TELL`, and the sentences say what was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Cause(StrEnum):
    """Why a run or an instant is where it is; scripts may rely on these codes."""

    WAITING_FOR_TIME = "waiting_for_time"
    PACED = "paced"
    SPREAD = "spread"  # over its job's flexible window
    RETRY = "retry"
    SNOOZED = "snoozed"
    NO_WORKER = "no_worker"
    NO_HANDLER = "no_handler"
    COMMANDS_REFUSED = "commands_refused"
    AT_CAP = "at_cap"
    OVERLAP = "overlap"
    SUSPECT = "suspect"  # needs a process with nothing else in hand
    SUSPECT_BESIDE = "suspect_beside"  # the workers hold one, and claim nothing beside it
    BACKLOG = "backlog"
    HANDED_OFF = "handed_off"  # to functions, and none has taken it
    JUST_DUE = "just_due"
    LEASE_LOST = "lease_lost"
    DISPATCHER_BEHIND = "dispatcher_behind"
    PAUSED = "paused"
    PARKED = "parked"
    JOB_DELETED = "job_deleted"
    RUNNING = "running"
    STOPPING = "stopping"
    CALLBACK = "callback"  # goes on elsewhere, and waits for an answer
    LEASE_EXPIRED = "lease_expired"
    SKIPPED_OVERLAP = "skipped_overlap"
    MISSED_DEADLINE = "missed_deadline"
    CAUGHT_UP = "caught_up"
    EDITED = "edited"
    EXPIRED = "expired"
    SPENT = "spent"
    PERMANENT = "permanent"
    POISON = "poison"
    UNKNOWN_HANDLER = "unknown_handler"
    PULLED_BACK = "pulled_back"
    REPLACED = "replaced"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    MADE_WAY = "made_way"
    DONE = "done"
    DONE_LATE = "done_late"
    REPLAYED = "replayed"
    NEVER_NAMED = "never_named"
    BEFORE_CREATION = "before_creation"
    AHEAD = "ahead"
    LOST = "lost"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause in words.

    Attributes:
        cause: its code.
        headline: what is the case and why, one sentence.
        sentences: what supports it, with figures.
        hints: command lines that mend it, exactly as they can be typed.
    """

    cause: Cause
    headline: str
    sentences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def adding(self, *sentences: str, hints: tuple[str, ...] = ()) -> Finding:
        """Return it with more sentences, the empty ones left out, and more hints."""
        return replace(
            self,
            sentences=(*self.sentences, *filter(None, sentences)),
            hints=tuple(dict.fromkeys((*self.hints, *hints))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a run or an instant is where it is.

    Attributes:
        subject: whom it is about.
        at: when it was looked at; every "now" in the words is this.
        headline: what is the case and the cause, by name, one sentence.
        cause: the code of that.
        sentences: what supports it, with figures.
        timeline: what happened when, the oldest first; what is still to come at its end.
        hints: command lines that mend it, exactly as they can be typed.
        run_id: the run, if there is a row.
        job_id: the job; empty if it is not known.
        examined: rows that were read for it.
    """

    subject: str
    at: datetime
    headline: str
    cause: Cause
    sentences: tuple[str, ...] = ()
    timeline: tuple[tuple[datetime, str], ...] = ()
    hints: tuple[str, ...] = ()
    run_id: str | None = None
    job_id: str = ""
    examined: int = 0

    @property
    def alarm(self) -> bool:
        """Return whether something is wrong with the scheduler itself."""
        return self.cause is Cause.LOST
