"""The benchmarks whose figures do not depend on the machine's speed keep their budgets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.ways import MESSAGE_METERED, METERED

ROOT = Path(__file__).resolve().parents[2]
# As the console script has it: the packages and the benchmarks, wherever the tests run from.
PATHS = [str(ROOT), str(ROOT / "src"), str(ROOT / "console"), str(ROOT / "web")]
RUN = f"import sys; sys.path[:0] = {PATHS!r}; import runpy; "
MODULE = "runpy.run_module('bench', run_name='__main__', alter_sys=True)"
# What the priced tables take for a run, by the titles of the figures.
PRICED = {
    "defaults": METERED["cron, defaults"],
    "allow, no ended index": METERED["cron, allow"],
    "enqueued in bulk": METERED["enqueued in bulk"],
    "enqueued one by one": METERED["enqueued one by one"],
    "one-off job": METERED["one-off job"],
    "handed, defaults": MESSAGE_METERED["cron, defaults"],
    "handed, allow, no ended index": MESSAGE_METERED["cron, allow"],
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-c", RUN + MODULE, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_capacity_units_and_requests_a_tick_are_within_budget(tmp_path: Path) -> None:
    """A write more for each run, or a tick that reads what is not due, costs every user money."""
    file = tmp_path / "figures.json"
    named = ("units", "kinds", "handed", "prices", "tick")
    done = bench(*named, "--quick", "--strict", "--json", str(file))
    assert done.returncode == 0, done.stdout
    figures: dict[str, list[dict[str, Any]]] = json.loads(file.read_text("utf-8"))["figures"]
    judged = [figure for listed in figures.values() for figure in listed if figure["budget"]]
    assert len(judged) >= 20
    assert all(figure["ok"] for figure in judged)
    metered = {one["name"]: one["value"] for listed in figures.values() for one in listed}
    for title, priced in PRICED.items():
        assert metered[f"{title}: written by a run"] == pytest.approx(priced.written, rel=0.01)
        assert metered[f"{title}: read by a run"] == pytest.approx(priced.read, rel=0.03)


def test_an_unknown_benchmark_is_refused_with_the_names() -> None:
    """A slip of the pen measures nothing for minutes."""
    done = bench("unit")
    assert done.returncode == 2
    assert "'units'" in done.stderr
