"""Catching up: how long one job takes after an outage, under each policy."""

from __future__ import annotations

import time
from datetime import timedelta
from random import Random
from statistics import median

from bench.options import Options
from bench.report import Figure
from bench.simulated import MIDNIGHT, SimClock
from bench.stores import Opened
from dynsched.bootstrap import build_dispatcher, build_operations, init_store, open_base
from dynsched.domain.job import CatchUp, Policies
from dynsched.services.serving import JobServer
from dynsched.services.specs import CronSpec
from dynsched.storage.sqlite import SqliteEngine

OUTAGE = timedelta(days=40)
BUDGET_MS = 50.0
TICKS_MAX = 200


def _store(clock: SimClock) -> Opened:
    base = open_base(engine=SqliteEngine(None), environment={}, clock=clock, rng=Random(1))
    init_store(base)
    return Opened("", base, build_operations(base))


def _serve(policy: CatchUp, jobs: int) -> Figure:
    """Serve jobs one by one, as a tick does, after the outage."""
    clock = SimClock(MIDNIGHT + timedelta(seconds=5))
    opened = _store(clock)
    made = [
        opened.job(f"{policy}-{number}", CronSpec(expr="* * * * *"), Policies(catch_up=policy))
        for number in range(jobs)
    ]
    clock.wait(OUTAGE.total_seconds())
    now, store = clock.now(), opened.base.store
    server = JobServer(store, settings=opened.base.settings)
    before = now + store.topology.look_ahead
    took_ms, rows = [], 0
    for job in made:
        began = time.perf_counter()
        rows += server.serve_job(job, now=now, before=before).created
        took_ms.append((time.perf_counter() - began) * 1000)
    note = f"plan, rows and advance; {rows // jobs} rows a job, slowest {max(took_ms):.1f} ms"
    name = f"40 days missed, catch-up {policy.value}"
    return Figure(name, median(took_ms), "ms a job", most=BUDGET_MS, note=note)


def _walk() -> Figure:
    """Tick until the cursor has walked over the minutes of the outage."""
    clock = SimClock(MIDNIGHT + timedelta(seconds=5))
    opened = _store(clock)
    opened.job("minutely", CronSpec(expr="* * * * *"))
    clock.wait(OUTAGE.total_seconds())
    dispatcher = build_dispatcher(opened.base)
    began, ticks = time.perf_counter(), 1
    while dispatcher.tick().behind and ticks < TICKS_MAX:
        ticks += 1
    took_s = time.perf_counter() - began
    note = f"once for a store, {ticks} ticks; the present minutes come first in each"
    return Figure("the dispatcher's walk over 57,600 minutes", took_s, "s", note=note)


def measure(options: Options) -> list[Figure]:
    """Let minutely jobs miss forty days under each policy."""
    jobs = 20 if options.quick else 100
    return [*(_serve(policy, jobs) for policy in CatchUp), _walk()]
