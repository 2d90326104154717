"""Specifications: jobs and schedules as people give them, and the checks that they must pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from dynsched.domain.instants import EPOCH, MILLISECOND, instant_after, to_utc
from dynsched.domain.job import Overlap, Policies, Priority
from dynsched.domain.names import check_name
from dynsched.domain.payload import Json
from dynsched.domain.recurrence import Cron, Interval, Once, Schedule
from dynsched.domain.target import Target
from dynsched.errors import InvalidInput

EVERY_MIN = timedelta(seconds=1)
TAGS_MAX = 16
TAG_VALUE_MAX = 128
RETENTION_MIN = timedelta(days=2)
CATCH_UP_MAX = 1_000
DURATION_MAX = timedelta(days=366)  # of timeouts and windows; the calendar's end is never near
RETENTION_MAX = timedelta(days=3_660)
FLEX_MARGIN = timedelta(days=1)  # a run this close to the end of its retention is expired
POSITIVE = ("start_deadline", "timeout", "soft_timeout", "catch_up_window")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSpec:
    """A cron schedule as people give it; `H` is hashed from the job's id when it is made."""

    expr: str
    tz: str = "UTC"
    dst: str = "vixie"
    seconds: bool = False
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EverySpec:
    """A fixed interval; the first occurrence is one interval after `start`, or after creation."""

    every: timedelta
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtSpec:
    """One occurrence at an instant."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterSpec:
    """One occurrence after a delay from now; zero is now."""

    delay: timedelta


ScheduleSpec = CronSpec | EverySpec | AtSpec | AfterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What a new job shall be.

    Attributes:
        schedule: None for a job that only runs when it is enqueued or run by hand.
        payload: JSON values, at most 256 KB as text.
        policies: `overlap` defaults to `allow` for a job without a recurring schedule.
    """

    name: str
    target: Target
    schedule: ScheduleSpec | None = None
    tenant: str = "default"
    queue: str = "main"
    priority: Priority = Priority.DEFAULT
    policies: Policies | None = None
    payload: Json = None
    tags: Mapping[str, str] = field(default_factory=dict)


def make_schedule(spec: ScheduleSpec | None, job_id: str, now: datetime) -> Schedule | None:
    """Return the schedule that a specification means for a job.

    Args:
        spec: as people gave it.
        job_id: what `H` is hashed from.
        now: what delays count from.

    Raises:
        InvalidInput: a field is wrong or lies in the past.
    """
    if spec is None:
        return None
    if isinstance(spec, CronSpec):
        return Cron.parse(
            spec.expr,
            zone=spec.tz,
            dst=spec.dst,
            seconds=spec.seconds,
            key=job_id,
            start=spec.start,
            end=spec.end,
        )
    if isinstance(spec, EverySpec):
        if spec.every < EVERY_MIN:
            raise InvalidInput("every", "shorter than a second", "give 1s or more")
        anchor = (
            instant_after(now, spec.every, "every")
            if spec.start is None
            else to_utc(spec.start, "start")
        )
        return Interval(every=spec.every, anchor=anchor, start=anchor, end=spec.end)
    if isinstance(spec, AfterSpec):
        if spec.delay < timedelta(0):
            raise InvalidInput("in", "the delay is negative", "give 0s or more")
        return Once(at=instant_after(now, spec.delay, "in"))
    at = to_utc(spec.at, "at")
    if at < now:
        raise InvalidInput("at", f"{at.isoformat()} is over", "give a coming instant, or --now")
    return Once(at=at)


def is_same(spec: ScheduleSpec | None, schedule: Schedule | None, job_id: str) -> bool:
    """Return whether a specification asks for the schedule that a job has already.

    An interval without a start keeps its phase: repeating an edit must not put it off.
    """
    if isinstance(spec, EverySpec) and spec.start is None:
        return (
            isinstance(schedule, Interval)
            and schedule.every == spec.every
            and schedule.end == (None if spec.end is None else to_utc(spec.end, "end"))
        )
    if isinstance(spec, CronSpec | EverySpec):
        return make_schedule(spec, job_id, EPOCH) == schedule
    return False


def default_policies(spec: ScheduleSpec | None) -> Policies:
    """Return the policies of a job that names none: only recurring jobs forbid overlap."""
    recurring = isinstance(spec, CronSpec | EverySpec)
    return Policies() if recurring else Policies(overlap=Overlap.ALLOW)


def check_policies(policies: Policies) -> Policies:
    """Return the policies in whole milliseconds, as they are stored, after checking their bounds.

    Raises:
        InvalidInput: one is out of bounds.
    """
    policies = _in_milliseconds(policies)
    for name in POSITIVE:
        value = getattr(policies, name)
        if value is not None and value <= timedelta(0):
            raise InvalidInput(name, "must be at least a millisecond")
    if policies.flex < timedelta(0):
        raise InvalidInput("flex", "the window is negative")
    if policies.retention < RETENTION_MIN:
        raise InvalidInput("retention", "shorter than two days", "give 2d or more")
    for name in (*POSITIVE, "flex"):
        _check_most(name, getattr(policies, name), DURATION_MAX)
    _check_most("retention", policies.retention, RETENTION_MAX)
    if not 1 <= policies.catch_up_max <= CATCH_UP_MAX:
        raise InvalidInput("catch_up_max", f"must be 1 to {CATCH_UP_MAX}")
    soft, hard = policies.soft_timeout, policies.timeout
    if soft is not None and hard is not None and soft > hard:
        raise InvalidInput("soft_timeout", "longer than the timeout", "give a shorter one")
    _check_flex(policies)
    return policies


def _in_milliseconds(policies: Policies) -> Policies:
    changes: dict[str, timedelta] = {}
    for name in (*POSITIVE, "flex", "retention"):
        value = getattr(policies, name)
        if value is not None:
            changes[name] = value // MILLISECOND * MILLISECOND
    return replace(policies, **changes)  # type: ignore[arg-type]


def _check_most(name: str, value: timedelta | None, most: timedelta) -> None:
    if value is not None and value > most:
        raise InvalidInput(name, f"longer than {most.days} days", f"give at most {most.days * 24}h")


def _check_flex(policies: Policies) -> None:
    """A run at the end of its window must not be late or expired by that alone."""
    flex, deadline = policies.flex, policies.start_deadline
    if not flex:
        return
    if deadline is not None and flex >= deadline:
        raise InvalidInput("flex", "not shorter than start_deadline", "give a shorter window")
    if flex >= policies.retention - FLEX_MARGIN:
        raise InvalidInput(
            "flex", "not shorter than the retention less a day", "give a shorter window"
        )


def check_tags(tags: Mapping[str, str]) -> None:
    """Check a job's tags.

    Raises:
        InvalidInput: there are too many, or one is malformed.
    """
    if len(tags) > TAGS_MAX:
        raise InvalidInput("tag", f"there are {len(tags)}", f"give at most {TAGS_MAX}")
    for name, value in tags.items():
        check_name(name, "tag")
        if len(value) > TAG_VALUE_MAX or not value.isprintable():
            raise InvalidInput(
                "tag", f"the value of {name!r} is not {TAG_VALUE_MAX} printable characters at most"
            )
