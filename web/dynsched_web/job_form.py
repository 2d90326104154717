"""The form of a job: from a job to the texts of its fields, and from those to a specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dynsched.domain.durations import duration_text
from dynsched.domain.instants import to_text
from dynsched.domain.job import CatchUp, Overlap, Policies, Priority
from dynsched.domain.payload import Json, parse_payload
from dynsched.domain.recurrence import Cron, Interval, Once, Schedule
from dynsched.domain.target import METHODS, CommandTarget, HandlerTarget, HttpTarget, Target
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget, invocation_of
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput
from dynsched.services.job_views import JobDetail
from dynsched.services.specs import (
    AtSpec,
    CronSpec,
    EverySpec,
    JobSpec,
    ScheduleSpec,
    default_policies,
    make_schedule,
)
from dynsched_web.forms import Form
from dynsched_web.showing import pretty

SCHEDULE = ("kind", "expr", "tz", "dst", "every", "at")
TARGET = (
    "does", "handler", "url", "method", "headers", "command", "function", "invocation", "queue_url",
    "group", "body",
)  # fmt: skip
POLICIES = ("timeout", "max_attempts", "catch_up", "overlap")
KINDS = {
    "cron": "by a cron expression",
    "every": "at a fixed interval",
    "at": "once",
    "manual": "only when it is asked for",
}
DOES = {
    "handler": "a Python handler",
    "http": "an HTTP request",
    "command": "a shell command",
    "lambda": "a Lambda function",
    "sqs": "a message to an SQS queue",
}
COMING = 10
DEFAULTS: Mapping[str, str] = {
    "tenant": "default",
    "queue": "main",
    "priority": Priority.DEFAULT.value,
    "kind": "cron",
    "tz": "UTC",
    "dst": "vixie",
    "does": "handler",
    "method": "POST",
    "invocation": Invocation.SYNC.value,
    "timeout": "1h",
    "max_attempts": "",
    "catch_up": CatchUp.LATEST.value,
    "overlap": "",
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "priority": tuple(one.value for one in Priority),
    "catch_up": tuple(one.value for one in CatchUp),
    "overlap": tuple(one.value for one in Overlap),
    "method": METHODS,
    "invocation": tuple(Invocation),
    "dst": ("vixie", "skip", "both"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A coming instant of a schedule.

    Attributes:
        at: the instant.
        local: as clocks of the schedule's zone show it.
        change: how the zone's clock was changed since the one before; empty if it was not.
    """

    at: datetime
    local: datetime
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a schedule means.

    Attributes:
        words: the schedule in plain words.
        zone: the zone of its local times.
        coming: its next instants.
        notes: what should be known besides.
    """

    words: str
    zone: str = "UTC"
    coming: tuple[Coming, ...] = ()
    notes: tuple[str, ...] = field(default=())


def fields_of(detail: JobDetail) -> dict[str, str]:
    """Return the texts of a job's fields, secrets masked as in the view."""
    job = detail.job
    policies = job.policies
    return {
        **DEFAULTS,
        "name": job.name,
        "tenant": job.tenant,
        "queue": job.queue,
        "priority": job.priority.value,
        "payload": pretty(detail.payload),
        "tags": ", ".join(f"{name}={value}" for name, value in job.tags.items()),
        "timeout": "none" if policies.timeout is None else duration_text(policies.timeout),
        "max_attempts": str(policies.retry.max_attempts),
        "catch_up": policies.catch_up.value,
        "overlap": policies.overlap.value,
        **_schedule_fields(job.schedule),
        **_target_fields(detail.target),
    }


def _schedule_fields(schedule: Schedule | None) -> dict[str, str]:
    if isinstance(schedule, Cron):
        return {
            "kind": "cron",
            "expr": schedule.expr,
            "tz": schedule.zone,
            "dst": schedule.dst.value,
        }
    if isinstance(schedule, Interval):
        return {"kind": "every", "every": duration_text(schedule.every)}
    if isinstance(schedule, Once):
        return {"kind": "at", "at": to_text(schedule.at)}
    return {"kind": "manual"}


