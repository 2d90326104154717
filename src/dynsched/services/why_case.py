"""A run that is asked about, and the words for who could run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.health import Level
from dynsched.domain.job import Job
from dynsched.domain.run import Run
from dynsched.domain.time_words import number, span, stamp
from dynsched.services.why_evidence import SESSIONS_NAMED, Evidence
from dynsched.storage.control import Session
from dynsched.storage.jobs import Unreadable


@dataclass(frozen=True, slots=True)
class Case:
    """A run that has not ended, with its job and what can be read besides."""

    run: Run
    job: Job | Unreadable | None
    evidence: Evidence

    @property
    def name(self) -> str:
        """Return the job's name, else its id."""
        return self.job.name if isinstance(self.job, Job) else self.run.job_id

    @property
    def away(self) -> timedelta:
        """Return how long until it may start; negative once it may."""
        return self.run.available_at - self.evidence.now

    @property
    def idle(self) -> timedelta:
        """Return for how long a worker might have taken it: its row may have been made late."""
        return self.evidence.now - max(self.run.available_at, self.run.created_at)

    @property
    def due(self) -> str:
        """Return who has been due since when."""
        since = stamp(self.evidence.now - self.idle)
        return f"{self.name} has been due since {since}, for {span(abs(self.idle))}"


def starts(run: Run) -> tuple[str, ...]:
    """Return how to start a worker that can run it."""
    options = {"handler": " --app MODULE:APP", "command": " --allow-commands"}
    return (f"dynsched worker --queue {run.queue}{options.get(run.needs.partition(':')[0], '')}",)


def worker_words(session: Session) -> str:
    """Return which process a session is."""
    return f"worker {session.host} (pid {session.pid}, session {session.session})"


def workers_words(serving: Sequence[Session], queue: str) -> str:
    """Return what the living workers of a queue can run."""
    if not serving:
        return ""
    named = "; ".join(_ability(one) for one in serving[:SESSIONS_NAMED])
    more = len(serving) - SESSIONS_NAMED
    rest = f"; and {more:,} more" if more > 0 else ""
    return f"{number(len(serving), 'living worker')} of queue {queue}: {named}{rest}."


def _ability(session: Session) -> str:
    handlers = session.handlers
    if handlers is None:
        knows = "does not list its handlers"
    else:
        shown = ", ".join(handlers[:10]) + (", …" if len(handlers) > 10 else "")
        knows = f"has handlers {shown}" if handlers else "has no handlers"
    commands = ", allows commands" if session.commands else ""
    slots = number(session.slots, "slot")
    return f"{session.host} (pid {session.pid}) with {slots} {knows}{commands}"


def number_of(evidence: Evidence, sessions: Sequence[Session]) -> str:
    """Return how many runs sessions hold, in words."""
    return level_words(evidence.busy(sessions).runs, "run")


def level_words(level: Level, noun: str) -> str:
    """Return a count with its noun; `1,000+` if there may be more."""
    return f"{level} {noun if level.count == 1 and not level.at_least else noun + 's'}"
