"""Documents of a store's health and of error groups; the form is that of `documents`."""

from __future__ import annotations

from dataclasses import asdict

from dynsched.domain.health import (
    Beat,
    Delay,
    ErrorGroup,
    Health,
    MinutePoint,
    OldestDue,
    TenantLine,
    WorkerLine,
)
from dynsched.domain.instants import to_text
from dynsched.services.documents import Document, instant, level_document, seconds


def health_document(health: Health) -> Document:
    """Return the whole of a health; verdicts first, as scripts ask for them."""
    return {
        "at": to_text(health.at),
        "age_s": seconds(health.age),
        "worst": health.worst.value,
        "verdicts": [
            {"level": one.level.value, "topic": one.topic.value, "sentence": one.sentence}
            for one in health.verdicts
        ],
        "delay": delay_document(health.delay),
        "delays": {name: delay_document(one) for name, one in health.delays.items()},
        "oldest_due": {
            queue: _oldest_document(one, health) for queue, one in health.oldest_due.items()
        },
        **_levels(health),
        "expired_leases": health.expired_leases,
        "dead_per_hour": health.dead_per_hour,
        "minutes": [_minute_document(one) for one in health.minutes],
        "dispatchers": [_beat_document(one) for one in health.dispatchers],
        "reapers": [_beat_document(one) for one in health.reapers],
        "workers": [_worker_document(one) for one in health.workers],
        "top_tenants": [_tenant_document(one) for one in health.top_tenants],
        "top_groups": [group_document(one) for one in health.top_groups],
        "jobs": dict(health.jobs_by_state),
        "jobs_at_least": health.jobs_at_least,
        "cursor_lag_s": {kind: seconds(lag) for kind, lag in health.cursor_lags.items()},
        "slots": health.slots,
        "sessions": dict(health.sessions),
        "handed_off": health.handed_off,
        "tenants": health.tenants,
        "cost": {
            "requests": health.cost.requests,
            "rows": health.cost.rows,
            "took_s": seconds(health.cost.took),
            "jobs_at": to_text(health.cost.jobs_at),
            "groups_at": to_text(health.cost.groups_at),
        },
    }


def _levels(health: Health) -> Document:
    return {
        "depth": {name: level_document(level) for name, level in health.depth.items()},
        "queues": {name: level_document(level) for name, level in health.queues.items()},
        "ready": level_document(health.ready),
        "leased": level_document(health.leased),
        "failed": level_document(health.failed),
        "dead": level_document(health.dead),
        "discarded": level_document(health.discarded),
        "leased_by_functions": level_document(health.leased_by_functions),
    }


def delay_document(delay: Delay) -> Document:
    """Return start delays in short, in seconds; null without a start."""
    return {
        "p50_s": seconds(delay.p50),
        "p95_s": seconds(delay.p95),
        "max_s": seconds(delay.max),
        "samples": delay.samples,
    }


def group_document(group: ErrorGroup) -> Document:
    """Return an error group; tenants and jobs are those of its newest `sampled` runs."""
    return {
        "signature": group.signature,
        "error": group.error,
        "count": level_document(group.count),
        "first_seen": to_text(group.first_seen),
        "last_seen": to_text(group.last_seen),
        "tenants": dict(group.tenants),
        "jobs": dict(group.jobs),
        "sampled": group.sampled,
        "again": group.again,
        "newest": group.newest,
        "per_hour": list(group.per_hour),
    }


def _oldest_document(oldest: OldestDue, health: Health) -> Document:
    return {
        "run_id": oldest.run_id,
        "since": to_text(oldest.since),
        "waited_s": seconds(health.at - oldest.since),
        "priority": oldest.priority,
        "lack": oldest.lack,
    }


def _minute_document(point: MinutePoint) -> Document:
    return {
        "at": to_text(point.at),
        "started": point.started,
        "done": point.done,
        "failed": point.failed,
        "dead": point.dead,
        "delay_p50_s": seconds(point.delay_p50),
        "delay_p95_s": seconds(point.delay_p95),
        "delay_max_s": seconds(point.delay_max),
        "dead_tenants": dict(point.dead_tenants),
        "dead_groups": dict(point.dead_groups),
    }


def _beat_document(beat: Beat) -> Document:
    return {
        "name": beat.name,
        "at": to_text(beat.at),
        "note": beat.note,
        "lag_s": seconds(beat.lag),
    }


def _worker_document(worker: WorkerLine) -> Document:
    return {
        **asdict(worker),
        "queues": list(worker.queues),
        "last_beat": instant(worker.last_beat),
        "expires_at": instant(worker.expires_at),
    }


def _tenant_document(line: TenantLine) -> Document:
    return {
        "tenant": line.tenant,
        "waiting": level_document(line.waiting),
        "running": line.running,
        "started": line.started,
        "dead": line.dead,
        "max_running": line.cap,
    }
