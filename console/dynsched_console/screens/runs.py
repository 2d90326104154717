"""The list of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.filters import RUNS
from dynsched.domain.run import Run, RunState
from dynsched.domain.time_words import distance, stamp
from dynsched.services.capacity import why_words
from dynsched.services.run_views import moment
from dynsched.services.search import Found
from dynsched_console.clipboard import Copy
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.screens.run_actions import RunActions, run_copies
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import STATES, Line, Piece, ago, line, long, state_piece
from dynsched_console.themes import Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run with what its row says besides.

    Attributes:
        run: the run.
        job: its job's name, or its id if the job is gone.
        at: when it was read, for ages.
    """

    run: Run
    job: str
    at: datetime


def delay_of(run: Run) -> timedelta | None:
    """Return by how much a run started late; None if it has not started."""
    first = run.first_started_at
    return None if first is None else max(first - run.scheduled_for, timedelta(0))


def took(run: Run, now: datetime) -> timedelta | None:
    """Return how long the last attempt took, or has been running."""
    if run.state is RunState.LEASED:
        return None if run.leased_at is None else max(now - run.leased_at, timedelta(0))
    if run.started_at is None or run.ended_at is None:
        return None
    return max(run.ended_at - run.started_at, timedelta(0))


def when_words(row: RunRow) -> str:
    """Return when a run ended, or may start, or that it runs."""
    run = row.run
    if run.state is RunState.LEASED:
        return "running"
    if run.state is RunState.READY and run.available_at <= row.at:
        return f"due {ago(run.available_at, row.at)}"
    return distance(moment(run), row.at)


def _why(row: RunRow) -> Piece:
    """Return the error of what went wrong, which says more than that the attempts are spent."""
    run = row.run
    if run.state in (RunState.DEAD, RunState.FAILED) and run.error:
        return Piece(run.error)
    return Piece(why_words(run), Tone.MUTED)


COLUMNS: tuple[Column[RunRow], ...] = (
    Column(name="state", letter="s", title="STATE", columns=11,
           cell=lambda row: state_piece(row.run.state),
           sort=lambda row: list(STATES).index(row.run.state)),
    Column(name="job", letter="j", title="JOB", columns=18, cell=lambda row: Piece(row.job)),
    Column(name="tenant", letter="t", title="TENANT", columns=10, rank=2,
           cell=lambda row: Piece(row.run.tenant, Tone.MUTED)),
    Column(name="prio", letter="p", title="PRIO", columns=7, rank=4,
           cell=lambda row: Piece(row.run.priority.value, Tone.MUTED)),
    Column(name="scheduled", letter="c", title="SCHEDULED FOR", columns=20, rank=3,
           cell=lambda row: Piece(stamp(row.run.scheduled_for)),
           sort=lambda row: row.run.scheduled_for),
    Column(name="when", letter="w", title="WHEN", columns=12, right=True, rank=1,
           cell=lambda row: Piece(when_words(row)),
           sort=lambda row: moment(row.run)),
    Column(name="delay", letter="d", title="DELAY", columns=7, right=True, rank=5,
           cell=lambda row: Piece(long(delay_of(row.run)), Tone.MUTED),
           sort=lambda row: delay_of(row.run)),
    Column(name="attempt", letter="a", title="TRY", columns=3, right=True, rank=1,
           cell=lambda row: Piece(str(row.run.attempt + (row.run.state is RunState.LEASED))),
           sort=lambda row: row.run.attempt),
    Column(name="took", letter="l", title="TOOK", columns=7, right=True, rank=4,
           cell=lambda row: Piece(long(took(row.run, row.at)), Tone.MUTED),
           sort=lambda row: took(row.run, row.at)),
    Column(name="why", letter="y", title="WHY", columns=14, stretch=True, rank=1, cell=_why),
    Column(name="queue", letter="q", title="QUEUE", columns=10, wide=True, rank=6,
           cell=lambda row: Piece(row.run.queue, Tone.MUTED)),
    Column(name="worker", letter="k", title="WORKER", columns=18, wide=True, rank=7,
           cell=lambda row: Piece(row.run.session or "", Tone.MUTED)),
    Column(name="group", letter="g", title="GROUP", columns=12, wide=True, rank=7,
           cell=lambda row: Piece(row.run.signature, Tone.MUTED)),
    Column(name="id", letter="i", title="RUN", columns=46, wide=True, rank=8,
           cell=lambda row: Piece(row.run.run_id, Tone.MUTED)),
)  # fmt: skip


class RunsScreen(RunActions, ListScreen[RunRow]):
    """Runs by a filter, the newest first."""

    name_of_place = "runs"
    columns = COLUMNS
    problems = "state:dead,failed"
    vocabulary = RUNS

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[RunRow]:
        """Read one page of runs with the names of their jobs."""
        found = self.source.find_runs(text, limit=limit, cursor=cursor)
        names: Mapping[str, str] = self.source.job_names([run.job_id for run in found.items])
        now = self.source.now()
        rows = tuple(
            RunRow(run=run, job=names.get(run.job_id, run.job_id), at=now) for run in found.items
        )
        return mapped(found, rows)

    def key(self, item: RunRow) -> str:
        """Return the run's id."""
        return item.run.run_id

    def open_item(self, item: RunRow) -> None:
        """Open the run."""
        self.desk.visit(Link(place="run", subject=item.run.run_id))

    def empty(self) -> str:
        """Return what to say where there is no run."""
        if not self.filter:
            return "no run is waiting, running or ended in the last hour"
        if self.filter == "state:dead":
            return "nothing is dead"
        return "no run fits this filter (/ changes it)"

    def detail(self, item: RunRow) -> list[Line]:
        """Return the run in a few lines."""
        run = item.run
        return [
            line(state_piece(run.state), f"  {item.job}", Piece(f"  {run.run_id}", Tone.MUTED)),
            line(Piece("scheduled  ", Tone.MUTED), stamp(run.scheduled_for)),
            line(Piece("attempt    ", Tone.MUTED), f"{run.attempt} ({run.spent} of {run.limit})"),
            line(Piece("why        ", Tone.MUTED), why_words(run) or "–"),
        ]

    def copies_of(self, item: RunRow) -> list[Copy]:
        """Return what can be copied of a run."""
        return run_copies(item.run)

    def acted_on(self) -> list[Run]:
        """Return the marked runs, or the one under the cursor."""
        return [row.run for row in self.chosen_items()]
