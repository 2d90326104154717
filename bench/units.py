"""Capacity units that DynamoDB would charge, by its published rules, over a simulated day."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from bench.options import Options, say
from bench.report import Figure
from bench.simulated import MIDNIGHT, SimClock, Simulation
from bench.stores import HANDLER, Opened, spec
from dynsched.bootstrap import build_operations, init_store, open_base
from dynsched.domain.job import Overlap, Policies
from dynsched.services.specs import AtSpec, CronSpec
from dynsched.storage.metering import LabelReport, MeteringEngine
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext

USD_PER_MILLION_WRITES = 0.625
USD_PER_MILLION_READS = 0.125
MINUTES_A_MONTH = 365.25 / 12 * 24 * 60
DAYS_A_MONTH = 365.25 / 12
STEPS = ("tick", "poll", "heartbeat", "sweep")
BY_RUN = frozenset({"tick", "poll"})  # steps whose cost grows with the runs


class Metered:
    """A simulated scheduler over a meter.

    Args:
        jobs: minutely jobs.
        policies: theirs.
        keep_ended: runs that ended otherwise than dead are found by time too.
    """

    def __init__(self, jobs: int, policies: Policies | None, *, keep_ended: bool) -> None:
        clock = SimClock(MIDNIGHT + timedelta(seconds=30))
        self._meter = MeteringEngine(SqliteEngine(None))
        base = open_base(engine=self._meter, environment={}, clock=clock, rng=Random(1))
        init_store(base, keep_ended=keep_ended)
        self.store = Opened("", base, build_operations(base))
        self.runs = 0
        app = App()
        app.job(HANDLER)(self._count)
        for number in range(jobs):
            self.store.job(f"job-{number}", CronSpec(expr="* * * * *"), policies)
        self._simulation = Simulation(base, clock, app, self._meter.label)

    def _count(self, _: AnyContext) -> None:
        self.runs += 1

    def over(self, minutes: int) -> dict[str, LabelReport]:
        """Return what whole minutes cost, after two in which everything has settled."""
        self._simulation.run(timedelta(minutes=2))
        self._meter.reset()
        self.runs = 0
        self._simulation.run(timedelta(minutes=minutes))
        return self._meter.report()

    def sweep(self) -> LabelReport:
        """Return what the daily sweep costs."""
        self._meter.reset()
        self._simulation.sweep_all()
        return self._meter.report()["daily sweep"]


def price(writes: float, reads: float) -> float:
    """Return US dollars for so many units, on demand, us-east-1.

    >>> price(1_000_000, 1_000_000)
    0.75
    """
    return (writes * USD_PER_MILLION_WRITES + reads * USD_PER_MILLION_READS) / 1e6


def _occurrences(
    title: str, policies: Policies | None, *, keep_ended: bool, most: tuple[float, float], jobs: int
) -> list[Figure]:
    metered = Metered(jobs, policies, keep_ended=keep_ended)
    minutes = 3
    report = metered.over(minutes)
    assert metered.runs == jobs * minutes, f"{metered.runs} runs of {jobs * minutes}"
    writes = sum(report[step]["write"] for step in BY_RUN) / metered.runs
    reads = sum(report[step]["read"] for step in BY_RUN) / metered.runs
    figures = [
        Figure(f"{title}: write units a run", writes, "units", most=most[0]),
        Figure(f"{title}: read units a run", reads, "units", most=most[1]),
    ]
    for step in ("tick", "poll"):
        share = report[step]
        figures.append(
            Figure(
                f"  of these, {step}",
                share["write"] / metered.runs,
                "units",
                note=f"written; {share['read'] / metered.runs:.2f} read",
            )
        )
    figures.append(
        Figure(f"{title}: a million runs", price(writes, reads) * 1e6, "USD", note="computed")
    )
    return figures


def _idle(jobs: int) -> list[Figure]:
    metered = Metered(0, None, keep_ended=True)
    tomorrow = AtSpec(at=MIDNIGHT + timedelta(days=2))
    job = metered.store.operations.check(spec("tomorrow", tomorrow))
    metered.store.copies(job, jobs)
    minutes = 10
    report = metered.over(minutes)
    figures: list[Figure] = []
    total = 0.0
    for step in STEPS:
        writes, reads = report[step]["write"] / minutes, report[step]["read"] / minutes
        total += price(writes, reads) * MINUTES_A_MONTH
        figures.append(
            Figure(f"idle {step}: write units a minute", writes, "units", note=f"{reads:.1f} read")
        )
    swept = metered.sweep()
    daily = price(swept["write"], swept["read"]) * DAYS_A_MONTH
    figures.append(
        Figure("daily sweep over them: read units", swept["read"], "units", note="once a day")
    )
    figures.append(
        Figure(
            f"idle, {jobs:,} jobs stored: a month",
            total + daily,
            "USD",
            most=5.0,
            note="one dispatcher, reaper and worker; computed",
        )
    )
    return figures


def measure(options: Options) -> list[Figure]:
    """Meter a thousand minutely jobs at the defaults and at their cheapest, and an idle store."""
    jobs = 1_000
    say(f"units: {jobs} minutely jobs, defaults")
    figures = _occurrences("defaults", None, keep_ended=True, most=(12.0, 4.0), jobs=jobs)
    say(f"units: {jobs} minutely jobs, overlap allow, ended index off")
    cheap = Policies(overlap=Overlap.ALLOW)
    figures += _occurrences(
        "allow, no ended index", cheap, keep_ended=False, most=(10.0, 2.0), jobs=jobs
    )
    say("units: idle store")
    return figures + _idle(1_000 if options.quick else 10_000)
