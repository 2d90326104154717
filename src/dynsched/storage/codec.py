"""Codec: jobs and runs to row bodies and back.

Attribute names are short and defaults are left out, since a write is charged by the whole item's
size. Instants are milliseconds since 1970, durations are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from dynsched.domain.instants import from_ms, from_text, to_ms
from dynsched.domain.job import (
    CatchUp,
    Generation,
    Job,
    JobState,
    Overlap,
    Policies,
    Priority,
    SkipReason,
    Span,
)
from dynsched.domain.recurrence import read_schedule
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import RETENTION, Run, RunKey, RunKind, RunState
from dynsched.domain.target import target_from_body
from dynsched.storage.engine import Body, Row

Attributes = dict[str, Any]  # a body while it is being built

MILLISECOND = timedelta(milliseconds=1)

RETENTION_MS = RETENTION // MILLISECOND
STATES = {state.value: state for state in RunState}
KINDS = {kind.value: kind for kind in RunKind}
PRIORITIES = {priority.value: priority for priority in Priority}


def encode_run(run: Run) -> Attributes:
    """Return the body of a run's row."""
    key = run.key
    body: Attributes = {
        "j": key.job_id,
        "at": to_ms(key.scheduled_for),
        "k": key.kind.value,
        "t": run.tenant,
        "s": run.state.value,
        "av": to_ms(run.available_at),
        "n": run.needs,
        "l": run.limit,
        "cr": to_ms(run.created_at),
    }
    if key.nonce:
        body["no"] = key.nonce
    if run.queue != "main":
        body["q"] = run.queue
    if run.priority is not Priority.DEFAULT:
        body["p"] = run.priority.value
    if run.share != run.tenant:
        body["sh"] = run.share
    if run.retention != RETENTION:
        body["rt"] = run.retention // MILLISECOND
    for name, attribute in RUN_PLAIN:
        value = getattr(run, attribute)
        if value:
            body[name] = value
    for name, attribute in RUN_INSTANTS:
        value = getattr(run, attribute)
        if value is not None:
            body[name] = to_ms(value)
    return body


RUN_PLAIN = (
    ("r", "reason"),
    ("f", "fence"),
    ("a", "attempt"),
    ("sp", "spent"),
    ("lo", "losses"),
    ("rp", "reported"),
    ("re", "replays"),
    ("b", "batch"),
    ("o", "origin"),
    ("w", "waits"),
    ("se", "session"),
    ("cb", "callback"),
    ("c", "cancel_requested"),
    ("wa", "waiter"),
    ("pl", "payload"),
    ("pr", "payload_ref"),
    ("e", "error"),
    ("sg", "signature"),
    ("h", "hidden"),
    ("fo", "forced"),
)
RUN_INSTANTS = (
    ("g", "generation"),
    ("ls", "leased_at"),
    ("le", "lease_ends_at"),
    ("fs", "first_started_at"),
    ("st", "started_at"),
    ("en", "ended_at"),
)


def _instant(value: object) -> datetime | None:
    return None if value is None else from_ms(cast(int, value))


def decode_run(row: Row) -> Run:
    """Return the run in a row."""
    body = cast(Mapping[str, Any], row.body)
    get, tenant = body.get, body["t"]
    fields = {attribute: body[name] for name, attribute in RUN_PLAIN if name in body}
    fields |= {attribute: from_ms(body[name]) for name, attribute in RUN_INSTANTS if name in body}
    return Run(
        key=RunKey(body["j"], from_ms(body["at"]), KINDS[body["k"]], get("no", "")),
        tenant=tenant,
        queue=get("q", "main"),
        priority=PRIORITIES[get("p", "default")],
        share=get("sh", tenant),
        state=STATES[body["s"]],
        available_at=from_ms(body["av"]),
        needs=body["n"],
        limit=body["l"],
        retention=get("rt", RETENTION_MS) * MILLISECOND,
        created_at=from_ms(body["cr"]),
        expires_at_s=row.expires_at_s,
        version=row.version,
        **fields,
    )


def encode_generation(generation: Generation) -> Attributes:
    """Return the body of a generation, in the job's row or apart."""
    schedule = generation.schedule
    return {
        "f": to_ms(generation.effective_from),
        "e": generation.enabled,
        "s": None if schedule is None else schedule.to_body(),
    }


