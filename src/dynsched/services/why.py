"""Why: explains any run and any instant of a job, from what the store holds and no guess.

An explanation reads a bounded number of rows, see `dynsched.services.why_evidence.Evidence`, and
says how many it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dynsched.domain.audit import AuditOutcome
from dynsched.domain.explanation import Cause, Explanation, Finding
from dynsched.domain.instants import minute_start, to_utc
from dynsched.domain.job import Job
from dynsched.domain.lease_words import session_words
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.run import Run, RunKey, RunKind, RunState, parse_run_id
from dynsched.domain.time_words import exact, span, stamp
from dynsched.domain.why_ended import PATIENCE, lateness, why_ended
from dynsched.domain.why_instant import Rowless, why_no_row
from dynsched.errors import NotFound
from dynsched.services.job_views import JobViews
from dynsched.services.why_case import Case
from dynsched.services.why_evidence import ATTEMPTS_MAX, Evidence
from dynsched.services.why_running import why_running
from dynsched.services.why_waiting import why_waiting
from dynsched.settings import Settings
from dynsched.storage.jobs import Unreadable
from dynsched.storage.runs import Attempt

__all__ = ["Cause", "Explanation", "WhyViews"]

EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(seconds=1)
"""The first instant which has one before it, and some room."""
CLOSING = Settings().close_after
"""How long after its end a minute may still be served: the services' default."""
MESSAGE_LENGTH = 200  # characters of an attempt's error that the timeline repeats
KINDS = {RunKind.CRON: "run", RunKind.MANUAL: "manual run", RunKind.BACKFILL: "backfill run"}


class WhyViews(JobViews):
    """Explains runs and instants; only reading."""

    def why_run(self, run_id: str) -> Explanation:
        """Explain where a run is and why.

        A scheduled run that has no row is explained as the instant that it would be.

        Raises:
            InvalidInput: the text is no run id.
            NotFound: there is no such run, and no job that it could be an instant of.
        """
        key = parse_run_id(run_id)
        evidence = Evidence(self._store, self._clock.now(), self.masker)
        job = evidence.job(key.job_id)
        run = evidence.run(key)
        if run is not None:
            return _of_run(evidence, run, job)
        if key.kind is RunKind.CRON and job is not None:
            return self._rowless(evidence, job, key.scheduled_for)
        raise NotFound("run", run_id, "it never was, or its retention is over")

    def why_instant(self, job: str, at: datetime, tenant: str | None = "default") -> Explanation:
        """Explain what became of an instant of a job, or what is to become of it.

        Args:
            job: its name in the tenant, or its id; by that also one that was deleted.
            at: the instant, with any offset; one to the second means the occurrence in it.
            tenant: whose job it is; with None that of the only tenant which has such a job.

        Raises:
            InvalidInput: the instant has no offset.
            NotFound: there is no such job.
        """
        at = to_utc(at, "instant")
        evidence = Evidence(self._store, self._clock.now(), self.masker)
        # The job before the row: a row is made before the pointer passes its instant.
        found = evidence.job_named(job, tenant or "default") or self.find_job_of_any(
            job, tenant, deleted=True
        )
        run = evidence.run(RunKey(found.job_id, at, RunKind.CRON))
        if run is None and at != (named := _named_within(found, at)):
            at, run = named, evidence.run(RunKey(found.job_id, named, RunKind.CRON))
        if run is None:
            return self._rowless(evidence, found, at)
        explained = _of_run(evidence, run, found)
        late = lateness(run)
        if late > PATIENCE and explained.cause is not Cause.DONE_LATE:
            return _extended(explained, f"It was first started {span(late)} after its instant.")
        return explained

    def _rowless(self, evidence: Evidence, job: Job | Unreadable, at: datetime) -> Explanation:
        """Explain an instant that has no row."""
        if isinstance(job, Unreadable):
            return _of_damage(evidence, job, at)
        case = self._case(evidence, job, at)
        if why_no_row(case).cause is Cause.LOST:
            # A dispatcher may have served the job between two of the reads: an alarm is read twice.
            run = evidence.run(RunKey(job.job_id, at, RunKind.CRON))
            if run is not None:
                return _of_run(evidence, run, job)
            current = evidence.job(job.job_id)
            case = self._case(evidence, current if isinstance(current, Job) else job, at)
        return _explanation(
            evidence,
            why_no_row(case),
            subject=f"instant {exact(at)} of job {job.name}, tenant {job.tenant}",
            job_id=job.job_id,
            timeline=[(at, "the instant"), *_of_job(case), *_deeds(evidence, f"job:{job.job_id}")],
        )

    def _case(self, evidence: Evidence, job: Job, at: datetime) -> Rowless:
        """Read what there is to know about an instant without a row."""
        cursor = evidence.cursor("due", job.job_id, job.next_at or at)
        return Rowless(
            job=job,
            at=at,
            now=evidence.now,
            generations=evidence.generations(job),
            old_span=evidence.old_span(job, at),
            look_ahead=self._store.topology.look_ahead,
            closing=CLOSING,
            cursor_at=None if cursor is None else minute_start(cursor.minute),
            owner="" if cursor is None else cursor.owner,
            owned_until=None if cursor is None else cursor.owned_until,
        )


