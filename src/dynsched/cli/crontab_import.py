"""What a crontab becomes: a plan for each of its lines, made whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

from dynsched.domain.crontab import CrontabEntry, CrontabFile, CrontabNote
from dynsched.domain.job import Job, Policies
from dynsched.domain.target import CommandTarget, Target
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import AlreadyExists, InvalidInput, NotFound, NotInitialised
from dynsched.services.documents import Document, instant
from dynsched.services.job_views import coming
from dynsched.services.operations import Operations
from dynsched.services.specs import CronSpec, JobSpec

COMMENT_MAX = 120
ORIGIN_TAG = "crontab"
NAME_ROOM = 57  # of 64 characters, so that a suffix fits


class Fate(StrEnum):
    """What an import does with a line."""

    NEW = "new"
    """There is no job of that name: it is made."""
    UNCHANGED = "unchanged"
    """The job of that name is the same already."""
    EXISTS = "exists"
    """The job of that name is another: it is left alone."""
    REPLACED = "replaced"
    """The job of that name is another: it is changed, as `--replace` asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the command line says about all lines.

    Attributes:
        tenant: whose jobs they become.
        queue: which workers run them.
        zone: zone of lines without `CRON_TZ`; None until it is known.
        policies: how they are treated.
        origin: the file's name, kept as a tag.
        replace: change jobs of the same name that differ.
    """

    tenant: str
    queue: str
    zone: str | None
    policies: Policies
    origin: str
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One line that can be imported.

    Attributes:
        entry: the line.
        spec: the job it becomes.
        job: as it is in the store, or as it would be made.
        fate: what the import does.
        differs: where the job in the store differs.
    """

    entry: CrontabEntry
    spec: JobSpec
    job: Job
    fate: Fate
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an import would do.

    Attributes:
        planned: the lines that can be imported.
        problems: those that cannot, by number.
        warnings: those that may not do what their author thinks.
    """

    planned: tuple[Planned, ...]
    problems: tuple[CrontabNote, ...]
    warnings: tuple[CrontabNote, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What the plans of all lines look at."""

    choices: Choices
    operations: Operations


def plan_import(file: CrontabFile, choices: Choices, *, operations: Operations) -> Plan:
    """Plan an import without writing anything.

    Raises:
        InvalidInput: the tenant, the queue or a choice is wrong, whatever the lines say.
    """
    context = _Context(choices=choices, operations=operations)
    planned: list[Planned] = []
    problems = list(file.problems)
    for entry in file.entries:
        try:
            spec = spec_of(entry, choices)
            made = operations.check(spec)
        except InvalidInput as error:
            if error.field in ("tenant", "queue", "tz"):
                raise
            problems.append(CrontabNote(line=entry.line, field=error.field, reason=_told(error)))
            continue
        planned.append(_plan_entry(entry, spec, made, context))
    problems.sort(key=lambda note: note.line)
    return Plan(planned=tuple(planned), problems=tuple(problems), warnings=file.warnings)


def spec_of(entry: CrontabEntry, choices: Choices) -> JobSpec:
    """Return the job that a line becomes; without a `%` the command's input is empty, as in cron.

    Raises:
        InvalidInput: the command or an environment line is more than a job can hold.
    """
    tags = {ORIGIN_TAG: choices.origin} if choices.origin else {}
    comment = "".join(letter for letter in entry.comment if letter.isprintable())
    if comment:
        tags["comment"] = comment[:COMMENT_MAX]
    return JobSpec(
        name=entry.name,
        target=CommandTarget(
            entry.command,
            environment=entry.environment,
            stdin=entry.stdin or "",
            user=entry.user,
        ),
        schedule=CronSpec(expr=entry.expr, tz=entry.zone or choices.zone or "UTC"),
        tenant=choices.tenant,
        queue=choices.queue,
        policies=choices.policies,
        tags=tags,
    )


def _stored(spec: JobSpec, operations: Operations) -> Job | None:
    """Return the job of that name; none either in a store that is still to be made."""
    try:
        return operations.find(spec.name, spec.tenant)
    except (NotFound, NotInitialised):
        return None


def _plan_entry(entry: CrontabEntry, spec: JobSpec, made: Job, plans: _Context) -> Planned:
    """Compare a line with the job of its name; one from elsewhere leaves it another name."""
    found = _compare(entry, spec, made, plans)
    origin = plans.choices.origin
    if found.differs and found.job.tags.get(ORIGIN_TAG, "") != origin:
        name = _other_name(spec, origin)
        return _compare(entry, replace(spec, name=name), replace(made, name=name), plans)
    return found


