"""Batch entries: one dead run each, the mark of what became of it, and what happened since.

An entry is one death of a run and no other. Its mark is one letter, and the marks of a batch are
its checkpoint: every count can be taken again from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dynsched.domain.job import Job, JobState, Priority
from dynsched.domain.run import Run, RunState


class Mark(StrEnum):
    """What became of one entry: one letter in the checkpoint."""

    LEFT = "."
    MOVED = "m"
    FAILED = "f"
    GONE = "g"
    DISCARDED = "d"
    REPLAYED = "r"
    DIED_AGAIN = "a"
    NO_JOB = "j"
    HELD = "h"
    PULLED_BACK = "p"


SKIPS: Mapping[Mark, str] = {
    Mark.GONE: "gone: its retention is over",
    Mark.DISCARDED: "discarded",
    Mark.REPLAYED: "not dead any more: replayed by somebody else",
    Mark.DIED_AGAIN: "replayed by somebody else, and dead again",
    Mark.NO_JOB: "its job is deleted",
    Mark.HELD: "its job is paused with hold",
    Mark.PULLED_BACK: "pulled back",
}
"""Why an entry was not moved, in words."""


class Outcome(StrEnum):
    """The kinds of marks that people ask for."""

    LEFT = "left"
    MOVED = "moved"
    SKIPPED = "skipped"
    FAILED = "failed"


def outcome_of(mark: Mark) -> Outcome:
    """Return the kind of a mark.

    >>> outcome_of(Mark.GONE).value
    'skipped'
    """
    plain = {Mark.LEFT: Outcome.LEFT, Mark.MOVED: Outcome.MOVED, Mark.FAILED: Outcome.FAILED}
    return plain.get(mark, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A dead run as it was when the batch was previewed: this death of it, and no other.

    Attributes:
        died_at: when it had ended.
        attempt: its attempts then.
        fence: its fence then.
        priority: its priority then, for a pull back.
    """

    run_id: str
    died_at: datetime
    attempt: int
    fence: int
    priority: Priority


def entry_of(run: Run) -> Entry:
    """Return a dead run as an entry."""
    assert run.ended_at is not None
    return Entry(
        run_id=run.run_id,
        died_at=run.ended_at,
        attempt=run.attempt,
        fence=run.fence,
        priority=run.priority,
    )


def judge(entry: Entry, run: Run | None, job: Job | None, *, batch_id: str) -> Mark:
    """Return what becomes of an entry; `LEFT` means that it may be moved.

    Args:
        entry: as it was frozen.
        run: as it is stored now; None if it is gone.
        job: its job as it is stored now; None if it is gone.
        batch_id: who asks: a run that this batch has moved is moved, whatever it is now.
    """
    if run is None:
        return Mark.GONE
    if run.batch == batch_id:
        return Mark.MOVED
    if run.state is not RunState.DEAD:
        return Mark.REPLAYED
    if not same_death(entry, run):
        return Mark.DIED_AGAIN
    return Mark.DISCARDED if run.hidden else _judge_job(job)


def _judge_job(job: Job | None) -> Mark:
    if job is None or job.state is JobState.DELETED:
        return Mark.NO_JOB
    return Mark.HELD if held(job) else Mark.LEFT


def same_death(entry: Entry, run: Run) -> bool:
    """Return whether a dead run died as the entry says, and has not been tried since."""
    return (run.ended_at, run.attempt) == (entry.died_at, entry.attempt)


def held(job: Job) -> bool:
    """Return whether runs of a job would only wait: it is paused with hold."""
    return job.state is JobState.PAUSED and job.policies.hold


def merged(old: str, new: Mark) -> str:
    """Return the letter of an entry that two steppers judged: who moved it knows best.

    >>> merged("j", Mark.MOVED), merged("m", Mark.REPLAYED), merged("p", Mark.MOVED)
    ('m', 'm', 'p')
    """
    if old == Mark.LEFT.value or new is Mark.PULLED_BACK:
        return new.value
    if new is Mark.MOVED and old != Mark.PULLED_BACK.value:
        return new.value
    return old


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of runs that a batch moved.

    Attributes:
        done: ended otherwise than dead.
        dead: dead again.
        open: have not ended.
    """

    done: int = 0
    dead: int = 0
    open: int = 0

    @property
    def ended(self) -> int:
        """Return how many have ended."""
        return self.done + self.dead


def fate_of(run: Run | None, batch_id: str) -> str:
    """Return `open`, `dead` or `done`: what became of a run since a batch has moved it.

    One that another batch moved since, or people replayed, must have died in between.
    """
    if run is None:
        return "done"
    if run.batch != batch_id or run.state is RunState.DEAD:
        return "dead"
    return "done" if run.terminal else "open"


def fates(runs: Iterable[str]) -> Fates:
    """Count fates."""
    found = Counter(runs)
    return Fates(found["done"], found["dead"], found["open"])
