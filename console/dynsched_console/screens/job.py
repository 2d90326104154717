"""One job: when it runs and in whose time, what became of its last runs, what it may and does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from dynsched.domain.job import Job
from dynsched.domain.job_words import policies_words, schedule_words
from dynsched.domain.recurrence import Cron
from dynsched.domain.run import Run
from dynsched.domain.time_words import distance, exact, number, stamp, when
from dynsched.services.documents import job_detail_document
from dynsched_console.clipboard import Copy
from dynsched_console.screens.base import SubjectScreen
from dynsched_console.screens.job_actions import JobActions, job_copies, job_piece
from dynsched_console.screens.jobs import outcome_strip
from dynsched_console.screens.run import laid_out
from dynsched_console.screens.runs import took
from dynsched_console.sheet import Link, SheetRow, row
from dynsched_console.source import OUTCOMES_SHOWN, JobScene
from dynsched_console.text import Piece, long, pad, sentence_lines, state_piece, wrapped
from dynsched_console.themes import Tone

LABEL = 15
TARGET_LINES = 20
PAYLOAD_LINES = 40
SPANS_SHOWN = 8


class JobScreen(JobActions, SubjectScreen):
    """One job; its subject is the job's id."""

    name_of_place = "job"

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.answer: JobScene | None = None

    def reader(self) -> Callable[[], JobScene]:
        """Return a call that reads the job with what belongs to it."""
        job_id, source = self.subject, self.source
        return lambda: source.job(job_id)

    def rows(self, answer: JobScene) -> list[SheetRow]:
        """Return where it stands, when it runs, what became of it, then what it is."""
        columns = max(self.size.width - 3, 40)
        found: list[SheetRow] = []
        for part in (_head, _coming, _outcomes, _spans, _does, _audit):
            lines = list(part(answer, columns))
            found += [*lines, SheetRow()] if lines else []
        return found[:-1]

    def acted_on(self) -> list[Job]:
        """Return the job."""
        return [] if self.answer is None else [self.answer.detail.job]

    def why_at(self) -> str:
        """Return the instant of the line under the cursor, else of the newest run."""
        current = self.query_one("#sheet").current  # type: ignore[attr-defined]
        if current is not None and current.key.startswith("at."):
            return str(current.key.removeprefix("at."))
        runs = () if self.answer is None else self.answer.outcomes
        return exact(runs[0].scheduled_for) if runs else ""

    def copies(self) -> list[Copy]:
        """Return what can be copied."""
        if self.answer is None:
            return []
        detail, now = self.answer.detail, self.answer.at
        found = [one for one in job_copies(detail.job, now) if one.name != "JSON"]
        document = json.dumps(job_detail_document(detail, now, {}), indent=2)
        times = "\n".join(map(exact, detail.coming))
        return [
            *found,
            Copy("next times", times),
            Copy("payload", detail.payload or ""),
            Copy("JSON", document),
        ]


def _label(words: str) -> Piece:
    return Piece(pad(words, LABEL), Tone.MUTED)


def _told(words: str, text: str, columns: int, most: int = 3) -> Iterator[SheetRow]:
    for place, part in enumerate(sentence_lines(text, columns - LABEL, most)):
        yield row(_label(words if place == 0 else ""), part)


