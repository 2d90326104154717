"""Capacity units of runs by kind, counted like those of `bench.units`."""

from __future__ import annotations

from datetime import timedelta

from bench.options import Options, say
from bench.report import Figure
from bench.simulated import MIDNIGHT
from bench.units import Metered
from dynsched.services.specs import AtSpec

RUNS = 1_000
ROUND = timedelta(seconds=30)
MAKE = "make"


def enqueued(title: str, *, bulk: bool, most: float) -> list[Figure]:
    """Return what a run costs that a standing job is given, in bulk or one by one."""
    metered = Metered(0, None, keep_ended=True)
    job = metered.store.job("standing")
    metered.settle()
    with metered.meter.label(MAKE):
        if bulk:
            metered.store.operations.enqueue_many(job.job_id, [None] * RUNS)
        else:
            for _ in range(RUNS):
                metered.store.operations.enqueue(job.job_id)
    return _figures(title, metered, ROUND, most)


def one_off(title: str, *, most: float) -> list[Figure]:
    """Return what a job costs that runs once: made, served, run."""
    metered = Metered(0, None, keep_ended=True)
    metered.settle()
    with metered.meter.label(MAKE):
        for number in range(RUNS):
            metered.store.job(f"once-{number}", AtSpec(at=MIDNIGHT + timedelta(minutes=3)))
    return _figures(title, metered, 2 * ROUND, most)


def _figures(title: str, metered: Metered, over: timedelta, most: float) -> list[Figure]:
    """Return the units of a run; the tick's cursors and an idle worker's polls are no part."""
    report = metered.through(over)
    assert metered.runs == RUNS, f"{metered.runs} runs of {RUNS}"
    metered.meter.reset()
    idle = metered.through(over)
    written = read = 0.0
    for step in (MAKE, "tick", "poll"):
        units = report[step]
        written += units["write"] - idle.get(step, {"write": 0.0})["write"]
        read += units["read"] - idle.get(step, {"read": 0.0})["read"]
    return [
        Figure(f"{title}: written by a run", round(written / RUNS, 2), "units", most=most),
        Figure(f"{title}: read by a run", read / RUNS, "units"),
    ]


def measure(_: Options) -> list[Figure]:
    """Meter runs that are enqueued and jobs that run once."""
    say("kinds: enqueued runs, one-off jobs")
    return [
        *enqueued("enqueued in bulk", bulk=True, most=8.0),
        *enqueued("enqueued one by one", bulk=False, most=8.0),
        *one_off("one-off job", most=22.0),
    ]
