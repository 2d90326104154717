"""The terminal console over 50,000 dead runs: first rows, moves of the cursor, memory, idle CPU.

It is measured twice: headless, where what is drawn is known, and in a terminal of its own (a pty),
where what a user waits for are bytes.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from bench.console_probe import MOVES, PATIENCE_S, SIZE, rss_mb
from bench.crowd import fill
from bench.options import Options, say
from bench.report import Figure, percentile
from bench.stores import fresh

FIRST_MOST_MS = 1_000.0
MOVE_MOST_MS = 50.0
RSS_MOST_MB = 150.0
PAUSED_MOST = 2.0
REFRESHING_MOST = 10.0
IDLE_S = 20.0
REFRESH_S = 2
QUIET_S = 0.4  # without a byte, after which a screen is drawn
CHUNK = 1 << 16
WATCHED = ("overview", "dlq", "runs", "jobs")


class Terminal:
    """A console in a terminal of its own.

    Args:
        url: the store.
        arguments: of the console.
    """

    def __init__(self, url: str, *arguments: str) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
        command = [sys.executable, "-m", "dynsched_console", "--store", url, "--read-only"]
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdin=side, stdout=side, stderr=side, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path),
                 "COLUMNS": str(SIZE[0]), "LINES": str(SIZE[1])},
        )  # fmt: skip
        os.close(side)

    @property
    def pid(self) -> int:
        """Return the console's process."""
        return self._process.pid

    def read(self, patience_s: float) -> bytes:
        """Return what is written next; nothing if that takes longer."""
        ready, _, _ = select.select([self._main], [], [], patience_s)
        return os.read(self._main, CHUNK) if ready else b""

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._main, key.encode())

    def until(self, words: str) -> None:
        """Read until some words were drawn."""
        seen, end = b"", time.monotonic() + PATIENCE_S
        while words.encode() not in seen:
            assert time.monotonic() < end, f"{words!r} did not appear in {seen[-2_000:]!r}"
            seen += self.read(0.1)

    def quiet(self) -> None:
        """Read until nothing more comes."""
        while self.read(QUIET_S):
            pass

    def idle(self, seconds: float) -> float:
        """Return which part of a core it takes while nobody does anything, percent."""
        began, before = time.monotonic(), _cpu_s(self.pid)
        while (left := began + seconds - time.monotonic()) > 0:
            self.read(left)
        return 100 * (_cpu_s(self.pid) - before) / (time.monotonic() - began)

    def close(self) -> None:
        """Leave the console, and be sure of it."""
        self.press("q")
        try:
            end = time.monotonic() + 5
            while self._process.poll() is None and time.monotonic() < end:
                self.read(0.1)
        except OSError:
            pass  # the other side is closed
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._main)


def _cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(options: Options) -> list[Figure]:
    """Measure the console on a file with tens of thousands of dead runs."""
    dead = 5_000 if options.quick else 50_000
    idle_s = 4.0 if options.quick else IDLE_S
    say(f"console: {dead:,} dead runs in 40 groups, 1,000 jobs")
    opened = fresh(options.folder, "console")
    fill(base=opened.base, dead=dead, jobs=1_000)
    opened.close()
    say("console: headless")
    figures = list(_headless(opened.url))
    say("console: in a terminal")
    return figures + _in_terminal(opened.url) + _idle(opened.url, idle_s)


def _headless(url: str) -> list[Figure]:
    """Measure in another process, whose memory is the console's alone."""
    found: Mapping[str, float] = json.loads(
        subprocess.run(
            [sys.executable, "-m", "bench.console_probe", url],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
    )
    names = {
        "first groups": "DLQ groups: first rows",
        "first entries": "DLQ entries: first rows",
        "first runs": "runs: first rows",
        "first jobs": "jobs: first rows",
        "move entries": "cursor move, DLQ entries",
        "move jobs": "cursor move, jobs",
    }
    figures = [
        Figure(
            words, found[name], "ms",
            most=FIRST_MOST_MS if name.startswith("first") else MOVE_MOST_MS,
            note="headless" if name.startswith("first") else f"headless, p95 of {MOVES}",
        )
        for name, words in names.items()
    ]  # fmt: skip
    for name, words in (("entries", "DLQ entries"), ("jobs", "jobs")):
        figures.append(
            Figure(
                f"cursor move under refreshes, {words}", found[f"move {name}, refreshing"], "ms",
                note=f"headless, p95 of {MOVES}; one refresh right after the other",
            )
        )  # fmt: skip
        figures.append(
            Figure(f"processor time of a move, {words}", found[f"cpu {name}"], "ms",
                   note="headless, mean; what a busy machine does not change")
        )  # fmt: skip
    return [*figures, Figure("memory, resident", found["rss"], "MB", RSS_MOST_MB, note="headless")]


def _in_terminal(url: str) -> list[Figure]:
    """Measure by bytes: keys go in, and what is drawn comes out."""
    began = time.perf_counter()
    terminal = Terminal(url, "--refresh", "0")
    terminal.until("On time?")
    start_ms = (time.perf_counter() - began) * 1_000
    terminal.quiet()
    firsts = {}
    for name, keys in (("DLQ groups", "3"), ("DLQ entries", "\r"), ("runs", ":runs state:dead\r")):
        if keys.startswith(":"):
            terminal.press(":")
            terminal.until("name filter")
        began = time.perf_counter()
        terminal.press(keys.removeprefix(":"))
        terminal.until("matched")
        firsts[name] = (time.perf_counter() - began) * 1_000
        terminal.quiet()
    took = []
    for number in range(MOVES):
        began = time.perf_counter()
        terminal.press("j" if number < MOVES // 2 else "k")
        terminal.read(PATIENCE_S)
        took.append((time.perf_counter() - began) * 1_000)
        while terminal.read(0.02):
            pass
    paused_rss = rss_mb(terminal.pid)
    terminal.close()
    return [
        Figure("start to the first look", start_ms, "ms", note="pty, from the command on"),
        *(
            Figure(f"{name}: first rows", value, "ms", most=FIRST_MOST_MS, note="pty")
            for name, value in firsts.items()
        ),
        Figure("cursor move", percentile(took, 0.95), "ms", most=MOVE_MOST_MS,
               note=f"pty, p95 of {MOVES}"),
        Figure("memory, resident", paused_rss, "MB", most=RSS_MOST_MB, note="pty, runs"),
    ]  # fmt: skip


def _idle(url: str, seconds: float) -> list[Figure]:
    """Measure what the console takes while nobody touches it."""
    figures = []
    for place in WATCHED:
        for refresh_s in (0, REFRESH_S) if place == "runs" else (REFRESH_S,):
            dead = ("--filter", "state:dead") if place == "runs" else ()
            terminal = Terminal(url, "--refresh", str(refresh_s), "--screen", place, *dead)
            terminal.until("On time?" if place == "overview" else "matched")
            terminal.idle(2 * REFRESH_S)
            percent = terminal.idle(seconds)
            words = f"refresh {refresh_s} s" if refresh_s else "paused"
            figures.append(
                Figure(
                    f"idle CPU, {place}, {words}",
                    percent,
                    "%",
                    most=REFRESHING_MOST if refresh_s else PAUSED_MOST,
                    note=f"pty, over {seconds:.0f} s; {rss_mb(terminal.pid):.0f} MB resident",
                )
            )
            terminal.close()
    return figures