def _target_fields(target: Target | None) -> dict[str, str]:
    if isinstance(target, HttpTarget):
        headers = "\n".join(f"{name}: {value}" for name, value in target.headers.items())
        fields = {"does": "http", "url": target.url, "method": target.method, "headers": headers}
        return {**fields, "body": target.body or ""}
    if isinstance(target, CommandTarget):
        return {"does": "command", "command": target.command}
    if isinstance(target, LambdaTarget):
        fields = {"does": "lambda", "function": target.function, "body": target.body or ""}
        return {**fields, "invocation": target.invocation.value}
    if isinstance(target, SqsTarget):
        fields = {"does": "sqs", "queue_url": target.queue_url, "body": target.body or ""}
        return {**fields, "group": target.group or ""}
    return {"does": "handler", "handler": target.name if target is not None else ""}


def schedule_of(form: Form) -> ScheduleSpec | None:
    """Return the schedule that a form gives; None for a job that runs when it is asked to.

    Raises:
        InvalidInput: a field is wrong.
    """
    kind = form.text("kind", "cron")
    if kind == "manual":
        return None
    if kind == "every":
        every = form.duration("every")
        if every is None:
            raise InvalidInput("every", "it is empty", "give an interval such as 5m")
        return EverySpec(every=every)
    if kind == "at":
        return AtSpec(at=form.instant("at"))
    if kind != "cron":
        raise InvalidInput("kind", f"{kind[:20]!r} is unknown", f"give {', '.join(KINDS)}")
    expr = form.text("expr")
    if not expr:
        raise InvalidInput("cron", "it is empty", "give five fields such as 0 3 * * *")
    return CronSpec(
        expr=expr,
        tz=form.text("tz") or "UTC",
        dst=form.text("dst") or "vixie",
        seconds=len(expr.split()) == 6,
    )


def target_of(form: Form) -> Target:
    """Return what a job does that a form gives.

    Raises:
        InvalidInput: a field is wrong.
    """
    does, body = form.text("does", "handler"), form.text("body") or None
    if does == "http":
        return HttpTarget(
            form.text("url"),
            method=form.text("method") or "POST",
            headers=_headers(form.text("headers")),
            body=body,
        )
    if does == "command":
        return CommandTarget(form.text("command"))
    if does == "lambda":
        how = invocation_of(form.text("invocation") or Invocation.SYNC.value)
        return LambdaTarget(form.text("function"), invocation=how, body=body)
    if does == "sqs":
        return SqsTarget(form.text("queue_url"), group=form.text("group") or None, body=body)
    if does != "handler":
        raise InvalidInput("does", f"{does[:20]!r} is unknown", f"give {', '.join(DOES)}")
    return HandlerTarget(form.text("handler"))


