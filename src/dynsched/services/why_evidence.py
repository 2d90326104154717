"""Evidence: what an explanation rests on, read once and bounded, with the number of rows read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from dynsched.domain.audit import AuditEntry
from dynsched.domain.health import Level
from dynsched.domain.instants import minute_of
from dynsched.domain.job import Generation, Job, Span
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.masking import PLAIN, Masker
from dynsched.domain.names import JOB_ID, NAME, bucket_of
from dynsched.domain.overlap import holds
from dynsched.domain.run import Run, RunKey, parse_run_id
from dynsched.services.capacity import Capacity, alive_sessions
from dynsched.services.masked import (
    masked_attempt,
    masked_entry,
    masked_job,
    masked_progress,
    masked_run,
)
from dynsched.storage.control import Cursor, Session
from dynsched.storage.jobs import Unreadable
from dynsched.storage.placement import (
    overlap_permit_key,
    ready_sort,
    tenant_permit_key,
)
from dynsched.storage.runs import Attempt, ProgressNote
from dynsched.storage.store import Store

ATTEMPTS_MAX = 50  # newest attempts of the run
DEEDS_MAX = 20  # newest audit entries of the run or the job
PERMITS_MAX = 200  # permits of a capped tenant, and as many holders
AHEAD_MAX = 1_000  # ready rows that are looked at for what is ahead
AHEAD_PAGE = 250
BUSY_MAX = 1_000  # leased rows that are counted over all sessions
SESSIONS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Cap:
    """A tenant's cap.

    Attributes:
        most: how many of its runs may be leased at once.
        holders: leased runs that hold its permits, of those that were looked at.
        looked: permits that were looked at.
    """

    most: int
    holders: tuple[Run, ...]
    looked: int

    @property
    def reached(self) -> bool:
        """Return whether every permit is held; False where not all were looked at."""
        return len(self.holders) >= self.most


@dataclass(frozen=True, slots=True)
class Permission:
    """The permit of a job that forbids overlap.

    Attributes:
        holder: the run that holds it now; None if it is free.
        waiter: the run id that is to have it next.
    """

    holder: Run | None
    waiter: str | None


@dataclass(frozen=True, slots=True)
class Busy:
    """What worker sessions have in hand.

    Attributes:
        runs: how many runs they hold.
        suspects: those of them that lost two leases in a row; beside one nothing is claimed.
    """

    runs: Level
    suspects: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What waits in a run's queue and priority.

    Attributes:
        runs: how many of them became available before it.
        suspects: those that lost two leases in a row; workers empty themselves for one.
    """

    runs: Level
    suspects: tuple[Run, ...]


