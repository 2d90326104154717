"""Documents: jobs, runs and attempts as plain JSON values, the same for CLI and API.

Names are snake_case, instants ISO 8601 in UTC with `Z`, durations numbers of seconds (`_s`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta

from dynsched.domain.audit import AuditEntry
from dynsched.domain.explanation import Explanation
from dynsched.domain.health import Level
from dynsched.domain.instants import EPOCH, to_text
from dynsched.domain.job import Job, Policies, Span
from dynsched.domain.payload import Json
from dynsched.domain.recurrence import Schedule
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import Target
from dynsched.domain.token import Token
from dynsched.services.capacity import why_words
from dynsched.services.handoff_views import HandOffLine
from dynsched.services.job_views import JobDetail, coming
from dynsched.services.run_views import RunDetail
from dynsched.services.store_views import Stats
from dynsched.storage.control import Tenant
from dynsched.storage.runs import Attempt, ProgressNote

Document = dict[str, Json]


def instant(value: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC with `Z`."""
    return None if value is None else to_text(value)


def seconds(value: timedelta | None) -> int | float | None:
    """Return a duration in seconds, a whole number where it is one.

    >>> seconds(timedelta(minutes=1)), seconds(timedelta(milliseconds=1500)), seconds(None)
    (60, 1.5, None)
    """
    if value is None:
        return None
    number = value.total_seconds()
    return int(number) if number.is_integer() else number


def run_document(run: Run, *, job_name: str | None = None, lack: str = "") -> Document:
    """Return a run; `why` is what people are shown, `reason` as it is stored.

    Args:
        run: the run.
        job_name: its job's name, if it is known.
        lack: why no living worker can run it.
    """
    leased = run.state is RunState.LEASED
    return {
        "run_id": run.run_id,
        "job_id": run.job_id,
        "job_name": job_name,
        "tenant": run.tenant,
        "kind": run.key.kind.word,
        "scheduled_for": to_text(run.scheduled_for),
        "state": run.state.value,
        "reason": run.reason,
        "why": why_words(run, lack),
        "attempt": run.attempt,
        "running_attempt": run.attempt + 1 if leased else None,
        "fence": run.fence,
        "queue": run.queue,
        "priority": run.priority.value,
        "needs": run.needs,
        "available_at": to_text(run.available_at),
        "spent": run.spent,
        "limit": run.limit,
        "losses": run.losses,
        "replays": run.replays,
        "batch": run.batch or None,
        "origin": run.origin or None,
        "session": run.session,
        "cancel_requested": run.cancel_requested,
        "error": run.error,
        "signature": run.signature,
        "discarded": run.hidden,
        "forced": run.forced,
        "idempotency_key": run.idempotency_key,
        **_moments(run),
    }


def _moments(run: Run) -> Document:
    """Return when a run was what."""
    leased = run.state is RunState.LEASED
    expires_at = None if run.expires_at_s is None else EPOCH + timedelta(seconds=run.expires_at_s)
    return {
        "created_at": to_text(run.created_at),
        "leased_at": instant(run.leased_at) if leased else None,
        "lease_ends_at": instant(run.lease_ends_at),
        "first_started_at": instant(run.first_started_at),
        "started_at": instant(run.started_at),
        "ended_at": instant(run.ended_at),
        "expires_at": instant(expires_at),
    }


def attempt_document(attempt: Attempt) -> Document:
    """Return what is kept of one try."""
    return {
        "run_id": attempt.run_id,
        "attempt": attempt.number,
        "fence": attempt.fence,
        "session": attempt.session,
        "outcome": attempt.outcome,
        "started_at": instant(attempt.started_at),
        "ended_at": to_text(attempt.ended_at),
        "error_type": attempt.error_type,
        "message": attempt.message,
        "detail": attempt.detail,
        "output": _output(attempt),
        "by": attempt.by or None,
        "batch": attempt.batch or None,
    }


def _output(attempt: Attempt) -> Json:
    """Return what a try left, a failure's or a success's, as it was before it became text."""
    text = attempt.output or ("" if attempt.error_type else attempt.detail)
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value


def run_detail_document(detail: RunDetail) -> Document:
    """Return a run with its attempts and its own payload."""
    name = None if detail.job is None else detail.job.name
    return {
        **run_document(detail.run, job_name=name, lack=detail.lack),
        "payload": None if detail.payload is None else json.loads(detail.payload),
        "progress": None if detail.progress is None else progress_document(detail.progress),
        "attempts": [attempt_document(attempt) for attempt in detail.attempts],
    }


def progress_document(note: ProgressNote) -> Document:
    """Return what a run's handler reported last, in units of its own."""
    return {
        "attempt": note.attempt,
        "done": note.done,
        "total": note.total,
        "note": note.note,
        "at": to_text(note.at),
    }


def schedule_document(schedule: Schedule | None) -> Document | None:
    """Return a schedule as it is stored, and in words."""
    if schedule is None:
        return None
    return {**schedule.to_body(), "words": schedule.describe()}


def target_document(target: Target | None) -> Document | None:
    """Return what a job does, as it is stored, and in words."""
    return None if target is None else {**target.to_body(), "words": target.describe()}


def policies_document(policies: Policies) -> Document:
    """Return a job's choices, the defaults too."""
    document: Document = {}
    for one in fields(Policies):
        value = getattr(policies, one.name)
        if one.name == "retry":
            document["retry"] = retry_document(policies.retry)
        elif isinstance(getattr(_EXAMPLE, one.name), timedelta):
            document[f"{one.name}_s"] = seconds(value)
        else:
            document[one.name] = getattr(value, "value", value)
    return document


