"""The command: `python -m bench [NAME ...] [--quick] [--json FILE] [--strict]`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import (
    boundary,
    burst,
    console,
    cron,
    drain,
    floor,
    functions,
    handed,
    idle,
    kinds,
    outage,
    prices,
    recovery,
    tick,
    triage,
    units,
    web,
)
from bench.options import Options, say
from bench.report import Figure, table

BENCHMARKS: Mapping[str, tuple[str, Callable[[Options], list[Figure]]]] = {
    "units": ("Capacity units by DynamoDB's published rules (simulated time)", units.measure),
    "kinds": ("The same of other kinds of runs", kinds.measure),
    "handed": ("The same where functions on AWS work", handed.measure),
    "prices": ("What AWS charges for it, at list prices (computed)", prices.measure),
    "tick": ("Engine requests of a tick, 100 jobs due each minute", tick.measure),
    "outage": ("Catching up after an outage of 40 days, minutely jobs", outage.measure),
    "cron": ("Cron schedules", cron.measure),
    "floor": ("The floor: guarded SQLite writes and nothing else", floor.measure),
    "drain": ("Throughput of no-op runs, SQLite file", drain.measure),
    "burst": (f"Start delay, {burst.RUNS:,} runs due at one instant", burst.measure),
    "boundary": (f"Start delay, {boundary.JOBS:,} minutely cron jobs", boundary.measure),
    "recovery": ("Recovery of 200 running runs after kill -9", recovery.measure),
    "console": ("The terminal console over a store full of dead runs", console.measure),
    "triage": ("Looking at a store full of dead runs", triage.measure),
    "web": ("The web console without the store, and under fifty operators", web.measure),
    "functions": ("Cold starts of the functions on AWS, from their zip", functions.measure),
    "idle": (f"Idle, {idle.JOBS:,} jobs stored for tomorrow", idle.measure),
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", choices=[*BENCHMARKS, []], help="all if none is named")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a budget is missed")
    return parser.parse_args()


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load": os.getloadavg()[0],
    }


def main() -> int:
    """Run the benchmarks that were asked for and print their tables."""
    given = _arguments()
    logging.basicConfig(level=logging.CRITICAL)
    machine = _machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    found: dict[str, list[Figure]] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dynsched-bench-") as folder:
        options = Options(Path(folder), given.quick)
        for name in given.name or BENCHMARKS:
            title, measure = BENCHMARKS[name]
            found[name] = measure(options)
            print(table(f"{name}: {title}", found[name]), flush=True)
    over = [one.name for figures in found.values() for one in figures if one.over]
    say(f"took {time.monotonic() - began:.0f} s; {len(over)} over budget")
    if given.json is not None:
        listed = {name: [one.to_json() for one in figures] for name, figures in found.items()}
        given.json.write_text(
            json.dumps({"machine": machine, "figures": listed}, indent=1), "utf-8"
        )
    return 1 if over and given.strict else 0


if __name__ == "__main__":
    sys.exit(main())
