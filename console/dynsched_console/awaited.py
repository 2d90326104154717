"""A stand-in for the health that the core is about to bring; it goes when that does."""

from __future__ import annotations

from datetime import timedelta

from dynsched.domain.health import Cost, Delay, Grade, Health, Topic, Verdict, WorkerLine
from dynsched.services.store_views import Stats
from dynsched.storage.control import Session


def health_of(stats: Stats, sessions: list[Session]) -> Health:
    """Return what the levels of a store say of its health."""
    dead = stats.runs["dead"]
    level = Grade.BAD if dead.count else Grade.OK
    return Health(
        at=stats.now,
        verdicts=(
            Verdict(level=level, topic=Topic.BROKEN, sentence=f"dead runs: {dead}"),
            Verdict(level=Grade.OK, topic=Topic.LATE, sentence="nothing is late"),
            Verdict(level=Grade.OK, topic=Topic.STUCK, sentence="nothing is stuck"),
            Verdict(level=Grade.OK, topic=Topic.HURT, sentence="no tenant is hurt"),
        ),
        delay=Delay(),
        delays={},
        oldest_due={},
        depth={},
        queues={},
        leased=stats.runs["leased"],
        failed=stats.runs["failed"],
        dead=dead,
        discarded=stats.runs["discarded"],
        expired_leases=0,
        dead_per_hour=0,
        minutes=(),
        dispatchers=(),
        reapers=(),
        workers=tuple(map(_worker, sessions)),
        top_tenants=(),
        top_groups=(),
        jobs_by_state=stats.jobs,
        jobs_at_least=stats.jobs_at_least,
        cursor_lags=stats.cursor_lags,
        slots=stats.slots,
        sessions=stats.sessions,
        tenants=stats.tenants,
        cost=Cost(requests=0, rows=0, took=timedelta(0), jobs_at=stats.now, groups_at=stats.now),
    )


def _worker(one: Session) -> WorkerLine:
    return WorkerLine(
        session=one.session,
        host=one.host,
        pid=one.pid,
        slots=one.slots,
        leased=0,
        queues=one.queues,
        last_beat=one.started_at,
        expires_at=one.expires_at,
        open=one.open,
    )
