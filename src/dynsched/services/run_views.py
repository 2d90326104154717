"""Views of runs: by job, by state, the dead, and one run with its attempts.

Each state is read where its rows lie in the index, so that a list costs what it shows and not what
the store holds. Where no index leads to all rows, a bounded scan does, and the list says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from dynsched.domain.instants import Clock, minute_of, minute_start, to_text
from dynsched.domain.job import Job, Priority
from dynsched.domain.masking import PLAIN, Masker
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.errors import NotFound
from dynsched.services.capacity import Capacity, alive_sessions, is_overdue
from dynsched.services.listing import READ_MAX, Listing, check_limit
from dynsched.services.masked import Masked, masked_attempt, masked_progress
from dynsched.storage.placement import ready_sort
from dynsched.storage.runs import Attempt, ProgressNote
from dynsched.storage.store import Store

RECENT = timedelta(hours=1)
ENDED = (RunState.DONE, RunState.SKIPPED, RunState.CANCELLED)
QUEUES_MAX = 500
SESSIONS_MAX = 1_000  # sessions whose leased runs one list reads
BUCKETS_MAX = 240  # minutes of coming retries that one list reads
BUCKETS_AHEAD = 65  # the longest default back-off is an hour
HOURS_MAX = 24 * 31
SCAN_PAGE = 500
SCAN_PAGES = 20
SCAN_PAGES_FEW = 2  # where the scan is only a net
PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs to list.

    Attributes:
        job_id: only this job's; None for all.
        states: only these; empty for all.
        tenant: only this tenant's; None for all.
        since: runs that ended before are left out; None is an hour ago without a job and without
            `dead` as the only state. Runs that have not ended are always there.
        limit: at most so many, newest first.
    """

    job_id: str | None = None
    states: frozenset[RunState] = frozenset()
    tenant: str | None = None
    since: datetime | None = None
    limit: int = 100

    def fits(self, run: Run) -> bool:
        """Return whether a run belongs into the list."""
        if self.states and run.state not in self.states:
            return False
        if self.tenant is not None and run.tenant != self.tenant:
            return False
        if self.job_id is not None and run.job_id != self.job_id:
            return False
        return self.since is None or run.ended_at is None or run.ended_at >= self.since

    def wants(self, state: RunState) -> bool:
        """Return whether runs in a state are asked for."""
        return not self.states or state in self.states

    @property
    def most(self) -> int:
        """Return how many rows of one place to read where they do not lie in the list's order."""
        return max(self.limit + 1, SCAN_PAGE)

    @property
    def filtered(self) -> bool:
        """Return whether rows of one place may be dropped."""
        return bool(self.states) or self.tenant is not None or self.since is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """One run.

    Attributes:
        run: its row.
        attempts: what is kept of its tries, oldest first.
        job: its job; None if that is gone.
        payload: its own payload as JSON text; None if it carries its job's.
        progress: what its handler reported last; None if it reported nothing.
        lack: why no living worker can run it, if it should have been taken by now.
    """

    run: Run
    attempts: tuple[Attempt, ...]
    job: Job | None
    payload: str | None
    progress: ProgressNote | None
    lack: str = ""


def moment(run: Run) -> datetime:
    """Return the instant that a run is listed by: its end, else when it may or might start."""
    return run.available_at if run.ended_at is None else run.ended_at


