"""Throughput: no-op runs through worker and store, and how fast runs are accepted."""

from __future__ import annotations

import time
from datetime import timedelta

from bench.options import Options, say
from bench.processes import Process, until
from bench.report import Figure
from bench.stores import Opened, fresh
from dynsched.domain.job import Job
from dynsched.domain.run import RunState

DRAIN_LEAST = 4_000.0
ENQUEUE_LEAST = 5_000.0
BULK_LEAST = 30_000.0
WITHIN_S = 120.0
SECOND = timedelta(seconds=1)


def _check(opened: Opened, count: int) -> float:
    """Check that every run was done once; return the seconds from first start to last end."""
    runs = list(opened.all_runs())
    assert len(runs) == count, f"{len(runs)} rows for {count} runs"
    assert all(run.state is RunState.DONE and run.attempt == 1 for run in runs)
    first = min(run.started_at for run in runs if run.started_at)
    last = max(run.ended_at for run in runs if run.ended_at)
    return (last - first) / SECOND


def _waiting(options: Options, count: int) -> list[Figure]:
    """Drain what was enqueued before the worker came."""
    say(f"drain: {count:,} waiting")
    opened = fresh(options.folder, "drain")
    job = opened.job("drained")
    opened.runs_at(job, opened.base.clock.now(), count)
    with Process(opened.url, options.folder / "drain", ["worker"]) as worker:
        until(lambda: worker.started >= count, WITHIN_S, "the drain")
        notes = worker.end()
    took_s = _check(opened, count)
    opened.close()
    return [
        Figure(f"drain, {count:,} waiting", count / took_s, "runs/s", least=DRAIN_LEAST),
        Figure(
            "  CPU of the worker",
            notes.cpu_s / count * 1e6,
            "µs a run",
            note="its start-up left out",
        ),
    ]


def _few(options: Options, seconds: float) -> list[Figure]:
    """Drain while this process keeps ten runs waiting."""
    say("drain: 10 waiting")
    opened = fresh(options.folder, "few")
    job = opened.job("drained")
    made = 0
    with Process(opened.url, options.folder / "few", ["worker"]) as worker:
        worker.wait_ready()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lacking = 10 - (made - worker.started)
            if lacking > 0:
                opened.operations.enqueue_many(job.job_id, [None] * lacking)
                made += lacking
        until(lambda: worker.started >= made, WITHIN_S, "the last runs")
        worker.end()
    took_s = _check(opened, made)
    opened.close()
    return [
        Figure(
            "drain, 10 waiting",
            made / took_s,
            "runs/s",
            least=DRAIN_LEAST,
            note="another process keeps ten runs in the queue",
        )
    ]


def _single(opened: Opened, job: Job, seconds: float) -> float:
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        opened.operations.enqueue(job.job_id)
        count += 1
    return count / (time.perf_counter() - began)


def _enqueue(options: Options) -> list[Figure]:
    say("enqueue: one by one and in bulk")
    seconds, bulk = (1.0, 5_000) if options.quick else (3.0, 30_000)
    opened = fresh(options.folder, "enqueue")
    job = opened.job("enqueued")
    single = _single(opened, job, seconds)
    began = time.perf_counter()
    opened.operations.enqueue_many(job.job_id, [None] * bulk)
    many = bulk / (time.perf_counter() - began)
    opened.close()
    synced = fresh(options.folder, "synced", durability="power")
    power = _single(synced, synced.job("enqueued"), seconds)
    synced.close()
    return [
        Figure("enqueue, one by one", single, "runs/s", least=ENQUEUE_LEAST, note="no sync"),
        Figure("enqueue, one by one, synced", power, "runs/s", note="the default: one sync each"),
        Figure("enqueue, in bulk", many, "runs/s", least=BULK_LEAST, note="commits of 500"),
    ]


def measure(options: Options) -> list[Figure]:
    """Measure the drain with few and with many waiting, and the enqueueing."""
    counts = (10_000,) if options.quick else (10_000, 100_000)
    figures = _few(options, 2.0 if options.quick else 5.0)
    for count in counts:
        figures += _waiting(options, count)
    return figures + _enqueue(options)
