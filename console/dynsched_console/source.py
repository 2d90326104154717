"""The source: the one object through which the console reads and changes a store.

It owns the store, its views and its operations, and offers plain calls that block; screens send
each of them to a thread by `Source.ask`, so that the event loop never waits for a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from dynsched.bootstrap import Base, build_operations, build_views
from dynsched.domain.access import Access, Action
from dynsched.domain.run import Run, RunState
from dynsched.services.run_views import RunDetail, RunQuery
from dynsched_console.awaited import Health, Severity, Verdict, WorkerLine
from dynsched_console.found import Found

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScene:
    """All that the screen of one run shows.

    Attributes:
        detail: the run with its attempts.
        at: when it was read.
    """

    detail: RunDetail
    at: datetime


class Source:
    """A store, as the console sees it.

    Args:
        base: the store.
        access: who acts.
        url: the store's URL, for the header and for command lines.
        environment: what this store is for (`prod`, `staging`); a badge.
    """

    def __init__(self, base: Base, access: Access, *, url: str, environment: str = "") -> None:
        self.base = base
        self.access = access
        self.url = url
        self.environment = environment
        self.views = build_views(base)
        self.operations = build_operations(base, access)

    def now(self) -> datetime:
        """Return the present instant."""
        return self.base.clock.now()

    async def ask(self, call: Callable[[], T]) -> T:
        """Make one blocking call in a thread and wait for it without blocking the screen."""
        return await asyncio.to_thread(call)

    def why_not(self, action: Action) -> str:
        """Return why this operator may not do something; empty if it may."""
        return self.access.why_not(action, tenant=self.access.tenant)

    # reading

    def health(self) -> Health:
        """Return the store's state at a glance."""
        stats = self.views.stats()
        dead = stats.runs["dead"]
        level = Severity.BAD if dead.count else Severity.OK
        return Health(
            at=stats.now,
            verdicts=(
                Verdict(level=Severity.OK, topic="late", sentence="nothing is late"),
                Verdict(level=Severity.OK, topic="stuck", sentence="nothing is stuck"),
                Verdict(level=level, topic="broken", sentence=f"{dead} runs are dead"),
                Verdict(level=Severity.OK, topic="hurt", sentence="no tenant is hurt"),
            ),
            leased=stats.runs["leased"],
            failed=stats.runs["failed"],
            dead=dead,
            discarded=stats.runs["discarded"],
            jobs_by_state=stats.jobs,
            cursor_lags=stats.cursor_lags,
            slots=stats.slots,
            workers=tuple(
                WorkerLine(
                    session=one.session,
                    host=one.host,
                    pid=one.pid,
                    slots=one.slots,
                    leased=0,
                    queues=one.queues,
                    last_beat=None,
                    expires_at=one.expires_at,
                    open=one.open,
                )
                for one in self.base.store.control.sessions()
            ),
        )

    def find_runs(self, text: str, *, limit: int, cursor: str | None = None) -> Found[Run]:
        """Return one page of the runs that a filter names."""
        del cursor
        states = frozenset(
            RunState(word.removeprefix("state:"))
            for word in text.split()
            if word.startswith("state:")
        )
        found = self.views.list_runs(RunQuery(states=states, limit=limit))
        count = len(found.items)
        return Found(items=found.items, matched=count, examined=count, notes=found.notes)

    def job_names(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs by their ids."""
        return self.views.job_names(job_ids)

    def run(self, run_id: str) -> RunScene:
        """Return one run with all that belongs to it."""
        return RunScene(detail=self.views.show_run(run_id), at=self.now())

    # changing: each of these passes the gate of the core

    def cancel(self, run_id: str, *, reason: str) -> Run:
        """Cancel a run, or ask the worker that has it to stop."""
        return self.operations.cancel(run_id, reason=reason or "cancelled by hand")

    def replay(self, run_id: str, *, reason: str) -> Run:
        """Bring a dead run back."""
        del reason
        return self.operations.replay(run_id)

    def discard(self, run_id: str, *, reason: str) -> Run:
        """Hide a dead run."""
        del reason
        return self.operations.discard(run_id)
