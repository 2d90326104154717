"""A boundary: a thousand minutely cron jobs, with dispatcher and worker as processes."""

from __future__ import annotations

from datetime import datetime, timedelta
from statistics import median

from bench.options import Options, say
from bench.processes import Process, until
from bench.report import Figure, percentile
from bench.stores import Opened, fresh
from dynsched.domain.instants import MINUTE, minute_of, minute_start
from dynsched.domain.run import parse_run_id
from dynsched.services.specs import CronSpec

JOBS = 1_000
BUDGET_S = 0.8
SETTLE = timedelta(seconds=8)  # from the last job made to the first boundary that counts
TAIL = timedelta(seconds=6)


def _boundaries(opened: Opened, count: int) -> list[datetime]:
    first = minute_start(minute_of(opened.base.clock.now() + SETTLE) + 1)
    return [first + number * MINUTE for number in range(count)]


def measure(options: Options) -> list[Figure]:
    """Measure start delays at whole minutes, default policies, real time."""
    opened = fresh(options.folder, "boundary")
    say(f"boundary: {JOBS} minutely jobs")
    jobs = {
        opened.job(f"minutely-{number}", CronSpec(expr="* * * * *")).job_id
        for number in range(JOBS)
    }
    at = _boundaries(opened, 1 if options.quick else 3)
    files = options.folder
    with (
        Process(opened.url, files / "boundary-1", ["dispatcher", "reaper"]) as dispatcher,
        Process(opened.url, files / "boundary-2", ["worker"]) as worker,
    ):
        end, clock = at[-1] + TAIL, opened.base.clock
        until(lambda: clock.now() >= end, (end - clock.now()).total_seconds() + 5, "the boundary")
        starts = worker.end().starts
        dispatcher.end()
    opened.close()
    return _figures(jobs, at, starts)


def _figures(jobs: set[str], at: list[datetime], starts: list[tuple[float, str]]) -> list[Figure]:
    wanted = {(job_id, instant) for job_id in jobs for instant in at}
    seen = [(start, parse_run_id(run_id)) for start, run_id in starts]
    found = [(start, key) for start, key in seen if key.scheduled_for in at]
    delays = [
        [start - instant.timestamp() for start, key in found if key.scheduled_for == instant]
        for instant in at
    ]
    missed = wanted - {(key.job_id, key.scheduled_for) for _, key in found}
    each = ", ".join(f"{percentile(one, 0.99):.2f}" for one in delays if one)
    held = [one for one in delays if one]
    return [
        Figure("p50", median(percentile(one, 0.5) for one in held), "s"),
        Figure(
            "p99",
            median(percentile(one, 0.99) for one in held),
            "s",
            most=BUDGET_S,
            note=f"median; at each boundary {each}",
        ),
        Figure("max", max(max(one) for one in held), "s"),
        Figure("missed", len(missed), "occurrences", most=0),
        Figure("doubled", len(found) - len({key for _, key in found}), "occurrences", most=0),
    ]
