"""The handlers in the tests' zip: each tells the wire of its start before it does anything.

Where the wire listens is in `TOLD_AT`; without it nobody is told.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import urllib.request
from pathlib import Path
from typing import Any

from dynsched import App

TOLD_AT = "TOLD_AT"
FOREVER_S = 600.0

app = App()


def tell(ctx: Any) -> None:
    """Tell of a start."""
    where = os.environ.get(TOLD_AT)
    if where:
        start = {"run_id": ctx.run_id, "fence": ctx.fence, "attempt": ctx.attempt}
        request = urllib.request.Request(where, json.dumps(start).encode(), method="POST")  # noqa: S310
        with urllib.request.urlopen(request):  # noqa: S310 - a fixed scheme on loopback
            pass


@app.job("touch")
def touch(ctx: Any) -> str:
    """Start and end."""
    tell(ctx)
    return "touched"


@app.job("fail")
def fail(ctx: Any) -> None:
    """Fail until the file that the payload names is there."""
    tell(ctx)
    if not (isinstance(ctx.payload, dict) and Path(ctx.payload["until"]).exists()):
        raise RuntimeError("the other side is away")


@app.job("frozen-once")
def frozen_once(ctx: Any) -> str:
    """Freeze the whole process at the first try, until it is killed."""
    tell(ctx)
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return "thawed"


@app.job("deaf-once")
def deaf_once(ctx: Any) -> str:
    """Hear nothing at the first try."""
    tell(ctx)
    if ctx.attempt == 1:
        threading.Event().wait(FOREVER_S)
    return "heard"
