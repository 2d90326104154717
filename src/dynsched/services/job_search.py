"""Search for jobs: pages of jobs that fit a filter, by tenant and name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from dynsched.domain.filter_match import Fact, matches
from dynsched.domain.filters import JOBS, WORD, Filter
from dynsched.domain.job import Job, JobState
from dynsched.services.job_views import JobViews, coming
from dynsched.services.listing import check_limit
from dynsched.services.search import (
    EXAMINE,
    LIMIT,
    Cursor,
    Found,
    as_filter,
    check_examine,
    read_cursor,
)
from dynsched.storage.store import Store

BATCH = 100  # jobs that are read together
NAMES_PAGE = 500
TENANTS_PAGE = 500
TENANTS_MAX = 1_000  # tenants that one page passes; each costs a query
BEHIND = "\x7f"  # sorts behind every name
KEYED = ("tenant", "name", "id")

Entry = tuple[str, str, str]  # tenant, name, job id


class JobSearch(JobViews):
    """Finds jobs; only reading, every page bounded."""

    def find_jobs(
        self,
        filter: Filter | str = "",
        *,
        limit: int = LIMIT,
        cursor: str | None = None,
        examine: int = EXAMINE,
    ) -> Found[Job]:
        """Return a page of jobs in the order of tenant and name; deleted ones are never there.

        Cost: a query for each tenant, one read unit for each job that is looked at.

        Args:
            filter: which.
            limit: at most so many.
            cursor: of the page before.
            examine: jobs to look at before the page ends, however few fit.

        Raises:
            FilterError: the filter cannot be read.
            InvalidInput: a number is out of range, or the cursor belongs to another filter.
        """
        found = as_filter(filter, JOBS)
        check_limit(limit)
        check_examine(examine)
        now = self._clock.now()
        start = ("", "")
        if cursor is not None:
            read = read_cursor(cursor, found)
            now, start = read.at, read.place
        self._store.refresh_by(self._clock.now())
        names = _Names(self._store, found, start)
        page = _Page(self, found, now, limit=limit, examine=examine)
        end = page.read(names)
        tested = [word for word in _asked(found) if word not in KEYED or names.skips(word)]
        return Found(
            items=tuple(page.items),
            matched=len(page.items),
            examined=page.examined,
            cursor=None if end is None else Cursor(now, end).text(found),
            indexed=tuple(word for word in _asked(found) if word not in tested),
            tested=tuple(tested),
            notes=tuple(dict.fromkeys(page.notes)),
        )


def _asked(found: Filter) -> list[str]:
    return list(dict.fromkeys("text" if one == WORD else one for one in found.names()))


class _Names:
    """The names that may belong to fitting jobs, in order, behind a place.

    Attributes:
        cut: where the next page goes on when this one has passed the tenants that it may.
    """

    def __init__(self, store: Store, found: Filter, start: tuple[str, str]) -> None:
        self._store = store
        self._filter = found
        self._start = start
        self.cut: tuple[str, str] | None = None

    def skips(self, word: str) -> bool:
        """Return whether a key is asked for in a way that leads nowhere: by excluding."""
        return bool(self._filter.asking(word, negated=True))

    def entries(self) -> Iterator[Entry]:
        """Yield them."""
        if self._filter.asking("id"):
            yield from self._by_id()
            return
        names = self._words("name")
        for passed, tenant in enumerate(self._tenants()):
            if passed == TENANTS_MAX:
                return
            self.cut = (tenant, BEHIND) if passed == TENANTS_MAX - 1 else None
            if names is None:
                yield from self._named(tenant)
                continue
            asked = [(tenant, name) for name in sorted(names) if (tenant, name) > self._start]
            for (_, name), job_id in zip(asked, self._store.jobs.find_many(asked), strict=True):
                if job_id is not None:
                    yield tenant, name, job_id

    def _words(self, name: str) -> frozenset[str] | None:
        sets = [frozenset(term.words) for term in self._filter.asking(name)]
        return frozenset.intersection(*sets) if sets else None

    def _by_id(self) -> Iterator[Entry]:
        found = self._store.jobs.read_many(sorted(self._words("id") or ()))
        entries = [(j.tenant, j.name, j.job_id) for j in found.values() if isinstance(j, Job)]
        yield from (entry for entry in sorted(entries) if entry[:2] > self._start)

    def _tenants(self) -> Iterator[str]:
        tenant = self._start[0]
        wanted = self._words("tenant")
        if wanted is not None:
            yield from (one for one in sorted(wanted) if one >= tenant)
            return
        if tenant:
            yield tenant
        while True:
            page = self._store.control.all_tenants(most=TENANTS_PAGE, after=tenant)
            for one in page:
                yield one.name
            if len(page) < TENANTS_PAGE:
                return
            tenant = page[-1].name

    def _named(self, tenant: str) -> Iterator[Entry]:
        after = self._start[1] if tenant == self._start[0] else ""
        while True:
            page = list(self._store.jobs.named(tenant, most=NAMES_PAGE, after=after))
            for name, job_id in page:
                yield tenant, name, job_id
            if len(page) < NAMES_PAGE:
                return
            after = page[-1][0]


class _Page:
    """Takes what fits until the page is full."""

    def __init__(
        self, views: JobViews, found: Filter, now: datetime, *, limit: int, examine: int
    ) -> None:
        self._views = views
        self._filter = found
        self._now = now
        self._limit = limit
        self._examine = examine
        self.items: list[Job] = []
        self.examined = 0
        self.notes: list[str] = []

    def read(self, names: _Names) -> tuple[str, str] | None:
        """Fill the page; return the place behind which the next one begins, None at the end."""
        entries = names.entries()
        while True:
            batch = list(islice(entries, min(BATCH, self._examine - self.examined)))
            if not batch:
                if names.cut is not None:
                    self.notes.append(
                        f"the page ended after {TENANTS_MAX:,} tenants (its cursor goes on)"
                    )
                return names.cut
            jobs = {
                job.job_id: job for job in self._views.read_jobs([e[2] for e in batch], self.notes)
            }
            for number, (tenant, name, job_id) in enumerate(batch, 1):
                self.examined += 1
                job = jobs.get(job_id)
                if job is not None and self._fits(job):
                    self.items.append(job)
                if len(self.items) >= self._limit or self.examined >= self._examine:
                    rest = number < len(batch) or next(entries, None) is not None
                    return (tenant, name) if rest else None

    def _fits(self, job: Job) -> bool:
        if job.state is JobState.DELETED:
            return False

        def fact(name: str) -> Fact:
            return _FACTS[name](job, self._now)

        return matches(self._filter, fact, self._now)


def _target(job: Job, _: datetime) -> str:
    return job.needs if job.target is None else f"{job.target.describe()} {job.needs}"


def _next(job: Job, now: datetime) -> Fact:
    ahead = coming(job, now, 1)
    return ahead[0] if ahead else None


def _flags(job: Job, now: datetime) -> Fact:
    flags = {
        "scheduled": job.schedule is not None,
        "manual": job.schedule is None,
        "held": job.state is JobState.PAUSED and job.policies.hold,
        "overdue": job.due and job.next_at is not None and job.next_at < now,
        "skipped": job.skipped > 0,
    }
    return [name for name, holds in flags.items() if holds]


_FACTS: Mapping[str, Callable[[Job, datetime], Fact]] = {
    WORD: lambda job, now: (job.job_id, job.name, _target(job, now)),
    "state": lambda job, _: job.state.value,
    "name": lambda job, _: job.name,
    "tenant": lambda job, _: job.tenant,
    "tag": lambda job, _: job.tags,
    "queue": lambda job, _: job.queue,
    "prio": lambda job, _: job.priority.value,
    "target": _target,
    "id": lambda job, _: job.job_id,
    "next": _next,
    "is": _flags,
}
