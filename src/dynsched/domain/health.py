"""Health: what a triage looks at first, as values.

Is it on time, is it stuck, is it broken, who is hurt: `dynsched.domain.judging` answers in
sentences. Nothing here reads a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Level:
    """How many rows there are.

    Attributes:
        count: as far as was counted.
        at_least: there may be more.
    """

    count: int
    at_least: bool = False

    def __str__(self) -> str:
        """Return the count for people: `10,000+` if there may be more."""
        return f"{self.count:,}" + ("+" if self.at_least else "")


class Grade(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class Topic(StrEnum):
    """The four questions, in the order in which they are asked."""

    LATE = "late"  # do runs start on time?
    STUCK = "stuck"  # do dispatcher, reaper and workers do their part?
    BROKEN = "broken"  # do runs fail for good?
    HURT = "hurt"  # who is held up more than others?


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One finding in plain words, for a person who was just woken."""

    level: Grade
    topic: Topic
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """How long after they were due runs started, over some minutes; None without a start.

    Attributes:
        p50: half of the starts were no later; within 26 % (see `dynsched.domain.histogram`).
        p95: 19 of 20 were no later; within 26 %.
        max: the latest, exactly.
        samples: starts that were measured: first starts only, no retries.
    """

    p50: timedelta | None = None
    p95: timedelta | None = None
    max: timedelta | None = None
    samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestDue:
    """The longest waiting run of a queue that might have started.

    Attributes:
        since: when it might have started.
        priority: its priority's name.
        lack: why no living worker can run it; empty if one can.
    """

    run_id: str
    since: datetime
    priority: str
    lack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinutePoint:
    """What happened in one minute, as the workers counted it.

    Attributes:
        at: the minute's beginning.
        started: handlers called, retries too.
        done: runs that succeeded.
        failed: tries that failed and are tried again.
        dead: runs that died.
        delay_p50: of the first starts; None without one.
        delay_p95: likewise.
        delay_max: likewise.
        dead_tenants: runs that died, by tenant; the five with most.
        dead_groups: runs that died, by error signature; the five with most.
    """

    at: datetime
    started: int = 0
    done: int = 0
    failed: int = 0
    dead: int = 0
    delay_p50: timedelta | None = None
    delay_p95: timedelta | None = None
    delay_max: timedelta | None = None
    dead_tenants: Mapping[str, int] = field(default_factory=dict)
    dead_groups: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The last sign of life of a dispatcher or a reaper.

    Attributes:
        name: of the replica: its host, its process and a text of its own.
        at: when it last said so; it does at most every half minute.
        note: what it has done since the sign before.
        lag: how far its slowest cursor was behind; None for a reaper.
    """

    name: str
    at: datetime
    note: str = ""
    lag: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLine:
    """One worker session.

    Attributes:
        leased: runs that lie under it.
        last_beat: about when it was last renewed.
        open: False once it was closed.
    """

    session: str
    host: str
    pid: int
    slots: int
    leased: int
    queues: tuple[str, ...]
    last_beat: datetime
    expires_at: datetime
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLine:
    """One tenant with much to wait for, much running, or runs that died.

    Attributes:
        waiting: due runs, as far as they were counted.
        running: leased runs.
        started: tries begun in the last five minutes, retries and replays too.
        dead: runs that died in the last hour.
        cap: most runs leased at once; None is no cap.
    """

    tenant: str
    waiting: Level
    running: int
    started: int = 0
    dead: int = 0
    cap: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead runs whose errors differ only in their particulars.

    Attributes:
        signature: the group's name.
        error: the newest run's error, one line.
        first_seen: when the oldest of them died.
        last_seen: when the newest of them died.
        tenants: runs by tenant among those looked at, most first.
        jobs: runs by job id among those looked at, most first.
        sampled: how many runs were looked at, the newest; `count` of them or 200.
        again: how many of these died again after a replay.
        newest: id of the newest run.
        per_hour: deaths in each of the last 24 hours, oldest hour first, among those looked at.
    """

    signature: str
    error: str
    count: Level
    first_seen: datetime
    last_seen: datetime
    tenants: Mapping[str, int]
    jobs: Mapping[str, int]
    sampled: int
    again: int
    newest: str
    per_hour: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What building a health took.

    Attributes:
        requests: calls of the store.
        rows: rows that were read or counted.
        took: how long.
        jobs_at: when the jobs were counted; that is done less often, the more there are.
        groups_at: when the error groups were counted; likewise.
    """

    requests: int
    rows: int
    took: timedelta
    jobs_at: datetime
    groups_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a store at one instant; made for all readers together.

    Attributes:
        at: when it was made.
        age: how old it was when it was read.
        verdicts: the findings, worst first; one for each topic at least.
        delay: start delays of the last five minutes.
        delays: the same by priority.
        oldest_due: by queue; queues without a due run are missing.
        depth: runs that are due and wait, by priority.
        queues: the same by queue.
        ready: all that may be claimed, those that are due later too.
        leased: runs that workers hold, and functions.
        leased_by_functions: those of them whose leases have a fixed end, which take no worker's
            slot.
        failed: runs that wait for their next try beyond the look-ahead.
        dead: the dead-letter queue.
        discarded: dead runs that were hidden.
        expired_leases: runs under sessions and leases that are over and that the reaper should
            have returned.
        dead_per_hour: runs that died in the last hour.
        minutes: the last 60, oldest first.
        dispatchers: newest sign of life first.
        reapers: likewise.
        workers: open ones first, at most 100.
        top_tenants: those that wait for most first, at most 20.
        top_groups: error groups with most runs first, at most 10.
        jobs_by_state: counts.
        jobs_at_least: not all jobs were counted.
        cursor_lags: how far the slowest cursor of each kind is behind.
        slots: handlers that the living workers can run at once.
        sessions: worker sessions by `alive`, `expired` and `closed`.
        handed_off: whether runs are handed off to functions, which have no sessions.
        tenants: how many are in use.
        cost: what making this took.
    """

    at: datetime
    age: timedelta = timedelta(0)
    verdicts: tuple[Verdict, ...] = ()
    delay: Delay = Delay()
    delays: Mapping[str, Delay]
    oldest_due: Mapping[str, OldestDue]
    depth: Mapping[str, Level]
    queues: Mapping[str, Level]
    ready: Level
    leased: Level
    leased_by_functions: Level = Level(0)
    failed: Level
    dead: Level
    discarded: Level
    expired_leases: int
    dead_per_hour: int
    minutes: tuple[MinutePoint, ...]
    dispatchers: tuple[Beat, ...]
    reapers: tuple[Beat, ...]
    workers: tuple[WorkerLine, ...]
    top_tenants: tuple[TenantLine, ...]
    top_groups: tuple[ErrorGroup, ...]
    jobs_by_state: Mapping[str, int]
    jobs_at_least: bool
    cursor_lags: Mapping[str, timedelta | None]
    slots: int
    sessions: Mapping[str, int]
    handed_off: bool = False
    tenants: int
    cost: Cost

    @property
    def in_slots(self) -> int:
        """Return how many leased runs take a slot of a worker, of those that were counted."""
        return max(self.leased.count - self.leased_by_functions.count, 0)

    @property
    def recent(self) -> tuple[MinutePoint, ...]:
        """Return the last five whole minutes and the present one."""
        return self.minutes[-6:]

    @property
    def worst(self) -> Grade:
        """Return the worst grade of all verdicts."""
        found = {verdict.level for verdict in self.verdicts}
        return next((grade for grade in (Grade.BAD, Grade.WARN) if grade in found), Grade.OK)
