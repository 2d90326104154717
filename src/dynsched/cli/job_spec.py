"""Job specifications from what was typed: schedules, targets, policies, handlers' defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from dynsched.cli.values import pairs
from dynsched.client import policies_of, spec_of
from dynsched.domain.job import CatchUp, Overlap, Policies, Priority
from dynsched.domain.recurrence import Cron, Interval, Schedule
from dynsched.domain.target import CommandTarget, HandlerTarget, HttpTarget, Target
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.errors import InvalidInput
from dynsched.services.specs import (
    AfterSpec,
    AtSpec,
    CronSpec,
    EverySpec,
    JobSpec,
    ScheduleSpec,
    default_policies,
)
from dynsched.targets.app import App, JobDefaults

Typed = Mapping[str, Any]

SCHEDULES = {
    "cron": "--cron",
    "every": "--every",
    "at": "--at",
    "after_delay": "--in",
    "now": "--now",
    "manual": "--manual",
}
DECLARED: tuple[Literal["cron"], Literal["every"], Literal["tz"]] = ("cron", "every", "tz")
TARGETS = {
    "handler": "--handler",
    "http": "--http",
    "command": "--command",
    "lambda_": "--lambda",
    "sqs": "--sqs",
}
ONLY_WITH_CRON = {"tz": "--tz", "dst": "--dst", "seconds": "--seconds"}
ONLY_RECURRING = {"start": "--start", "end": "--end"}
HTTP_ONLY = {
    "method": "--method",
    "header": "--header",
    "retry_status": "--retry-status",
    "permanent_status": "--permanent-status",
}
COMMAND_ONLY = {
    "env": "--env",
    "stdin": "--stdin",
    "shell": "--shell",
    "user": "--user",
    "cwd": "--cwd",
}
LAMBDA_ONLY = {"invocation": "--invocation"}
SQS_ONLY = {"group": "--group"}
WITH_BODY = {"http": "--http", "lambda_": "--lambda", "sqs": "--sqs"}
ONLY_WITH: Mapping[str, Mapping[str, str]] = {
    "http": HTTP_ONLY,
    "command": COMMAND_ONLY,
    "lambda_": LAMBDA_ONLY,
    "sqs": SQS_ONLY,
}
"""The options of each kind of target that no other one has."""
RETRY = {
    "max_attempts": "max_attempts",
    "retry_base": "base",
    "retry_factor": "factor",
    "retry_cap": "cap",
}
PLAIN_POLICIES = (
    "timeout", "soft_timeout", "catch_up_max", "catch_up_window", "start_deadline", "flex",
    "retention", "share_by_job",
)  # fmt: skip


def job_spec(name: str, typed: Typed, app: App | None) -> JobSpec:
    """Return what a new job shall be.

    Args:
        name: its name.
        typed: the options by their parameters' names.
        app: where its handler must be found; None asks nobody.

    Raises:
        InvalidInput: options are missing, exclude each other, or a value is wrong.
    """
    target = new_target(typed)
    declared: JobDefaults = {}
    spec = JobSpec(name=name, target=target, tenant=typed.get("tenant", "default"))
    if app is not None and isinstance(target, HandlerTarget):
        declared = app.get(target.name).defaults
        tenant = typed.get("tenant", declared.get("tenant", "default"))
        spec = replace(spec_of(target.name, tenant, declared), name=name)
    values = dict(typed)
    if not any(kind in typed for kind in SCHEDULES):
        values = {**{kind: declared[kind] for kind in DECLARED if kind in declared}, **typed}
    spec = replace(spec, schedule=new_schedule(values))
    policies = policies_of(default_policies(spec.schedule), declared)
    tags = {**spec.tags, **pairs(typed.get("tag", ()), "--tag")}
    return replace(
        spec,
        queue=typed.get("queue", spec.queue),
        priority=Priority(typed["priority"]) if "priority" in typed else spec.priority,
        policies=replace(policies, **policy_changes(typed, policies)),
        payload=typed.get("payload"),
        tags=tags,
    )


def _only_one(typed: Typed, options: Mapping[str, str], what: str) -> str | None:
    """Return the name of the one option that was typed, None if none was."""
    names = [name for name in options if typed.get(name) not in (None, False)]
    if len(names) > 1:
        both = " and ".join(options[name] for name in names)
        raise InvalidInput(what, f"{both} exclude each other", "give one of them")
    return names[0] if names else None


def _refuse(typed: Typed, options: Mapping[str, str], goes_with: str) -> None:
    for name, option in options.items():
        if name in typed:
            raise InvalidInput(option, f"it goes with {goes_with}", "drop it, or give both")


# schedules


def new_schedule(typed: Typed) -> ScheduleSpec | None:
    """Return the schedule of a new job, None for one that runs by hand only.

    Raises:
        InvalidInput: none or several were typed, or an option does not go with it.
    """
    kind = _only_one(typed, SCHEDULES, "schedule")
    if kind is None:
        listed = ", ".join(SCHEDULES.values())
        raise InvalidInput("schedule", "there is none", f"give one of {listed}")
    return _spec_of(kind, typed)


def _spec_of(kind: str, typed: Typed) -> ScheduleSpec | None:
    if kind != "cron":
        _refuse(typed, ONLY_WITH_CRON, "--cron")
    if kind not in ("cron", "every"):
        _refuse(typed, ONLY_RECURRING, "--cron or --every")
    if kind == "cron":
        return CronSpec(
            expr=typed["cron"],
            tz=typed.get("tz", "UTC"),
            dst=typed.get("dst", "vixie"),
            seconds=typed.get("seconds", False),
            start=typed.get("start"),
            end=typed.get("end"),
        )
    if kind == "every":
        return EverySpec(every=typed["every"], start=typed.get("start"), end=typed.get("end"))
    if kind == "at":
        return AtSpec(at=typed["at"])
    if kind == "after_delay":
        return AfterSpec(delay=typed["after_delay"])
    return AfterSpec(delay=timedelta(0)) if kind == "now" else None


def edits_schedule(typed: Typed) -> bool:
    """Return whether an option that was typed changes the schedule."""
    return any(name in typed for name in (*SCHEDULES, *ONLY_WITH_CRON, *ONLY_RECURRING))


def edited_schedule(typed: Typed, old: Schedule | None) -> ScheduleSpec | None:
    """Return the schedule of a job after an edit; what was not typed stays as it was.

    Raises:
        InvalidInput: several were typed, or an option does not go with the job's schedule.
    """
    kind = _only_one(typed, SCHEDULES, "schedule")
    if isinstance(old, Cron) and kind in (None, "cron"):
        kept: dict[str, Any] = {
            "cron": old.expr,
            "tz": old.zone,
            "dst": old.dst.value,
            "seconds": old.seconds,
            "start": old.start,
            "end": old.end,
        }
        return _spec_of("cron", {**kept, **typed})
    if isinstance(old, Interval) and kind is None:
        _refuse(typed, ONLY_WITH_CRON, "--cron")
        every, start, end = old.every, old.anchor, old.end
        return EverySpec(every=every, start=typed.get("start") or start, end=typed.get("end", end))
    if kind is None:
        _refuse(typed, {**ONLY_WITH_CRON, **ONLY_RECURRING}, "a recurring schedule")
    assert kind is not None
    return _spec_of(kind, typed)


# targets


def new_target(typed: Typed) -> Target:
    """Return what a new job does.

    Raises:
        InvalidInput: none or several were typed, or an option does not go with it.
    """
    kind = _only_one(typed, TARGETS, "target")
    if kind is None:
        listed = ", ".join(TARGETS.values())
        raise InvalidInput("target", "there is nothing to do", f"give one of {listed}")
    return _target_of(kind, typed)


def _target_of(kind: str, typed: Typed) -> Target:
    for other, options in ONLY_WITH.items():
        if kind != other:
            _refuse(typed, options, TARGETS[other])
    if kind not in WITH_BODY:
        _refuse(typed, {"body": "--body"}, " or ".join(WITH_BODY.values()))
    if kind == "lambda_":
        how = Invocation(typed.get("invocation", Invocation.SYNC))
        return LambdaTarget(typed["lambda_"], invocation=how, body=typed.get("body"))
    if kind == "sqs":
        return SqsTarget(typed["sqs"], group=typed.get("group"), body=typed.get("body"))
    if kind == "http":
        return HttpTarget(
            typed["http"],
            method=typed.get("method", "POST"),
            headers=pairs(typed.get("header", ()), "--header"),
            body=typed.get("body"),
            retry_statuses=tuple(typed.get("retry_status", ())),
            permanent_statuses=tuple(typed.get("permanent_status", ())),
        )
    if kind == "command":
        return CommandTarget(
            typed["command"],
            environment=pairs(typed.get("env", ()), "--env"),
            stdin=typed.get("stdin"),
            shell=typed.get("shell"),
            user=typed.get("user"),
            cwd=typed.get("cwd"),
        )
    return HandlerTarget(typed["handler"])


def edited_target(typed: Typed, old: Callable[[], Target | None]) -> Target | None:
    """Return what a job does after an edit, None if that is not changed.

    Args:
        typed: the options by their parameters' names.
        old: reads what it does now; asked only if that stays in part.

    Raises:
        InvalidInput: several were typed, or an option does not go with the job's target.
    """
    kind = _only_one(typed, TARGETS, "target")
    if kind is not None:
        return _target_of(kind, typed)
    of_targets = [name for options in ONLY_WITH.values() for name in options]
    if not any(name in typed for name in ("body", *of_targets)):
        return None
    before = old()
    if before is None or isinstance(before, HandlerTarget):
        _refuse(typed, {"body": "--body"}, " or ".join(WITH_BODY.values()))
        for other, options in ONLY_WITH.items():
            _refuse(typed, options, TARGETS[other])
        return None
    kind, kept = _as_typed(before)
    return _target_of(kind, {**kept, **typed})


def _as_typed(target: HttpTarget | CommandTarget | LambdaTarget | SqsTarget) -> tuple[str, Typed]:
    """Return a target's kind, and the options that make it."""
    if isinstance(target, HttpTarget):
        return "http", {
            "http": target.url,
            "method": target.method,
            "header": tuple(target.headers.items()),
            "body": target.body,
            "retry_status": target.retry_statuses,
            "permanent_status": target.permanent_statuses,
        }
    if isinstance(target, LambdaTarget):
        return "lambda_", {
            "lambda_": target.function,
            "invocation": target.invocation,
            "body": target.body,
        }
    if isinstance(target, SqsTarget):
        return "sqs", {"sqs": target.queue_url, "group": target.group, "body": target.body}
    return "command", {
        "command": target.command,
        "env": tuple(target.environment.items()),
        "stdin": target.stdin,
        "shell": target.shell,
        "user": target.user,
        "cwd": target.cwd,
    }


# policies


def policy_changes(typed: Typed, old: Policies) -> dict[str, Any]:
    """Return the fields of `Policies` that were typed.

    Raises:
        InvalidInput: a value of the retry policy is out of range.
    """
    changes: dict[str, Any] = {name: typed[name] for name in PLAIN_POLICIES if name in typed}
    if "catch_up" in typed:
        changes["catch_up"] = CatchUp(typed["catch_up"])
    if "overlap" in typed:
        changes["overlap"] = Overlap(typed["overlap"])
    retry = {field: typed[name] for name, field in RETRY.items() if name in typed}
    if retry:
        changes["retry"] = replace(old.retry, **retry)
    return changes
