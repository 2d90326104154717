"""Runs: the durable record of one intended occurrence of a job."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from dynsched.domain.instants import from_text, to_text
from dynsched.domain.job import Job, Priority
from dynsched.errors import InvalidInput


class RunState(StrEnum):
    """The seven states; `dynsched.domain.lifecycle` holds the moves between them."""

    READY = "ready"  # may be claimed from available_at on; by dispatcher, reaper, operations
    LEASED = "leased"  # a worker's session holds it under its fence; by a claim
    FAILED = "failed"  # waits for its next attempt beyond the look-ahead; by the worker
    DONE = "done"  # succeeded; kept until its retention date
    DEAD = "dead"  # the dead-letter queue is the view of these; until replayed or expired
    CANCELLED = "cancelled"  # by people, or by a newer run of a cancel_running job
    SKIPPED = "skipped"  # never to start, with the reason; kept until its retention date


RETENTION = timedelta(days=14)
FIXED_SESSION = "~"
"""What the name of a session begins with that has no row: a function's invocation, for example."""
CALLBACK_SESSION = f"{FIXED_SESSION}callback:"
"""What it begins with where a run waits for its callback."""
TERMINAL = frozenset({RunState.DONE, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED})


class RunKind(StrEnum):
    """Where a run comes from; kinds never share a key."""

    CRON = "c"  # an occurrence that the job's schedule names
    MANUAL = "m"  # run-now and enqueue
    BACKFILL = "b"  # made by people for a past instant

    @property
    def word(self) -> str:
        """Return the kind as people read it."""
        return {"c": "scheduled", "m": "manual", "b": "backfill"}[self.value]


@dataclass(frozen=True)
class RunKey:
    """What makes a run unique: (job, instant) for a cron run, with a nonce for other kinds.

    It has no slots, so that its texts are made once: each step of a run's way asks for them.

    Attributes:
        nonce: "" for cron runs; `{spread partition}-{random}` for others, which are spread over
            partitions so that one job may be enqueued faster than one partition takes writes.
    """

    job_id: str
    scheduled_for: datetime
    kind: RunKind
    nonce: str = ""

    @property
    def partition(self) -> str:
        """Return the base partition."""
        if self.kind is RunKind.CRON:
            return self.job_id
        return f"{self.job_id}#{self.nonce.partition('-')[0]}"

    @cached_property
    def sort(self) -> str:
        """Return the base sort key; history by time is one query."""
        tail = f"#{self.nonce}" if self.nonce else ""
        return f"{to_text(self.scheduled_for)}#{self.kind.value}{tail}"

    @cached_property
    def run_id(self) -> str:
        """Return the id that people and APIs use."""
        return f"{self.job_id}@{self.sort.replace('#', '-', 1).replace('#', '')}"


RUN_ID = re.compile(r"([a-z0-9]{1,64})@([0-9TZ:.\-]{24})-([cmb])([0-9]{1,9}-[a-z0-9]{1,64})?")
"""Ids that are made are shorter; bounded, as what no store can have as a key is an id of no run."""


