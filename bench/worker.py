"""A process of dynsched under measurement: `python -m bench.worker`.

It runs the services that it is told to and notes when handlers start. Its parent sees how many
have started in a shared file, and reads the notes after SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dynsched.bootstrap import (
    Base,
    WorkerParts,
    build_dispatcher,
    build_reaper,
    build_worker,
    open_base,
)
from dynsched.services.loops import Stopper, run_dispatcher, run_reaper, run_worker
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext

CELLS = 2  # of the shared file: handlers started, ready
CELL_BYTES = 8
READY_WITHIN_S = 30.0
COUNT_EVERY_S = 0.02


def cpu_s() -> float:
    """Return the CPU seconds that this process has used, in user and system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def shared(path: Path) -> memoryview:
    """Map the shared file."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        return memoryview(mmap.mmap(descriptor, CELLS * CELL_BYTES)).cast("Q")
    finally:
        os.close(descriptor)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.worker")
    parser.add_argument("--store", required=True)
    parser.add_argument("--out", required=True, type=Path, help="prefix of its files")
    parser.add_argument("--role", action="append", default=[])
    parser.add_argument("--nap", type=float, default=0.0, help="seconds that each handler takes")
    parser.add_argument("--settle", type=float, default=0.0, help="seconds before CPU is measured")
    parser.add_argument("--span", type=float, default=0.0, help="seconds over which it is measured")
    return parser.parse_args(argv)


def _app(starts: list[tuple[float, str]], cells: memoryview, nap_s: float) -> App:
    app = App()

    def note(ctx: AnyContext) -> None:
        starts.append((time.time(), ctx.run_id))
        cells[0] = len(starts)
        if nap_s:
            ctx.stop.wait(nap_s)

    app.job("note")(note)
    return app


def _threads(
    given: argparse.Namespace, base: Base, parts: WorkerParts | None, stopper: Stopper
) -> list[threading.Thread]:
    """Start the loops of the services that were asked for."""
    loops: list[Callable[[], None]] = []
    if "dispatcher" in given.role:
        dispatcher = build_dispatcher(base)
        loops.append(lambda: run_dispatcher(dispatcher, base.clock, stopper))
    if "reaper" in given.role:
        reaper = build_reaper(base)
        loops.append(lambda: run_reaper(reaper, base.clock, base.settings, stopper))
    if parts is not None:
        worker, keeper = parts.worker, parts.keeper
        loops.append(lambda: run_worker(worker, keeper, base.clock, base.settings, stopper))
    threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    return threads


def main(argv: Sequence[str]) -> None:
    """Run the services until SIGTERM, or until idle CPU has been measured."""
    given = _arguments(argv)
    cells = shared(given.out.with_suffix(".count"))
    starts: list[tuple[float, str]] = []
    base = open_base(given.store)
    base.store.refresh()
    stopper = Stopper()
    signal.signal(signal.SIGTERM, lambda *_: stopper.stop())
    parts = build_worker(base, _app(starts, cells, given.nap)) if "worker" in given.role else None
    began_s = cpu_s()
    threads = _threads(given, base, parts, stopper)
    deadline = time.monotonic() + READY_WITHIN_S
    while parts is not None and parts.keeper.session is None and time.monotonic() < deadline:
        stopper.event.wait(0.01)
    cells[1] = 1
    stopper.event.wait(given.settle)
    before_s = cpu_s()
    if given.span:
        stopper.event.wait(given.span)
    while not given.span and not stopper.event.wait(COUNT_EVERY_S):
        cells[0] = len(starts)  # a handler that was interrupted may have written an older count
    idle_s = cpu_s() - before_s
    stopper.stop()
    for thread in threads:
        thread.join(READY_WITHIN_S)
    notes = {"starts": starts, "cpu_s": cpu_s() - began_s, "idle_cpu_s": idle_s}
    given.out.with_suffix(".json").write_text(json.dumps(notes), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
