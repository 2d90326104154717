"""What can be done to jobs, from every screen that shows some; each after a yes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.instants import from_text
from dynsched.domain.job import Job, JobState
from dynsched.domain.time_words import exact, number
from dynsched.services.documents import job_document
from dynsched_console.ask import AskLine
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import Change, command_line
from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.sheet import Link
from dynsched_console.text import Piece, line
from dynsched_console.themes import Tone

JOB_STATES: dict[JobState, tuple[str, Tone]] = {
    JobState.ACTIVE: ("A", Tone.GOOD),
    JobState.PAUSED: ("P", Tone.WARN),
    JobState.FINISHED: ("F", Tone.MUTED),
    JobState.PARKED: ("K", Tone.BAD),
    JobState.DELETED: ("D", Tone.MUTED),
}


def job_piece(state: JobState) -> Piece:
    """Return a job's state as a letter and a word, in its colour.

    >>> job_piece(JobState.PAUSED).text
    'P paused'
    """
    letter, tone = JOB_STATES[state]
    return Piece(f"{letter} {state.value}", tone)


def job_copies(job: Job, now: datetime) -> list[Copy]:
    """Return what can be copied of a job."""
    return [
        Copy("id", job.job_id),
        Copy("name", job.name),
        Copy("command", command_line("job", "show", job.name, "--tenant", job.tenant)),
        Copy("reason", job.reason),
        Copy("JSON", json.dumps(job_document(job, now), indent=2)),
    ]


def job_change(
    jobs: Sequence[Job], *, verb: str, words: str, command: str, reasoned: bool = False
) -> Change:
    """Return the question whether something shall be done to some jobs.

    Args:
        jobs: at least one.
        verb: what the button says.
        words: the sentence; the braces stand for the jobs.
        command: the command below `dynsched job` that does the same to one of them.
        reasoned: a reason is asked for in any case.
    """
    first = jobs[0]
    tenants = sorted({job.tenant for job in jobs})
    many = f"{number(len(jobs), 'job')} of {', '.join(tenants[:3])}"
    many += ", …" if len(tenants) > 3 else ""
    what = many if len(jobs) > 1 else f"job {first.name} of {first.tenant}"
    note = line(Piece("The command line is that of the first of them.", Tone.MUTED))
    return Change(
        verb=verb,
        sentence=words.format(what),
        count=len(jobs),
        tenants=len(tenants),
        command=("job", command, first.name, "--tenant", first.tenant),
        lines=[note] if len(jobs) > 1 else [],
        reasoned=reasoned,
    )


class JobActions(ConsoleScreen):
    """Pauses, resumes and runs the jobs that `acted_on` names, and asks why for an instant."""

    CHANGES: ClassVar = {
        "pause_job": Action.JOB_PAUSE,
        "resume_job": Action.JOB_RESUME,
        "run_now": Action.JOB_RUN,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P", "pause_job", "pause job", id="jobs.pause"),
        Binding("R", "resume_job", "resume", id="jobs.resume"),
        Binding("n", "run_now", "run now", id="jobs.run-now"),
        Binding("W", "why", "why an instant", show=False, id="jobs.why"),
    ]

    def acted_on(self) -> list[Job]:
        """Return the jobs that a key is about."""
        raise NotImplementedError

    def why_at(self) -> str:
        """Return the instant that is offered first when `W` asks for one."""
        return ""

    @work
    async def action_pause_job(self) -> None:
        """Pause jobs, after a yes with a reason."""
        jobs = [job for job in self.acted_on() if job.state is JobState.ACTIVE]
        if not jobs:
            self.notify("only active jobs can be paused", markup=False)
            return
        change = job_change(
            jobs,
            verb="Pause job" if len(jobs) == 1 else "Pause jobs",
            words="Pause {}? Nothing that is scheduled from now on starts; what was made goes on.",
            command="pause",
            reasoned=True,
        )
        await self.change_each(jobs, change, "paused", self._pause_one)

    @work
    async def action_resume_job(self) -> None:
        """Resume paused jobs, after a yes."""
        jobs = [job for job in self.acted_on() if job.state is JobState.PAUSED]
        if not jobs:
            self.notify("only paused jobs can be resumed", markup=False)
            return
        change = job_change(
            jobs,
            verb="Resume",
            words="Resume {}? What was missed meanwhile is counted as skipped.",
            command="resume",
        )
        await self.change_each(jobs, change, "resumed", self._resume_one)

    @work
    async def action_run_now(self) -> None:
        """Make a manual run of each job, after a yes."""
        jobs = [job for job in self.acted_on() if job.state is not JobState.DELETED]
        if not jobs:
            self.notify("there is no job to run", markup=False)
            return
        change = job_change(
            jobs,
            verb="Run now",
            words="Run {} now? It waits for other runs of its job as it always does.",
            command="run-now",
        )
        await self.change_each(jobs, change, "made runs:", self._run_one)

    def _pause_one(self, job: Job, reason: str) -> Job:
        return self.source.pause_job(job.job_id, reason=reason)

    def _resume_one(self, job: Job, reason: str) -> Job:
        return self.source.resume_job(job.job_id, reason=reason)

    def _run_one(self, job: Job, reason: str) -> object:
        return self.source.run_now(job.job_id, reason=reason)

    @work
    async def action_why(self) -> None:
        """Ask for an instant, and explain what became of it."""
        jobs = self.acted_on()
        if not jobs:
            return
        job = jobs[0]
        text = await self.app.push_screen_wait(
            AskLine(
                f"Which instant of job {job.name}?",
                value=self.why_at(),
                example="2026-03-01T09:00:00Z",
                check=lambda value: from_text(value, "instant"),
            )
        )
        if text is not None:
            self.desk.visit(Link(place="why", subject=f"{job.job_id} {exact(from_text(text))}"))
