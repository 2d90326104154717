"""Engine requests of a tick: they depend on what is due, not on how much is stored."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from bench.options import Options, say
from bench.report import Figure
from bench.simulated import MIDNIGHT, SimClock
from bench.stores import Opened, spec
from dynsched.bootstrap import build_dispatcher, build_operations, init_store, open_base
from dynsched.services.specs import AtSpec, CronSpec
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.faults import CountingEngine

DUE = 100
TICKS = 18  # three minutes


def _count(stored: int) -> tuple[int, int]:
    """Return the requests and the rows of some ticks over a store with so many jobs."""
    clock = SimClock(MIDNIGHT + timedelta(seconds=5))
    engine = CountingEngine(SqliteEngine(None))
    base = open_base(engine=engine, environment={}, clock=clock, rng=Random(1))
    init_store(base)
    opened = Opened("", base, build_operations(base))
    tomorrow = opened.operations.check(spec("far", AtSpec(at=MIDNIGHT + timedelta(days=1))))
    opened.copies(tomorrow, stored - DUE)
    for number in range(DUE):
        opened.job(f"due-{number}", CronSpec(expr="* * * * *"))
    dispatcher = build_dispatcher(base)
    engine.reset()
    for _ in range(TICKS):
        dispatcher.tick()
        clock.wait(dispatcher.period.total_seconds())
    return sum(engine.requests.values()), sum(engine.rows.values())


def measure(options: Options) -> list[Figure]:
    """Count requests with few and with many jobs stored; a hundred are due each minute."""
    many = 20_000 if options.quick else 100_000
    say(f"tick: 1,000 and {many:,} jobs stored")
    (few_requests, few_rows), (many_requests, many_rows) = _count(1_000), _count(many)
    return [
        Figure("requests a tick, 1,000 jobs stored", few_requests / TICKS, "requests"),
        Figure(
            f"requests a tick, {many:,} jobs stored",
            many_requests / TICKS,
            "requests",
            most=few_requests / TICKS,
        ),
        Figure("rows read and written a tick, 1,000 stored", few_rows / TICKS, "rows"),
        Figure(
            f"rows read and written a tick, {many:,} stored",
            many_rows / TICKS,
            "rows",
            most=few_rows / TICKS,
        ),
    ]
