"""Catching up: how long one job takes after an outage, under each policy."""

from __future__ import annotations

import time
from datetime import timedelta
from random import Random

from bench.options import Options
from bench.report import Figure
from bench.simulated import MIDNIGHT, SimClock
from bench.stores import Opened
from dynsched.bootstrap import build_dispatcher, build_operations, init_store, open_base
from dynsched.domain.job import CatchUp, Policies
from dynsched.services.specs import CronSpec
from dynsched.storage.sqlite import SqliteEngine

OUTAGE = timedelta(days=40)
BUDGET_MS = 50.0
TICKS_MAX = 200


def _catch_up(policy: CatchUp, jobs: int, name: str) -> tuple[float, float]:
    """Return the milliseconds and the rows made for each job."""
    clock = SimClock(MIDNIGHT + timedelta(seconds=5))
    base = open_base(engine=SqliteEngine(None), environment={}, clock=clock, rng=Random(1))
    init_store(base)
    opened = Opened("", base, build_operations(base))
    for number in range(jobs):
        opened.job(f"{name}-{number}", CronSpec(expr="* * * * *"), Policies(catch_up=policy))
    clock.wait(OUTAGE.total_seconds())
    dispatcher = build_dispatcher(base)
    made = 0
    began = time.perf_counter()
    for _ in range(TICKS_MAX):
        report = dispatcher.tick()
        made += report.served.created
        if not report.behind:
            break
    took_ms = (time.perf_counter() - began) * 1000
    return took_ms / jobs, made / jobs


def measure(options: Options) -> list[Figure]:
    """Let minutely jobs miss forty days, then tick until the dispatcher is no longer behind."""
    jobs = 20 if options.quick else 100
    figures = []
    for policy in CatchUp:
        took_ms, made = _catch_up(policy, jobs, policy.value)
        note = f"{made:g} rows a job, all ticks of the catching up"
        name = f"40 days missed, catch-up {policy.value}"
        figures.append(Figure(name, took_ms, "ms a job", most=BUDGET_MS, note=note))
    return figures
