"""Batch moves: entries of a replay batch to ready, and back again, by guarded writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from dynsched.domain import lifecycle
from dynsched.domain.batch import Batch
from dynsched.domain.batch_entry import (
    Entry,
    Mark,
    judge,
    same_death,
)
from dynsched.domain.instants import Clock
from dynsched.domain.job import Job
from dynsched.domain.lifecycle import Transition
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.services.replay_notes import note_by_batch
from dynsched.storage.jobs import Unreadable
from dynsched.storage.runs import PULLED_BACK, REPLAYED, Damaged, RunApplied
from dynsched.storage.store import Store

TRIES = 5  # on rows that others change at the same time

Stored = Run | Damaged | None
Jobs = Mapping[str, Job | Unreadable | None]


class EntryMover:
    """Moves entries; each call can be repeated, and knows what was moved before."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def move(self, batch: Batch, entries: Sequence[Entry]) -> list[Mark]:
        """Move what may be moved; return a mark for each entry.

        Cost: 1 read unit for each run and each job; 3 write units for each run that is moved (its
        row and two index entries) and 1 for the note among its attempts.
        """
        runs = self._read(entries)
        jobs = self._store.jobs.read_many(
            list(dict.fromkeys(run.job_id for run in runs if isinstance(run, Run)))
        )
        now = self._clock.now()
        marks = [Mark.LEFT] * len(entries)
        for _ in range(TRIES):
            moves: dict[int, Transition] = {}
            for place, entry in enumerate(entries):
                if marks[place] is Mark.LEFT:
                    marks[place], move = _judged(entry, runs[place], jobs, batch, now)
                    moves |= {} if move is None else {place: move}
            if not moves:
                break
            self._apply(moves, runs, marks, Mark.MOVED)
        self._note(batch, entries, runs, marks, Mark.MOVED)
        return marks

    def recognise(self, batch: Batch, entries: Sequence[Entry]) -> list[Mark]:
        """Mark what was moved before, by a stepper that died before it wrote its marks."""
        runs = self._read(entries)
        marks = [
            Mark.MOVED if isinstance(run, Run) and run.batch == batch.batch_id else Mark.LEFT
            for run in runs
        ]
        self._note(batch, entries, runs, marks, Mark.MOVED)
        return marks

    def pull_back(self, batch: Batch, entries: Sequence[Entry]) -> list[Mark]:
        """Make moved runs dead again that nobody has tried; return a mark for each entry.

        Cost: 1 read unit for each run; 3 write units for each that is pulled back, 1 for its note.
        """
        runs = self._read(entries)
        marks = [Mark.MOVED] * len(entries)
        now = self._clock.now()
        for _ in range(TRIES):
            moves: dict[int, Transition] = {}
            for place, entry in enumerate(entries):
                run = runs[place]
                if marks[place] is Mark.PULLED_BACK or not isinstance(run, Run):
                    continue
                if run.state is RunState.DEAD and same_death(entry, run) and not run.batch:
                    marks[place] = Mark.PULLED_BACK
                elif _untried(entry, run, batch):
                    moves[place] = lifecycle.pull_back(
                        run, now=now, ended_at=entry.died_at, priority=entry.priority
                    )
            if not moves:
                break
            self._apply(moves, runs, marks, Mark.PULLED_BACK)
        self._note(batch, entries, runs, marks, Mark.PULLED_BACK)
        return marks

    def _read(self, entries: Sequence[Entry]) -> list[Stored]:
        return self._store.runs.look_up([parse_run_id(entry.run_id) for entry in entries])

    def _apply(
        self, moves: Mapping[int, Transition], runs: list[Stored], marks: list[Mark], done: Mark
    ) -> None:
        """Write moves; a row that somebody else changed first is left as it is now."""
        outcomes = self._store.runs.apply_many(list(moves.values()), durable=True)
        for place, outcome in zip(moves, outcomes, strict=True):
            if isinstance(outcome, RunApplied):
                runs[place], marks[place] = outcome.run, done
            else:
                runs[place] = outcome.current

    def _note(
        self,
        batch: Batch,
        entries: Sequence[Entry],
        runs: Sequence[Stored],
        marks: Sequence[Mark],
        done: Mark,
    ) -> None:
        now = self._clock.now()
        outcome = REPLAYED if done is Mark.MOVED else PULLED_BACK
        self._store.runs.note_attempts(
            note_by_batch(entry, run, batch, now=now, outcome=outcome)
            for entry, run, mark in zip(entries, runs, marks, strict=True)
            if mark is done and isinstance(run, Run)
        )


def _judged(
    entry: Entry, run: Stored, jobs: Jobs, batch: Batch, now: datetime
) -> tuple[Mark, Transition | None]:
    """Return an entry's mark, and the move if it is to be moved."""
    job = jobs.get(run.job_id) if isinstance(run, Run) else None
    if isinstance(run, Damaged) or isinstance(job, Unreadable):
        return Mark.FAILED, None
    mark = judge(entry, run, job, batch_id=batch.batch_id)
    if mark is not Mark.LEFT:
        return mark, None
    assert run is not None
    assert job is not None
    move = lifecycle.replay(
        run,
        now=now,
        max_attempts=job.policies.retry.max_attempts,
        batch=batch.batch_id,
        priority=batch.priority,
    )
    return Mark.LEFT, move


def _untried(entry: Entry, run: Run, batch: Batch) -> bool:
    """Return whether a run waits as the batch has moved it, and nobody has tried it since."""
    return (
        run.batch == batch.batch_id
        and run.state is RunState.READY
        and run.attempt == entry.attempt
        and not run.cancel_requested
    )