def _compare(entry: CrontabEntry, spec: JobSpec, made: Job, plans: _Context) -> Planned:
    job = _stored(spec, plans.operations)
    if job is None:
        return Planned(entry=entry, spec=spec, job=made, fate=Fate.NEW)
    differs = _differences(spec, made, job, plans.operations.target_of(job))
    fate = Fate.UNCHANGED
    if differs:
        fate = Fate.REPLACED if plans.choices.replace else Fate.EXISTS
    return Planned(entry=entry, spec=spec, job=job, fate=fate, differs=differs)


def _other_name(spec: JobSpec, origin: str) -> str:
    """Return the name of a line whose plain name a job from elsewhere has; it survives edits."""
    digest = blake2b(f"{origin}\n{spec.name}".encode(), digest_size=3).hexdigest()
    return f"{spec.name[:NAME_ROOM]}-{digest}"


def _differences(spec: JobSpec, made: Job, job: Job, target: Target | None) -> tuple[str, ...]:
    """Return what of the definition differs; policies and tags are the operators' own."""
    pairs = (
        ("schedule", made.schedule == job.schedule),
        ("command", spec.target == target),
        ("queue", spec.queue == job.queue),
    )
    return tuple(name for name, same in pairs if not same)


def carry_out(plan: Plan, operations: Operations, reason: str = "") -> list[Planned]:
    """Make and change what a plan says; return it with the jobs as they are stored."""
    return [_carry_out_one(planned, operations, reason) for planned in plan.planned]


def _carry_out_one(planned: Planned, operations: Operations, reason: str) -> Planned:
    spec = planned.spec
    if planned.fate is Fate.NEW:
        try:
            return replace(planned, job=operations.create(spec, reason=reason))
        except AlreadyExists:  # somebody else made it since the plan
            return replace(planned, fate=Fate.EXISTS, job=operations.find(spec.name, spec.tenant))
    if planned.fate is Fate.REPLACED:
        job_id = planned.job.job_id
        changed = operations.edit(job_id, target=spec.target, queue=spec.queue, reason=reason)
        if "schedule" in planned.differs:
            changed = operations.reschedule(job_id, spec.schedule, reason=reason)
        return replace(planned, job=changed.job)
    return planned


def plan_document(plan: Plan, now: datetime, *, dry_run: bool, imported: bool) -> Document:
    """Return what an import did, or would do."""
    return {
        "dry_run": dry_run,
        "imported": imported,
        "jobs": [planned_document(one, now, stored=imported) for one in plan.planned],
        "problems": [note_document(note) for note in plan.problems],
        "warnings": [note_document(note) for note in plan.warnings],
    }


def planned_document(planned: Planned, now: datetime, *, stored: bool) -> Document:
    """Return one line's job; a new one that is not `stored` has no id yet."""
    ahead = coming(planned.job, now, 1)
    schedule = planned.spec.schedule
    assert isinstance(schedule, CronSpec)
    return {
        "line": planned.entry.line,
        "name": planned.spec.name,
        "job_id": planned.job.job_id if stored or planned.fate is not Fate.NEW else None,
        "fate": planned.fate.value,
        "differs": list(planned.differs),
        "cron": schedule.expr,
        "tz": schedule.tz,
        "user": planned.entry.user,
        "command": planned.entry.command,
        "next_at": instant(ahead[0]) if ahead else None,
    }


def note_document(note: CrontabNote) -> Document:
    """Return what is told about one line."""
    return {"line": note.line, "field": note.field, "reason": note.reason}


def machine_zone(environment: Mapping[str, str], root: Path = Path("/")) -> str | None:
    """Return the IANA name of the machine's own zone, by which its cron runs; None if unknown.

    Args:
        environment: `TZ` in it goes first.
        root: where the machine's files lie.
    """
    candidates = [environment.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        candidates.append(os.readlink(root / "etc/localtime").partition("zoneinfo/")[2])
    with suppress(OSError, UnicodeDecodeError):
        candidates.append((root / "etc/timezone").read_text("utf-8").strip())
    for name in candidates:
        try:
            if name:
                return zone_clock(name).name
        except InvalidInput:
            continue
    return None


def lines_of(notes: Sequence[CrontabNote]) -> list[str]:
    """Return notes as lines for people."""
    return [f"line {note.line}, {note.field}: {note.reason}" for note in notes]


def _told(error: InvalidInput) -> str:
    return error.problem + (f" ({error.mend})" if error.mend else "")
