"""The program against a store of its own, in this process or in others."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dynsched.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.integration.sample_app:app"
DECLARING = "tests.integration.sample_app:declaring"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call wrote."""

    out: str
    err: str


class Program:
    """The command line against one SQLite file.

    Args:
        folder: where the file lies.
        made: the store is made at once.
    """

    def __init__(self, folder: Path, *, made: bool = True) -> None:
        self.folder = folder
        self.file = folder / "jobs.db"
        self.url = f"sqlite:///{self.file}"
        if made:
            self("init")

    def __call__(
        self, *arguments: str, code: int | None = 0, stdin: str | bytes | None = None
    ) -> Answer:
        """Call the program; the exit code must be the expected one, if one is expected."""
        environment = {"DYNSCHED_STORE": self.url, "TZ": "UTC"}
        result = CliRunner().invoke(main, arguments, input=stdin, env=environment)
        told = f"exit {result.exit_code}: {arguments}\n{result.stdout}\n{result.stderr}"
        assert code in (None, result.exit_code), f"{told}\n{result.exception!r}"
        return Answer(result.stdout, result.stderr)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Call the program with `--json`; return the document."""
        return json.loads(self(*arguments, "--json", code=code).out)

    def error(self, *arguments: str, code: int = 2) -> str:
        """Return the one line of a call that fails and writes nothing, neither out nor store."""
        before = self.dump()
        answer = self(*arguments, code=code)
        assert answer.out == ""
        assert self.dump() == before
        (line,) = answer.err.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")

    def run_all(self, *options: str) -> str:
        """Let a worker with the sample app run what is due now."""
        return self("worker", "--once", "--app", APP, *options).out

    def dump(self) -> str:
        """Return all that the store holds but the audit, as text; empty without a file."""
        if not self.file.exists():
            return ""
        connection = sqlite3.connect(self.file)
        try:
            return "\n".join(line for line in connection.iterdump() if "'audit#" not in line)
        finally:
            connection.close()

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """Start the program as a process, its output and log piped.

        Args:
            arguments: of the program.
            settings: environment variables of the process.
        """
        path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DYNSCHED_")}
        return subprocess.Popen(
            [sys.executable, "-m", "dynsched", *arguments],
            env=kept | {"DYNSCHED_STORE": self.url, "PYTHONPATH": path, **settings},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Return what a process has logged up to the line that holds a text."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"{text!r} was not logged:\n{''.join(lines)}")