class Evidence:
    """Reads of one explanation; each thing is read at most once.

    At most `ATTEMPTS_MAX` attempts, `DEEDS_MAX` audit entries, `AHEAD_MAX` ready and `BUSY_MAX`
    leased rows, twice `PERMITS_MAX` rows of a capped tenant, all worker sessions, a job's older
    generations, and some ten single rows.

    Args:
        store: where to read.
        now: the instant of the explanation.
        masker: hides secrets in what is read.
    """

    def __init__(self, store: Store, now: datetime, masker: Masker = PLAIN) -> None:
        self._store = store
        self._masker = masker
        self.now = now
        self.rows = 0
        self._ahead: Ahead | None = None
        self._busy: dict[tuple[str, ...], Busy] = {}
        store.refresh_by(now)

    def afresh(self) -> Evidence:
        """Return evidence of the same instant that reads everything again."""
        again = Evidence(self._store, self.now, self._masker)
        again.rows = self.rows
        return again

    # the run and its job

    def run(self, key: RunKey) -> Run | None:
        """Read a run, strongly."""
        self.rows += 1
        run = self._store.runs.get(key)
        return None if run is None else masked_run(self._masker, run)

    def job(self, job_id: str) -> Job | Unreadable | None:
        """Read a job, strongly; a damaged one is no fault of the reader."""
        self.rows += 1
        found = self._store.jobs.read_many([job_id])[job_id]
        return masked_job(self._masker, found) if isinstance(found, Job) else found

    def job_named(self, name_or_id: str, tenant: str) -> Job | Unreadable | None:
        """Read a job by its name in a tenant, or by its id; by that also a deleted one."""
        self.rows += 1
        named = NAME.fullmatch(name_or_id) and NAME.fullmatch(tenant)
        job_id = self._store.jobs.find(tenant, name_or_id) if named else None
        if job_id is None and JOB_ID.fullmatch(name_or_id):
            job_id = name_or_id
        return None if job_id is None else self.job(job_id)

    def attempts(self, run_id: str) -> list[Attempt]:
        """Read the newest attempts, the oldest first."""
        found = self._store.runs.attempts(run_id, most=ATTEMPTS_MAX, newest=True)
        self.rows += len(found)
        return [masked_attempt(self._masker, one) for one in found]

    def deeds(self, target: str) -> list[AuditEntry]:
        """Read what people did to a run or a job lately, the oldest first."""
        found = list(self._store.audit.of_target(target, most=DEEDS_MAX))
        self.rows += len(found)
        return [masked_entry(self._masker, entry) for entry in reversed(found)]

    def progress(self, run_id: str) -> ProgressNote | None:
        """Read what the handler reported last."""
        self.rows += 1
        note = self._store.runs.progress(run_id)
        return None if note is None else masked_progress(self._masker, note)

    def generations(self, job: Job) -> tuple[Generation, ...]:
        """Return all generations of a job, the oldest first."""
        if not job.older_generations:
            return job.generations
        older = self._store.jobs.old_generations(job.job_id)
        self.rows += len(older)
        return (*older, *job.generations)

    def old_span(self, job: Job, at: datetime) -> Span | None:
        """Return the span kept apart that covers an instant."""
        if not job.older_spans:
            return None
        self.rows += 1
        return self._store.jobs.old_span_at(job.job_id, at)

    # workers

    @cached_property
    def sessions(self) -> list[Session]:
        """All sessions of workers."""
        found = self._store.control.sessions()
        self.rows += len(found)
        return found

    @cached_property
    def alive(self) -> list[Session]:
        """The sessions that live."""
        return alive_sessions(self.sessions, self.now)

    def serving(self, queue: str) -> list[Session]:
        """Return the living sessions that serve a queue."""
        return [one for one in self.alive if queue in one.queues]

    def handed_off(self, run: Run) -> bool:
        """Return whether functions are told of it by messages."""
        return self._store.topology.message_queue(run.queue, run.priority) is not None

    def lack(self, run: Run) -> str:
        """Return why no living worker can run it, whether or not it is due; empty if one can."""
        handed_off = self._store.topology.message_queues
        return Capacity(self.alive, handed_off).lack(run.queue, run.needs, run.priority)

    def session(self, session: str) -> Session | None:
        """Read a session, strongly."""
        self.rows += 1
        return self._store.control.session(session)

    def busy(self, sessions: Sequence[Session]) -> Busy:
        """Read what sessions hold."""
        names = tuple(one.session for one in sessions)
        if names not in self._busy:
            held: list[Run] = []
            for name in names:
                held += self._store.runs.leased(name, most=BUSY_MAX - len(held))
                if len(held) >= BUSY_MAX:
                    break
            self.rows += len(held)
            level = Level(len(held), len(held) >= BUSY_MAX)
            self._busy[names] = Busy(level, _suspects(held))
        return self._busy[names]

    # what stands in the way

    def overlap(self, job_id: str) -> Permission:
        """Return who has the permit of a job that forbids overlap."""
        (permit,) = self._store.control.permits([overlap_permit_key(job_id)])
        self.rows += 1
        if permit.holder is None:
            return Permission(None, permit.waiter)
        holder = self.run(parse_run_id(permit.holder[0]))
        return Permission(holder if holds(permit.holder, holder) else None, permit.waiter)

    def cap(self, tenant: str) -> Cap | None:
        """Return a tenant's cap with who holds its permits; None if it has none."""
        most = self._store.control.tenants([tenant])[tenant].max_running
        self.rows += 1
        if most is None:
            return None
        looked = min(most, PERMITS_MAX)
        permits = self._store.control.permits([tenant_permit_key(tenant, n) for n in range(looked)])
        named = [one.holder for one in permits if one.holder is not None]
        keys = [parse_run_id(run_id) for run_id in dict.fromkeys(run_id for run_id, _ in named)]
        found = self._store.runs.get_many(keys) if keys else []
        self.rows += looked + len(found)
        rows = {run.run_id: run for run in found if run is not None}
        held = {name for name, fence in named if holds((name, fence), rows.get(name))}
        return Cap(most, tuple(rows[name] for name in sorted(held)), looked)

    def ahead(self, run: Run) -> Ahead:
        """Read what is due in a run's queue and priority and became available before it."""
        if self._ahead is None:
            rows = self._ready(run)
            self.rows += len(rows)
            mine = (run.available_at, run.run_id)
            count = sum((one.available_at, one.run_id) < mine for one in rows)
            others = [one for one in rows if one.run_id != run.run_id]
            level = Level(count, len(rows) >= AHEAD_MAX)
            self._ahead = Ahead(level, _suspects(others))
        return self._ahead

    def _ready(self, run: Run) -> list[Run]:
        found: list[Run] = []
        for lane in range(self._store.topology.lanes):
            after = ""
            while len(found) < AHEAD_MAX:
                limit = min(AHEAD_PAGE, AHEAD_MAX - len(found))
                page = self._store.runs.ready(
                    run.queue, run.priority, lane, after=after, limit=limit
                )
                found += page
                if len(page) < limit:
                    break
                after = ready_sort(page[-1])
        return found

    # the dispatcher

    def cursor(self, kind: str, job_id: str, minute_at: datetime) -> Cursor | None:
        """Return the cursor of the shard in which a job's entry of a minute lies."""
        topology = self._store.topology
        shard = bucket_of(job_id, topology.writing(minute_of(minute_at)).shards)
        found = self._store.control.cursors(kind, topology.shards)
        self.rows += len(found)
        return found[shard]


def _suspects(runs: Sequence[Run]) -> tuple[Run, ...]:
    return tuple(run for run in runs if run.losses >= SUSPECT_LOSSES)
