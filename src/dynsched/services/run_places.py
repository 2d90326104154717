"""The places where a search reads runs: its words resolved, its streams opened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import product

from dynsched.domain.filter_match import Range
from dynsched.domain.filter_values import Value, nearest
from dynsched.domain.filters import Filter, Term
from dynsched.domain.instants import MILLISECOND, MINUTE, minute_of, minute_start, to_text
from dynsched.domain.job import Priority
from dynsched.domain.run import FIXED_SESSION, Run, RunState, parse_run_id
from dynsched.errors import FilterError
from dynsched.services.lease_ends import fixed_minutes
from dynsched.services.run_plan import ENDED, RunPlan
from dynsched.services.run_plan import Place as Where
from dynsched.services.search_sources import Reads, Step, merged
from dynsched.storage.control import Session
from dynsched.storage.placement import (
    after_tenant,
    dead_partition,
    ended_partition,
    fixed_partition,
    hidden_partition,
    history_partitions,
    leased_partition,
    ready_partition,
    retry_partition,
)
from dynsched.storage.store import Store

TENANTS_ASKED = 200  # tenants that are asked for a job that is given by name only
NAMES_LOOKED = 1_000  # names among which the one that was meant is looked for
QUEUES_MAX = 500
LANES_MAX = 600  # queue, priority and lane
SESSIONS_MAX = 1_000  # sessions whose leased runs one page reads
LEASED_MAX = 2_000  # leased runs of one session, or under leases of functions
FIXED_QUERIES_MAX = 500  # minutes and shards of such leases
BUCKETS_MAX = 240  # minutes of coming retries that one page reads
BUCKETS_AHEAD = 65  # the longest default back-off is an hour
SCAN_PAGE = 500
SCAN_PAGES = 20
SCAN_PAGES_FEW = 1  # where the scan is only a net
HOUR = timedelta(hours=1)


class RunPlaces:
    """Opens what a plan asks for.

    Args:
        store: where to read.
        found: the filter.
        plan: what can fit.
        reads: of this page.
        now: the search's own instant.
    """

    def __init__(
        self, store: Store, found: Filter, plan: RunPlan, reads: Reads, now: datetime
    ) -> None:
        self._store = store
        self._filter = found
        self._plan = plan
        self._reads = reads
        self._now = now
        self.jobs = self._resolve_jobs()
        self.workers = self._resolve_workers()

    def stream(self) -> Iterator[Step]:
        """Return the runs of all places of the plan, newest first."""
        opened = {
            Where.IDS: self._ids,
            Where.HISTORY: self._history,
            Where.READY: self._ready,
            Where.LEASED: self._leased,
            Where.FAILED: self._failed,
            Where.DEAD: self._dead,
            Where.ENDED: self._ended,
        }
        return merged([stream for place in self._plan.places for stream in opened[place]()])

    def strangers(self) -> list[str]:
        """Return notes about tenants that were asked for and that the store does not know.

        A slip in a name is no proof that a tenant is well; one read, for a page without rows.
        """
        words = {
            value.word: value for term in self._filter.asking("tenant") for value in term.values
        }
        known = self._store.control.tenants(list(words)) if words else {}
        unknown = [word for word in words if not known[word].version]  # it has no row
        if not unknown:
            return []
        others = self._store.control.all_tenants(most=TENANTS_ASKED)
        notes = []
        for word in unknown:
            near = nearest(word, [one.name for one in others])
            notes.append(
                f"no tenant {word!r} is known" + (f" (did you mean {near}?)" if near else "")
            )
        return notes

    # words that a store knows

    def _terms(self, name: str) -> list[Term]:
        return [*self._filter.asking(name), *self._filter.asking(name, negated=True)]

    def _words(self, name: str) -> frozenset[str] | None:
        """Return the words of which one must hold, None if any may."""
        sets = [frozenset(term.words) for term in self._filter.asking(name)]
        return frozenset.intersection(*sets) if sets else None

    def _resolve_jobs(self) -> dict[str, frozenset[str]]:
        values = {v.word: v for term in self._terms("job") for v in term.values}
        if not values:
            return {}
        known = self._store.jobs.read_many(list(values))
        ids = {word: {word} if known[word] is not None else set() for word in values}
        tenants = self._tenants()
        asked = list(product(values, tenants))
        names = [(tenant, word) for word, tenant in asked]
        for (word, _), job_id in zip(asked, self._store.jobs.find_many(names), strict=True):
            if job_id is not None:
                ids[word].add(job_id)
        for word, found in ids.items():
            if not found:
                raise self._no_job(values[word], tenants)
        return {word: frozenset(found) for word, found in ids.items()}

    def _tenants(self) -> list[str]:
        named = self._words("tenant")
        if named is not None:
            return sorted(named)
        found = self._store.control.all_tenants(most=TENANTS_ASKED + 1)
        if len(found) > TENANTS_ASKED:
            self._reads.note(
                f"jobs were looked for by name in the first {TENANTS_ASKED} tenants only"
                " (tenant: leads to others)"
            )
        return [tenant.name for tenant in found[:TENANTS_ASKED]]

    def _no_job(self, value: Value, tenants: list[str]) -> FilterError:
        names = [
            name
            for tenant in tenants[:3]
            for name, _ in self._store.jobs.named(tenant, most=NAMES_LOOKED)
        ]
        near = nearest(value.word, names)
        mend = f"did you mean {near}?" if near else "`dynsched job list` shows them"
        where = f" in tenant {' or '.join(tenants)}" if self._words("tenant") is not None else ""
        return FilterError(
            f"there is no job {value.word!r}{where}",
            mend,
            value.column,
            self._filter.source or self._filter.text,
        )

    @cached_property
    def _sessions(self) -> list[Session]:
        return self._store.control.sessions()

    def _resolve_workers(self) -> dict[str, frozenset[str]]:
        words = {word for term in self._terms("worker") for word in term.words}
        found = {}
        for word in sorted(words):
            if word.startswith(FIXED_SESSION):
                found[word] = frozenset({word})  # an invocation: only its runs tell of it
                continue
            found[word] = frozenset(
                one.session for one in self._sessions if word in (one.session, one.host)
            )
            if not found[word]:
                self._reads.note(f"no worker session or host is called {word}")
        return found

    # places

    def _ids(self) -> Iterator[Iterator[Step]]:
        words = sorted(self._words("id") or ())
        runs = self._store.runs.get_many([parse_run_id(word) for word in words])
        yield self._reads.listed([run for run in runs if run is not None], Range())

    def _history(self) -> Iterator[Iterator[Step]]:
        sets = [
            frozenset[str]().union(*(self.jobs[word] for word in term.words))
            for term in self._filter.asking("job")
        ]
        for job_id in sorted(frozenset.intersection(*sets)):
            for partition in history_partitions(job_id, self._store.topology):
                yield self._reads.history(job_id, partition, self._plan.sched)

    def _dead(self) -> Iterator[Iterator[Step]]:
        kinds = [dead_partition] if not self._plan.only_hidden else []
        kinds += [hidden_partition] if self._plan.hidden else []
        groups = self._words("group")
        for kind, shard in product(kinds, range(self._store.topology.shards)):
            if groups is None:
                yield self._reads.grouped(
                    kind(shard),
                    within=self._plan.dead,
                    beyond="not all groups of errors were looked at (group: leads to one)",
                )
                continue
            for group in sorted(groups):
                yield self._reads.ordered(kind(shard), within=self._plan.dead, prefix=f"{group}#")

    def _ready(self) -> Iterator[Iterator[Step]]:
        queues = self._words("queue")
        listed = sorted(queues) if queues is not None else self._queues()
        wanted = self._words("prio")
        priorities = [one for one in Priority if wanted is None or one.value in wanted]
        lanes = list(product(listed, priorities, range(self._store.topology.lanes)))
        if len(lanes) > LANES_MAX:
            self._reads.note(
                f"ready runs of {LANES_MAX:,} lanes only were looked at (queue: leads to others)"
            )
        tenants = self._words("tenant")
        for queue, priority, lane in lanes[:LANES_MAX]:
            partition = ready_partition(queue, priority, lane)
            for after, before in _tenant_ranges(tenants):
                yield self._reads.grouped(
                    partition,
                    within=self._plan.due,
                    after=after,
                    before=before,
                    beyond="not all ready runs were looked at; they lie by tenant first"
                    " (tenant: leads to one's)",
                )

    def _queues(self) -> list[str]:
        found = self._store.control.queues(most=QUEUES_MAX + 1)
        if len(found) > QUEUES_MAX:
            self._reads.note(f"the first {QUEUES_MAX} queues only were looked at")
        return found[:QUEUES_MAX]

    def _leased(self) -> Iterator[Iterator[Step]]:
        sessions = [one.session for one in self._sessions]
        words = [frozenset(term.words) for term in self._filter.asking("worker")]
        for term in self._filter.asking("worker"):
            wanted = frozenset[str]().union(*(self.workers[word] for word in term.words))
            sessions = [one for one in sessions if one in wanted]
        if len(sessions) > SESSIONS_MAX:
            self._reads.note(f"only the leased runs of {SESSIONS_MAX:,} sessions were looked at")
        runs: list[Run] = []
        for session in sessions[:SESSIONS_MAX]:
            runs += self._session(session)
        if all(any(word.startswith(FIXED_SESSION) for word in asked) for asked in words):
            runs += self._fixed()
        yield self._reads.listed(runs, self._plan.due)

    def _session(self, session: str) -> Iterator[Run]:
        """Yield what a session holds; it lies in the order of ids."""
        cursor: str | None = None
        count = 0
        while count < LEASED_MAX:
            page = self._reads.page(leased_partition(session), limit=SCAN_PAGE, cursor=cursor)
            yield from (run for _, run in page.rows)
            count, cursor = count + len(page.rows), page.cursor
            if cursor is None:
                return
        self._reads.note(f"only {LEASED_MAX:,} leased runs of a session were looked at")

    def _fixed(self) -> Iterator[Run]:
        """Yield what is leased until a fixed end; it lies by the minutes of the ends."""
        minutes = fixed_minutes(self._store, self._now)
        buckets = list(product(minutes, range(self._store.topology.shards)))
        if self._plan.states == {RunState.LEASED}:
            self._reads.note(
                f"leases that end after {to_text(minute_start(minutes.stop))}, such as those of"
                " runs that wait long for a callback, are left out (job: leads to all of a job)"
            )
        count = 0
        for minute, shard in buckets[:FIXED_QUERIES_MAX]:
            page = self._reads.page(fixed_partition(minute, shard), limit=SCAN_PAGE)
            yield from (run for _, run in page.rows)
            count += len(page.rows)
            if count >= LEASED_MAX or page.cursor is not None:
                break
        else:
            if len(buckets) <= FIXED_QUERIES_MAX:
                return
        self._reads.note("not all leases of functions were looked at (job: leads to all of a job)")

    def _failed(self) -> Iterator[Iterator[Step]]:
        """Yield the coming retries: the minute buckets, and a bounded number of all rows."""
        present = minute_of(self._now)
        shards = range(self._store.topology.shards)
        cursors = self._store.control.cursors("retry", len(shards))
        first = min((one.minute for one in cursors if one is not None), default=present)
        last = present + BUCKETS_AHEAD
        first = max(first, last + 1 - BUCKETS_MAX)
        within = self._plan.due
        minutes = _numbers(self._top(within.high), within.low, MINUTE, range(first, last + 1))
        yield self._reads.bucketed(
            (
                minute_start(minute),
                partial(self._buckets, [retry_partition(minute, one) for one in shards], within),
            )
            for minute in minutes
        )
        alone = self._plan.states == {RunState.FAILED}
        runs, whole = self._scanned(SCAN_PAGES if alone else SCAN_PAGES_FEW)
        outside = [
            run
            for run in runs
            if run.state is RunState.FAILED and not first <= minute_of(run.available_at) <= last
        ]
        if not whole:
            self._reads.note(
                f"retries due after {to_text(minute_start(last + 1))} may be left out"
                " (job: leads to all of a job)"
            )
        yield self._reads.listed(outside, within)

    def _ended(self) -> Iterator[Iterator[Step]]:
        within = self._plan.ended
        if within.empty:
            return
        shards = range(self._store.topology.shards)
        if not self._store.topology.keep_ended:
            yield self._ended_scanned(within)
            return
        top = minute_of(min(self._now + MINUTE, self._top(within.high))) // 60
        hours = _numbers(
            self._top(within.high), within.low, HOUR, range(minute_of(within.low) // 60, top + 1)
        )
        yield self._reads.bucketed(
            (
                minute_start(60 * hour),
                partial(self._buckets, [ended_partition(hour, one) for one in shards], within),
            )
            for hour in hours
        )

    def _buckets(self, partitions: list[str], within: Range) -> list[Iterator[Step]]:
        return [self._reads.ordered(partition, within=within) for partition in partitions]

    def _top(self, high: datetime) -> datetime:
        """Return the last instant that may be of use."""
        start = self._reads.start
        top = high - MILLISECOND
        if start is None:
            return top
        return min(top, start[0] if start[1] else start[0] - MILLISECOND)

    def _ended_scanned(self, within: Range) -> Iterator[Step]:
        self._reads.note("this store keeps no index of ended runs (job: leads to all of a job)")
        runs, whole = self._scanned(SCAN_PAGES)
        if not whole:
            self._reads.note(
                f"the list may lack some: only {SCAN_PAGE * SCAN_PAGES:,} rows were looked at"
                " (job: leads to all of a job)"
            )
        return self._reads.listed([run for run in runs if run.state in ENDED], within)

    def _scanned(self, pages: int) -> tuple[list[Run], bool]:
        """Read all rows in no order, a bounded number of pages; say whether these were all."""
        found: list[Run] = []
        cursor: str | None = None
        for _ in range(pages):
            self._reads.queries += 1
            runs, cursor = self._store.runs.scan(SCAN_PAGE, cursor)
            found += runs
            if cursor is None:
                return found, True
        return found, False


def _numbers(top: datetime, low: datetime, width: timedelta, among: range) -> Iterator[int]:
    """Yield the numbers of the buckets from an instant down to another, newest first."""
    minutes = width // MINUTE
    first = max(among.start, minute_of(low) // minutes)
    last = min(among.stop - 1, minute_of(top) // minutes)
    yield from range(last, first - 1, -1)


def _tenant_ranges(tenants: frozenset[str] | None) -> list[tuple[str, str | None]]:
    """Return the key ranges of a lane in which tenants' rows lie; no tenants are all."""
    if tenants is None:
        return [("", None)]
    return [(f"{tenant}#", after_tenant(tenant)) for tenant in sorted(tenants)]