def _of_damage(evidence: Evidence, job: Unreadable, at: datetime) -> Explanation:
    """Explain an instant of a job whose row cannot be read."""
    found = Finding(
        cause=Cause.CANNOT_TELL,
        headline=(
            f"Cannot tell whether job {job.job_id} has an instant {exact(at)}: the job's row is"
            f" damaged ({job.problem})."
        ),
        sentences=("There is no row for the instant; the job's row was looked at.",),
    )
    return _explanation(
        evidence,
        found,
        subject=f"instant {exact(at)} of job {job.job_id}",
        job_id=job.job_id,
        timeline=[(at, "the instant")],
    )


def _finding(evidence: Evidence, run: Run, job: Job | Unreadable | None) -> Finding:
    """Return why a run is where it is, by its state."""
    if run.terminal:
        return why_ended(run, job if isinstance(job, Job) else None)
    case = Case(run, job, evidence)
    return why_running(case) if run.state is RunState.LEASED else why_waiting(case)


def _of_run(evidence: Evidence, run: Run, job: Job | Unreadable | None) -> Explanation:
    """Explain a run that has a row.

    What stands in its way was read after it: if it has moved meanwhile, it is explained again.
    """
    found = _finding(evidence, run, job)
    current = run if run.terminal else evidence.run(run.key)
    if current is not None and current.version != run.version:
        evidence, run = evidence.afresh(), current
        found = _finding(evidence, run, job)
    known = job if isinstance(job, Job) else None
    attempts = evidence.attempts(run.run_id)
    if len(attempts) == ATTEMPTS_MAX:
        found = found.adding(f"Only its newest {ATTEMPTS_MAX} attempts were looked at.")
    whose = run.job_id if known is None else known.name
    return _explanation(
        evidence,
        found,
        subject=f"{KINDS[run.key.kind]} {run.run_id} of job {whose}, tenant {run.tenant}",
        job_id=run.job_id,
        timeline=[
            *_timeline(run, attempts, evidence.now),
            *_deeds(evidence, f"run:{run.run_id}"),
        ],
        run_id=run.run_id,
    )


def _explanation(
    evidence: Evidence,
    found: Finding,
    *,
    subject: str,
    job_id: str,
    timeline: list[tuple[datetime, str]],
    run_id: str | None = None,
) -> Explanation:
    return Explanation(
        subject=subject,
        at=evidence.now,
        headline=found.headline,
        cause=found.cause,
        sentences=found.sentences,
        timeline=tuple(sorted(timeline, key=lambda item: item[0])),
        hints=found.hints,
        run_id=run_id,
        job_id=job_id,
        examined=evidence.rows,
    )


def _extended(explained: Explanation, sentence: str) -> Explanation:
    return replace(explained, sentences=(*explained.sentences, sentence))


