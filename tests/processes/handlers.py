"""Handlers for worker processes: each writes in a journal when it starts and when it ends.

The journal's file is named by `JOURNAL_VARIABLE`. A line is one write at the file's end, so that
the lines of several processes never mix, and what a killed process has written stays.
"""

from __future__ import annotations

import os
import threading
from typing import cast

from dynsched import App
from dynsched.bootstrap import clock_from
from dynsched.domain.instants import to_ms
from dynsched.targets.context import Context

JOURNAL_VARIABLE = "TEST_JOURNAL"
STEP_S = 0.1

app = App()


def note(word: str, ctx: Context[object]) -> None:
    """Write a line; its instant is the one of the clock that the services run by."""
    at_ms = to_ms(clock_from(os.environ).now())
    line = f"{word} {ctx.run_id} {ctx.fence} {ctx.attempt} {at_ms}\n"
    descriptor = os.open(os.environ[JOURNAL_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@app.job("touch")
def touch(ctx: Context[object]) -> None:
    """Start and end."""
    note("start", ctx)
    note("end", ctx)


@app.job("work")
def work(ctx: Context[object]) -> dict[str, int]:
    """Work for as many seconds as the payload says, whoever asks it to stop.

    It counts steps and not the clock's seconds: frozen and thawed, it has as much to do as before.
    """
    note("start", ctx)
    for _ in range(round(cast(float, ctx.payload) / STEP_S)):
        threading.Event().wait(STEP_S)
    note("end", ctx)
    return {"fence": ctx.fence}
