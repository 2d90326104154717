"""Why a run is leased: who has it, since when, and whether that worker still lives."""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.job import Job
from dynsched.domain.lease_words import session_words
from dynsched.domain.run import Run
from dynsched.domain.time_words import number, span, stamp
from dynsched.domain.why_ended import PATIENCE
from dynsched.services.why_callback import why_awaits_callback
from dynsched.services.why_case import Case, worker_words
from dynsched.settings import Settings
from dynsched.storage.control import Session
from dynsched.storage.runs import ProgressNote

NOTHING = timedelta(0)
MARGIN = Settings().lease_margin
"""How long after a lease's end a reaper takes its run: the services' default."""


def why_running(leased: Case) -> Finding:
    """Return who runs a leased run, or who is gone with it."""
    run, evidence = leased.run, leased.evidence
    if run.awaits_callback and run.lease_ends_at is not None:
        return why_awaits_callback(leased, run.lease_ends_at)
    if run.lease_ends_at is not None:
        return _on_its_own(leased, run.lease_ends_at)
    session = evidence.session(run.session or "")
    if session is None or not session.open:
        return _over(leased, session).adding(_losses(run))
    if session.expires_at <= evidence.now:
        return _silent(leased, session).adding(_losses(run))
    return _alive(leased, session).adding(*_on_the_way(leased))


def _on_the_way(leased: Case) -> tuple[str, ...]:
    """Return what else there is to say of a run that is running."""
    run, evidence = leased.run, leased.evidence
    note = evidence.progress(run.run_id)
    mine = note is not None and note.attempt == run.attempt + 1
    return (
        _progress_words(note, evidence.now) if note is not None and mine else "",
        *_limits(leased),
        _start_words(leased),
        f"{run.waiter} waits for its end." if run.waiter else "",
        f"{run.spent} of {run.limit} failures so far; the last: {run.error}" if run.spent else "",
        _losses(run),
    )


def _since(run: Run, now: datetime) -> str:
    if run.leased_at is None:
        return "since an unknown time"
    return f"since {stamp(run.leased_at)}, for {span(max(now - run.leased_at, NOTHING))}"


def _alive(leased: Case, session: Session) -> Finding:
    run, now = leased.run, leased.evidence.now
    who = worker_words(session)
    if run.cancel_requested:
        return Finding(
            cause=Cause.STOPPING,
            headline=(
                f"{leased.name} was asked to stop ({run.reason or 'no reason given'}), and {who}"
                f" has not given it back yet; it runs {_since(run, now)}."
            ),
            sentences=("A worker hears of it with its next heartbeat, its handler when it asks.",),
        )
    return Finding(
        cause=Cause.RUNNING,
        headline=(
            f"{leased.name} is running, attempt {run.attempt + 1}, on {who} {_since(run, now)}."
        ),
    ).adding(f"Its worker's lease holds until {stamp(session.expires_at)}.")


def _silent(leased: Case, session: Session) -> Finding:
    run, now = leased.run, leased.evidence.now
    return Finding(
        cause=Cause.LEASE_EXPIRED,
        headline=(
            f"{leased.name} was taken by {worker_words(session)}, which is silent: its lease ended"
            f" at {stamp(session.expires_at)}, {span(now - session.expires_at)} ago."
        ),
        sentences=(
            f"It was leased {_since(run, now)}.",
            "A reaper closes such a session some seconds after its end and returns its runs; if"
            " this lasts, no reaper runs.",
        ),
        hints=("dynsched reaper", "dynsched health"),
    )


def _over(leased: Case, session: Session | None) -> Finding:
    run, now = leased.run, leased.evidence.now
    when = (
        "has no row any more"
        if session is None or session.closed_at is None
        else f"was closed at {stamp(session.closed_at)}, {span(now - session.closed_at)} ago"
    )
    return Finding(
        cause=Cause.LEASE_EXPIRED,
        headline=(
            f"{leased.name} is still leased to session {run.session}, which {when}: its lease is"
            " lost, and a reaper has yet to return it."
        ),
        sentences=(
            f"It was leased {_since(run, now)}.",
            "A reaper reads closed sessions again after a minute, 10 and 60 minutes, and all runs"
            " once a day.",
        ),
        hints=("dynsched reaper",),
    )


def _on_its_own(leased: Case, ends_at: datetime) -> Finding:
    """Judge a lease that no heartbeat extends."""
    run, now = leased.run, leased.evidence.now
    who = session_words(run.session or "")
    if ends_at <= now:
        return _cut_off(leased, ends_at).adding(_losses(run))
    if run.cancel_requested:
        found = Finding(
            cause=Cause.STOPPING,
            headline=(
                f"{leased.name} was asked to stop ({run.reason or 'no reason given'}), and {who}"
                f" has not given it back yet; it runs {_since(run, now)}."
            ),
            sentences=(
                "A function looks for it every few seconds, its handler when it asks; at the latest"
                f" its lease ends it at {stamp(ends_at)}.",
            ),
        )
    else:
        found = Finding(
            cause=Cause.RUNNING,
            headline=(
                f"{leased.name} is running, attempt {run.attempt + 1}, in {who} {_since(run, now)},"
                f" under a lease that ends at {stamp(ends_at)}."
            ),
            sentences=(
                "No heartbeat extends it: if the function dies, the reaper returns the run"
                f" {span(MARGIN)} after that.",
            ),
        )
    return found.adding(*_on_the_way(leased))


def _cut_off(leased: Case, ends_at: datetime) -> Finding:
    """Judge a run whose function has given no word until its lease's end."""
    run, now = leased.run, leased.evidence.now
    who, due = session_words(run.session or ""), ends_at + MARGIN
    if due > now:
        when = f"The reaper returns it from {stamp(due)} on, {span(MARGIN)} after that end."
    else:
        when = (
            f"The reaper should have returned it since {stamp(due)}; it looks every few seconds,"
            " and as a function once a minute. If this lasts, no reaper runs."
        )
    return Finding(
        cause=Cause.LEASE_EXPIRED,
        headline=(
            f"{leased.name} was leased {_since(run, now)} to {who}, which gave no word of it: its"
            f" lease ended at {stamp(ends_at)}, {span(now - ends_at)} ago."
        ),
        sentences=(when,),
        hints=("dynsched reaper", "dynsched health"),
    )


def _losses(run: Run) -> str:
    if not run.losses:
        return ""
    return f"Its lease was lost {number(run.losses, 'time')} in a row before."


def _progress_words(note: ProgressNote, now: datetime) -> str:
    total = "" if note.total is None else f" of {note.total:g}"
    said = f": {note.note}" if note.note else ""
    return f"Progress: {note.done:g}{total}, {span(now - note.at)} ago{said}."


def _limits(leased: Case) -> list[str]:
    """Return what its time limit says."""
    run, job, now = leased.run, leased.job, leased.evidence.now
    if not isinstance(job, Job) or run.leased_at is None:
        return []
    limit = job.policies.timeout
    if limit is None:
        return ["It has no time limit."]
    left = run.leased_at + limit - now
    if left >= NOTHING:
        return [f"Its time limit of {span(limit)} ends it in {span(left)}."]
    return [f"It is {span(-left)} over its time limit of {span(limit)}; its worker should end it."]


def _start_words(leased: Case) -> str:
    """Return whether its first start was late."""
    run = leased.run
    if run.attempt or run.leased_at is None:
        return ""
    late = run.leased_at - run.scheduled_for
    return f"It was taken {span(late)} after its instant." if late > PATIENCE else ""