def _headers(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise InvalidInput("headers", f"{line[:40]!r} has another form", "Name: value")
        found[name.strip()] = value.strip()
    return found


def tags_of(form: Form) -> dict[str, str]:
    """Return the tags that a form gives.

    Raises:
        InvalidInput: one has another form.
    """
    found: dict[str, str] = {}
    for pair in filter(None, (one.strip() for one in form.text("tags").split(","))):
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput("tags", f"{pair[:40]!r} has another form", "key=value, key=value")
        found[name.strip()] = value.strip()
    return found


def payload_of(form: Form) -> Json:
    """Return the payload that a form gives; None for an empty field.

    Raises:
        InvalidInput: it is no JSON.
    """
    text = form.text("payload")
    return parse_payload(text) if text else None


def policy_changes(form: Form, old: Policies) -> dict[str, Any]:
    """Return the policies that a form gives.

    Raises:
        InvalidInput: one is wrong.
    """
    changes: dict[str, Any] = {}
    if form.text("timeout"):
        changes["timeout"] = form.duration("timeout")
    attempts = form.whole("max_attempts")
    if attempts is not None:
        changes["retry"] = replace(old.retry, max_attempts=attempts)
    if form.text("catch_up") in CHOICES["catch_up"]:
        changes["catch_up"] = CatchUp(form.text("catch_up"))
    if form.text("overlap") in CHOICES["overlap"]:
        changes["overlap"] = Overlap(form.text("overlap"))
    return changes


def priority_of(form: Form) -> Priority:
    """Return the priority that a form gives.

    Raises:
        InvalidInput: it is unknown.
    """
    text = form.text("priority") or Priority.DEFAULT.value
    if text not in CHOICES["priority"]:
        known = ", ".join(CHOICES["priority"])
        raise InvalidInput("priority", f"{text[:20]!r} is unknown", f"give {known}")
    return Priority(text)


def spec_of(form: Form) -> JobSpec:
    """Return the new job that a form gives.

    Raises:
        InvalidInput: a field is wrong.
    """
    schedule = schedule_of(form)
    policies = default_policies(schedule)
    return JobSpec(
        name=form.text("name"),
        target=target_of(form),
        schedule=schedule,
        tenant=form.text("tenant") or "default",
        queue=form.text("queue") or "main",
        priority=priority_of(form),
        policies=replace(policies, **policy_changes(form, policies)),
        payload=payload_of(form),
        tags=tags_of(form),
    )


def edits_of(form: Form, before: Mapping[str, str], policies: Policies) -> dict[str, Any]:
    """Return what `Operations.edit` is to change: what differs from the fields as they were.

    Raises:
        InvalidInput: a field is wrong.
    """
    changes: dict[str, Any] = {}
    if differs(form, before, POLICIES):
        changes["policies"] = policy_changes(form, policies)
    if differs(form, before, TARGET):
        changes["target"] = target_of(form)
    if differs(form, before, ("payload",)):
        changes["payload"] = payload_of(form)
        if changes["payload"] is None and form.sent("payload"):  # an edit would let it stay
            raise InvalidInput("payload", "it cannot be taken away", "give {} for an empty one")
    if differs(form, before, ("queue",)):
        changes["queue"] = form.text("queue")
    if differs(form, before, ("priority",)):
        changes["priority"] = priority_of(form)
    if differs(form, before, ("tags",)):
        changes["tags"] = tags_of(form)
    return changes


def differs(form: Form, before: Mapping[str, str], names: tuple[str, ...]) -> bool:
    """Return whether one of some fields is not as it was."""
    return any(_plain(form.text(name)) != _plain(before.get(name, "")) for name in names)


def _plain(text: str) -> str:
    return text.strip().replace("\r\n", "\n")


def preview(spec: ScheduleSpec | None, job_id: str, now: datetime) -> Preview:
    """Return what a schedule means, with its next instants.

    Raises:
        InvalidInput: it is wrong.
    """
    schedule = make_schedule(spec, job_id, now)
    if schedule is None:
        return Preview(words="it runs only when it is asked for")
    zone = schedule.zone if isinstance(schedule, Cron) else "UTC"
    coming: list[Coming] = []
    at = schedule.next_after(now)
    while at is not None and len(coming) < COMING:
        local = at.astimezone(zone_clock(zone).info)
        coming.append(
            Coming(at=at, local=local, change=_change(coming[-1].local if coming else None, local))
        )
        at = schedule.next_after(at)
    notes: list[str] = []
    if not coming:
        notes.append("it names no instant from now on")
    if isinstance(spec, CronSpec) and "H" in spec.expr.upper().split() and not job_id:
        notes.append("H is worked out from the job's id, so these times will differ")
    return Preview(words=schedule.describe(), zone=zone, coming=tuple(coming), notes=tuple(notes))


def _change(before: datetime | None, local: datetime) -> str:
    """Return how the wall clock was changed between two local times."""
    if before is None:
        return ""
    old, new = before.utcoffset(), local.utcoffset()
    if old is None or new is None or old == new:
        return ""
    way = "forward" if new > old else "back"
    minutes = abs((new - old).total_seconds()) / 60
    return f"the clocks go {way} by {minutes:g} minutes before this"
