"""Why an instant has no row: what its job's generations, spans and pointer say of it. Pure.

A row is made before the pointer passes its instant. So an instant behind the pointer that is
named, lies in no span and has no row is lost, and that is an alarm; unless its retention is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.instants import MILLISECOND
from dynsched.domain.job import Generation, Job, JobState, SkipReason, Span, in_force
from dynsched.domain.recurrence import BrokenSchedule
from dynsched.domain.time_words import exact, number, span, stamp
from dynsched.domain.why_ended import tenant_option

RETENTION_MIN = timedelta(days=2)
"""No job keeps its runs shorter, so that an edit of the retention cannot explain what is newer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rowless:
    """An instant of a job without a row, and what was read of the job, before the row was sought.

    Attributes:
        job: read strongly, before the row.
        at: the instant.
        now: when it is looked at.
        generations: all of the job's, the oldest first.
        old_span: a span kept apart that covers the instant.
        look_ahead: how far ahead occurrences get their rows.
        closing: how long after its end a minute may still be served late.
        cursor_at: where the dispatcher's cursor of the job's shard stands; None without one.
        owner: the dispatcher that served the shard last; "" if none did.
        owned_until: until when that one holds it.
    """

    job: Job
    at: datetime
    now: datetime
    generations: Sequence[Generation]
    old_span: Span | None = None
    look_ahead: timedelta
    closing: timedelta
    cursor_at: datetime | None = None
    owner: str = ""
    owned_until: datetime | None = None

    @property
    def generation(self) -> Generation | None:
        """Return the generation in force at the instant."""
        return in_force(self.generations, self.at)

    @property
    def followed_at(self) -> datetime | None:
        """Return when the generation in force at the instant was followed by another."""
        later = (one.effective_from for one in self.generations if one.effective_from > self.at)
        return next(later, None)

    @property
    def served(self) -> bool:
        """Return whether the job's pointer has passed the instant."""
        return self.job.next_at is None or self.job.next_at > self.at

    @property
    def span(self) -> Span | None:
        """Return the skipped span that covers the instant."""
        spans = (*self.job.spans, *([self.old_span] if self.old_span else []))
        return next((one for one in spans if one.covers(self.at)), None)

    def command(self, verb: str, options: str = "") -> str:
        """Return a command line on the job; the name of a deleted one leads nowhere."""
        if self.job.state is JobState.DELETED:
            return f"dynsched {verb} {self.job.job_id}{options}"
        return f"dynsched {verb} {self.job.name}{options}{tenant_option(self.job.tenant)}"


def why_no_row(case: Rowless) -> Finding:
    """Return why an instant has no row."""
    for judge in (_before, _unnamed, _disabled, _counted, _parked, _ahead, _behind, _expired):
        found = judge(case)
        if found is not None:
            return found
    return _lost(case)


