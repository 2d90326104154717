"""Handlers that fork: the child ends where the handler ends, and the worker goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynsched

PROGRAM = """
import asyncio, os, sys
from dynsched.domain.target import HandlerTarget
from dynsched.targets.app import App
from dynsched.targets.runner import TargetRunner
from tests.integration.test_command_target import FixedDay, context

app = App()

def fork(way):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if way == "exit":
        sys.exit(7)
    if way == "raise":
        raise ValueError("only in the child")
    return 0

@app.job("plain")
def plain(ctx):
    return fork(ctx.payload)

@app.job("coroutine")
async def coroutine(ctx):
    await asyncio.sleep(0)
    return fork(ctx.payload)

runner = TargetRunner(app, allow_commands=False, clock=FixedDay())
result = runner.run(HandlerTarget(sys.argv[1]), context(payload=sys.argv[2]))
runner.close()
os.write(1, f"{result.output}\\n".encode())
"""


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
@pytest.mark.parametrize(("way", "code"), [("return", 0), ("exit", 7), ("raise", 1)])
def test_a_forked_child_ends_where_its_handler_ends(kind: str, way: str, code: int) -> None:
    """One answer is written, by the worker, with the exit code that it saw of the child."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, way],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(dynsched.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert answer.stdout == f"{code}\n", answer.stderr
    assert ("only in the child" in answer.stderr) is (way == "raise")
