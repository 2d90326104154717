"""Documents of replay batches as plain JSON values, the same for CLI and API."""

from __future__ import annotations

from dynsched.domain.batch import Batch
from dynsched.domain.instants import to_text
from dynsched.services.batch_views import BatchDetail, BatchEntry
from dynsched.services.documents import (
    Document,
    instant,
    level_document,
    run_document,
    seconds,
)


def batch_document(batch: Batch) -> Document:
    """Return a batch with its counts; `jobs` is by job id, `groups` by error signature."""
    return {
        "batch_id": batch.batch_id,
        "state": batch.state.value,
        "why": batch.why,
        "cause": None if batch.cause is None else batch.cause.value,
        "actor": batch.actor,
        "reason": batch.reason,
        "filter": batch.filter,
        "cut_off": to_text(batch.cut_off),
        "planned": batch.planned,
        "moved": batch.moved,
        "skipped": dict(batch.skipped),
        "failed": batch.failed,
        "left": batch.left,
        "jobs": dict(batch.counts.get("job", {})),
        "tenants": dict(batch.counts.get("tenant", {})),
        "groups": dict(batch.counts.get("group", {})),
        "oldest": instant(batch.oldest),
        "newest": instant(batch.newest),
        "skipped_expected": dict(batch.skipped_expected),
        "warned": dict(batch.warned),
        "notes": list(batch.notes),
        "rate": batch.rate,
        "canary": batch.canary,
        "canary_hold": batch.canary_hold,
        "canary_passed": batch.canary_passed,
        "breaker": batch.breaker,
        "priority": batch.priority.value,
        "parent": batch.parent or None,
        "pull_back": batch.pull_back,
        "created_at": to_text(batch.created_at),
        "expires_at": to_text(batch.expires_at),
        "confirmed_at": instant(batch.confirmed_at),
        "confirmed_by": batch.confirmed_by or None,
        "ended_at": instant(batch.ended_at),
    }


def batch_detail_document(detail: BatchDetail) -> Document:
    """Return a batch with what became of what it moved."""
    needs = detail.needs
    return {
        **batch_document(detail.batch),
        "needs_reason": needs is not None and needs.reason,
        "needs_count": needs is not None and needs.count,
        "eta_s": seconds(detail.eta),
        "sampled": detail.sampled,
        "done_again": detail.done_again,
        "dead_again": detail.dead_again,
        "open_again": detail.open_again,
        "unattended": detail.unattended,
        "newer_not_included": level_document(detail.newer),
    }


def batch_entry_document(entry: BatchEntry, *, job_name: str | None = None) -> Document:
    """Return an entry with its run as it is now."""
    run = entry.run
    return {
        "run_id": entry.run_id,
        "died_at": to_text(entry.died_at),
        "outcome": entry.outcome.value,
        "why": entry.why,
        "run": None if run is None else run_document(run, job_name=job_name),
    }