def _deeds(evidence: Evidence, target: str) -> Iterator[tuple[datetime, str]]:
    """Yield what people did to a run or a job; what was refused or failed changed nothing."""
    for entry in evidence.deeds(target):
        if entry.outcome in (AuditOutcome.DONE, AuditOutcome.BEGUN):
            unsure = "" if entry.outcome is AuditOutcome.DONE else " (begun, its end is not known)"
            said = f": {entry.reason}" if entry.reason else ""
            yield entry.at, f"{entry.action.value} by {entry.actor} via {entry.via}{unsure}{said}"


def _of_job(case: Rowless) -> Iterator[tuple[datetime, str]]:
    """Yield the moments of a job around an instant that has no row."""
    job = case.job
    yield job.created_at, "the job was created"
    generation = case.generation
    if generation is not None and generation.effective_from != job.created_at:
        yield generation.effective_from, "the definition in force at the instant began"
    if generation is not None and case.followed_at is not None:
        yield case.followed_at, "that definition ended"
    if job.next_at is not None:
        yield job.next_at, "the job's next instant to be served"
    if case.at > case.now:
        yield case.now, "now"


def _timeline(run: Run, attempts: list[Attempt], now: datetime) -> list[tuple[datetime, str]]:
    """Return what happened to a run when, as far as rows hold it."""
    found = [(run.scheduled_for, "its instant"), (run.created_at, "its row was made")]
    told = {attempt.number for attempt in attempts if attempt.started_at is not None}
    if run.first_started_at is not None:
        found.append((run.first_started_at, "first started"))
    if run.started_at not in (None, run.first_started_at) and run.attempt not in told:
        assert run.started_at is not None
        found.append((run.started_at, f"attempt {run.attempt} started"))
    tries = (attempt for attempt in attempts if not attempt.by_people)
    found += [(attempt.ended_at, _attempt_words(attempt)) for attempt in tries]
    # What people did to this run alone is in its audit; a batch's audit is its own.
    moved = (attempt for attempt in attempts if attempt.by_people and attempt.batch)
    found += [(deed.ended_at, _deed_words(deed)) for deed in moved]
    if run.state is RunState.LEASED and run.leased_at is not None:
        held = session_words(run.session or "") if run.fixed_lease else f"session {run.session}"
        found.append((run.leased_at, f"leased to {held} under fence {run.fence}"))
    if run.ended_at is not None:
        reason = f" ({run.reason})" if run.reason else ""
        found.append((run.ended_at, f"{run.state.value}{reason}"))
    if not run.terminal:
        found.append((now, "now"))
    if run.state in (RunState.READY, RunState.FAILED) and run.available_at != run.scheduled_for:
        found.append((run.available_at, "may start"))
    return found


def _deed_words(deed: Attempt) -> str:
    """Return what people did to a run by a replay batch."""
    said = f": {deed.message}" if deed.message else ""
    return f"{deed.outcome} by {deed.by} in batch {deed.batch}{said}"


def _attempt_words(attempt: Attempt) -> str:
    """Return how an attempt ended."""
    lasted = ""
    if attempt.started_at is not None:
        length = span(attempt.ended_at - attempt.started_at)
        lasted = f", begun at {stamp(attempt.started_at)}, after {length}"
    error = ": ".join(filter(None, (attempt.error_type, attempt.message)))[:MESSAGE_LENGTH]
    session = f" in session {attempt.session}" if attempt.session else ""
    said = f": {error}" if error else ""
    return f"attempt {attempt.number} {attempt.outcome}{session}{lasted}{said}"


def _named_within(job: Job | Unreadable, at: datetime) -> datetime:
    """Return the occurrence that lists show as `at`: they show no parts of a second."""
    schedule = None if isinstance(job, Unreadable) else job.schedule
    if schedule is None or isinstance(schedule, BrokenSchedule) or at.microsecond:
        return at
    named = schedule.next_after(max(at, EARLIEST) - timedelta(milliseconds=1))
    return named if named is not None and named - at < timedelta(seconds=1) else at
