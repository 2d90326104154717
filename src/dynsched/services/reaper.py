"""The reaper: finds sessions and fixed leases that are over and returns their runs, one by one.

It closes an expired session by a guarded write first, so that a heartbeat that lands in between
wins. Closed sessions' partitions are read again later, since a claim's index entry may come late
or a frozen claim may land behind the close. The daily sweep over all rows is the last net.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain import lifecycle
from dynsched.domain.instants import EPOCH, Clock, within
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.services.beats import Beats
from dynsched.services.callbacks import end_callback, timed_out
from dynsched.services.endings import Endings, attempt_expiry
from dynsched.services.lease_ends import LeaseEnds
from dynsched.services.permits import PermitDesk
from dynsched.services.resending import Resending
from dynsched.services.session import SessionLocks
from dynsched.services.skew import check_clock
from dynsched.services.statistics import Statistics
from dynsched.services.sweep import DailySweep
from dynsched.settings import Settings
from dynsched.storage.beats import REAPER
from dynsched.storage.control import Session
from dynsched.storage.runs import Attempt, RunApplied
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.reaper")

RETURNED_MAX = 10_000  # runs of one session that one sweep returns; the next goes on
PURGE_MAX = 5_000
REBUILDS = 5
SLICE = timedelta(seconds=10)  # of the daily sweep and of a backlog; then sessions come first again
SWEEP_LOOK = timedelta(seconds=30)  # between two looks whether the daily sweep is due
POISON_GROUP = "poison000000"


@dataclass(slots=True)
class SweepReport:
    """What one sweep did.

    Attributes:
        closed: sessions that were closed.
        returned: runs returned to ready, or made dead as poison.
        unanswered: attempts that have failed as nobody called back in time.
        late: runs found by a re-reading or by the daily sweep; each is an alarm.
        purged: expired rows deleted, where the store does not do so by itself.
        failed: rows that could not be returned; the rest went on.
        behind: something is left to do; sweep again at once.
        resent: messages sent again of runs that are ready for long, where runs are handed off.
    """

    closed: int = 0
    returned: int = 0
    unanswered: int = 0
    late: int = 0
    purged: int = 0
    failed: int = 0
    behind: bool = False
    resent: int = 0


class Reaper:
    """One replica; any number may sweep at once.

    Args:
        name: unique among replicas.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        settings: Settings,
        locks: SessionLocks,
        name: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._locks = locks
        self._report = SweepReport()
        self._statistics = Statistics(store)
        self._endings = Endings(
            store, clock=clock, rng=rng, desk=PermitDesk(store), on_move=self._statistics.moved
        )
        self._resending = Resending(store, settings=settings)
        self._beats = Beats(store, role=REAPER, name=name)
        self._lease_ends = LeaseEnds(store, settings=settings, give_back=self._return_run)
        self._until: datetime | None = None
        self._asked_at: datetime | None = None  # whether the daily sweep was due

    def sweep(self, until: datetime | None = None) -> SweepReport:
        """Make one pass over the sessions and fixed leases, and once a day over all runs.

        Args:
            until: end by then, with `behind` if that is too soon; what is left is for the next
                pass, of whichever replica. None is no bound, but for the parts that are not urgent.

        Raises:
            ClockSkewed: this process's clock differs from the store's beyond the bound.
            StoreError: the store failed; the next sweep repeats what is missing.
        """
        report = self._report = SweepReport()
        self._until = until
        self._store.refresh_by(self._clock.now())  # returned runs lie where the map says
        sessions = self._store.control.sessions()
        now = self._clock.now()
        check_clock(self._store.engine.store_time(), now, self._settings)
        self._statistics.turn(now)
        dead_here = set(self._locks.dead())
        for session in sessions:
            if not self._in_time():
                report.behind = True
            elif not session.open:
                self._read_again(session, now)
            elif session.session in dead_here or self._over(session, now):
                self._close(session, now)
        self._forget_locks(dead_here, {s.session for s in sessions})
        self._return_fixed(now)
        report.resent = self._resending.resend(now, self._in_slice())
        report.purged = self._store.engine.purge_expired(
            int((now - EPOCH).total_seconds()), PURGE_MAX
        )
        self._sweep_all(now)
        self._statistics.write_by(now)
        done = {"sessions closed": report.closed, "runs returned": report.returned}
        self._beats.note(now, done | {"late": report.late, "failed": report.failed})
        return report

    def end(self) -> None:
        """Write what is left and take the sign of life away, when no more sweeps follow."""
        self._statistics.write(self._clock.now())
        self._beats.end()

    def sweep_host(self) -> SweepReport:
        """Return the runs of this host's processes that are gone, without waiting for their lease.

        For a worker that starts: whoever sweeps for the store may be on another host, and cannot
        see the lock files of this one.

        Raises:
            StoreError: the store failed; what is missing waits for the end of its lease.
        """
        report = self._report = SweepReport()
        dead = set(self._locks.dead())
        if dead:
            self._store.refresh_by(self._clock.now())
            sessions = self._store.control.sessions()
            now = self._clock.now()
            self._statistics.turn(now)
            for session in sessions:
                if session.open and session.session in dead:
                    self._close(session, now)
            self._statistics.write(now)
            self._forget_locks(dead, {session.session for session in sessions})
        return report

    def _in_time(self) -> bool:
        return self._until is None or self._clock.now() < self._until

    def _in_slice(self) -> Callable[[], bool]:
        """Return what tells whether a part of this pass that is not urgent may go on."""
        end = self._clock.now() + SLICE
        return lambda: self._in_time() and self._clock.now() < end

    def _over(self, session: Session, now: datetime) -> bool:
        return self._ended(session.expires_at, now)

    def _ended(self, lease_ends_at: datetime, now: datetime) -> bool:
        return lease_ends_at + self._settings.lease_margin <= now

    def _close(self, session: Session, now: datetime) -> None:
        closed = self._store.control.write_session(
            replace(session, open=False, closed_at=now, reads=0, by_owner=False)
        )
        if closed is None:
            return  # a heartbeat landed first: it lives
        self._report.closed += 1
        log.warning("session %s of %s (pid %d) is over", session.session, session.host, session.pid)
        self._return_runs(session.session, now, again=False)

    def _forget_locks(self, dead: set[str], known: set[str]) -> None:
        """Remove lock files of sessions that are closed or gone from the store."""
        for session in dead:
            row = self._store.control.session(session) if session in known else None
            if row is None or not row.open:
                self._locks.forget(session)

    def _read_again(self, session: Session, now: datetime) -> None:
        """Read a closed session's partition at its due times, then drop its row."""
        nets = (*self._nets(), None)
        since_close = now - (session.closed_at or now)
        due, following = nets[session.reads], nets[min(session.reads + 1, len(nets) - 1)]
        if due is None:
            self._store.control.delete_session(session)
            return
        if since_close < due:
            return
        returned = self._return_runs(session.session, now, again=session.reads > 0)
        if returned or following is None or since_close >= following:
            self._store.control.write_session(replace(session, reads=session.reads + 1))

    def _nets(self) -> tuple[timedelta, ...]:
        """Return how long after its close, by whomever, a session's partition is read.

        At once too: whoever closed it may have died before it read anything.
        """
        return (
            timedelta(0),
            self._settings.index_lag,
            timedelta(minutes=10),
            timedelta(minutes=60),
        )

    def _return_runs(self, session: str, now: datetime, *, again: bool) -> bool:
        """Return a session's runs; False if some are left for the next sweep."""
        failed = self._report.failed
        found = self._store.runs.leased(session, most=RETURNED_MAX)
        for seen in found:
            if not self._in_time():
                self._report.behind = True
                return False
            if self._return_run(seen, session, now) and again:
                self._report.late += 1
                log.warning("run %s was found by a re-reading of %s", seen.run_id, session)
        return failed == self._report.failed and len(found) < RETURNED_MAX

    def _return_fixed(self, now: datetime) -> None:
        self._lease_ends.sweep(now, self._in_slice())
        self._report.late += self._lease_ends.late
        self._report.behind = self._report.behind or self._lease_ends.behind

    def _sweep_all(self, now: datetime) -> None:
        """Go on with the daily sweep if it is due, or look whether it is."""
        if not self._in_time() or within(now, self._asked_at, SWEEP_LOOK):
            return
        sweep = DailySweep(
            self._store, clock=self._clock, settings=self._settings, give_back=self._return_run
        )
        sweep.run(now, self._in_slice())
        self._asked_at = None if sweep.left else now
        self._report.late += sweep.late
        self._report.behind = self._report.behind or sweep.left

    def _return_run(self, seen: Run, session: str, now: datetime) -> bool | None:
        """Return one run under its fence; one broken row never blocks the rest."""
        try:
            return self._reclaim(seen, session, now)
        except Exception:
            self._report.failed += 1
            log.exception("run %s could not be returned; the next sweep tries again", seen.run_id)
            return None

    def _reclaim(self, seen: Run, session: str, now: datetime) -> bool:
        run = self._store.runs.get(seen.key)
        for _ in range(REBUILDS):
            if run is None or run.state is not RunState.LEASED or run.session != session:
                return False
            if run.lease_ends_at is not None and not self._ended(run.lease_ends_at, now):
                return False  # taken anew by the same invocation
            if run.awaits_callback:
                return self._fail_unanswered(run, now)
            move = lifecycle.reclaim(run, now=now, signature=POISON_GROUP)
            self._store.runs.note_attempts([_lost(run, now)])
            outcome = self._store.runs.apply(move)
            if isinstance(outcome, RunApplied):
                self._report.returned += 1
                self._statistics.moved(move)
                self._follow(run, outcome.run)
                return True
            run = outcome.current
        return False

    def _fail_unanswered(self, run: Run, now: datetime) -> bool:
        """End an attempt for which nobody answered: a failure, which the retry policy judges."""
        ended = end_callback(
            self._endings,
            run,
            timed_out(run),
            job=self._store.jobs.get(run.job_id),
            now=now,
            look_ahead=self._store.topology.look_ahead,
        )
        self._report.unanswered += ended is not None
        return ended is not None

    def _follow(self, before: Run, after: Run) -> None:
        if after.state is RunState.DEAD:
            log.error("run %s is dead (%s): %s", after.run_id, after.reason, after.error)
        if before.waiter is not None:
            waiting = self._store.runs.get(parse_run_id(before.waiter))
            now = self._clock.now()
            if waiting is not None and waiting.state is RunState.READY:
                self._store.runs.apply(lifecycle.pull_forward(waiting, now=now))


def _lost(run: Run, now: datetime) -> Attempt:
    return Attempt(
        run_id=run.run_id,
        number=run.attempt + 1,
        fence=run.fence,
        session=run.session or "",
        outcome="lost",
        started_at=None,
        ended_at=now,
        message=(
            "the worker's session was over; the run may have started"
            if run.lease_ends_at is None
            else "its lease had ended with no word of the function; the run may have started"
        ),
        expires_at_s=attempt_expiry(run, now),
    )