def neighbours(
    generations: Sequence[Generation], at: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return the instants next to one, before and after it, that the generations name."""
    before = after = None
    ends = [*(one.effective_from for one in generations[1:]), None]
    for one, end in zip(generations, ends, strict=True):
        schedule = one.schedule
        if not one.enabled or schedule is None or isinstance(schedule, BrokenSchedule):
            continue
        if one.effective_from < at:
            found = schedule.last_before(at if end is None else min(at, end))
            before = found if found is not None and found >= one.effective_from else before
        if after is None and (end is None or end > at):
            found = schedule.next_after(max(at, one.effective_from - MILLISECOND))
            after = found if found is not None and (end is None or found < end) else None
    return before, after


def _neighbour_words(case: Rowless) -> tuple[str, tuple[str, ...]]:
    """Return the instants next to this one in words, and how to ask about them."""
    found = [one for one in neighbours(case.generations, case.at) if one is not None]
    hints = tuple(case.command("why", f" {exact(one)}") for one in found)
    if not found:
        return "No instant was named before it, and none is named after it.", ()
    words = " and ".join(exact(one) for one in found)
    return f"Next to it, the job's schedules name {words}.", hints


def _before(case: Rowless) -> Finding | None:
    if case.generation is not None:
        return None
    words, hints = _neighbour_words(case)
    return Finding(
        cause=Cause.BEFORE_CREATION,
        headline=(
            f"{case.job.name} has no run at {exact(case.at)}: it was created"
            f" {span(case.job.created_at - case.at)} later, at {stamp(case.job.created_at)}."
        ),
        sentences=(words,),
        hints=hints,
    )


def _unnamed(case: Rowless) -> Finding | None:
    generation = case.generation
    assert generation is not None
    schedule, name = generation.schedule, case.job.name
    if isinstance(schedule, BrokenSchedule):
        return Finding(
            cause=Cause.CANNOT_TELL,
            headline=(
                f"Cannot tell whether {name} has an instant {exact(case.at)}: the schedule in"
                f" force then cannot be read here ({schedule.describe()})."
            ),
            sentences=("There is no row for it; the job and its generations were looked at.",),
            hints=(case.command("job show"),),
        )
    if schedule is not None and schedule.names(case.at):
        return None
    words, hints = _neighbour_words(case)
    named = "by hand only" if schedule is None else f"{schedule.describe()}"
    return Finding(
        cause=Cause.NEVER_NAMED,
        headline=(
            f"{name} has no run at {exact(case.at)}: that instant was never named, as the schedule"
            f" in force at it is: {named}."
        ),
        sentences=(
            f"It is in force from {stamp(generation.effective_from)} on.",
            words,
        ),
        hints=hints,
    )


def _disabled(case: Rowless) -> Finding | None:
    """Judge an instant at which the job was paused or deleted."""
    generation, job = case.generation, case.job
    assert generation is not None
    if generation.enabled:
        return None
    since, until = generation.effective_from, case.followed_at
    if until is None and job.state is JobState.DELETED:
        return Finding(
            cause=Cause.JOB_DELETED,
            headline=(
                f"{job.name} has no run at {exact(case.at)}: it was deleted at {stamp(since)},"
                f" {span(case.at - since)} before."
            ),
        )
    reason = f" ({job.reason})" if until is None and job.reason else ""
    lasted = "and still is" if until is None else f"to {stamp(until)}"
    found = Finding(
        cause=Cause.PAUSED,
        headline=(
            f"{job.name} has no run at {exact(case.at)}: it was paused{reason} from"
            f" {stamp(since)} {lasted}."
        ),
        hints=((case.command("job resume"),) if until is None else (case.command("job run-now"),)),
    )
    skipped = case.span
    if skipped is not None:
        return found.adding(_span_words(skipped))
    if until is None and generation.schedule is not None and since < case.now:
        missed = generation.schedule.count(since, case.now)
        return found.adding(
            f"{number(missed, 'instant')} so far; a resume counts them as skipped, and runs none."
        )
    return found


def _span_words(skipped: Span) -> str:
    return (
        f"It is one of {number(skipped.count, 'instant')} from {exact(skipped.first)} to"
        f" {exact(skipped.last)} that were counted as skipped ({skipped.reason.value})."
    )


def _counted(case: Rowless) -> Finding | None:
    """Judge an instant that lies in a skipped span."""
    skipped, job = case.span, case.job
    if skipped is None:
        return None
    if skipped.reason is SkipReason.CATCH_UP:
        why = (
            f"it was missed by more than a minute, and the job's catch-up policy"
            f" ({job.policies.catch_up.value} at present) gave it no run"
        )
        cause = Cause.CAUGHT_UP
    else:
        why = f"it was counted as skipped ({skipped.reason.value})"
        cause = Cause.PAUSED if skipped.reason is SkipReason.PAUSED else Cause.CANNOT_TELL
    return Finding(
        cause=cause,
        headline=f"{job.name} has no run at {exact(case.at)}: {why}.",
        sentences=(_span_words(skipped),),
        hints=() if job.state is JobState.DELETED else (case.command("job run-now"),),
    )


def _parked(case: Rowless) -> Finding | None:
    job = case.job
    if job.state is not JobState.PARKED or (case.served and job.next_at is not None):
        return None
    return Finding(
        cause=Cause.PARKED,
        headline=f"{job.name} has no run at {exact(case.at)}: it is parked, {job.reason}.",
        sentences=("A parked job gets no runs until it is edited.",),
        hints=(case.command("job show"),),
    )


def _ahead(case: Rowless) -> Finding | None:
    if case.at <= case.now or case.served:
        return None
    away = case.at - case.now
    made_at = case.at - case.look_ahead
    row = (
        f"Its row will be made from {stamp(made_at)} on, {span(case.look_ahead)} ahead."
        if made_at > case.now
        else "Its row is made at the dispatcher's next tick."
    )
    return Finding(
        cause=Cause.AHEAD,
        headline=(
            f"{case.job.name} is to run at {exact(case.at)}, which is still ahead: in {span(away)}."
        ),
    ).adding(row, _owner_words(case) if made_at <= case.now else "")


def _behind(case: Rowless) -> Finding | None:
    """Judge an instant that no dispatcher has served yet."""
    if case.served or case.job.next_at is None:
        return None
    job, next_at = case.job, case.job.next_at
    late = case.now - case.at
    pointer = f"The job's next instant to be served is {exact(next_at)}."
    if case.cursor_at is not None and case.cursor_at > next_at and late > case.closing:
        return Finding(
            cause=Cause.LOST,
            headline=(
                f"ALARM: {job.name} has no run at {exact(case.at)}, {span(late)} ago: the"
                " dispatcher has passed that minute without serving the job."
            ),
            sentences=(
                f"The cursor of its shard stands at {stamp(case.cursor_at)}.",
                pointer,
                "Minutes are read again after 1, 10 and 60 minutes, and all jobs once a day; any"
                " change of the job serves it at once.",
            ),
            hints=(case.command("job show"), case.command("job run-now")),
        )
    policy = job.policies.catch_up.value
    return Finding(
        cause=Cause.DISPATCHER_BEHIND,
        headline=(
            f"{job.name} has no run at {exact(case.at)} yet, {span(late)} late: no dispatcher has"
            " served the job since."
        ),
        hints=("dynsched dispatcher", "dynsched health"),
    ).adding(
        pointer,
        _owner_words(case),
        f"When it is served, its catch-up policy ({policy}) decides about what was missed.",
    )


def _owner_words(case: Rowless) -> str:
    """Return who serves the job's shard."""
    if case.cursor_at is None:
        return "No dispatcher has a cursor for its shard: none has ever ticked."
    return owner_words(case.owner, case.owned_until, case.cursor_at, case.now)


def owner_words(
    owner: str, owned_until: datetime | None, cursor_at: datetime, now: datetime
) -> str:
    """Return which dispatcher serves a shard, and how far its cursor is.

    Args:
        owner: the dispatcher that served it last.
        owned_until: until when that one holds it.
        cursor_at: the first minute that it has not closed.
        now: the present instant.
    """
    behind = f"its cursor is {span(max(now - cursor_at, timedelta(0)))} behind"
    if not owner or owned_until is None:
        return f"No dispatcher has ever owned its shard; {behind}."
    if owned_until <= now:
        return (
            f"No dispatcher owns its shard since {stamp(owned_until)}, {span(now - owned_until)}"
            f" ago; the last was {owner}; {behind}."
        )
    return f"Dispatcher {owner} owns its shard until {stamp(owned_until)}; {behind}."


def _expired(case: Rowless) -> Finding | None:
    retention = case.job.policies.retention
    # A run may end up to the look-ahead before its instant, if people cancel it then.
    if case.now - case.at < retention - case.look_ahead:
        return None
    return Finding(
        cause=Cause.EXPIRED,
        headline=(
            f"{case.job.name} was to run at {exact(case.at)}; cannot tell how it ended, as runs are"
            f" kept for {span(retention)} only."
        ),
        sentences=("Its schedule named the instant, and no row of it is there any more.",),
    )


def _lost(case: Rowless) -> Finding:
    job, late = case.job, case.now - case.at
    looked = (
        "Looked at: its row, its job's generations, skipped spans and pointer"
        f" ({'none' if job.next_at is None else exact(job.next_at)}), and the retention of"
        f" {span(job.policies.retention)}."
    )
    if late <= case.closing:
        return Finding(
            cause=Cause.CANNOT_TELL,
            headline=(
                f"Cannot tell yet why {job.name} has no run at {exact(case.at)}: its minute is not"
                " closed."
            ),
            sentences=(f"Ask again after {stamp(case.at + case.closing)}.", looked),
        )
    return Finding(
        cause=Cause.LOST,
        headline=(
            f"ALARM: {job.name} has no run at {exact(case.at)}, {span(late)} ago, and should have"
            " one: its row is lost."
        ),
        hints=(
            ()
            if job.state is JobState.DELETED
            else (case.command("job run-now"), case.command("job show"))
        ),
    ).adding(
        "Its schedule names the instant, its pointer has passed it, and no skip covers it.",
        looked,
        (
            "Cannot tell whether its runs were kept shorter before an edit of the retention."
            if late > RETENTION_MIN
            else ""
        ),
    )
