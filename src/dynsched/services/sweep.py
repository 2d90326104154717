"""The daily sweep over all rows: the last net, and what moves rows after the map has changed.

Whatever it has to mend was missed by the cursors, their re-readings and the reaper, and each find
is an alarm; rows that only lie under an older entry of the map are moved in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, minute_start
from dynsched.domain.run import Run, RunState
from dynsched.services.serving import JobServer
from dynsched.settings import Settings
from dynsched.storage.codec import decode_job, decode_run
from dynsched.storage.engine import Applied, Replace, Row, Table
from dynsched.storage.jobs import is_job
from dynsched.storage.placement import IndexEntry, job_index, run_index
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.reaper")

PAGE = 500
OVERDUE = timedelta(minutes=75)  # behind the last re-reading of closed minutes and sessions


@dataclass(slots=True)
class Swept:
    """What a sweep did: rows seen, late finds, rows moved to their present place, failures."""

    seen: int = 0
    late: int = 0
    moved: int = 0
    failed: int = 0


class DailySweep:
    """One pass over the jobs and the runs.

    Args:
        give_back: returns a leased run whose session is over; True if it did.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        settings: Settings,
        give_back: Callable[[Run, str, datetime], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._give_back = give_back
        self._swept = Swept()
        self._living: set[str] = set()

    def run(self, now: datetime) -> Swept:
        """Sweep everything, page by page; one broken row never blocks the rest."""
        self._store.refresh()
        self._living = {
            session.session
            for session in self._store.control.sessions()
            if session.open or session.closed_at is None or now - session.closed_at < OVERDUE
        }
        for table, visit in ((Table.RUNS, self._visit_run), (Table.JOBS, self._visit_job)):
            cursor: str | None = None
            while True:
                page = self._store.engine.scan(table, PAGE, cursor)
                for row in page.rows:
                    self._visit(row, visit, now)
                cursor = page.cursor
                if cursor is None:
                    break
        self._drop_old_entries(now)
        swept = self._swept
        log.info("daily sweep: %d rows, %d late, %d moved", swept.seen, swept.late, swept.moved)
        return swept

    def _visit(self, row: Row, visit: Callable[[Row, datetime], None], now: datetime) -> None:
        self._swept.seen += 1
        try:
            visit(row, now)
        except Exception:  # whatever a row holds
            self._swept.failed += 1
            log.exception("row %s %s could not be swept", row.key.pk, row.key.sk)

    def _visit_run(self, row: Row, now: datetime) -> None:
        if row.key.pk.startswith("attempts#"):
            return
        run = decode_run(row)
        if run.state is RunState.LEASED:
            self._visit_leased(run, now)
        elif run.state is RunState.FAILED and run.available_at < now - OVERDUE:
            outcome = self._store.runs.apply(lifecycle.due(run))
            if isinstance(outcome, RunApplied):
                self._found("run %s waited in a closed minute", run.run_id)
        else:
            self._move(row, run_index(run, self._store.topology.newest()))

    def _visit_leased(self, run: Run, now: datetime) -> None:
        session = run.session or ""
        if session in self._living:
            return
        row = self._store.control.session(session)
        if (row is None or not row.open) and self._give_back(run, session, now):
            self._found("run %s lay under a session that is over", run.run_id)

    def _visit_job(self, row: Row, now: datetime) -> None:
        if not is_job(row) or row.index is None:
            return
        job = decode_job(row)
        if job.due and job.next_at is not None and job.next_at < now - OVERDUE:
            server = JobServer(self._store, settings=self._settings)
            before = now + self._store.topology.look_ahead
            if server.serve_job(job, now=now, before=before).created:
                self._found("job %s was due in a closed minute", job.job_id)
        else:
            self._move(row, job_index(job, self._store.topology.newest()))

    def _found(self, message: str, name: str) -> None:
        self._swept.late += 1
        log.warning("daily sweep: " + message, name)

    def _move(self, row: Row, index: IndexEntry | None) -> None:
        """Rewrite a row that lies under an older entry of the map."""
        if row.index == index:
            return
        token = self._store.token()
        moved = replace(row, index=index, token=token, version=row.version + 1)
        if isinstance(self._store.engine.write(Replace(moved, row.version)), Applied):
            self._swept.moved += 1

    def _drop_old_entries(self, now: datetime) -> None:
        """Forget older entries of the map once a sweep found nothing under them any more.

        Not before the newest one has been in force for a while: until then others rightly write
        under the older ones.
        """
        topology = self._store.topology
        if len(topology.entries) == 1 or self._swept.moved or self._swept.failed:
            return
        if minute_start(topology.entries[-1].from_minute) + OVERDUE <= now:
            self._store.control.write_map(topology.newest())