_EXAMPLE = Policies(start_deadline=timedelta(1), soft_timeout=timedelta(1))
"""Tells which of the choices are durations."""


def retry_document(policy: RetryPolicy) -> Document:
    """Return how failed runs are tried again; rules as they are stored."""
    return {
        "max_attempts": policy.max_attempts,
        "base_s": seconds(policy.base),
        "factor": policy.factor,
        "cap_s": seconds(policy.cap),
        "jitter": policy.jitter.value,
        "rules": policy.to_body().get("rules", []),
    }


def span_document(span: Span) -> Document:
    """Return occurrences that were counted as skipped."""
    return {
        "first": to_text(span.first),
        "last": to_text(span.last),
        "count": span.count,
        "reason": span.reason.value,
    }


def job_document(job: Job, now: datetime) -> Document:
    """Return a job without its large parts; `next_at` is its next instant after `now`."""
    ahead = coming(job, now, 1)
    return {
        "job_id": job.job_id,
        "name": job.name,
        "tenant": job.tenant,
        "state": job.state.value,
        "reason": job.reason,
        "queue": job.queue,
        "priority": job.priority.value,
        "needs": job.needs,
        "schedule": schedule_document(job.schedule),
        "next_at": instant(ahead[0]) if ahead else None,
        "target": target_document(job.target),
        "policies": policies_document(job.policies),
        "tags": dict(job.tags),
        "skipped": job.skipped,
        "created_at": to_text(job.created_at),
        "version": job.version,
    }


def job_detail_document(
    detail: JobDetail, now: datetime, lacks: Mapping[str, str] | None = None
) -> Document:
    """Return a job with its parts, its next instants and its newest runs.

    Args:
        detail: the job.
        now: the present instant.
        lacks: by run id, why no living worker can run it.
    """
    job, found = detail.job, lacks or {}
    return {
        **job_document(job, now),
        "target": target_document(detail.target),
        "payload": None if detail.payload is None else json.loads(detail.payload),
        "coming": [to_text(at) for at in detail.coming],
        "skipped_spans": [span_document(span) for span in (*detail.older_spans, *job.spans)],
        "runs": [
            run_document(run, job_name=job.name, lack=found.get(run.run_id, ""))
            for run in detail.runs
        ],
    }


def audit_document(entry: AuditEntry) -> Document:
    """Return an entry of the audit."""
    return {
        "entry_id": entry.entry_id,
        "at": to_text(entry.at),
        "actor": entry.actor,
        "role": entry.role.value,
        "via": entry.via,
        "action": entry.action.value,
        "target": entry.target,
        "tenant": entry.tenant,
        "reason": entry.reason,
        "outcome": entry.outcome.value,
        "note": entry.note,
        "details": dict(entry.details),
    }


def token_document(token: Token) -> Document:
    """Return a token without anything of its secret."""
    return {
        "name": token.name,
        "role": token.role.value,
        "tenant": token.tenant,
        "created_at": to_text(token.created_at),
        "created_by": token.created_by,
        "expires_at": to_text(token.expires_at),
        "revoked_at": instant(token.revoked_at),
        "revoked_by": token.revoked_by or None,
    }


def tenant_document(tenant: Tenant) -> Document:
    """Return a tenant's settings."""
    return {"tenant": tenant.name, "max_running": tenant.max_running}


def hand_off_document(line: HandOffLine) -> Document:
    """Return where messages about ready runs go."""
    return {
        "queue": line.queue,
        "priority": line.priority.value,
        "url": line.url,
        "waiting": line.waiting,
        "problem": line.problem,
    }


def level_document(level: Level) -> Document:
    """Return a count, and whether there may be more."""
    return {"count": level.count, "at_least": level.at_least}


def stats_document(stats: Stats) -> Document:
    """Return the levels and the health of a store."""
    return {
        "at": to_text(stats.now),
        "runs": {name: level_document(level) for name, level in stats.runs.items()},
        "queues": [
            {
                "queue": queue.queue,
                "ready": level_document(queue.ready),
                "oldest_due_at": instant(queue.oldest_due_at),
                "oldest_due_s": seconds(
                    None if queue.oldest_due_at is None else stats.now - queue.oldest_due_at
                ),
                "sessions": queue.sessions,
                "handed_off": queue.handed_off,
                "lacks": [
                    {"why": lack, "runs": count} for lack, count in sorted(queue.lacks.items())
                ],
            }
            for queue in stats.queues
        ],
        "sessions": dict(stats.sessions),
        "slots": stats.slots,
        "cursor_lag_s": {kind: seconds(lag) for kind, lag in stats.cursor_lags.items()},
        "jobs": dict(stats.jobs),
        "jobs_at_least": stats.jobs_at_least,
        "tenants": stats.tenants,
    }


def explanation_document(explained: Explanation) -> Document:
    """Return why a run or an instant is where it is; `cause` is a code that scripts may rely on."""
    return {
        "subject": explained.subject,
        "at": to_text(explained.at),
        "cause": explained.cause.value,
        "alarm": explained.alarm,
        "headline": explained.headline,
        "sentences": list(explained.sentences),
        "timeline": [{"at": to_text(at), "what": what} for at, what in explained.timeline],
        "hints": list(explained.hints),
        "run_id": explained.run_id,
        "job_id": explained.job_id,
        "examined": explained.examined,
    }
