"""The list of replay batches, and the entries of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.batch import Batch
from dynsched.domain.batch_entry import Outcome
from dynsched.services.batch_views import BatchEntry
from dynsched.services.search import Found
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import command_line
from dynsched_console.screens.batch_rows import (
    batch_state_piece,
    part_done,
    progress_pieces,
)
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.screens.run_actions import run_copies
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import Line, Piece, ago, line, short_error, state_piece
from dynsched_console.themes import Tone

BAR = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """A batch, and when it was read."""

    batch: Batch
    at: datetime


def _bar(row: BatchRow) -> Piece:
    if row.batch.confirmed_at is None:
        return Piece("")
    return Piece("".join(piece.text for piece in progress_pieces(row.batch, BAR)), Tone.BUSY)


def _count(count: int, tone: Tone) -> Piece:
    return Piece(f"{count:,}", tone if count else Tone.MUTED)


BATCH_COLUMNS: tuple[Column[BatchRow], ...] = (
    Column(name="state", letter="s", title="STATE", columns=10,
           cell=lambda row: batch_state_piece(row.batch.state)),
    Column(name="made", letter="m", title="MADE", columns=7, right=True,
           cell=lambda row: Piece(ago(row.batch.created_at, row.at)),
           sort=lambda row: row.batch.created_at),
    Column(name="planned", letter="p", title="RUNS", columns=7, right=True,
           cell=lambda row: Piece(f"{row.batch.planned:,}"),
           sort=lambda row: row.batch.planned),
    Column(name="progress", letter="g", title="", columns=BAR, rank=3, cell=_bar,
           sort=lambda row: row.batch.left),
    Column(name="done", letter="d", title="DONE", columns=4, right=True, rank=1,
           cell=lambda row: Piece("" if row.batch.confirmed_at is None else part_done(row.batch)),
           sort=lambda row: row.batch.left),
    Column(name="moved", letter="v", title="MOVED", columns=7, right=True, rank=1,
           cell=lambda row: _count(row.batch.moved, Tone.GOOD),
           sort=lambda row: row.batch.moved),
    Column(name="skipped", letter="k", title="SKIPPED", columns=7, right=True, rank=4,
           cell=lambda row: _count(sum(row.batch.skipped.values()), Tone.WARN),
           sort=lambda row: sum(row.batch.skipped.values())),
    Column(name="failed", letter="f", title="FAILED", columns=6, right=True, rank=4,
           cell=lambda row: _count(row.batch.failed, Tone.BAD),
           sort=lambda row: row.batch.failed),
    Column(name="by", letter="b", title="BY", columns=12, rank=2,
           cell=lambda row: Piece(row.batch.confirmed_by or row.batch.actor, Tone.MUTED)),
    Column(name="why", letter="y", title="WHY", columns=14, stretch=True,
           cell=lambda row: Piece(row.batch.reason or row.batch.filter or "all that is dead")),
    Column(name="id", letter="i", title="BATCH", columns=20, wide=True, rank=6,
           cell=lambda row: Piece(row.batch.batch_id, Tone.MUTED)),
)  # fmt: skip


class ReplaysScreen(ListScreen[BatchRow]):
    """Replay batches, the newest first."""

    name_of_place = "replays"
    columns = BATCH_COLUMNS
    filtered = False

    def title_words(self) -> str:
        """Return what the list holds."""
        return "Replay batches, the newest first"

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[BatchRow]:
        """Read one page of batches."""
        del text
        found = self.source.batches(limit=limit, cursor=cursor)
        now = self.source.now()
        return mapped(found, tuple(BatchRow(batch=one, at=now) for one in found.items))

    def key(self, item: BatchRow) -> str:
        """Return the batch's id."""
        return item.batch.batch_id

    def open_item(self, item: BatchRow) -> None:
        """Open the batch, or its preview."""
        self.desk.visit(Link(place="batch", subject=item.batch.batch_id))

    def empty(self) -> str:
        """Return what to say where there is no batch."""
        return "nothing was replayed in batches yet; r in the DLQ (3) previews one"

    def detail(self, item: BatchRow) -> list[Line]:
        """Return the batch in a few lines."""
        batch = item.batch
        return [
            line(batch_state_piece(batch.state), f"  {batch.why}"),
            line(Piece("batch    ", Tone.MUTED), batch.batch_id),
            line(Piece("filter   ", Tone.MUTED), batch.filter or "all that is dead"),
            line(Piece("reason   ", Tone.MUTED), batch.reason or "–"),
        ]

    def copies_of(self, item: BatchRow) -> list[Copy]:
        """Return what can be copied of a batch."""
        return [
            Copy("id", item.batch.batch_id),
            Copy("command", command_line("replay", "status", item.batch.batch_id)),
            Copy("filter", item.batch.filter),
            Copy("reason", item.batch.reason),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """An entry with its job's name, and when it was read."""

    entry: BatchEntry
    job: str
    at: datetime


OUTCOMES = {
    Outcome.LEFT: ("·", Tone.MUTED),
    Outcome.MOVED: ("m", Tone.GOOD),
    Outcome.SKIPPED: ("s", Tone.WARN),
    Outcome.FAILED: ("f", Tone.BAD),
}


def _outcome(row: EntryRow) -> Piece:
    letter, tone = OUTCOMES[row.entry.outcome]
    return Piece(f"{letter} {row.entry.outcome.value}", tone)


def _now(row: EntryRow) -> Piece:
    run = row.entry.run
    return Piece("– gone", Tone.MUTED) if run is None else state_piece(run.state)


def _why(row: EntryRow) -> Piece:
    run = row.entry.run
    return Piece(row.entry.why or ("" if run is None else short_error(run.error)))


ENTRY_COLUMNS: tuple[Column[EntryRow], ...] = (
    Column(name="outcome", letter="o", title="OUTCOME", columns=9, cell=_outcome),
    Column(name="now", letter="n", title="STATE NOW", columns=11, cell=_now),
    Column(name="job", letter="j", title="JOB", columns=16, rank=1,
           cell=lambda row: Piece(row.job)),
    Column(name="tenant", letter="t", title="TENANT", columns=10, rank=2,
           cell=lambda row: Piece("" if row.entry.run is None else row.entry.run.tenant,
                                  Tone.MUTED)),
    Column(name="died", letter="d", title="HAD DIED", columns=8, right=True, rank=2,
           cell=lambda row: Piece(ago(row.entry.died_at, row.at), Tone.MUTED),
           sort=lambda row: row.entry.died_at),
    Column(name="why", letter="y", title="WHY", columns=16, stretch=True, cell=_why),
    Column(name="id", letter="i", title="RUN", columns=46, rank=5,
           cell=lambda row: Piece(row.entry.run_id, Tone.MUTED)),
)  # fmt: skip


class EntriesScreen(ListScreen[EntryRow]):
    """The entries of a batch in the order of their moving.

    Args:
        subject: the batch's id, and perhaps an outcome behind a blank.
    """

    name_of_place = "entries"
    columns = ENTRY_COLUMNS
    filtered = False

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject
        self.batch_id, _, outcome = subject.partition(" ")
        self.outcome = Outcome(outcome) if outcome else None

    def title_words(self) -> str:
        """Return whose entries they are, and which."""
        which = "" if self.outcome is None else f" that are {self.outcome.value}"
        return f"Entries{which} of batch {self.batch_id}"

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[EntryRow]:
        """Read one page of entries with the names of their jobs."""
        del text
        found = self.source.batch_entries(self.batch_id, self.outcome, limit=limit, cursor=cursor)
        runs = [one.run for one in found.items if one.run is not None]
        names = self.source.job_names([run.job_id for run in runs])
        now = self.source.now()
        return mapped(found, tuple(
            EntryRow(entry=one, job="" if one.run is None
                     else names.get(one.run.job_id, one.run.job_id), at=now)
            for one in found.items
        ))  # fmt: skip

    def key(self, item: EntryRow) -> str:
        """Return the run's id."""
        return item.entry.run_id

    def open_item(self, item: EntryRow) -> None:
        """Open the run."""
        self.desk.visit(Link(place="run", subject=item.entry.run_id))

    def empty(self) -> str:
        """Return what to say where there is no entry."""
        return "no entry has this outcome"

    def copies_of(self, item: EntryRow) -> list[Copy]:
        """Return what can be copied of an entry."""
        run = item.entry.run
        return [Copy("id", item.entry.run_id)] if run is None else run_copies(run)
