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
from dynsched.storage.engine import Outcome, Table, Write
from dynsched.storage.item import row_size
from dynsched.storage.metering import LabelReport, MeteringEngine
from dynsched.storage.placement import MINUTES as STATISTICS_PARTITION
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext

USD_PER_MILLION_WRITES = 0.625
USD_PER_MILLION_READS = 0.125
MINUTES_A_MONTH = 365.25 / 12 * 24 * 60
DAYS_A_MONTH = 365.25 / 12
STEPS = {
    "tick": "idle dispatcher",
    "sweep": "idle reaper",
    "poll": "idle worker, polling",
    "heartbeat": "idle worker, heartbeats",
}
JOBS = 1_000
MINUTES = 3
IDLE_USD_MOST = 5.0
STATISTICS = "statistics"


class ApartMeter(MeteringEngine):
    """A meter that tells the minute statistics apart from what the runs themselves cost."""

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Count a write, one of statistics under a label of its own."""
        if write.key.pk != STATISTICS_PARTITION:
            return super().write(write, durable=durable)
        with self.label(STATISTICS):
            return super().write(write, durable=durable)


class Metered:
    """A simulated scheduler over a meter.

    Args:
        jobs: minutely jobs.
        policies: theirs.
        keep_ended: runs that ended otherwise than dead are found by time too.
    """

    def __init__(self, jobs: int, policies: Policies | None, *, keep_ended: bool) -> None:
        clock = SimClock(MIDNIGHT + timedelta(seconds=30))
        self.meter = ApartMeter(SqliteEngine(None))
        base = open_base(engine=self.meter, environment={}, clock=clock, rng=Random(1))
        init_store(base, keep_ended=keep_ended)
        self.store = Opened("", base, build_operations(base))
        self.runs = 0
        app = App()
        app.job(HANDLER)(self._count)
        for number in range(jobs):
            self.store.job(f"job-{number}", CronSpec(expr="* * * * *"), policies)
        self._simulation = Simulation(base, clock, app, self.meter.label)

    def _count(self, _: AnyContext) -> None:
        self.runs += 1

    def over(self, minutes: int) -> dict[str, LabelReport]:
        """Return what whole minutes cost, after two in which everything has settled."""
        self.settle()
        return self.through(timedelta(minutes=minutes))

    def settle(self) -> None:
        """Let two minutes pass, and forget what was counted."""
        self._simulation.run(timedelta(minutes=2))
        self.meter.reset()
        self.runs = 0

    def through(self, span: timedelta) -> dict[str, LabelReport]:
        """Let that much time pass; return what was counted since the last reset."""
        self._simulation.run(span)
        return self.meter.report()

    def largest_row(self) -> int:
        """Return the bytes of the largest job or run row."""
        engine, tables = self.store.base.store.engine, (Table.JOBS, Table.RUNS)
        pages = [engine.scan(table, 4 * JOBS) for table in tables]
        return max(row_size(row) for page in pages for row in page.rows)

    def sweep(self) -> LabelReport:
        """Return what the daily sweep costs."""
        self.meter.reset()
        self._simulation.sweep_all()
        return self.meter.report()["daily sweep"]


def price(writes: float, reads: float) -> float:
    """Return US dollars for so many units, on demand, us-east-1.

    >>> price(1_000_000, 1_000_000)
    0.75
    """
    return (writes * USD_PER_MILLION_WRITES + reads * USD_PER_MILLION_READS) / 1e6


def _occurrences(
    title: str, policies: Policies | None, *, keep_ended: bool, most: tuple[float, float]
) -> list[Figure]:
    """Return what an occurrence costs; cursors are no part of it and are told with the idle."""
    metered = Metered(JOBS, policies, keep_ended=keep_ended)
    report = metered.over(MINUTES)
    runs = metered.runs
    assert runs == JOBS * MINUTES, f"{runs} runs of {JOBS * MINUTES}"
    cursors = report["tick"]["places"]["control"]["write"]
    tick, poll = report["tick"], report["poll"]
    writes = (tick["write"] - cursors + poll["write"]) / runs
    reads = (tick["read"] + poll["read"]) / runs
    split = (
        f"tick {(tick['write'] - cursors) / runs:.2f}, worker {poll['write'] / runs:.2f}",
        f"tick {tick['read'] / runs:.2f}, worker {poll['read'] / runs:.2f}",
    )
    dollars = price(writes, reads) * 1e6
    return [
        Figure(f"{title}: written by a run", writes, "units", most=most[0], note=split[0]),
        Figure(f"{title}: read by a run", reads, "units", most=most[1], note=split[1]),
        Figure(f"{title}: a million runs", dollars, "USD", note="computed"),
        Figure(
            f"{title}: statistics, written a minute",
            report[STATISTICS]["write"] / MINUTES,
            "units",
            note="by a process that is busy, however many runs",
        ),
        Figure(f"{title}: largest row", metered.largest_row(), "bytes", most=1024),
    ]


def _idle(jobs: int) -> list[Figure]:
    metered = Metered(0, None, keep_ended=True)
    tomorrow = AtSpec(at=MIDNIGHT + timedelta(days=2))
    job = metered.store.operations.check(spec("tomorrow", tomorrow))
    metered.store.copies(job, jobs)
    minutes = 10
    report = metered.over(minutes)
    figures: list[Figure] = []
    total = 0.0
    for step, name in STEPS.items():
        writes, reads = report[step]["write"] / minutes, report[step]["read"] / minutes
        total += price(writes, reads) * MINUTES_A_MONTH
        note = f"and {reads:.1f} read"
        figures.append(Figure(f"{name}: written a minute", writes, "units", note=note))
    swept = metered.sweep()
    total += price(swept["write"], swept["read"]) * DAYS_A_MONTH
    title = f"idle, {jobs:,} jobs stored"
    note = "one dispatcher, reaper and worker; computed"
    return [
        *figures,
        Figure(f"daily sweep, {jobs:,} jobs: read a day", swept["read"], "units"),
        Figure(f"{title}: a month", total, "USD", most=IDLE_USD_MOST, note=note),
    ]


def measure(options: Options) -> list[Figure]:
    """Meter a thousand minutely jobs at the defaults and at their cheapest, and an idle store."""
    say(f"units: {JOBS} minutely jobs, defaults")
    figures = _occurrences("defaults", None, keep_ended=True, most=(12.0, 4.0))
    say(f"units: {JOBS} minutely jobs, overlap allow, ended index off")
    cheap = Policies(overlap=Overlap.ALLOW)
    figures += _occurrences("allow, no ended index", cheap, keep_ended=False, most=(10.0, 2.0))
    say("units: idle store")
    return figures + _idle(1_000 if options.quick else 10_000)
