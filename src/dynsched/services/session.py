"""Worker sessions: one row and one heartbeat per process; leases live as long as their session.

The worker judges its session by its own clocks, wall and monotonic, whichever is earlier, counted
from before the request, and stops `lease_margin` before the end; the reaper acts `lease_margin`
after it. A session that lapsed is never renewed, and its id is never used again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random

from dynsched.domain.instants import Clock
from dynsched.domain.names import new_id
from dynsched.errors import ClockSkewed
from dynsched.services.skew import check_clock
from dynsched.settings import Settings
from dynsched.storage.control import Session
from dynsched.storage.store import Store

log = logging.getLogger("dynsched.worker")

BEATS_PER_LEASE = 3
HANDLERS_MAX = 200  # names that a session's row lists; each heartbeat writes them again
HANDLERS_LENGTH_MAX = 4_000  # and their characters
MERGES = 10  # rounds of reading mail and writing again in one heartbeat


class SessionLocks:
    """Lock files of this host's worker processes: who can take one knows that its holder died.

    Names and pids prove nothing in containers; a lock on an open file does.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def hold(self, session: str) -> str:
        """Lock a new session's file for the life of this process; return its path, "" without."""
        if self._folder is None:
            return ""
        path = self._folder / session
        unseen = self._folder / f".{session}"  # locked before others can see it under its name
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(unseen, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except PermissionError as error:
            log.warning(
                "no lock file (%s): if this process is killed, its lease must run out", error
            )
            return ""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unseen.rename(path)
        self._held[session] = descriptor
        return str(path)

    def dead(self) -> list[str]:
        """Return sessions of this host whose process is gone, for certain."""
        if self._folder is None or not self._folder.is_dir():
            return []
        found = []
        for path in sorted(self._folder.iterdir()):
            if path.name in self._held or path.name.startswith("."):
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except (FileNotFoundError, PermissionError):
                continue  # gone, or another user's: then its lease decides
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(path.name)
            except BlockingIOError:
                continue  # its process lives; the lock stays with it
            finally:
                os.close(descriptor)
        return found

    def forget(self, session: str) -> None:
        """Remove the file of a session that was closed, and release it if it is ours."""
        descriptor = self._held.pop(session, None)
        if self._folder is not None:
            with suppress(PermissionError):  # another user's file does no harm
                (self._folder / session).unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a session's row says of its process, for people."""

    host: str
    pid: int
    slots: int
    queues: tuple[str, ...]
    handlers: tuple[str, ...] | None = None
    commands: bool = False


class SessionKeeper:
    """Opens, renews and closes the process's session.

    Concurrency: `beat` runs on the heartbeat thread, everything else may be called from any.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        settings: Settings,
        identity: Identity,
        locks: SessionLocks,
        on_mail: Callable[[str], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._identity = identity
        self._locks = locks
        self._on_mail = on_mail
        self._lock = threading.Lock()
        self._row: Session | None = None
        self._known_wall: datetime | None = None
        self._known_mono = 0.0
        self.others: tuple[str, ...] = ()
        self.skewed = False  # this process's clock and the store's differ: it claims nothing

    @property
    def session(self) -> str | None:
        """Return the id of the session that is alive by this process's own clocks, else None."""
        with self._lock:
            row = self._row
        return row.session if row is not None and self.alive(row.session) else None

    def alive(self, session: str | None) -> bool:
        """Return whether a lease of that session may still be acted upon."""
        with self._lock:
            row, wall, mono = self._row, self._known_wall, self._known_mono
        if row is None or wall is None or row.session != session:
            return False
        margin = self._settings.lease_margin
        return (
            self._clock.now() < wall - margin
            and self._clock.monotonic() < mono - margin.total_seconds()
        )

    def open(self) -> str:
        """Open a session under a new id; it is acknowledged when this returns."""
        now, mono = self._clock.now(), self._clock.monotonic()
        session = new_id(self._rng)
        identity = self._identity
        new = Session(
            session=session,
            started_at=now,
            expires_at=now + self._settings.lease,
            host=identity.host,
            pid=identity.pid,
            slots=identity.slots,
            queues=identity.queues,
            lock=self._locks.hold(session),
            handlers=identity.handlers,
            commands=identity.commands,
        )
        try:
            row = self._store.control.write_session(new)
        except Exception:
            self._locks.forget(session)  # else each try of a long outage leaves a file open
            raise
        assert row is not None, "a session id of 65 random bits was taken"
        self._know(row, now, mono)
        self._look_around()
        return session

    def _know(self, row: Session, now: datetime, mono: float) -> None:
        with self._lock:
            self._row = row
            self._known_wall = now + self._settings.lease
            self._known_mono = mono + self._settings.lease.total_seconds()

    def _look_around(self) -> None:
        """Read the map, and which sessions serve the same queues: they share the lanes out."""
        self._store.refresh()
        self.skewed = self._is_skewed()
        queues = set(self._identity.queues)
        self.others = tuple(
            item.session
            for item in self._store.control.sessions()
            if item.open and queues & set(item.queues)
        )

    def _is_skewed(self) -> bool:
        """Return whether the clocks differ beyond the bound, right after an answer of the store."""
        try:
            check_clock(self._store.engine.store_time(), self._clock.now(), self._settings)
        except ClockSkewed as error:
            log.error("nothing is claimed: %s", error)  # noqa: TRY400  it needs no traceback
            return True
        return False

    def beat(self) -> bool:
        """Renew the session; False if it is over (lapsed by own clock, or closed by a reaper).

        A heartbeat is guarded, so mail that was left in the row is never overwritten.
        """
        with self._lock:
            row = self._row
        if row is None:
            return False
        for _ in range(MERGES):
            if not self.alive(row.session):
                return False  # lapsed, perhaps while this merged mail: a new one has to be opened
            now, mono = self._clock.now(), self._clock.monotonic()
            renewed = replace(row, expires_at=now + self._settings.lease, mail=())
            written = self._store.control.write_session(renewed)
            if written is not None:
                with self._lock:
                    abandoned = self._row is None or self._row.session != written.session
                if abandoned:
                    return False  # it lapsed while the answer was under way
                self._know(written, now, mono)
                for item in row.mail:
                    self._on_mail(item)
                self._look_around()
                return True
            found = self._store.control.session(row.session)
            if found is None or not found.open:
                self._lose()
                return False
            row = found
        return True  # mail kept coming; the next beat tries again, the lease is still known

    def _lose(self) -> None:
        with self._lock:
            self._row = None
            self._known_wall = None

    def abandon(self) -> str | None:
        """Forget a session that lapsed; return its id. The next one has a new id."""
        with self._lock:
            row = self._row
        self._lose()
        return None if row is None else row.session

    def close(self) -> None:
        """Close the session when everything was handed back; its partition is read again later."""
        with self._lock:
            row = self._row
        if row is None:
            return
        self._lose()
        for _ in range(MERGES):
            closed = replace(row, open=False, closed_at=self._clock.now(), by_owner=True, mail=())
            if self._store.control.write_session(closed) is not None:
                break
            found = self._store.control.session(row.session)
            if found is None or not found.open:
                break
            row = found
        self._locks.forget(row.session)


def this_process(
    host: str,
    *,
    slots: int,
    queues: tuple[str, ...],
    handlers: Iterable[str] = (),
    commands: bool = False,
) -> Identity:
    """Return what this process's session row shall say; too many handlers are not listed."""
    names = tuple(sorted(handlers))
    listed = len(names) <= HANDLERS_MAX and sum(map(len, names)) <= HANDLERS_LENGTH_MAX
    return Identity(
        host=host,
        pid=os.getpid(),
        slots=slots,
        queues=queues,
        handlers=names if listed else None,
        commands=commands,
    )
