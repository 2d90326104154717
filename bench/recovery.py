"""Recovery: running work whose process is killed, with and without its host coming back."""

from __future__ import annotations

import time
from datetime import datetime

from bench.options import Options, say
from bench.processes import Process, until
from bench.report import Figure, percentile
from bench.stores import Opened, fresh
from dynsched.domain.run import RunState

RUNS = 200
NAP_S = 2.0
ELSEWHERE_S = 45.0
SAME_HOST_S = 5.0
RESTART_S = 1.0
SETTINGS = {"DYNSCHED_SLOTS": str(RUNS)}


def _interrupted(opened: Opened, options: Options, name: str) -> None:
    """Kill a worker in the middle of its runs."""
    job = opened.job("interrupted")
    opened.runs_at(job, opened.base.clock.now(), RUNS)
    out = options.folder / f"{name}-killed"
    with Process(opened.url, out, ["worker"], nap_s=NAP_S, settings=SETTINGS) as worker:
        until(lambda: worker.started >= RUNS, 30.0, "the runs to start")
        worker.kill()


def _restarts(opened: Opened, options: Options, name: str, killed_at: datetime) -> list[float]:
    """Start another worker and a reaper; return when each run started again, after the kill."""
    out = options.folder / f"{name}-again"
    roles = ["worker", "reaper"]
    with Process(opened.url, out, roles, nap_s=NAP_S, settings=SETTINGS) as worker:
        until(lambda: worker.started >= RUNS, 2 * ELSEWHERE_S, "the runs to start again")
        starts = worker.end().starts
    runs = list(opened.all_runs())
    assert len(runs) == RUNS == len({run_id for _, run_id in starts})
    assert all(run.state is RunState.DONE and run.attempt == 2 for run in runs)
    return [start - killed_at.timestamp() for start, _ in starts]


def _elsewhere(options: Options) -> list[float]:
    """Nobody comes back on the host; a worker on another one knows only that the lease ends."""
    opened = fresh(options.folder, "elsewhere")
    _interrupted(opened, options, "elsewhere")
    killed_at = opened.base.clock.now()
    for lock in (options.folder / "elsewhere.db.sessions").iterdir():
        lock.unlink()
    delays = _restarts(opened, options, "elsewhere", killed_at)
    opened.close()
    return delays


def _same_host(options: Options) -> list[float]:
    opened = fresh(options.folder, "same")
    _interrupted(opened, options, "same")
    killed_at = opened.base.clock.now()
    time.sleep(RESTART_S)
    delays = _restarts(opened, options, "same", killed_at)
    opened.close()
    return delays


def measure(options: Options) -> list[Figure]:
    """Kill a worker with 200 runs in hand and wait until they run again."""
    say("recovery: a worker comes back on the same host")
    same = _same_host(options)
    say("recovery: nobody comes back, the lease has to end")
    elsewhere = _elsewhere(options)
    return [
        Figure(
            "started again on the same host: last run",
            max(same),
            "s",
            most=SAME_HOST_S,
            note=f"from kill -9; the restart came {RESTART_S:g} s after it",
        ),
        Figure("  first run", min(same), "s"),
        Figure(
            "nobody came back: last run",
            max(elsewhere),
            "s",
            most=ELSEWHERE_S,
            note="defaults: lease 30 s, margin 5 s, reaper every 5 s",
        ),
        Figure("  median", percentile(elsewhere, 0.5), "s"),
    ]
