"""Stand-ins for what the core is about to bring: health, why, audit. They go when it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.services.store_views import Level

NOTHING = Level(0)


class Severity(StrEnum):
    """How a verdict is meant."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One answer: is it late, stuck, broken, who is hurt."""

    level: Severity
    topic: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Start delays of some minutes."""

    p50: timedelta | None = None
    p95: timedelta | None = None
    max: timedelta | None = None
    samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MinutePoint:
    """One minute of the past hour."""

    at: datetime
    started: int = 0
    done: int = 0
    failed: int = 0
    dead: int = 0
    delay_p50: timedelta | None = None
    delay_p95: timedelta | None = None
    delay_max: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """When a dispatcher or a reaper was last seen."""

    name: str
    at: datetime
    note: str = ""
    lag: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLine:
    """One worker session."""

    session: str
    host: str
    pid: int
    slots: int
    leased: int
    queues: tuple[str, ...]
    last_beat: datetime | None
    expires_at: datetime
    open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLine:
    """One of the busiest tenants."""

    tenant: str
    waiting: int = 0
    running: int = 0
    dead: int = 0
    cap: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead runs of one error."""

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
class Health:
    """The state of a store at a glance."""

    at: datetime
    verdicts: tuple[Verdict, ...] = ()
    delay: Delay = field(default_factory=Delay)
    oldest_due: Mapping[str, tuple[str, datetime]] = field(default_factory=dict)
    depth: Mapping[str, Level] = field(default_factory=dict)
    leased: Level = NOTHING
    failed: Level = NOTHING
    dead: Level = NOTHING
    discarded: Level = NOTHING
    expired_leases: int = 0
    dead_per_hour: int = 0
    minutes: tuple[MinutePoint, ...] = ()
    dispatchers: tuple[Beat, ...] = ()
    reapers: tuple[Beat, ...] = ()
    workers: tuple[WorkerLine, ...] = ()
    top_tenants: tuple[TenantLine, ...] = ()
    top_groups: tuple[ErrorGroup, ...] = ()
    jobs_by_state: Mapping[str, int] = field(default_factory=dict)
    cursor_lags: Mapping[str, timedelta | None] = field(default_factory=dict)
    slots: int = 0
