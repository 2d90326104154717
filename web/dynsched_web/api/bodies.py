"""What requests bring: the schemas of their bodies, and what those mean to the operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from dynsched.domain.instants import from_text
from dynsched.domain.job import CatchUp, Overlap, Policies, Priority
from dynsched.domain.names import NAME
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.target import METHODS, Target, target_from_body
from dynsched.domain.target_aws import Invocation
from dynsched.errors import InvalidInput
from dynsched.services.callbacks import Answer
from dynsched.services.specs import (
    AtSpec,
    CronSpec,
    EverySpec,
    JobSpec,
    ScheduleSpec,
    default_policies,
)
from dynsched_web.api.route import TENANT, WHY
from dynsched_web.api.schema import (
    ANYTHING,
    INSTANT,
    TEXT,
    TRUTH,
    Schema,
    by_kind,
    dict_of,
    fields,
    list_of,
    orelse_null,
    whole,
    word,
)

NAMED: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
SECONDS_MAX = 400_000_000
YEARS_MS = 1_000 * SECONDS_MAX
SECONDS: Schema = {"type": "number", "minimum": 0, "maximum": SECONDS_MAX}
SHOWN_TEXT: Schema = {"type": "string", "readOnly": True}
"""What documents show and requests may give back: it is not looked at."""

SCHEDULE = by_kind(
    "NewSchedule",
    fields(
        "",
        {"kind": {"const": "cron"}, "cron": TEXT},
        {
            "tz": TEXT,
            "dst": {"type": "string", "enum": ["vixie", "skip", "both"]},
            "seconds": TRUTH,
            "start": orelse_null(INSTANT),
            "end": orelse_null(INSTANT),
            "key": SHOWN_TEXT,
            "words": SHOWN_TEXT,
        },
    ),
    fields(
        "",
        {"kind": {"const": "interval"}, "every_ms": whole(1_000, YEARS_MS)},
        {
            "anchor": orelse_null(INSTANT),
            "start": orelse_null(INSTANT),
            "end": orelse_null(INSTANT),
            "words": SHOWN_TEXT,
        },
    ),
    fields("", {"kind": {"const": "once"}, "at": INSTANT}, {"words": SHOWN_TEXT}),
)
_STATUSES = list_of(whole(300, 599), 100)
TARGET = by_kind(
    "NewTarget",
    fields("", {"kind": {"const": "handler"}, "name": TEXT}, {"words": SHOWN_TEXT}),
    fields(
        "",
        {"kind": {"const": "http"}, "url": TEXT},
        {
            "method": {"type": "string", "enum": list(METHODS)},
            "headers": dict_of(TEXT),
            "body": TEXT,
            "retry": _STATUSES,
            "permanent": _STATUSES,
            "words": SHOWN_TEXT,
        },
    ),
    fields(
        "",
        {"kind": {"const": "command"}, "command": TEXT},
        {
            "env": dict_of(TEXT),
            "stdin": TEXT,
            "shell": TEXT,
            "user": TEXT,
            "cwd": TEXT,
            "words": SHOWN_TEXT,
        },
    ),
    fields(
        "",
        {"kind": {"const": "lambda"}, "function": TEXT},
        {"invocation": word(Invocation), "body": TEXT, "words": SHOWN_TEXT},
    ),
    fields(
        "",
        {"kind": {"const": "sqs"}, "url": TEXT},
        {"group": TEXT, "body": TEXT, "words": SHOWN_TEXT},
    ),
)
_RULE = fields(
    "",
    {"pattern": TEXT, "action": TEXT},
    {"delay_ms": whole(0, YEARS_MS)},
)
POLICIES = fields(
    "NewPolicies",
    {},
    {
        "catch_up": word(CatchUp),
        "catch_up_max": whole(1, 1_000),
        "catch_up_window_s": SECONDS,
        "overlap": word(Overlap),
        "start_deadline_s": orelse_null(SECONDS),
        "flex_s": SECONDS,
        "timeout_s": orelse_null(SECONDS),
        "soft_timeout_s": orelse_null(SECONDS),
        "retention_s": SECONDS,
        "share_by_job": TRUTH,
        "hold": {**TRUTH, "readOnly": True},
        "retry": fields(
            "NewRetry",
            {},
            {
                "max_attempts": whole(1, 1_000),
                "base_s": SECONDS,
                "factor": {"type": "number", "minimum": 1, "maximum": 100},
                "cap_s": SECONDS,
                "jitter": word(Jitter),
                "rules": list_of(_RULE, 100),
            },
        ),
    },
)
_PARTS: Mapping[str, Schema] = {
    "queue": NAMED,
    "priority": word(Priority),
    "policies": POLICIES,
    "payload": ANYTHING,
    "tags": dict_of(TEXT),
    "reason": WHY,
}
NEW_JOB = fields(
    "NewJob",
    {"name": NAMED, "target": TARGET},
    {"tenant": TENANT, "schedule": orelse_null(SCHEDULE), **_PARTS},
)
EDITED_JOB = fields(
    "JobChanges", {}, {"schedule": orelse_null(SCHEDULE), "target": TARGET, **_PARTS}
)
REASON = fields("Reason", {}, {"reason": WHY})
OUTCOME = fields(
    "Outcome",
    {"outcome": {"type": "string", "enum": ["done", "failed"]}},
    {
        "token": {"type": "string", "maxLength": 200},
        "output": ANYTHING,
        "error_type": TEXT,
        "message": TEXT,
        "trace": TEXT,
        "permanent": TRUTH,
        "retry_after_s": SECONDS,
        "reason": WHY,
    },
)
NEEDED_REASON = fields("NeededReason", {"reason": WHY})


def new_job(body: Mapping[str, Any], tenant: str) -> JobSpec:
    """Return the job that a body asks for.

    Args:
        body: a `NEW_JOB`.
        tenant: whose it is if the body does not say.

    Raises:
        InvalidInput: a value is wrong.
    """
    schedule = schedule_of(body.get("schedule"))
    return JobSpec(
        name=body["name"],
        target=target_of(body["target"]),
        schedule=schedule,
        tenant=body.get("tenant", tenant),
        queue=body.get("queue", "main"),
        priority=Priority(body.get("priority", "default")),
        policies=replace(
            default_policies(schedule),
            **policy_changes(body.get("policies", {}), default_policies(schedule)),
        ),
        payload=body.get("payload"),
        tags=body.get("tags", {}),
    )


def schedule_of(body: Mapping[str, Any] | None) -> ScheduleSpec | None:
    """Return the schedule that a body asks for; None runs by hand only.

    Raises:
        InvalidInput: an instant is none.
    """
    if body is None:
        return None
    if body["kind"] == "once":
        return AtSpec(at=from_text(body["at"], "schedule.at"))
    limits = {
        name: from_text(body[name], f"schedule.{name}")
        for name in ("start", "end")
        if body.get(name) is not None
    }
    if body["kind"] == "interval":
        if body.get("anchor") is not None:
            limits["start"] = from_text(body["anchor"], "schedule.anchor")
        return EverySpec(every=timedelta(milliseconds=body["every_ms"]), **limits)
    return CronSpec(
        expr=body["cron"],
        tz=body.get("tz", "UTC"),
        dst=body.get("dst", "vixie"),
        seconds=body.get("seconds", False),
        **limits,
    )


def target_of(body: Mapping[str, Any]) -> Target:
    """Return the target that a body asks for.

    Raises:
        InvalidInput: a field is wrong.
    """
    return target_from_body({name: value for name, value in body.items() if name != "words"})


def policy_changes(body: Mapping[str, Any], old: Policies) -> dict[str, Any]:
    """Return the fields of `Policies` that a body names.

    Raises:
        InvalidInput: a value of the retry policy is out of range.
    """
    found: dict[str, Any] = {}
    for name, value in body.items():
        if name == "hold":
            continue  # pausing sets it
        if name == "retry":
            found["retry"] = _retry(value, old.retry)
        elif name.endswith("_s"):
            found[name.removesuffix("_s")] = _duration(value)
        else:
            found[name] = _WORDS[name](value) if name in _WORDS else value
    return found


_WORDS: Mapping[str, Callable[[str], StrEnum]] = {"catch_up": CatchUp, "overlap": Overlap}


def _retry(body: Mapping[str, Any], old: RetryPolicy) -> RetryPolicy:
    found: dict[str, Any] = {}
    for name, value in body.items():
        if name == "rules":
            found["rules"] = RetryPolicy.from_body({"rules": value}).rules
        elif name.endswith("_s"):
            found[name.removesuffix("_s")] = _duration(value)
        else:
            found[name] = Jitter(value) if name == "jitter" else value
    return replace(old, **found)


def _duration(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def instant_of(body: Mapping[str, Any], name: str) -> Any:
    """Return an instant of a body or a query, None if it is not there.

    Raises:
        InvalidInput: it is no instant.
    """
    text = body.get(name)
    return None if text is None else from_text(text, name)


def answer_of(body: Mapping[str, Any]) -> Answer:
    """Return how work ended that a callback tells of.

    Args:
        body: an `OUTCOME`.

    Raises:
        InvalidInput: a field does not go with the outcome, or is wrong.
    """
    done = body["outcome"] == "done"
    foreign = ("error_type", "message", "trace", "permanent", "retry_after_s")
    for name in foreign if done else ("output",):
        if name in body:
            raise InvalidInput(name, f"it does not go with {body['outcome']}", "drop it")
    if done:
        return Answer.done(body.get("output"))
    return Answer.failed(
        body.get("error_type", "Failed"),
        body.get("message", ""),
        trace=body.get("trace", ""),
        permanent=body.get("permanent", False),
        retry_after=duration_of(body, "retry_after_s"),
    )


def some_change(body: Mapping[str, Any]) -> None:
    """Refuse an edit that changes nothing.

    Raises:
        InvalidInput: it names nothing to change.
    """
    if not body.keys() - {"reason"}:
        known = ", ".join(EDITED_JOB["properties"])
        raise InvalidInput("body", "it names nothing to change", f"give some of {known}")


def duration_of(body: Mapping[str, Any], name: str) -> timedelta | None:
    """Return a duration of a body, None if it is not there."""
    return _duration(body.get(name))
