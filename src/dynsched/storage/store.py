"""The store: domain verbs over an engine, in rooms (jobs, runs, control, replay batches, audit)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain.instants import Clock, minute_of
from dynsched.errors import Conflict, NotInitialised
from dynsched.storage.audit import AuditStore
from dynsched.storage.batches import BatchStore
from dynsched.storage.beats import BeatStore
from dynsched.storage.control import ControlStore, Cursor
from dynsched.storage.dead import DeadStore
from dynsched.storage.engine import Engine
from dynsched.storage.handoff import HandOff, NoHandOff
from dynsched.storage.jobs import JobStore
from dynsched.storage.minutes import MinuteStore
from dynsched.storage.placement import MapEntry, Topology
from dynsched.storage.reminders import ReminderStore
from dynsched.storage.resends import ResendStore
from dynsched.storage.rows import Rows
from dynsched.storage.runs import RunStore
from dynsched.storage.sending import Sending
from dynsched.storage.snapshot import SnapshotStore
from dynsched.storage.sweeps import SweepStore
from dynsched.storage.tokens import TokenStore

MAP_AGE = timedelta(seconds=30)
PREPARE_TRIES = 10
LEASED = "leased"
DISPATCHER_KINDS = ("due", "retry")
CURSOR_KINDS = (*DISPATCHER_KINDS, LEASED)
SWEPT_BEFORE = 24 * 60  # minutes that a cursor of leases reads in a store from before it


class Store:
    """Jobs, runs and control rows over one engine.

    Args:
        engine: an engine that retries and settles (see `dynsched.storage.steady`).
        rng: for write tokens.
        handoff: tells functions of ready runs; None tells nobody.

    Attributes:
        topology: the map as last read by `refresh`.
    """

    def __init__(self, engine: Engine, *, rng: Random, handoff: HandOff | None = None) -> None:
        self.engine = engine
        self.handoff = handoff or NoHandOff()
        self._rows = Rows(engine, rng, Topology())
        self._read_at: datetime | None = None
        self.jobs = JobStore(self._rows)
        self.resends = ResendStore(self._rows)
        self.reminders = ReminderStore(self._rows)
        self.runs = RunStore(self._rows, Sending(self._rows, self.handoff, self.reminders))
        self.dead = DeadStore(self._rows)
        self.control = ControlStore(self._rows)
        self.minutes = MinuteStore(self._rows)
        self.beats = BeatStore(self._rows)
        self.sweeps = SweepStore(self._rows)
        self.snapshot = SnapshotStore(self._rows)
        self.batches = BatchStore(self._rows)
        self.audit = AuditStore(self._rows)
        self.tokens = TokenStore(self._rows)

    @property
    def topology(self) -> Topology:
        """Return the map as last read."""
        return self._rows.topology

    def token(self) -> str:
        """Return a token for a write that a service builds itself."""
        return self._rows.token()

    def refresh(self) -> Topology:
        """Read the map again. Cost: 1 read unit.

        Raises:
            NotInitialised: the tables exist, but `init` has not finished.
        """
        found = self.control.read_map()
        if found is None:
            raise NotInitialised("the store is empty: run `dynsched init`")
        self._rows.topology = found
        return found

    def refresh_by(self, now: datetime) -> Topology:
        """Read the map again unless that was done within `MAP_AGE`.

        A changed map is in force from a minute that lies further ahead than this.
        """
        if self._read_at is None or not timedelta(0) <= now - self._read_at < MAP_AGE:
            self.refresh()
            self._read_at = now
        return self.topology

    def init(self, topology: Topology, clock: Clock) -> bool:
        """Make tables, the map and the first cursors; safe to repeat, True if anything was made.

        A cursor begins at the minute of its map entry and not at its first reader's now, else
        entries written in between would lie behind it.
        """
        made = self.engine.init()
        if self.control.read_map() is None:
            made = self._write_first_map(topology, clock) or made
        self.ensure_cursors(self.refresh())
        return made

    def prepare(self, topology: Topology, clock: Clock) -> bool:
        """Make the map and the first cursors in tables that are there; True if anything changed.

        In a map that is there already look-ahead and queues of messages follow `topology`; its
        counts stay as they are, since an operator may have changed them.

        Concurrency: any number of processes may prepare a store at once.

        Raises:
            NotInitialised: the tables are missing.
            Conflict: the map kept changing.
        """
        changed = False
        for _ in range(PREPARE_TRIES):
            found = self.control.read_map()
            if found is None:
                changed = self._write_first_map(topology, clock)
                continue  # somebody else may have been first, with another
            wanted = replace(
                found, look_ahead=topology.look_ahead, message_queues=topology.message_queues
            )
            if wanted == found:
                self.ensure_cursors(self.refresh())
                return changed
            changed = self.control.write_map(wanted)
        raise Conflict("the map kept changing while the store was prepared; try again")

    def _write_first_map(self, topology: Topology, clock: Clock) -> bool:
        counts = topology.entries[-1]
        minute = minute_of(clock.now()) - 1
        entry = MapEntry(minute, counts.shards, counts.lanes, counts.spread)
        return self.control.write_map(replace(topology, entries=(entry,), version=0))

    def ensure_cursors(self, topology: Topology) -> None:
        """Write the cursors that the map asks for and that do not exist yet.

        Those of leases are younger than the others in a store from before there were any: they do
        not read all minutes since then, but a day's, behind which the daily sweep looks.
        """
        reached: dict[int, int] = {}  # by shard, where the cursor of jobs due is
        for kind in CURSOR_KINDS:
            found = self.control.cursors(kind, topology.shards)
            for shard, cursor in enumerate(found):
                if cursor is None:
                    minute = min(e.from_minute for e in topology.entries if e.shards > shard)
                    if kind == LEASED:
                        minute = max(minute, reached[shard] - SWEPT_BEFORE)
                    self.control.write_cursor(Cursor(kind=kind, shard=shard, minute=minute))
                    reached.setdefault(shard, minute)
                else:
                    reached.setdefault(shard, cursor.minute)
