"""A burst: ten thousand runs due at one instant, by one worker process and by two."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from statistics import median

from bench.options import Options, say
from bench.processes import Process, until
from bench.report import Figure, percentile
from bench.stores import Opened, fresh
from dynsched.domain.instants import Clock, to_text

RUNS = 10_000
BUDGET_S = 3.0
STRETCH_S = 1.5
SLOWER_MOST = 1.10
LEAD = timedelta(seconds=4)  # for the enqueueing and its last commit
ACQUAINTED_S = 11.0  # a session looks for others at each heartbeat
WITHIN_S = 120.0


def _burst(opened: Opened, workers: list[Process], before: int) -> datetime:
    """Let all runs be due at one instant; return it when they have started."""
    job = opened.job(f"burst-{before}")
    at = opened.base.clock.now() + LEAD
    opened.runs_at(job, at, RUNS)
    assert opened.base.clock.now() < at, "the enqueueing took longer than its lead"
    total = before + RUNS
    until(lambda: sum(one.started for one in workers) >= total, WITHIN_S, "the burst")
    return at


def _delays(starts: list[tuple[float, str]], at: datetime) -> list[float]:
    text, epoch_s = f"@{to_text(at)}", at.timestamp()
    return [start - epoch_s for start, run_id in starts if text in run_id]


def _rounds(options: Options, count: int, rounds: int) -> tuple[list[Figure], float]:
    say(f"burst: {count} worker process(es), {rounds} rounds")
    opened = fresh(options.folder, f"burst{count}")
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                Process(opened.url, options.folder / f"burst{count}-{number}", ["worker"])
            )
            for number in range(count)
        ]
        for one in workers:
            one.wait_ready()
        if count > 1:
            until(_after(opened.base.clock, ACQUAINTED_S), 2 * ACQUAINTED_S, "the sessions to meet")
        instants = [_burst(opened, workers, number * RUNS) for number in range(rounds)]
        starts = [start for one in workers for start in one.end().starts]
    opened.close()
    assert len({run_id for _, run_id in starts}) == len(starts) == RUNS * rounds
    delays = [_delays(starts, at) for at in instants]
    name = "one worker" if count == 1 else f"{count} workers"
    p99 = median(percentile(one, 0.99) for one in delays)
    figures = [
        Figure(f"{name}: p50", median(percentile(one, 0.5) for one in delays), "s"),
        Figure(f"{name}: p99", p99, "s", most=BUDGET_S, note=_spread(delays)),
        Figure(f"{name}: max", median(max(one) for one in delays), "s"),
    ]
    return figures, p99


def _after(clock: Clock, seconds: float) -> Callable[[], bool]:
    end = clock.monotonic() + seconds
    return lambda: clock.monotonic() >= end


def _spread(delays: list[list[float]]) -> str:
    found = sorted(percentile(one, 0.99) for one in delays)
    return f"stretch {STRETCH_S}; {len(found)} round(s), {found[0]:.2f} to {found[-1]:.2f}"


def measure(options: Options) -> list[Figure]:
    """Measure start delays; medians of the rounds."""
    rounds = 1 if options.quick else 5
    one, one_p99 = _rounds(options, 1, rounds)
    two, two_p99 = _rounds(options, 2, rounds)
    ratio = Figure("two workers against one, p99", two_p99 / one_p99, "times", most=SLOWER_MOST)
    return [*one, *two, ratio]