class RunViews(Masked):
    """Reads runs for people; only reading, every list bounded, secrets masked."""

    def __init__(self, store: Store, *, clock: Clock, masker: Masker = PLAIN) -> None:
        Masked.__init__(self, masker)
        self._store = store
        self._clock = clock

    def list_runs(self, query: RunQuery) -> Listing[Run]:
        """List runs, newest first.

        Cost: a job's history is one query for each of its partitions; otherwise one query for each
        lane, session, minute bucket or hour that the states ask for.
        """
        check_limit(query.limit)
        now = self._clock.now()
        self._store.refresh_by(now)
        notes: list[str] = []
        if query.job_id is not None:
            found = self._history(query, notes)
        else:
            found = [run for read in self._sources(query) for run in read(query, now, notes)]
        return self._masked_list(_listing(filter(query.fits, found), query.limit, notes))

    def dead_runs(
        self,
        *,
        tenant: str | None = None,
        job_id: str | None = None,
        signature: str = "",
        discarded: bool = False,
        limit: int = 100,
    ) -> Listing[Run]:
        """List the dead-letter queue, or what was discarded from it, newest first."""
        check_limit(limit)
        self._store.refresh_by(self._clock.now())
        query = RunQuery(tenant=tenant, job_id=job_id, limit=limit)
        notes: list[str] = []
        most = max(READ_MAX, limit + 1)
        found = self._store.runs.dead(most=most, signature=signature, hidden=discarded)
        if len(found) >= most:
            notes.append(f"only {most:,} dead runs were looked at")
        return self._masked_list(_listing(filter(query.fits, found), limit, notes))

    def _masked_list(self, found: Listing[Run]) -> Listing[Run]:
        return replace(found, items=tuple(map(self.masked, found.items)))

    def show_run(self, run_id: str, unmask: bool = False) -> RunDetail:
        """Return a run with its attempts.

        Args:
            run_id: the run.
            unmask: hide nothing; for `Operations.unmask_run`, which asks who may see that.

        Raises:
            InvalidInput: the text is no run id.
            NotFound: there is no such run.
        """
        run = self._store.runs.get(parse_run_id(run_id))
        if run is None:
            raise NotFound("run", run_id, "it never was, or its retention is over")
        payload = run.payload
        if payload is None and run.payload_ref is not None:
            payload = self._store.jobs.part(run.job_id, run.payload_ref)
        detail = RunDetail(
            run=run,
            attempts=tuple(self._store.runs.attempts(run_id)),
            job=self._store.jobs.get(run.job_id),
            payload=payload,
            progress=self._store.runs.progress(run_id),
            lack=self.lacks([run]).get(run_id, ""),
        )
        return detail if unmask else self._masked_detail(detail)

    def _masked_detail(self, detail: RunDetail) -> RunDetail:
        payload, progress = detail.payload, detail.progress
        return replace(
            detail,
            run=self.masked(detail.run),
            attempts=tuple(masked_attempt(self.masker, one) for one in detail.attempts),
            job=None if detail.job is None else self.masked(detail.job),
            payload=None if payload is None else self.masker.json_text(payload),
            progress=None if progress is None else masked_progress(self.masker, progress),
        )

    def capacity(self) -> Capacity:
        """Return what the living workers say they can run. Cost: one query."""
        return Capacity(alive_sessions(self._store.control.sessions(), self._clock.now()))

    def lacks(self, runs: Sequence[Run]) -> dict[str, str]:
        """Return by run id why no living worker can run what should have been taken by now.

        Cost: one query of the sessions, and none if nothing is overdue.
        """
        now = self._clock.now()
        overdue = [run for run in runs if is_overdue(run, now)]
        if not overdue:
            return {}
        capacity = self.capacity()
        found = {run.run_id: capacity.lack_of(run, now) for run in overdue}
        return {run_id: lack for run_id, lack in found.items() if lack}

    def _sources(self, query: RunQuery) -> Iterator[_Read]:
        """Yield the readers of the places where the wanted states lie."""
        if query.wants(RunState.LEASED):
            yield self._leased
        if query.wants(RunState.READY):
            yield self._ready
        if query.wants(RunState.FAILED):
            yield self._failed
        if query.wants(RunState.DEAD):
            yield self._dead
        if any(query.wants(state) for state in ENDED):
            yield self._ended

    def _history(self, query: RunQuery, notes: list[str]) -> list[Run]:
        assert query.job_id is not None
        most = max(READ_MAX, query.limit + 1) if query.filtered else query.limit + 1
        found = list(self._store.runs.history(query.job_id, most=most))
        if query.filtered and len(found) >= most:
            notes.append(f"only the newest {most:,} runs of the job were looked at")
        return found

    def _leased(self, query: RunQuery, _: datetime, notes: list[str]) -> Iterator[Run]:
        sessions = self._store.control.sessions()
        if len(sessions) > SESSIONS_MAX:
            notes.append(f"only the leased runs of {SESSIONS_MAX:,} sessions were looked at")
        for session in sessions[:SESSIONS_MAX]:
            yield from self._store.runs.leased(session.session, most=query.most)

    def _ready(self, query: RunQuery, _: datetime, notes: list[str]) -> Iterator[Run]:
        for queue in self._store.control.queues(most=QUEUES_MAX):
            for priority in Priority:
                for lane in range(self._store.topology.lanes):
                    lane_runs = self._lane(queue, priority, lane, query.tenant)
                    found = list(islice(lane_runs, query.most))
                    if len(found) >= query.most:
                        notes.append(
                            "not all ready runs were looked at; they lie by tenant first (--tenant"
                            " leads to one's)"
                        )
                    yield from found

    def _lane(self, queue: str, priority: Priority, lane: int, tenant: str | None) -> Iterator[Run]:
        after = tenant or ""
        while True:
            page = self._store.runs.ready(queue, priority, lane, after=after, limit=PAGE)
            for run in page:
                if tenant is not None and run.tenant != tenant:
                    return
                yield run
            if len(page) < PAGE:
                return
            after = ready_sort(page[-1])

    def _failed(self, query: RunQuery, now: datetime, notes: list[str]) -> Iterator[Run]:
        """Read the coming retries: the minute buckets first, then a bounded number of all rows."""
        present = minute_of(now)
        cursors = self._store.control.cursors("retry", self._store.topology.shards)
        first = min((one.minute for one in cursors if one is not None), default=present)
        last = present + BUCKETS_AHEAD
        start = max(first, last + 1 - BUCKETS_MAX)
        for minute in range(start, last + 1):
            for shard in range(self._store.topology.shards):
                yield from self._store.runs.waiting(
                    minute, shard, minute_start(minute + 1), most=query.most
                )
        # A longer back-off, or a cursor far behind, lies outside: a small store is read whole.
        pages = SCAN_PAGES if query.states == {RunState.FAILED} else SCAN_PAGES_FEW
        later: list[str] = []
        for run in self._scan(query, later, pages):
            if run.state is RunState.FAILED:
                yield run
        if later:
            notes.append(
                f"retries due after {to_text(minute_start(last + 1))} may be left out"
                " (--job leads to all of a job)"
            )

    def _dead(self, query: RunQuery, now: datetime, notes: list[str]) -> Iterator[Run]:
        alone = query.states == {RunState.DEAD}
        since = query.since or (None if alone else now - RECENT)
        most = max(READ_MAX, query.limit + 1)
        found = self._store.runs.dead(most=most)
        if len(found) >= most:
            notes.append(f"only {most:,} dead runs were looked at")
        return (run for run in found if since is None or moment(run) >= since)

    def _ended(self, query: RunQuery, now: datetime, notes: list[str]) -> Iterator[Run]:
        """Read the hours back to `since`, newest first, until there are enough."""
        since = query.since or now - RECENT
        if not self._store.topology.keep_ended:
            notes.append("this store keeps no index of ended runs (--job leads to all of a job)")
            for run in self._scan(query, notes, SCAN_PAGES):
                if run.state in ENDED and moment(run) >= since:
                    yield run
            return
        hour, oldest = minute_of(now) // 60, minute_of(since) // 60
        if hour - oldest > HOURS_MAX:
            oldest = hour - HOURS_MAX
            notes.append(
                f"runs that ended before {to_text(minute_start(oldest * 60))} are left out"
            )
        count = 0
        while hour >= oldest and count <= query.limit:
            most = max(READ_MAX, query.limit + 1) if query.filtered else query.limit + 1
            found = self._store.runs.ended(hour, most=most)
            if query.filtered and len(found) >= most:
                notes.append(
                    f"only the newest {most:,} runs of the hour from"
                    f" {to_text(minute_start(hour * 60))} were looked at"
                )
            kept = [run for run in found if moment(run) >= since and query.fits(run)]
            count += len(kept)
            yield from kept
            hour -= 1

    def _scan(self, query: RunQuery, notes: list[str], pages: int) -> Iterator[Run]:
        """Read all rows in no order, a bounded number of pages."""
        cursor: str | None = None
        for _ in range(pages):
            runs, cursor = self._store.runs.scan(SCAN_PAGE, cursor)
            yield from filter(query.fits, runs)
            if cursor is None:
                return
        notes.append(
            f"the list may lack some: only {SCAN_PAGE * pages:,} rows were looked at"
            " (--job leads to all of a job)"
        )


_Read = Callable[[RunQuery, datetime, list[str]], Iterator[Run]]


def _listing(runs: Iterator[Run], limit: int, notes: Sequence[str]) -> Listing[Run]:
    """Return the newest runs; one that moved between two reads is there once, as read last."""
    latest: dict[str, Run] = {}
    for run in runs:
        seen = latest.get(run.run_id)
        if seen is None or seen.version < run.version:
            latest[run.run_id] = run
    ordered = sorted(latest.values(), key=lambda run: (moment(run), run.run_id), reverse=True)
    return Listing(
        items=tuple(ordered[:limit]), more=len(ordered) > limit, notes=tuple(dict.fromkeys(notes))
    )
