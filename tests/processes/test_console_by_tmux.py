"""The console in a real terminal: an operator's keys against a running demo, by tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.audit import AuditOutcome
from dynsched.domain.batch import BatchState
from tests.processes.conftest import NewStage
from tests.processes.stage import ROOT, Stage, wait_until

ORDERS = 40
COLUMNS, LINES = 100, 30
PATIENCE_S = 20.0
REASON = "the ledger is back"
REQUIRED = "DYNSCHED_REQUIRE_ALL"


class Terminal:
    """A terminal of tmux with a program in it.

    Args:
        stage: whose store the program is about.
        folder: for tmux's socket.
        command: the program.
    """

    def __init__(self, stage: Stage, folder: Path, command: list[str]) -> None:
        self._socket = folder / "tmux"
        self._environment = stage.environment | {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("src", "console")),
        }
        size = ("-x", str(COLUMNS), "-y", str(LINES))
        self._tmux("-f", os.devnull, "new-session", "-d", *size, *command)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *words],
            env=self._environment,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        return done.stdout.decode("utf-8", "replace")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def shown(self) -> str:
        """Return what the terminal shows."""
        return self._tmux("capture-pane", "-p")

    def wait_for(self, words: str) -> str:
        """Wait until the terminal shows words; return all that it shows then."""
        seen: list[str] = []

        def there() -> str:
            seen.append(self.shown())
            return seen[-1] if words in seen[-1] else ""

        try:
            return wait_until(there, PATIENCE_S, f"{words!r} in the terminal")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows\n{seen[-1]}") from error

    def press_button(self, *keys: str) -> None:
        """Go to a dialog's button by keys, waiting for each that the focus has moved, and press it.

        Where the focus is, the style of the line of buttons tells.
        """
        for key in keys:
            before = self._buttons()
            self.press(key)
            wait_until(partial(self._moved_from, before), PATIENCE_S, f"the focus after {key}")
        self.press("Enter")

    def _moved_from(self, before: str) -> bool:
        return self._buttons() != before

    def _buttons(self) -> str:
        styled = self._tmux("capture-pane", "-e", "-p").splitlines()
        return next((line for line in styled if "Cancel" in line), "")

    def close(self) -> None:
        """End the terminal with what runs in it."""
        # The program may have ended, and the terminal with it.
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")


@pytest.fixture
def night(new_stage: NewStage) -> Stage:
    """Return a running demo whose queue of the dead holds orders of a bad night."""
    if shutil.which("tmux") is None:
        words = "tmux is missing: the console is not tried in a real terminal (apt install tmux)"
        if os.environ.get(REQUIRED):
            pytest.fail(words)
        pytest.skip(words)
    stage = new_stage()
    stage.init()
    stage.start("up", "--demo")

    def orders() -> str | None:
        return stage.operations.find_id("globex", "demo-orders")

    job_id = wait_until(orders, PATIENCE_S, "the demo's jobs") or ""
    stage.operations.enqueue_many(job_id, [None] * ORDERS)
    views = build_views(stage.base)
    wait_until(
        lambda: views.find_runs("state:dead job:demo-orders tenant:globex").matched >= ORDERS,
        PATIENCE_S,
        "the orders' deaths",
    )
    return stage


@pytest.fixture
def terminal(night: Stage, tmp_path: Path) -> Iterator[Terminal]:
    """Return a terminal with the console in it."""
    command = [sys.executable, "-m", "dynsched_console", "--store", night.store, "--refresh", "0.2"]
    found = Terminal(night, tmp_path, command)
    try:
        yield found
    finally:
        found.close()


def test_a_night_s_triage_by_real_keys(night: Stage, terminal: Terminal) -> None:
    """Overview, group, run, error, preview, pace, confirm, pause, resume, abort, audit."""
    look_round(terminal)
    planned = preview(terminal)
    replay(terminal, planned)
    views = build_views(night.base)
    batch = views.batches(limit=1).items[0]
    assert (batch.state, batch.planned, batch.reason) == (BatchState.ABORTED, planned, REASON)
    assert 0 < batch.left < batch.planned
    entries = views.audit_of(f"batch:{batch.batch_id}", 10)
    assert {one.outcome for one in entries} == {AuditOutcome.DONE}
    actions = [one.action.value.removeprefix("batch.") for one in reversed(entries)]
    assert actions[:5] == ["preview", "confirm", "pause", "resume", "abort"]


def look_round(terminal: Terminal) -> None:
    """Go from the overview to the group of the orders, and read one run's error."""
    terminal.wait_for("Broken?")
    terminal.press("3")
    terminal.wait_for("AGAIN")
    terminal.press("/")
    terminal.wait_for("keep the old")
    terminal.type("job:demo-orders")
    terminal.press("Enter")
    terminal.wait_for("/ job:demo-orders")
    terminal.wait_for(" globex ")
    terminal.press("Enter")
    terminal.wait_for("/ group:")
    terminal.press("Enter")
    terminal.wait_for("X dead  demo-orders")
    terminal.press("Escape")
    terminal.wait_for("/ group:")


def preview(terminal: Terminal) -> int:
    """Preview the replay of the group and slow it down; return how many runs it has."""
    terminal.press("R")
    terminal.wait_for("Preview of a replay")
    terminal.press("e")
    terminal.wait_for("How the runs are brought back")
    terminal.type("4")
    terminal.press("Tab", "Tab", "Tab")
    terminal.type("100%")
    terminal.press("Enter")
    text = terminal.wait_for("4 runs a second")
    return int(text.split("dead runs")[1].split()[0])


def replay(terminal: Terminal, planned: int) -> None:
    """Confirm, watch, pause, resume, abort and leave."""
    terminal.press("C")
    terminal.wait_for(f"Replay {planned} dead runs")
    terminal.type(REASON)
    terminal.wait_for(REASON)
    terminal.press_button("Enter", "Right")
    terminal.wait_for("entries are moved")
    for key, question, state in (
        ("P", "stay dead until it goes on", "P paused"),
        ("P", "Go on moving", "R running"),
        ("A", "abort and pull back", ""),
    ):
        terminal.press(key)
        terminal.wait_for(question)
        if state:
            terminal.press_button("Right")
            terminal.wait_for(state)
    terminal.press("Enter")
    terminal.wait_for("Abort this replay?")
    terminal.press_button("Right")
    terminal.wait_for("A aborted")
    terminal.press("7")
    terminal.wait_for("Replay batches")
    terminal.press("q")
