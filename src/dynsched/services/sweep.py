"""The daily sweep over all rows: the last net, and what moves rows after the map has changed.

It is made in slices of time, and how far it is lies in the store, so that a function with minutes
to live makes it too, and another replica goes on where one has died.

Whatever it has to mend was missed by the cursors, their re-readings and the reaper, and each find
is an alarm; rows that only lie under an older entry of the map are moved in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from dynsched.domain import lifecycle
from dynsched.domain.instants import EPOCH, Clock, minute_start
from dynsched.domain.run import Run, RunState
from dynsched.services.lease_ends import GiveBack
from dynsched.services.serving import JobServer
from dynsched.settings import Settings
from dynsched.storage.codec import decode_job, decode_run
from dynsched.storage.engine import Applied, Replace, Row, Table
from dynsched.storage.jobs import is_job
from dynsched.storage.placement import IndexEntry, job_index, run_index
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store
from dynsched.storage.sweeps import SweepState

log = logging.getLogger("dynsched.reaper")

PAGE = 500
OVERDUE = timedelta(minutes=75)  # behind the last re-reading of closed minutes and sessions


HOLD = timedelta(seconds=60)  # how long one who makes a page keeps other replicas from it
ORDER = (Table.RUNS, Table.JOBS)


class DailySweep:
    """One slice of a pass over the runs and the jobs.

    Args:
        give_back: returns a leased run whose session or lease is over.

    Attributes:
        late: rows that this slice had to mend.
        left: the pass is not at its end, and nobody else goes on with it.
    """

    def __init__(
        self, store: Store, *, clock: Clock, settings: Settings, give_back: GiveBack
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._give_back = give_back
        self._state = SweepState(begun_at=EPOCH)
        self._living: set[str] = set()
        self.late = 0
        self.left = False

    def run(self, now: datetime, time_left: Callable[[], bool]) -> None:
        """Go on with the pass, or begin one if it is due; page by page while there is time.

        The first look at a new store begins no pass, but the period. A page is seen again if its
        replica dies in it. One broken row never blocks the rest.

        Cost: 1 read unit if there is nothing to do; else 1 for each 4 KB, and 1 write unit a page.
        """
        state = self._taken(now)
        if state is None:
            return
        self._state = state
        self._store.refresh()
        self._living = {
            session.session
            for session in self._store.control.sessions()
            if session.open or session.closed_at is None or now - session.closed_at < OVERDUE
        }
        while self._state.table is not None:
            if not time_left():
                self.left = True
                self._note(held_until=None)
                return
            after = self._page(self._state.table, now)
            if not self._note(**after, held_until=self._clock.now() + HOLD):
                return  # another replica goes on: this one was thought dead
        self._tell()

    def _taken(self, now: datetime) -> SweepState | None:
        """Take the pass: begin one if it is due, go on with one that nobody is at."""
        state = self._store.sweeps.read()
        if state is None:
            self._store.sweeps.write(SweepState(begun_at=now))
            return None
        if state.table is None:
            if now - state.begun_at < self._settings.sweep_period:
                return None
            begun = SweepState(begun_at=now, table=ORDER[0], version=state.version)
            return self._store.sweeps.write(replace(begun, held_until=now + HOLD))
        if state.held_until is not None and state.held_until > now:
            return None
        return self._store.sweeps.write(replace(state, held_until=now + HOLD))

    def _page(self, table: Table, now: datetime) -> dict[str, Any]:
        """Sweep one page; return where the next one begins."""
        visit = self._visit_run if table is Table.RUNS else self._visit_job
        page = self._store.engine.scan(table, PAGE, self._state.cursor)
        for row in page.rows:
            self._visit(row, visit, now)
        if page.cursor is not None:
            return {"cursor": page.cursor}
        behind = ORDER[ORDER.index(table) + 1 :]
        if not behind:
            self._drop_old_entries()
        return {"table": behind[0] if behind else None, "cursor": None}

    def _note(self, **changes: Any) -> bool:
        """Store how far the pass is; False if another replica has taken it."""
        written = self._store.sweeps.write(replace(self._state, **changes))
        if written is None:
            return False
        self._state = written
        return True

    def _count(self, **more: int) -> None:
        counts: dict[str, Any] = {
            name: getattr(self._state, name) + count for name, count in more.items()
        }
        self._state = replace(self._state, **counts)

    def _tell(self) -> None:
        done = self._state
        log.info("daily sweep: %d rows, %d late, %d moved", done.seen, done.late, done.moved)

    def _visit(self, row: Row, visit: Callable[[Row, datetime], None], now: datetime) -> None:
        self._count(seen=1)
        try:
            visit(row, now)
        except Exception:  # whatever a row holds
            self._count(failed=1)
            log.exception("row %s %s could not be swept", row.key.pk, row.key.sk)

    def _visit_run(self, row: Row, now: datetime) -> None:
        if row.key.pk.startswith("attempts#"):
            return
        run = decode_run(row)
        if run.state is RunState.LEASED:
            self._visit_leased(row, run, now)
        elif run.state is RunState.FAILED and run.available_at < now - OVERDUE:
            outcome = self._store.runs.apply(lifecycle.due(run))
            if isinstance(outcome, RunApplied):
                self._found("run %s waited in a closed minute", run.run_id)
        else:
            self._move(row, run_index(run, self._store.topology.newest()))

    def _visit_leased(self, row: Row, run: Run, now: datetime) -> None:
        session = run.session or ""
        if run.lease_ends_at is not None:
            over = run.lease_ends_at + self._settings.lease_margin <= now
            if not over:
                # It may be days until its end, under counts that are soon forgotten.
                self._move(row, run_index(run, self._store.topology.newest()))
            elif self._give_back(run, session, now) and run.lease_ends_at < now - OVERDUE:
                self._found("run %s lay under a lease that had ended", run.run_id)
            return
        if session in self._living:
            return
        held = self._store.control.session(session)
        if (held is None or not held.open) and self._give_back(run, session, now):
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
        self.late += 1
        self._count(late=1)
        log.warning("daily sweep: " + message, name)

    def _move(self, row: Row, index: IndexEntry | None) -> None:
        """Rewrite a row that lies under an older entry of the map."""
        if row.index == index:
            return
        token = self._store.token()
        moved = replace(row, index=index, token=token, version=row.version + 1)
        if isinstance(self._store.engine.write(Replace(moved, row.version)), Applied):
            self._count(moved=1)

    def _drop_old_entries(self) -> None:
        """Forget older entries of the map once a pass found nothing under them any more.

        Not unless the newest one had been in force for a while when the pass began: until then
        others rightly wrote under the older ones.
        """
        topology = self._store.refresh()
        if len(topology.entries) == 1 or self._state.moved or self._state.failed:
            return
        if minute_start(topology.entries[-1].from_minute) + OVERDUE <= self._state.begun_at:
            self._store.control.write_map(topology.newest())
