"""Starting, watching and ending the processes under measurement."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bench.worker import CELL_BYTES, CELLS, shared

ROOT = Path(__file__).resolve().parent.parent
END_WITHIN_S = 60.0
PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class Notes:
    """What a process left behind.

    Attributes:
        starts: (epoch seconds, run id) of each handler that started.
        cpu_s: CPU seconds of its services, without its start-up.
        idle_cpu_s: CPU seconds of the span that it was asked to measure.
    """

    starts: list[tuple[float, str]]
    cpu_s: float
    idle_cpu_s: float


class Process:
    """One `python -m bench.worker`; ended by its pid at the end of the block.

    Args:
        url: the store.
        out: prefix of its files; unique.
        roles: the services that it runs.
        nap_s: how long each handler takes, seconds.
        settle_s: seconds before idle CPU is measured.
        span_s: seconds over which it is measured; 0 for a process that runs until it is ended.
        settings: environment variables of dynsched.
    """

    def __init__(
        self,
        url: str,
        out: Path,
        roles: Sequence[str],
        *,
        nap_s: float = 0.0,
        settle_s: float = 0.0,
        span_s: float = 0.0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._out = out
        count = out.with_suffix(".count")
        count.write_bytes(bytes(CELLS * CELL_BYTES))
        self._cells = shared(count)
        arguments = [sys.executable, "-m", "bench.worker", "--store", url, "--out", str(out)]
        for role in roles:
            arguments += ["--role", role]
        arguments += ["--nap", str(nap_s), "--settle", str(settle_s), "--span", str(span_s)]
        environment = {name: value for name, value in os.environ.items() if "DYNSCHED" not in name}
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(settings or {})}
        self._process = subprocess.Popen(arguments, cwd=ROOT, env=environment)
        self.notes: Notes | None = None

    @property
    def started(self) -> int:
        """Return how many handlers have started."""
        return int(self._cells[0])

    def wait_ready(self) -> None:
        """Wait until it serves."""
        until(lambda: bool(self._cells[1]) or self._over(), 30.0, "a process to be ready")

    def kill(self) -> None:
        """Kill it at once, as a machine that loses power would."""
        self._process.kill()
        self._process.wait(END_WITHIN_S)

    def wait_end(self, within_s: float) -> Notes:
        """Wait until it ends by itself, and return its notes."""
        self._process.wait(within_s)
        return self._read()

    def end(self) -> Notes:
        """Ask it to end, and return its notes."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait_end(END_WITHIN_S)

    def _read(self) -> Notes:
        kept = json.loads(self._out.with_suffix(".json").read_text("utf-8"))
        starts = [(at, run_id) for at, run_id in kept["starts"]]
        self.notes = Notes(starts, kept["cpu_s"], kept["idle_cpu_s"])
        return self.notes

    def _over(self) -> bool:
        return self._process.poll() is not None

    def __enter__(self) -> Process:
        """Return it, running."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill it if it still runs."""
        if not self._over():
            self.kill()


def until(done: Callable[[], bool], within_s: float, what: str) -> None:
    """Wait for something, looking often.

    Raises:
        TimeoutError: it did not come in that many seconds.
    """
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within_s:g} s for {what}")
        time.sleep(PAUSE_S)
