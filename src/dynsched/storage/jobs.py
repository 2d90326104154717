"""Jobs in the store: definitions, names, large parts, old generations and spans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from dynsched.domain.instants import to_text
from dynsched.domain.job import Generation, Job, JobState, Span
from dynsched.domain.target import Target, target_from_body
from dynsched.errors import Conflict
from dynsched.storage.codec import (
    decode_generation,
    decode_job,
    decode_span,
    encode_generation,
    encode_job,
    encode_span,
)
from dynsched.storage.engine import (
    Applied,
    Body,
    Delete,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.placement import (
    JOB_SORT,
    NAMES,
    due_partition,
    generation_key,
    job_index,
    job_key,
    name_key,
    part_key,
    span_key,
)
from dynsched.storage.rows import PAGE, Rows, decoded

PART_TRIES = 20
OLD_MAX = 2_000  # old spans or generations of one job that a look reads at most


@dataclass(frozen=True, slots=True)
class JobApplied:
    """The write was made; `job` is the job as stored now."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobStale:
    """Somebody else changed the job first; `current` is what is stored, None if it is gone."""

    current: Job | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A job's row that cannot be decoded, and why."""

    job_id: str
    problem: str


JobOutcome = JobApplied | JobStale


def digest_of(text: str) -> str:
    """Return the address of a large part: a hash of its text."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class JobStore:
    """Verbs on jobs. A job's whole row is replaced, guarded by the version seen."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def row_of(self, job: Job, *, expires_at_s: int | None = None) -> Row:
        """Return the row that stores a job, with a fresh token."""
        return Row(
            job_key(job.job_id),
            cast(Body, encode_job(job)),
            job_index(job, self._rows.topology),
            expires_at_s,
            self._rows.token(),
            job.version,
        )

    def get(self, job_id: str) -> Job | None:
        """Read a job, strongly; deleted jobs are tombstones. Cost: 1 read unit.

        Raises:
            DamagedRow: its row cannot be read.
        """
        row = self._rows.engine.get(job_key(job_id))
        return None if row is None else decoded(decode_job, row)

    def get_many(self, job_ids: Sequence[str]) -> list[Job | None]:
        """Read jobs, each strongly, in order. Cost: 1 read unit each."""
        rows = self._rows.engine.get_many([job_key(job_id) for job_id in job_ids])
        return [None if row is None else decode_job(row) for row in rows]

    def read_many(self, job_ids: Sequence[str]) -> dict[str, Job | Unreadable | None]:
        """Read jobs, each strongly, by id; one that cannot be read harms no other.

        Cost: 1 read unit each.
        """
        rows = self._rows.engine.get_many([job_key(job_id) for job_id in job_ids])
        found: dict[str, Job | Unreadable | None] = {}
        for job_id, row in zip(job_ids, rows, strict=True):
            try:
                found[job_id] = None if row is None else decode_job(row)
            except Exception as error:  # noqa: BLE001  whatever a row holds is not the reader's fault
                found[job_id] = Unreadable(job_id, str(error))
        return found

    def find(self, tenant: str, name: str) -> str | None:
        """Return the id of the job of that name, read strongly."""
        row = self._rows.engine.get(name_key(tenant, name))
        return None if row is None else cast(str, row.body["j"])

    def find_many(self, names: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return the ids of the jobs of those tenants and names, in order. Cost: 1 unit each."""
        rows = self._rows.engine.get_many([name_key(tenant, name) for tenant, name in names])
        return [None if row is None else cast(str, row.body["j"]) for row in rows]

    def create(self, job: Job, parts: Sequence[Row], *, durable: bool = True) -> bool:
        """Write a job, its name and its parts together; False if the name is taken.

        Cost: a transaction, twice the units of its items.
        """
        name = Row(name_key(job.tenant, job.name), {"j": job.job_id}, token=self._rows.token())
        writes: list[Write] = [PutNew(self.row_of(job)), PutNew(name)]
        for part in parts:
            self.put_part(part)
        outcomes = self._rows.engine.transact(writes, durable=durable)
        return all(isinstance(outcome, Applied) for outcome in outcomes)

    def replace(self, after: Job, seen: int, *, durable: bool = False) -> JobOutcome:
        """Replace a job's row if its version is still `seen`."""
        return self.replace_many([(after, seen)], durable=durable)[0]

    def replace_many(
        self, changes: Sequence[tuple[Job, int]], *, durable: bool = False
    ) -> list[JobOutcome]:
        """Replace rows of distinct jobs, one outcome each; `after` has version seen + 1."""
        if not changes:
            return []
        writes = [Replace(self.row_of(after), seen) for after, seen in changes]
        outcomes = self._rows.engine.write_many(writes, durable=durable)
        return [
            JobApplied(after)
            if isinstance(outcome, Applied)
            else JobStale(None if outcome.current is None else decode_job(outcome.current))
            for (after, _), outcome in zip(changes, outcomes, strict=True)
        ]

    def delete(self, after: Job, seen: int, *, expires_at_s: int) -> JobOutcome:
        """Leave a tombstone in the job's place and free its name, together."""
        engine = self._rows.engine
        name = engine.get(name_key(after.tenant, after.name))
        row = self.row_of(after, expires_at_s=expires_at_s)
        writes: list[Write] = [Replace(row, seen)]
        if name is not None and name.body["j"] == after.job_id:
            writes.append(Delete(name.key, name.version))
        outcome = engine.transact(writes, durable=True)[0]
        if isinstance(outcome, Applied):
            return JobApplied(after)
        return JobStale(self.get(after.job_id))

    def park(self, row: Row, reason: str) -> bool:
        """Take a job that cannot be evaluated out of the due index, whatever its row holds."""
        body = {**row.body, "s": "parked", "r": reason[:200]}
        parked = Row(row.key, body, None, row.expires_at_s, self._rows.token(), row.version + 1)
        return isinstance(self._rows.engine.write(Replace(parked, row.version)), Applied)

    def due_rows(self, minute: int, shard: int, before: datetime, *, most: int) -> list[Row]:
        """Read raw rows of jobs due in a minute bucket before an instant, by the index.

        They are decoded one by one by the dispatcher, so that a broken one harms no other.
        """
        query = Query(
            Table.JOBS,
            due_partition(minute, shard),
            index=True,
            before=to_text(before),
            limit=min(most, PAGE),
        )
        return list(self._rows.all(query, most))

    def named(self, tenant: str, *, most: int, after: str = "") -> Iterator[tuple[str, str]]:
        """Return (name, job_id) of a tenant's jobs in the order of their names."""
        query = Query(Table.JOBS, f"{NAMES}{tenant}", after=after, limit=min(most, PAGE))
        for row in self._rows.all(query, most):
            yield row.key.sk, cast(str, row.body["j"])

    def put_spans(self, job_id: str, spans: Sequence[Span]) -> None:
        """Write spans that leave the job's row, before the advance that drops them."""
        for span in spans:
            key = span_key(job_id, span.last)
            row = Row(key, encode_span(span), token=self._rows.token())
            self._rows.engine.write(PutNew(row))

    def old_span_at(self, job_id: str, instant: datetime) -> Span | None:
        """Return the span kept apart that covers an instant, read strongly."""
        query = Query(
            Table.JOBS, job_id, after=f"span#{to_text(instant)[:-1]}", before="span$", limit=1
        )
        for row in self._rows.engine.query(query).rows:
            span = decode_span(row.body)
            return span if span.covers(instant) else None
        return None

    def old_spans(self, job_id: str) -> list[Span]:
        """Return the spans kept apart, oldest first."""
        query = Query(Table.JOBS, job_id, after="span#", before="span$", limit=PAGE)
        return [decode_span(row.body) for row in self._rows.all(query, OLD_MAX)]

    def put_generations(self, job_id: str, generations: Sequence[Generation]) -> None:
        """Write generations that leave the job's row, before the edit that drops them."""
        for generation in generations:
            key = generation_key(job_id, generation.effective_from)
            row = Row(key, encode_generation(generation), token=self._rows.token())
            self._rows.engine.write(PutNew(row))

    def old_generations(self, job_id: str) -> list[Generation]:
        """Return the generations kept apart, oldest first."""
        query = Query(Table.JOBS, job_id, after="gen#", before="gen$", limit=PAGE)
        return [decode_generation(row.body) for row in self._rows.all(query, OLD_MAX)]

    def part_row(self, job_id: str, text: str, expires_at_s: int | None = None) -> Row:
        """Return the row of a large payload or target; its hash is its address."""
        key = part_key(job_id, digest_of(text))
        return Row(key, {"x": text}, None, expires_at_s, self._rows.token())

    def put_part(self, row: Row) -> None:
        """Write a large part; one that exists is the same, by its hash, but is kept as long."""
        outcome = self._rows.engine.write(PutNew(row), durable=True)
        for _ in range(PART_TRIES):
            current = outcome.current if isinstance(outcome, Stale) else None
            if current is None:
                return
            runs_s = max(_runs_until(row), _runs_until(current))
            longer = _longer(row.expires_at_s, current.expires_at_s)
            if not longer and runs_s == _runs_until(current):
                return
            expires_at_s = row.expires_at_s if longer else current.expires_at_s
            outcome = self._rows.engine.write(
                Replace(self._part(row, expires_at_s, runs_s), current.version), durable=True
            )
        raise Conflict(f"part {row.key.sk} of job {row.key.pk} kept changing; try again")

    def expire_part(self, job_id: str, digest: str, expires_at_s: int) -> None:
        """Let a part go that its job names no more, once the runs that may read it are gone."""
        row = self._rows.engine.get(part_key(job_id, digest))
        if row is None or self._names(job_id, digest):
            return
        runs_s = _runs_until(row)
        old = self._part(row, max(expires_at_s, runs_s), runs_s)
        self._rows.engine.write(Replace(old, row.version))
        if self._names(job_id, digest):  # an edit took it back in the meantime
            self.put_part(self._part(row, None, runs_s))

    def _part(self, row: Row, expires_at_s: int | None, runs_s: int) -> Row:
        """Return a part's row with an expiry, and until when runs of their own need it."""
        body: Body = {"x": row.body["x"], **({"r": runs_s} if runs_s else {})}
        return Row(row.key, body, None, expires_at_s, self._rows.token())

    def _names(self, job_id: str, digest: str) -> bool:
        """Return whether a job names a part now, by its row; a deleted one names none."""
        job = self.get(job_id)
        if job is None or job.state is JobState.DELETED:
            return False
        return digest in (job.payload_ref, job.target_ref)

    def part(self, job_id: str, digest: str) -> str | None:
        """Read a large part's text, None if it is gone."""
        row = self._rows.engine.get(part_key(job_id, digest))
        return None if row is None else cast(str, row.body["x"])

    def parts(self, wanted: Sequence[tuple[str, str]]) -> list[str | None]:
        """Read the texts of large parts, by job id and digest, in order; None if one is gone."""
        rows = self._rows.engine.get_many([part_key(job_id, digest) for job_id, digest in wanted])
        return [None if row is None else cast(str, row.body["x"]) for row in rows]

    def scan(self, limit: int, cursor: str | None) -> tuple[list[Row], str | None]:
        """Read a page of all job rows in no order; for sweeps and exports."""
        page = self._rows.engine.scan(Table.JOBS, limit, cursor)
        return [row for row in page.rows if is_job(row)], page.cursor


def is_job(row: Row) -> bool:
    """Return whether a row of the table is a job's own; a job may be called as its sort key is."""
    return row.key.sk == JOB_SORT and not row.key.pk.startswith(NAMES)


def _runs_until(row: Row) -> int:
    """Return until when runs need a part, in epoch seconds; its job may need it for ever."""
    return max(cast(int, row.body.get("r", 0)), row.expires_at_s or 0)


def _longer(new_s: int | None, old_s: int | None) -> bool:
    """Return whether an expiry is later than another; None is never."""
    return old_s is not None and (new_s is None or new_s > old_s)


def target_of(text: str) -> Target:
    """Return the target in a large part's text."""
    return target_from_body(json.loads(text))