def parse_run_id(run_id: str) -> RunKey:
    """Return the key behind a run id.

    Raises:
        InvalidInput: the text is no run id.

    >>> parse_run_id("j1@2026-01-02T03:04:05.000Z-m0-abc").sort
    '2026-01-02T03:04:05.000Z#m#0-abc'
    """
    match = RUN_ID.fullmatch(run_id)
    if match is None or bool(match[4]) == (match[3] == "c"):
        raise InvalidInput("run", f"{run_id!r} is not a run id", "`dynsched run list` shows them")
    instant = from_text(match[2], "run")
    return RunKey(match[1], instant, RunKind(match[3]), match[4] or "")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's row; under 1 KB, as every transition is charged by its size.

    It has no slots, so that `changed` copies all fields at once: each transition makes a copy.

    Attributes:
        share: the key that takes turns: the tenant, or tenant+job.
        available_at: when it may next be claimed; pacing and back-off move it.
        generation: `effective_from` of the job's generation that it was made under.
        needs: what a worker must have to run it: `handler:NAME`, `http` or `command`.
        fence: grows by one with each change of hands.
        attempt: tries so far: starts, and leases lost that may have started.
        spent: reported failures counted against `limit`.
        retention: how long the row is kept after its end.
        losses: leases lost in a row, without a reported outcome between.
        reported: some attempt reported an outcome.
        replays: how often it was brought back from the dead.
        batch: id of the last replay batch that moved it; empty if none did.
        origin: id of the dead run that it is a new occurrence of; empty for others.
        waits: how often it was put back because another run of the job was leased.
        session: the worker session of the lease; with `FIXED_SESSION` in front, an invocation.
        leased_at: when the present lease was claimed; None without one.
        callback: digest of the token that an answer must show to an attempt that waits for its
            callback; kept until the next claim.
        lease_ends_at: end of a lease that no heartbeat extends; None while a session holds it.
        cancel_requested: every way out of `leased` to ready or failed obeys it.
        waiter: run id that asked to be pulled forward when this one ends.
        error: the last error's one-line summary; the whole lies in the attempt rows.
        signature: hash of the normalised last error.
        hidden: a discarded dead run, restorable until its expiry.
        forced: a manual run that does not wait for other runs of its job.
    """

    key: RunKey
    tenant: str
    queue: str
    priority: Priority
    share: str
    state: RunState
    reason: str = ""
    available_at: datetime
    generation: datetime | None = None
    needs: str
    fence: int = 0
    attempt: int = 0
    spent: int = 0
    limit: int
    retention: timedelta = RETENTION
    losses: int = 0
    reported: bool = False
    replays: int = 0
    batch: str = ""
    origin: str = ""
    waits: int = 0
    session: str | None = None
    leased_at: datetime | None = None
    lease_ends_at: datetime | None = None
    callback: str = ""
    cancel_requested: bool = False
    waiter: str | None = None
    payload: str | None = None
    payload_ref: str | None = None
    error: str = ""
    signature: str = ""
    hidden: bool = False
    forced: bool = False
    created_at: datetime
    first_started_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    expires_at_s: int | None = None
    version: int = 0

    def changed(self, **changes: object) -> Run:
        """Return a copy with other values in some fields; four times as fast as `replace`."""
        assert changes.keys() <= FIELDS, f"no such fields: {changes.keys() - FIELDS}"
        copy = object.__new__(Run)
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    @property
    def run_id(self) -> str:
        """Return the id that people and APIs use."""
        return self.key.run_id

    @property
    def job_id(self) -> str:
        """Return the id of the job that it is an occurrence of."""
        return self.key.job_id

    @property
    def scheduled_for(self) -> datetime:
        """Return the intended instant; never altered."""
        return self.key.scheduled_for

    @property
    def idempotency_key(self) -> str:
        """Return the same text for every attempt and every plain replay of this run."""
        return hashlib.blake2b(self.run_id.encode(), digest_size=16).hexdigest()

    @property
    def awaits_callback(self) -> bool:
        """Return whether its attempt goes on outside of any worker, until somebody answers."""
        session = self.session or ""
        return self.state is RunState.LEASED and session.startswith(CALLBACK_SESSION)

    @property
    def fixed_lease(self) -> bool:
        """Return whether it is under a lease with a fixed end, behind which no session stands."""
        return self.lease_ends_at is not None

    @property
    def terminal(self) -> bool:
        """Return whether the run has ended."""
        return self.state in TERMINAL


FIELDS = frozenset(field.name for field in fields(Run))


def occur(
    job: Job,
    key: RunKey,
    *,
    available_at: datetime,
    now: datetime,
    priority: Priority | None = None,
    generation: datetime | None = None,
    payload: str | None = None,
    payload_ref: str | None = None,
    forced: bool = False,
    origin: str = "",
) -> Run:
    """Return the ready run of a job's occurrence, not stored yet (its row will have version 1)."""
    return Run(
        key=key,
        tenant=job.tenant,
        queue=job.queue,
        priority=priority or job.priority,
        share=f"{job.tenant}+{job.job_id}" if job.policies.share_by_job else job.tenant,
        state=RunState.READY,
        available_at=available_at,
        generation=generation,
        needs=job.needs,
        limit=job.policies.retry.max_attempts,
        retention=job.policies.retention,
        payload=payload,
        payload_ref=payload_ref,
        forced=forced,
        origin=origin,
        created_at=now,
        version=1,
    )
