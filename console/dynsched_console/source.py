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
from dynsched.domain.audit import AuditEntry
from dynsched.domain.explanation import Explanation
from dynsched.domain.health import Health
from dynsched.domain.run import Run
from dynsched.services.run_views import RunDetail
from dynsched.services.search import Found
from dynsched_console.replaying import ReplaySource

T = TypeVar("T")

AUDIT_SHOWN = 20  # newest entries on one run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScene:
    """All that the screen of one run shows.

    Attributes:
        detail: the run with its attempts, secrets masked.
        why: where it is and why, in sentences.
        audit: what people did to it, newest first.
        at: when it was read.
    """

    detail: RunDetail
    why: Explanation
    audit: tuple[AuditEntry, ...] = ()
    at: datetime


class Source(ReplaySource):
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
        self._errors = {}
        self.views = build_views(base, read_only=access.read_only)
        self.operations = build_operations(base, access)

    async def ask(self, call: Callable[[], T]) -> T:
        """Make one blocking call in a thread and wait for it without blocking the screen."""
        return await asyncio.to_thread(call)

    def why_not(self, action: Action) -> str:
        """Return why this operator may not do something; empty if it may."""
        return self.access.why_not(action, tenant=self.access.tenant)

    # reading

    def health(self) -> Health:
        """Return the store's state at a glance."""
        return self.views.health()

    def find_runs(self, text: str, *, limit: int, cursor: str | None = None) -> Found[Run]:
        """Return one page of the runs that a filter names."""
        return self.views.find_runs(text, limit=limit, cursor=cursor)

    def job_names(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs by their ids."""
        return self.views.job_names(job_ids)

    def run(self, run_id: str) -> RunScene:
        """Return one run with all that belongs to it."""
        return RunScene(
            detail=self.views.show_run(run_id),
            why=self.views.why_run(run_id),
            audit=tuple(self.views.audit_of(f"run:{run_id}", AUDIT_SHOWN)),
            at=self.now(),
        )

    # changing: each of these passes the gate of the core

    def cancel(self, run_id: str, *, reason: str) -> Run:
        """Cancel a run, or ask the worker that has it to stop."""
        return self.operations.cancel(run_id, reason=reason)

    def replay(self, run_id: str, *, reason: str) -> Run:
        """Bring a dead run back."""
        return self.operations.replay(run_id, reason=reason)

    def discard(self, run_id: str, *, reason: str) -> Run:
        """Hide a dead run."""
        return self.operations.discard(run_id, reason=reason)
