"""What the API answers: schemas of the documents that the command line's `--json` prints too."""

from __future__ import annotations

from dynsched.domain.access import Action, Role
from dynsched.domain.audit import AuditOutcome
from dynsched.domain.batch import BatchState, PauseCause
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.explanation import Cause
from dynsched.domain.health import Grade, Topic
from dynsched.domain.job import CatchUp, JobState, Overlap, Priority, SkipReason
from dynsched.domain.retry import Jitter
from dynsched.domain.run import RunKind, RunState
from dynsched_web.api.schema import (
    ANYTHING,
    COUNT,
    INSTANT,
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    dict_of,
    fields,
    list_of,
    orelse_null,
    page_of,
    word,
)

COUNTS = dict_of(COUNT)
MAYBE_TEXT = orelse_null(TEXT)
MAYBE_INSTANT = orelse_null(INSTANT)
MAYBE_NUMBER = orelse_null(NUMBER)
DESCRIBED: Schema = {
    "type": ["object", "null"],
    "properties": {"kind": TEXT, "words": TEXT},
    "additionalProperties": True,
}
"""A schedule or a target as it is stored, and in words."""
LEVEL = fields("Level", {"count": COUNT, "at_least": TRUTH})

PROBLEM = fields(
    "Problem",
    {"type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT},
    {"code": TEXT, "field": TEXT, "mend": TEXT, "column": COUNT},
)

_RUN = {
    "run_id": TEXT,
    "job_id": TEXT,
    "job_name": MAYBE_TEXT,
    "tenant": TEXT,
    "kind": {"type": "string", "enum": [kind.word for kind in RunKind]},
    "scheduled_for": INSTANT,
    "state": word(RunState),
    "reason": TEXT,
    "why": TEXT,
    "attempt": COUNT,
    "running_attempt": orelse_null(COUNT),
    "fence": COUNT,
    "queue": TEXT,
    "priority": word(Priority),
    "needs": TEXT,
    "available_at": INSTANT,
    "spent": COUNT,
    "limit": COUNT,
    "losses": COUNT,
    "replays": COUNT,
    "batch": MAYBE_TEXT,
    "origin": MAYBE_TEXT,
    "session": MAYBE_TEXT,
    "cancel_requested": TRUTH,
    "error": TEXT,
    "signature": TEXT,
    "discarded": TRUTH,
    "forced": TRUTH,
    "idempotency_key": TEXT,
    "created_at": INSTANT,
    "leased_at": MAYBE_INSTANT,
    "lease_ends_at": MAYBE_INSTANT,
    "first_started_at": MAYBE_INSTANT,
    "started_at": MAYBE_INSTANT,
    "ended_at": MAYBE_INSTANT,
    "expires_at": MAYBE_INSTANT,
}
RUN = fields("Run", _RUN)
RUNS = page_of("Runs", RUN)
ATTEMPT = fields(
    "Attempt",
    {
        "run_id": TEXT,
        "attempt": COUNT,
        "fence": COUNT,
        "session": MAYBE_TEXT,
        "outcome": TEXT,
        "started_at": MAYBE_INSTANT,
        "ended_at": INSTANT,
        "error_type": TEXT,
        "message": TEXT,
        "detail": TEXT,
        "output": ANYTHING,
        "by": MAYBE_TEXT,
        "batch": MAYBE_TEXT,
    },
)
PROGRESS = fields(
    "Progress",
    {"attempt": COUNT, "done": NUMBER, "total": MAYBE_NUMBER, "note": TEXT, "at": INSTANT},
)
RUN_DETAIL = fields(
    "RunDetail",
    {
        **_RUN,
        "payload": ANYTHING,
        "progress": orelse_null(PROGRESS),
        "attempts": list_of(ATTEMPT),
    },
)

POLICIES = fields(
    "Policies",
    {
        "catch_up": word(CatchUp),
        "catch_up_max": COUNT,
        "catch_up_window_s": NUMBER,
        "overlap": word(Overlap),
        "start_deadline_s": MAYBE_NUMBER,
        "flex_s": NUMBER,
        "timeout_s": MAYBE_NUMBER,
        "soft_timeout_s": MAYBE_NUMBER,
        "retention_s": NUMBER,
        "share_by_job": TRUTH,
        "hold": TRUTH,
        "retry": fields(
            "Retry",
            {
                "max_attempts": COUNT,
                "base_s": NUMBER,
                "factor": NUMBER,
                "cap_s": NUMBER,
                "jitter": word(Jitter),
                "rules": list_of({"type": "object"}),
            },
        ),
    },
)
_JOB = {
    "job_id": TEXT,
    "name": TEXT,
    "tenant": TEXT,
    "state": word(JobState),
    "reason": TEXT,
    "queue": TEXT,
    "priority": word(Priority),
    "needs": TEXT,
    "schedule": DESCRIBED,
    "next_at": MAYBE_INSTANT,
    "target": DESCRIBED,
    "policies": POLICIES,
    "tags": dict_of(TEXT),
    "skipped": COUNT,
    "created_at": INSTANT,
    "version": COUNT,
}
JOB = fields("Job", _JOB)
JOBS = page_of("Jobs", JOB)
CHANGED_JOB = fields("ChangedJob", {**_JOB, "effective_from": MAYBE_INSTANT})
SPAN = fields(
    "SkippedSpan", {"first": INSTANT, "last": INSTANT, "count": COUNT, "reason": word(SkipReason)}
)
JOB_DETAIL = fields(
    "JobDetail",
    {
        **_JOB,
        "payload": ANYTHING,
        "coming": list_of(INSTANT),
        "skipped_spans": list_of(SPAN),
        "runs": list_of(RUN),
    },
)
TIMES = page_of("Times", fields("Time", {"at": INSTANT, "local": INSTANT}))
EXPLANATION = fields(
    "Explanation",
    {
        "subject": TEXT,
        "at": INSTANT,
        "cause": word(Cause),
        "alarm": TRUTH,
        "headline": TEXT,
        "sentences": list_of(TEXT),
        "timeline": list_of(fields("", {"at": INSTANT, "what": TEXT})),
        "hints": list_of(TEXT),
        "run_id": MAYBE_TEXT,
        "job_id": MAYBE_TEXT,
        "examined": COUNT,
    },
)

GROUP = fields(
    "ErrorGroup",
    {
        "signature": TEXT,
        "error": TEXT,
        "count": LEVEL,
        "first_seen": INSTANT,
        "last_seen": INSTANT,
        "tenants": COUNTS,
        "jobs": COUNTS,
        "sampled": COUNT,
        "again": COUNT,
        "newest": TEXT,
        "per_hour": list_of(COUNT),
    },
)
GROUPS = page_of("ErrorGroups", GROUP)

_BATCH = {
    "batch_id": TEXT,
    "state": word(BatchState),
    "why": TEXT,
    "cause": orelse_null(word(PauseCause)),
    "actor": TEXT,
    "reason": TEXT,
    "filter": TEXT,
    "cut_off": INSTANT,
    "planned": COUNT,
    "moved": COUNT,
    "skipped": COUNTS,
    "failed": COUNT,
    "left": COUNT,
    "jobs": COUNTS,
    "tenants": COUNTS,
    "groups": COUNTS,
    "oldest": MAYBE_INSTANT,
    "newest": MAYBE_INSTANT,
    "skipped_expected": COUNTS,
    "warned": COUNTS,
    "notes": list_of(TEXT),
    "rate": MAYBE_NUMBER,
    "canary": COUNT,
    "canary_hold": TRUTH,
    "canary_passed": TRUTH,
    "breaker": NUMBER,
    "priority": word(Priority),
    "parent": MAYBE_TEXT,
    "pull_back": TRUTH,
    "created_at": INSTANT,
    "expires_at": INSTANT,
    "confirmed_at": MAYBE_INSTANT,
    "confirmed_by": MAYBE_TEXT,
    "ended_at": MAYBE_INSTANT,
}
BATCH = fields("Replay", _BATCH)
BATCHES = page_of("Replays", BATCH)
BATCH_DETAIL = fields(
    "ReplayDetail",
    {
        **_BATCH,
        "needs_reason": TRUTH,
        "needs_count": TRUTH,
        "eta_s": MAYBE_NUMBER,
        "sampled": COUNT,
        "done_again": COUNT,
        "dead_again": COUNT,
        "open_again": COUNT,
        "unattended": TRUTH,
        "newer_not_included": LEVEL,
    },
)
ENTRIES = page_of(
    "ReplayEntries",
    fields(
        "ReplayEntry",
        {
            "run_id": TEXT,
            "died_at": INSTANT,
            "outcome": word(Outcome),
            "why": TEXT,
            "run": orelse_null(RUN),
        },
    ),
)

TENANT = fields("Tenant", {"tenant": TEXT, "max_running": orelse_null(COUNT)})
TENANTS = page_of("Tenants", TENANT)
WORKER = fields(
    "Worker",
    {
        "session": TEXT,
        "host": TEXT,
        "pid": COUNT,
        "slots": COUNT,
        "leased": COUNT,
        "queues": list_of(TEXT),
        "last_beat": MAYBE_INSTANT,
        "expires_at": MAYBE_INSTANT,
        "open": TRUTH,
    },
)
WORKERS = page_of("Workers", WORKER)
AUDIT = page_of(
    "AuditEntries",
    fields(
        "AuditEntry",
        {
            "entry_id": TEXT,
            "at": INSTANT,
            "actor": TEXT,
            "role": word(Role),
            "via": TEXT,
            "action": word(Action),
            "target": TEXT,
            "tenant": TEXT,
            "reason": TEXT,
            "outcome": word(AuditOutcome),
            "note": TEXT,
            "details": dict_of(TEXT),
        },
    ),
)

DELAY = fields(
    "Delay", {"p50_s": MAYBE_NUMBER, "p95_s": MAYBE_NUMBER, "max_s": MAYBE_NUMBER, "samples": COUNT}
)
BEAT = fields("Beat", {"name": TEXT, "at": INSTANT, "note": TEXT, "lag_s": MAYBE_NUMBER})
HEALTH = fields(
    "Health",
    {
        "at": INSTANT,
        "age_s": NUMBER,
        "worst": word(Grade),
        "verdicts": list_of(
            fields("Verdict", {"level": word(Grade), "topic": word(Topic), "sentence": TEXT})
        ),
        "delay": DELAY,
        "delays": dict_of(DELAY),
        "oldest_due": dict_of(
            fields(
                "OldestDue",
                {
                    "run_id": TEXT,
                    "since": INSTANT,
                    "waited_s": NUMBER,
                    "priority": TEXT,
                    "lack": TEXT,
                },
            )
        ),
        "depth": dict_of(LEVEL),
        "queues": dict_of(LEVEL),
        "ready": LEVEL,
        "leased": LEVEL,
        "failed": LEVEL,
        "dead": LEVEL,
        "discarded": LEVEL,
        "leased_by_functions": LEVEL,
        "expired_leases": COUNT,
        "dead_per_hour": COUNT,
        "minutes": list_of(
            fields(
                "Minute",
                {
                    "at": INSTANT,
                    "started": COUNT,
                    "done": COUNT,
                    "failed": COUNT,
                    "dead": COUNT,
                    "delay_p50_s": MAYBE_NUMBER,
                    "delay_p95_s": MAYBE_NUMBER,
                    "delay_max_s": MAYBE_NUMBER,
                    "dead_tenants": COUNTS,
                    "dead_groups": COUNTS,
                },
            )
        ),
        "dispatchers": list_of(BEAT),
        "reapers": list_of(BEAT),
        "workers": list_of(WORKER),
        "top_tenants": list_of(
            fields(
                "BusyTenant",
                {
                    "tenant": TEXT,
                    "waiting": LEVEL,
                    "running": COUNT,
                    "started": COUNT,
                    "dead": COUNT,
                    "max_running": orelse_null(COUNT),
                },
            )
        ),
        "top_groups": list_of(GROUP),
        "jobs": COUNTS,
        "jobs_at_least": TRUTH,
        "cursor_lag_s": dict_of(MAYBE_NUMBER),
        "slots": COUNT,
        "sessions": COUNTS,
        "handed_off": TRUTH,
        "tenants": COUNT,
        "cost": fields(
            "Cost",
            {
                "requests": COUNT,
                "rows": COUNT,
                "took_s": NUMBER,
                "jobs_at": INSTANT,
                "groups_at": INSTANT,
            },
        ),
    },
)
