"""What the console asks of a store about dead runs and replay batches; a part of its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dynsched.bootstrap import Base
from dynsched.domain.access import Access, Action
from dynsched.domain.audit import AuditEntry
from dynsched.domain.batch import BREAKER, RATE, Batch
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.filters import GROUPS, parse, term_text
from dynsched.domain.health import ErrorGroup
from dynsched.domain.job import Priority
from dynsched.domain.payload import Json
from dynsched.domain.run import Run
from dynsched.services.batch_views import BatchDetail, BatchEntry
from dynsched.services.operations import Operations
from dynsched.services.search import Found
from dynsched.services.views import Views

GROUPS_SHOWN = 4  # of a batch, with an error each
AUDIT_SHOWN = 20  # newest entries on one batch
NO_LIMIT = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be previewed.

    Attributes:
        filter: which dead runs.
        rate: runs a second; None for no limit.
        canary: so many first.
        canary_hold: pause after those however they end.
        breaker: pause when more than this part is dead again.
        priority: what moved runs get.
        reason: why, if that is known already.
    """

    filter: str
    rate: float | None = RATE
    canary: int = 0
    canary_hold: bool = False
    breaker: float = BREAKER
    priority: Priority = Priority.BULK
    reason: str = ""

    @classmethod
    def of(cls, batch: Batch) -> Plan:
        """Return what a batch was previewed by."""
        return cls(
            filter=batch.filter,
            rate=batch.rate,
            canary=batch.canary,
            canary_hold=batch.canary_hold,
            breaker=batch.breaker,
            priority=batch.priority,
            reason=batch.reason,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words of the command that does the same.

        >>> Plan(filter="job:mail", rate=2.0).command
        ('replay', 'preview', 'job:mail', '--rate', '2')
        """
        words = ["replay", "preview", self.filter]
        if self.rate != RATE:
            words += ["--rate", NO_LIMIT if self.rate is None else f"{self.rate:g}"]
        if self.canary:
            words += ["--canary", str(self.canary)]
        if self.canary_hold:
            words += ["--canary-hold"]
        if self.breaker != BREAKER:
            words += ["--breaker", f"{self.breaker:g}"]
        if self.priority is not Priority.BULK:
            words += ["--priority", self.priority.value]
        return tuple(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchScene:
    """All that the screen of one batch shows.

    Attributes:
        detail: the batch and what became of what it moved.
        jobs: names of its jobs, by id.
        errors: an error of each of its largest groups, by signature; not of those that are gone.
        audit: what was done to it, newest first.
        refusal: why this operator may not confirm it; empty if it may.
        at: when it was read.
    """

    detail: BatchDetail
    jobs: Mapping[str, str]
    errors: Mapping[str, str]
    audit: tuple[AuditEntry, ...]
    refusal: str
    at: datetime


class ReplaySource:
    """Reads and changes what the dead-letter queue and the replay batches are about."""

    base: Base
    access: Access
    views: Views
    operations: Operations
    _errors: dict[str, str]

    def now(self) -> datetime:
        """Return the present instant."""
        return self.base.clock.now()

    # reading

    def groups(self, text: str, *, limit: int, cursor: str | None = None) -> Found[ErrorGroup]:
        """Return one page of the error groups of the dead runs that a filter names."""
        return self.views.groups(text, limit=limit, cursor=cursor)

    def find_dead(self, text: str, *, limit: int, cursor: str | None = None) -> Found[Run]:
        """Return one page of the dead runs that a filter names."""
        return self.views.find_runs(parse(text, GROUPS), limit=limit, cursor=cursor)

    def batches(self, *, limit: int, cursor: str | None = None) -> Found[Batch]:
        """Return one page of the replay batches, newest first."""
        return self.views.batches(limit=limit, cursor=cursor)

    def batch(self, batch_id: str) -> BatchScene:
        """Return one batch with all that belongs to it."""
        detail = self.views.batch(batch_id)
        batch = detail.batch
        refusal = self.access.why_not(
            Action.BATCH_CONFIRM, tenant=batch.tenant or None, count=batch.planned
        )
        return BatchScene(
            detail=detail,
            jobs=self.views.job_names(list(batch.counts.get("job", {}))),
            errors=self._errors_of(list(batch.counts.get("group", {}))[:GROUPS_SHOWN]),
            audit=tuple(self.views.audit_of(f"batch:{batch_id}", AUDIT_SHOWN)),
            refusal=refusal,
            at=self.now(),
        )

    def _errors_of(self, signatures: Sequence[str]) -> dict[str, str]:
        """Return an error of each group; each is looked for once, as long as the console runs."""
        known = self._errors
        for one in signatures:
            if one not in known:
                found = self.find_dead(term_text("group", one), limit=1).items
                known[one] = found[0].error if found else ""
        return {one: known[one] for one in signatures}

    def batch_entries(
        self, batch_id: str, outcome: Outcome | None, *, limit: int, cursor: str | None = None
    ) -> Found[BatchEntry]:
        """Return one page of a batch's entries in the order of their moving."""
        return self.views.batch_entries(batch_id, outcome, limit=limit, cursor=cursor)

    def payload_of(self, run_id: str) -> str:
        """Return what a run's handler is given, its own payload or its job's, secrets masked."""
        detail = self.views.show_run(run_id)
        payload = detail.payload
        if payload is None and detail.job is not None:
            payload = self.views.show_job(detail.job).payload
        return "null" if payload is None else payload

    # changing: each of these passes the gate of the core

    def preview(self, plan: Plan) -> Batch:
        """Freeze what a plan names as a draft."""
        return self.operations.preview_replay(
            plan.filter,
            reason=plan.reason,
            rate=plan.rate,
            canary=plan.canary,
            canary_hold=plan.canary_hold,
            breaker=plan.breaker,
            priority=plan.priority,
        )

    def confirm_batch(self, batch_id: str, *, reason: str, count: int) -> Batch:
        """Start a draft."""
        return self.operations.confirm_replay(batch_id, reason=reason, count=count)

    def pause_batch(self, batch_id: str, *, reason: str) -> Batch:
        """Stop moving."""
        return self.operations.pause_replay(batch_id, reason=reason)

    def resume_batch(self, batch_id: str, *, reason: str) -> Batch:
        """Go on."""
        return self.operations.resume_replay(batch_id, reason=reason)

    def abort_batch(self, batch_id: str, *, reason: str, pull_back: bool) -> Batch:
        """End a batch."""
        return self.operations.abort_replay(batch_id, reason=reason, pull_back=pull_back)

    def pace_batch(self, batch_id: str, rate: float | None) -> Batch:
        """Change how fast a batch is moved."""
        return self.operations.pace_replay(batch_id, rate)

    def rest_of_batch(self, batch_id: str) -> Batch:
        """Freeze what an ended batch did not move as a new draft."""
        return self.operations.rest_of_replay(batch_id)

    def replay_as_new(self, run_id: str, *, reason: str) -> Run:
        """Make a new run of a dead one's job and payload."""
        return self.operations.replay_as_new(run_id, reason=reason)

    def replay_edited(self, run_id: str, payload: Json, *, reason: str) -> Run:
        """Bring a dead run back with another payload."""
        return self.operations.replay_edited(run_id, payload, reason=reason)

    def restore(self, run_id: str, *, reason: str) -> Run:
        """Show a discarded run again."""
        return self.operations.restore(run_id, reason=reason)
