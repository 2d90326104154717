"""The list of jobs, each with its next time and a strip of what became of its last runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from textual import work

from dynsched.domain.filters import JOBS
from dynsched.domain.instants import within
from dynsched.domain.job import Job
from dynsched.domain.job_words import schedule_words
from dynsched.domain.run import Run, RunState
from dynsched.domain.time_words import exact, span, when
from dynsched.services.job_views import coming
from dynsched.services.search import Found
from dynsched_console.charts import strip
from dynsched_console.clipboard import Copy
from dynsched_console.screens.job_actions import JOB_STATES, JobActions, job_copies, job_piece
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import STATES, Line, Piece, line
from dynsched_console.themes import Tone

OUTCOMES = 10  # letters of a strip
OUTCOMES_AGE = timedelta(seconds=10)  # younger ones are not read again
ROWS_MAX = 60  # jobs whose outcomes are read together


@dataclass(frozen=True, slots=True)
class Kept:
    """What is worked out of a job once, until it changes or the instant has passed."""

    version: int
    schedule: str
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The newest runs of a job, newest first, and when they were read."""

    runs: tuple[Run, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job with what its row says besides.

    Attributes:
        job: the job.
        kept: its schedule in words and its next instant.
        outcomes: what is known of all jobs' last runs; it grows.
        at: when it was read, for ages.
    """

    job: Job
    kept: Kept
    outcomes: Mapping[str, Outcomes]
    at: datetime


def outcome_strip(runs: tuple[Run, ...], columns: int) -> Piece:
    """Return a letter for each of the newest runs, the newest at the right.

    The colour is that of the newest run that has ended.
    """
    letters = [STATES[run.state][0] for run in reversed(runs)]
    ended = next((run for run in runs if run.terminal), None)
    tone = Tone.MUTED if ended is None else STATES[ended.state][1]
    return Piece(strip(letters, columns), tone)


def _strip(row: JobRow) -> Piece:
    known = row.outcomes.get(row.job.job_id)
    if known is None:
        return Piece("…", Tone.MUTED)
    return outcome_strip(known.runs, OUTCOMES) if known.runs else Piece("none", Tone.MUTED)


def _deaths(row: JobRow) -> int | None:
    known = row.outcomes.get(row.job.job_id)
    if known is None:
        return None
    return sum(run.state in (RunState.DEAD, RunState.FAILED) for run in known.runs)


def _next(row: JobRow) -> Piece:
    if row.kept.next_at is None:
        return Piece("–", Tone.MUTED)
    return Piece(span(max(row.kept.next_at - row.at, timedelta(0))))


def _tags(row: JobRow) -> Piece:
    return Piece(" ".join(f"{key}={value}" for key, value in row.job.tags.items()), Tone.MUTED)


def _what(row: JobRow) -> Piece:
    job = row.job
    return Piece(job.needs if job.target is None else job.target.describe(), Tone.MUTED)


COLUMNS: tuple[Column[JobRow], ...] = (
    Column(name="state", letter="s", title="STATE", columns=10,
           cell=lambda row: job_piece(row.job.state),
           sort=lambda row: list(JOB_STATES).index(row.job.state)),
    Column(name="name", letter="n", title="NAME", columns=18,
           cell=lambda row: Piece(row.job.name)),
    Column(name="tenant", letter="t", title="TENANT", columns=10, rank=3,
           cell=lambda row: Piece(row.job.tenant, Tone.MUTED)),
    Column(name="next", letter="x", title="NEXT IN", columns=8, right=True, cell=_next,
           sort=lambda row: row.kept.next_at),
    Column(name="last", letter="l", title="LAST", columns=OUTCOMES, right=True, cell=_strip,
           sort=_deaths),
    Column(name="schedule", letter="c", title="SCHEDULE", columns=12, stretch=True, rank=1,
           cell=lambda row: Piece(row.kept.schedule, Tone.MUTED)),
    Column(name="queue", letter="q", title="QUEUE", columns=10, rank=5,
           cell=lambda row: Piece(row.job.queue, Tone.MUTED)),
    Column(name="skipped", letter="k", title="SKIPPED", columns=7, right=True, rank=6,
           cell=lambda row: Piece(f"{row.job.skipped:,}" if row.job.skipped else "", Tone.MUTED),
           sort=lambda row: row.job.skipped),
    Column(name="prio", letter="p", title="PRIO", columns=7, wide=True, rank=6,
           cell=lambda row: Piece(row.job.priority.value, Tone.MUTED)),
    Column(name="tags", letter="g", title="TAGS", columns=24, wide=True, rank=7, cell=_tags),
    Column(name="what", letter="w", title="WHAT", columns=40, wide=True, rank=7, cell=_what),
    Column(name="id", letter="i", title="JOB", columns=13, wide=True, rank=8,
           cell=lambda row: Piece(row.job.job_id, Tone.MUTED)),
)  # fmt: skip


class JobsScreen(JobActions, ListScreen[JobRow]):
    """Jobs by a filter, in the order of tenant and name."""

    name_of_place = "jobs"
    columns = COLUMNS
    problems = "state:paused,parked"
    vocabulary = JOBS

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Kept] = {}
        self._outcomes: dict[str, Outcomes] = {}
        self._asking = False

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[JobRow]:
        """Read one page of jobs with their next instants."""
        found = self.source.find_jobs(text, limit=limit, cursor=cursor)
        now = self.source.now()
        rows = tuple(
            JobRow(job=job, kept=self._of(job, now), outcomes=self._outcomes, at=now)
            for job in found.items
        )
        return mapped(found, rows)

    def _of(self, job: Job, now: datetime) -> Kept:
        kept = self._kept.get(job.job_id)
        over = kept is None or (kept.next_at is not None and kept.next_at <= now)
        if kept is None or over or kept.version != job.version:
            ahead = coming(job, now, 1)
            kept = Kept(
                job.version,
                schedule_words(job.schedule, short=True),
                ahead[0] if ahead else None,
            )
            self._kept[job.job_id] = kept
        return kept

    def show(self) -> None:
        """Show the jobs, and read what became of the runs of those that are seen."""
        super().show()
        self._want_outcomes()

    def on_row_table_moved(self) -> None:
        """Other rows may be seen now."""
        super().on_row_table_moved()
        self._want_outcomes()

    def _want_outcomes(self) -> None:
        if self._asking or not self.usable:
            return
        first, last = self.table.seen_rows()
        now = self.source.now()
        wanted = [
            key
            for key in list(self.table.items())[first : last + 1]
            if key not in self._outcomes or not within(now, self._outcomes[key].at, OUTCOMES_AGE)
        ][:ROWS_MAX]
        if wanted:
            self._asking = True
            self._read_outcomes(wanted)

    @work(group="read", exit_on_error=False)
    async def _read_outcomes(self, job_ids: list[str]) -> None:
        try:
            found = await self.source.ask(lambda: self.source.outcomes(job_ids, each=OUTCOMES))
        except Exception:  # noqa: BLE001 - the list itself fails louder; the next refresh tries again
            return
        finally:
            self._asking = False
        now = self.source.now()
        self._outcomes |= {key: Outcomes(runs, now) for key, runs in found.items()}
        if self.usable:
            self.show()

    def key(self, item: JobRow) -> str:
        """Return the job's id."""
        return item.job.job_id

    def open_item(self, item: JobRow) -> None:
        """Open the job."""
        self.desk.visit(Link(place="job", subject=item.job.job_id))

    def empty(self) -> str:
        """Return what to say where there is no job."""
        if not self.filter:
            return "there is no job yet (`dynsched job add --help` shows how to make one)"
        if self.filter == self.problems:
            return "no job is paused or parked"
        return "no job fits this filter (/ changes it)"

    def detail(self, item: JobRow) -> list[Line]:
        """Return the job in a few lines."""
        job, kept = item.job, item.kept
        next_at = "–" if kept.next_at is None else when(kept.next_at, item.at)
        reason = [line(Piece("reason     ", Tone.MUTED), job.reason)] if job.reason else []
        return [
            line(job_piece(job.state), f"  {job.name}", Piece(f"  {job.job_id}", Tone.MUTED)),
            *reason,
            line(Piece("schedule   ", Tone.MUTED), kept.schedule),
            line(Piece("next       ", Tone.MUTED), next_at),
            line(Piece("does       ", Tone.MUTED), _what(item).text),
            line(Piece("tags       ", Tone.MUTED), _tags(item).text or "–"),
        ]

    def copies_of(self, item: JobRow) -> list[Copy]:
        """Return what can be copied of a job."""
        return job_copies(item.job, item.at)

    def acted_on(self) -> list[Job]:
        """Return the marked jobs, or the one under the cursor."""
        return [row.job for row in self.chosen_items()]

    def why_at(self) -> str:
        """Return the instant of the newest run under the cursor's job."""
        row = self.table.current
        known = None if row is None else self._outcomes.get(row.job.job_id)
        return exact(known.runs[0].scheduled_for) if known and known.runs else ""