def decode_generation(body: Body) -> Generation:
    """Return the generation in a body."""
    schedule = body["s"]
    return Generation(
        effective_from=from_ms(cast(int, body["f"])),
        enabled=bool(body["e"]),
        schedule=None if schedule is None else read_schedule(cast(Body, schedule)),
    )


def encode_span(span: Span) -> Attributes:
    """Return the body of a skipped span, in the job's row or apart."""
    return {"a": to_ms(span.first), "z": to_ms(span.last), "n": span.count, "r": span.reason.value}


def decode_span(body: Body) -> Span:
    """Return the span in a body."""
    return Span(
        first=from_ms(cast(int, body["a"])),
        last=from_ms(cast(int, body["z"])),
        count=cast(int, body["n"]),
        reason=SkipReason(cast(str, body["r"])),
    )


DEFAULTS = Policies()
DURATIONS = ("catch_up_window", "start_deadline", "flex", "timeout", "soft_timeout", "retention")
CHOICES = {"catch_up": CatchUp, "overlap": Overlap}


def encode_policies(policies: Policies) -> Attributes:
    """Return the choices that differ from the defaults."""
    body: Attributes = {}
    for name in Policies.__slots__:
        value = getattr(policies, name)
        if value == getattr(DEFAULTS, name):
            continue
        if name == "retry":
            body[name] = policies.retry.to_body()
        elif name in DURATIONS:
            body[name] = None if value is None else value // MILLISECOND
        else:
            body[name] = value.value if name in CHOICES else value
    return body


def decode_policies(body: Mapping[str, Any]) -> Policies:
    """Return the choices in a body."""
    if not body:
        return DEFAULTS
    choices: Attributes = dict(body)
    for name, value in body.items():
        if name == "retry":
            choices[name] = RetryPolicy.from_body(value)
        elif name in DURATIONS:
            choices[name] = None if value is None else value * MILLISECOND
        elif name in CHOICES:
            choices[name] = CHOICES[name](value)
    return Policies(**choices)


def encode_job(job: Job) -> Attributes:
    """Return the body of a job's row."""
    body: Attributes = {
        "t": job.tenant,
        "n": job.name,
        "nd": job.needs,
        "g": [encode_generation(generation) for generation in job.generations],
        "cr": to_ms(job.created_at),
    }
    if job.target is not None and job.target_ref is None:
        body["tg"] = job.target.to_body()
    if job.queue != "main":
        body["q"] = job.queue
    if job.priority is not Priority.DEFAULT:
        body["p"] = job.priority.value
    if job.state is not JobState.ACTIVE:
        body["s"] = job.state.value
    if job.next_at is not None:
        body["nx"] = to_ms(job.next_at)
    if job.spans:
        body["sk"] = [encode_span(span) for span in job.spans]
    policies = encode_policies(job.policies)
    if policies:
        body["po"] = policies
    for name, attribute in JOB_PLAIN:
        value = getattr(job, attribute)
        if value:
            body[name] = value
    return body


JOB_PLAIN = (
    ("r", "reason"),
    ("og", "older_generations"),
    ("os", "older_spans"),
    ("sn", "skipped"),
    ("pl", "payload"),
    ("pr", "payload_ref"),
    ("tr", "target_ref"),
    ("tags", "tags"),
)


def decode_job(row: Row) -> Job:
    """Return the job in a row."""
    body = cast(Mapping[str, Any], row.body)
    get = body.get
    return Job(
        job_id=row.key.pk,
        tenant=body["t"],
        name=body["n"],
        needs=body["nd"],
        target=target_from_body(body["tg"]) if "tg" in body else None,
        queue=get("q", "main"),
        priority=PRIORITIES[get("p", "default")],
        policies=decode_policies(get("po", {})),
        state=JobState(get("s", "active")),
        reason=get("r", ""),
        next_at=_instant(get("nx")),
        generations=tuple(decode_generation(item) for item in body["g"]),
        older_generations=get("og", False),
        spans=tuple(decode_span(item) for item in get("sk", ())),
        older_spans=get("os", False),
        skipped=get("sn", 0),
        payload=get("pl"),
        payload_ref=get("pr"),
        target_ref=get("tr"),
        tags=get("tags", {}),
        created_at=from_ms(body["cr"]),
        version=row.version,
    )


def instant_of_span_row(sort: str) -> datetime:
    """Return the last instant of a span row from its sort key."""
    return from_text(sort.partition("#")[2])