def _head(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    job = scene.detail.job
    yield row(job_piece(job.state), "  ", Piece(job.name, Tone.STRONG),
              Piece(f"  tenant {job.tenant}", Tone.MUTED))  # fmt: skip
    yield row(_label("job"), job.job_id, Piece("  its runs", Tone.MUTED),
              link=Link(place="runs", filter=f"job:{job.job_id}"), key="runs")  # fmt: skip
    if job.reason:
        yield from _told("reason", job.reason, columns)
    yield from _told("schedule", schedule_words(job.schedule), columns)
    yield from _told("policies", policies_words(job.policies), columns)
    yield row(_label("runs go to"), f"queue {job.queue}, priority {job.priority.value}")
    if job.tags:
        yield from _told("tags", ", ".join(f"{k}={v}" for k, v in job.tags.items()), columns)
    yield row(_label("created"), when(job.created_at, scene.at))


def _coming(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    del columns
    job = scene.detail.job
    if job.schedule is None:
        return
    yield row(Piece("Next times", Tone.STRONG), Piece("  in UTC, and in its zone", Tone.MUTED))
    if not scene.detail.coming:
        yield row(Piece(f"  none: the job is {job.state.value}", Tone.MUTED))
    made = {run.scheduled_for: run.run_id for run in scene.detail.runs}
    for at in scene.detail.coming:
        link = Link(place="why", subject=f"{job.job_id} {exact(at)}")
        if at in made:
            link = Link(place="run", subject=made[at])
        yield row(
            f"  {stamp(at)}  ",
            f"{local_words(at, job):<32}",
            Piece(f"  {distance(at, scene.at)}", Tone.MUTED),
            Piece("  its run is made" if at in made else "", Tone.MUTED),
            link=link,
            key=f"at.{exact(at)}",
        )


def local_words(at: datetime, job: Job) -> str:
    """Return an instant on the wall clock of a job's zone; empty if that is UTC or it has none."""
    schedule = job.schedule
    if not isinstance(schedule, Cron) or schedule.zone == "UTC":
        return ""
    return at.astimezone(ZoneInfo(schedule.zone)).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def _outcomes(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    runs = scene.outcomes
    yield row(Piece("Last runs", Tone.STRONG), Piece("  the newest at the right", Tone.MUTED))
    if not runs:
        yield row(Piece("  it has not run yet", Tone.MUTED))
        return
    yield row("  ", outcome_strip(runs, OUTCOMES_SHOWN), Piece(f"  {_counts(runs)}", Tone.MUTED))
    for run in runs:
        yield row(
            "  ",
            Piece(pad(state_piece(run.state).text, 12), state_piece(run.state).tone),
            f"{stamp(run.scheduled_for)}  {long(took(run, scene.at)):>7}  ",
            Piece(run.error or run.reason, Tone.MUTED),
            link=Link(place="run", subject=run.run_id),
            key=f"run.{run.run_id}",
        )
    del columns


def _counts(runs: tuple[Run, ...]) -> str:
    states = [run.state for run in reversed(runs)]
    return ", ".join(f"{states.count(one)} {one.value}" for one in dict.fromkeys(states))


def _spans(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    del columns
    job = scene.detail.job
    if not job.skipped:
        return
    words = f"  {number(job.skipped, 'occurrence')} that had no start"
    yield row(Piece("Skipped", Tone.STRONG), Piece(words, Tone.MUTED))
    spans = (*scene.detail.older_spans, *job.spans)
    for one in reversed(spans[-SPANS_SHOWN:]):
        until = f" to {stamp(one.last)}" if one.last != one.first else ""
        yield row(
            f"  {one.count:>7,}  ",
            pad(one.reason.value, 16),
            Piece(f"  {stamp(one.first)}{until}", Tone.MUTED),
            link=Link(place="why", subject=f"{job.job_id} {exact(one.first)}"),
            key=f"at.{exact(one.first)}",
        )
    if len(spans) > SPANS_SHOWN:
        yield row(Piece(f"  and {len(spans) - SPANS_SHOWN:,} older spans", Tone.MUTED))


def _does(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    target, payload = scene.detail.target, scene.detail.payload
    yield row(Piece("What it does", Tone.STRONG), Piece("  secrets are masked", Tone.MUTED))
    if target is None:
        yield row(Piece("  its definition is gone", Tone.BAD))
    else:
        yield row(f"  {target.describe()}")
        body = json.dumps(target.to_body(), ensure_ascii=False)
        for one in wrapped(laid_out(body), columns - 4, TARGET_LINES):
            yield row("    ", Piece(one, Tone.MUTED))
    if payload is not None:
        yield row(Piece("  payload", Tone.MUTED))
        for one in wrapped(laid_out(payload), columns - 4, PAYLOAD_LINES):
            yield row("    ", one)


def _audit(scene: JobScene, columns: int) -> Iterator[SheetRow]:
    yield row(Piece("What people did", Tone.STRONG))
    if not scene.audit:
        yield row(Piece("  nothing", Tone.MUTED))
    for one in scene.audit:
        words = " · ".join(filter(None, (one.note, one.reason)))
        yield row(
            f"  {stamp(one.at)}  {pad(one.actor, 20)}  {pad(one.action.value, 12)}  ",
            Piece(pad(one.outcome.value, 8), Tone.MUTED),
            f"  {words}",
        )
    del columns
