"""Handlers for tests of the command line."""

from __future__ import annotations

from datetime import timedelta

from dynsched import App, Permanent
from dynsched.targets.context import AnyContext

app = App()
declaring = App()


@app.job("echo")
def echo(ctx: AnyContext) -> object:
    """Return the payload."""
    return ctx.payload


@app.job("boom")
def boom(ctx: AnyContext) -> None:
    """Fail with the payload as the message."""
    raise ValueError(ctx.payload)


@app.job("never")
def never() -> None:
    """Fail for good."""
    raise Permanent("no such thing")


@declaring.job(
    "declared", queue="reports", max_attempts=7, every=timedelta(minutes=5), tags={"a": "b"}
)
def declared() -> None:
    """Say a lot about the jobs that name it."""


@app.job("long")
def long(ctx: AnyContext) -> None:
    """Log a line, then wait to be stopped."""
    ctx.progress(1, 3, "waiting")
    ctx.log.warning("has begun")
    ctx.stop.wait(60)
    ctx.raise_if_cancelled()
