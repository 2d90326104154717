"""Running handlers: every way one can end becomes a result, and nothing gets past the runner."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynsched.clock import SystemClock
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target import CommandTarget, HandlerTarget, HttpTarget
from dynsched.targets.app import App
from dynsched.targets.context import (
    AnyContext,
    Cancelled,
    Context,
    Permanent,
    RetryAfter,
    Snooze,
)
from dynsched.targets.result import Result, Snoozed, Succeeded, Tail, WasCancelled, tail
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import Limits, Stop, StopReason

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
TARGET = HandlerTarget("it")
BRIEF = Limits(soft=timedelta(milliseconds=30), hard=timedelta(milliseconds=60))


class FixedDay(SystemClock):
    """A clock whose day stands still and whose seconds run."""

    def now(self) -> datetime:
        """Return the same instant."""
        return NOW

    def monotonic(self) -> float:
        """Return running seconds."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Do not wait."""


class Bench:
    """Runs one handler at a time."""

    def __init__(self) -> None:
        self.app = App()
        self.runner = TargetRunner(self.app, allow_commands=False, clock=FixedDay())

    def run(self, function: Any, **more: Any) -> Result:
        """Register the function under a fresh name and run it once."""
        name = f"it{len(self.app.handlers)}"
        self.app.job(name)(function)
        return self.runner.run(HandlerTarget(name), context(**more))


def context(**more: Any) -> AnyContext:
    """Return the context of an ordinary attempt."""
    plain: dict[str, Any] = {"payload": {"n": 7}, "idempotency_key": "k", "job_id": "j"}
    plain |= {"job_name": "nightly", "run_id": "r", "tenant": "t", "scheduled_for": NOW}
    return Context(**(plain | more))


def raising(error: BaseException) -> Any:
    """Return a sync and an async handler that raise it."""

    def plain() -> None:
        raise error

    async def coroutine() -> None:
        raise error

    return [plain, coroutine]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Give a bench and end its threads afterwards."""
    bench = Bench()
    yield bench
    bench.runner.close()


def failure(result: Result) -> Failed:
    """Return the result as a failure."""
    assert isinstance(result, Failed)
    return result


def test_a_sync_handler_runs_in_the_calling_thread(bench: Bench) -> None:
    """A worker's slot is a thread, and thread-local connections stay usable."""
    result = bench.run(lambda ctx: [ctx.payload["n"], threading.get_ident()])
    assert result == Succeeded(output=[7, threading.get_ident()])


def test_all_async_handlers_share_one_loop(bench: Bench) -> None:
    """Client sessions of an async library can be kept across runs."""
    loops: list[object] = []

    async def handler(ctx: Context[dict[str, int]]) -> int:
        loops.append(asyncio.get_running_loop())
        return ctx.payload["n"]

    assert bench.run(handler) == bench.run(handler) == Succeeded(output=7)
    assert loops[0] is loops[1]


def test_a_sync_handler_may_return_an_awaitable(bench: Bench) -> None:
    """A wrapped coroutine function is awaited like a declared one."""

    async def inner() -> int:
        return 8

    def outer() -> object:
        return inner()

    assert bench.run(outer) == Succeeded(output=8)


@pytest.mark.parametrize("which", [0, 1], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (ValueError("x"), Hint.DEFAULT),
        (MemoryError("x"), Hint.DEFAULT),
        (KeyboardInterrupt("x"), Hint.DEFAULT),
        (SystemExit("x"), Hint.DEFAULT),
        (GeneratorExit("x"), Hint.DEFAULT),
        (Permanent("x"), Hint.PERMANENT),
        (RetryAfter(timedelta(seconds=9), "x"), Hint.AFTER),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_handler_raises_is_its_failure(
    bench: Bench, error: BaseException, hint: Hint, which: int
) -> None:
    """No exception of a handler ends a worker, and the next run finds everything in order."""
    failed = failure(bench.run(raising(error)[which]))
    assert (failed.error_type, failed.message, failed.hint) == (type(error).__name__, "x", hint)
    assert failed.after == (timedelta(seconds=9) if hint is Hint.AFTER else None)
    assert bench.run(lambda: 1) == Succeeded(output=1)


@pytest.mark.parametrize("which", [0, 1], ids=["sync", "async"])
def test_a_snooze_is_no_failure(bench: Bench, which: int) -> None:
    """Nothing to do yet is not an error."""
    result = bench.run(raising(Snooze(after=timedelta(minutes=5)))[which])
    assert result == Snoozed(until=NOW + timedelta(minutes=5))


def test_an_exit_in_a_task_of_a_handler_leaves_the_loop_running(bench: Bench) -> None:
    """A background task that raises SystemExit must not take all async runs with it."""

    async def leave() -> None:
        raise SystemExit(3)

    async def handler() -> str:
        task = asyncio.ensure_future(leave())
        await asyncio.wait([task])
        return type(task.exception()).__name__

    assert bench.run(handler) == Succeeded(output="SystemExit")


def test_an_async_handler_is_cancelled_at_the_soft_limit(bench: Bench) -> None:
    """Its clean-up runs, and the failure says which limit it was."""
    cleaned = threading.Event()

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    failed = failure(bench.run(handler, limits=Limits(soft=timedelta(milliseconds=20))))
    assert failed.message == "soft time limit of 0.02 s reached"
    assert failed.error_type == "TimeLimit"
    assert cleaned.is_set()


def test_an_async_handler_that_ignores_its_cancellation_is_given_up(bench: Bench) -> None:
    """The slot is free at the hard limit, whatever the coroutine does."""
    released = asyncio.Event()

    async def stubborn() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    failed = failure(bench.run(stubborn, limits=BRIEF))
    assert failed.message.startswith("hard time limit")

    async def release() -> None:
        released.set()

    bench.run(release)


def test_a_sync_handler_learns_of_its_soft_limit(bench: Bench) -> None:
    """It waits on the signal as on an event, and raises itself out."""

    def handler(ctx: AnyContext) -> None:
        assert ctx.stop.wait(30)
        ctx.raise_if_cancelled()

    assert failure(bench.run(handler, limits=BRIEF)).error_type == "TimeLimit"


def test_a_handler_that_still_succeeds_after_the_soft_limit_succeeded(bench: Bench) -> None:
    """The soft limit asks; what was done is done."""

    def handler(ctx: AnyContext) -> str:
        return f"stopped: {ctx.stop.wait(30)}"

    assert bench.run(handler, limits=BRIEF) == Succeeded(output="stopped: True")


@pytest.mark.parametrize(
    "reason", [StopReason.CANCELLED, StopReason.LEASE_LOST, StopReason.DRAIN], ids=str
)
def test_a_stopped_handler_is_cancelled_for_that_reason(bench: Bench, reason: StopReason) -> None:
    """The worker does something else for each of them."""

    async def handler(ctx: AnyContext) -> None:
        ctx.stop.set(reason)
        await asyncio.Event().wait()

    def plain(ctx: AnyContext) -> None:
        ctx.stop.set(reason)
        ctx.raise_if_cancelled()

    assert bench.run(handler) == bench.run(plain) == WasCancelled(reason=reason)


def test_an_attempt_stopped_before_its_first_step_ends_too(bench: Bench) -> None:
    """A coroutine cancelled before it began is not waited for."""
    ctx = context()
    ctx.stop.set(StopReason.CANCELLED)

    async def handler() -> None:
        await asyncio.Event().wait()

    assert bench.run(handler, stop=ctx.stop) == WasCancelled(reason=StopReason.CANCELLED)


def test_a_handler_may_cancel_its_own_run(bench: Bench) -> None:
    """There is nothing left to do, now or later."""
    assert bench.run(raising(Cancelled())[0]) == WasCancelled(reason=StopReason.CANCELLED)


def test_a_cancellation_of_its_own_making_is_a_failure(bench: Bench) -> None:
    """Nobody asked the run to end: an awaited task of the handler was cancelled."""
    failed = failure(bench.run(raising(asyncio.CancelledError())[1]))
    assert failed.error_type == "asyncio.exceptions.CancelledError"


@pytest.mark.parametrize(
    "output",
    [object(), float("nan"), {1: 2}, "x" * 5000, "\ud800", {"a": [b"x"]}],
    ids=["object", "nan", "number as key", "too long", "surrogate", "bytes"],
)
def test_an_output_that_cannot_be_kept_is_dropped_with_a_note(bench: Bench, output: Any) -> None:
    """The work is done: it is not done again for its return value."""
    result = bench.run(lambda: output)
    assert isinstance(result, Succeeded)
    assert result.output is None
    assert "not kept" in result.note


def test_the_trace_shows_the_handler_and_not_the_runner(bench: Bench) -> None:
    """Whoever reads it wants his own lines."""
    trace = failure(bench.run(raising(ValueError("x"))[0])).trace_tail
    assert "in plain" in trace
    assert "dynsched/targets" not in trace
    assert trace.endswith("ValueError: x\n")


def test_a_bottomless_recursion_is_a_short_trace(bench: Bench) -> None:
    """Rows are bounded whatever the handler does."""

    def handler(n: Any) -> Any:
        return handler(n) + 1

    failed = failure(bench.run(handler))
    assert failed.error_type == "RecursionError"
    assert len(failed.trace_tail.encode()) <= 4096


def test_an_error_that_cannot_be_shown_is_still_a_failure(bench: Bench) -> None:
    """An exception class may do anything in its own text."""

    class Nameless(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    failed = failure(bench.run(raising(Nameless())[0]))
    assert failed.message == "(the message cannot be shown)"


def test_a_message_becomes_one_bounded_line_of_valid_text(bench: Bench) -> None:
    """It is stored, listed and sent."""
    failed = failure(bench.run(raising(ValueError("a\n\udc80" + "é" * 9999))[0]))
    assert failed.message.startswith("a ?é")
    assert len(failed.message) == 500


def test_an_unknown_handler_is_refused_with_the_close_names(bench: Bench) -> None:
    """A worker steps back from it, and the reason can be shown."""
    bench.app.job("report")(lambda: None)
    assert not bench.runner.knows(HandlerTarget("reprot"))
    assert "did you mean report?" in bench.runner.refusal(HandlerTarget("reprot"))
    assert failure(bench.runner.run(TARGET, context())).error_type == "TargetRefused"


def test_commands_need_the_worker_s_leave(bench: Bench) -> None:
    """Whoever may write a job must not thereby own every worker."""
    assert "--allow-commands" in bench.runner.refusal(CommandTarget("true"))
    assert bench.runner.knows(HttpTarget("http://example.org"))


def test_a_closed_runner_leaves_no_thread_behind() -> None:
    """A drained worker ends."""
    before = set(threading.enumerate())
    bench = Bench()

    async def handler() -> None:
        await asyncio.Event().wait()

    bench.run(handler, limits=BRIEF)
    bench.runner.close()
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("chunk", [1, 3, 7, 5000])
@pytest.mark.parametrize("limit", range(96, 106))
def test_a_tail_is_the_end_of_what_was_fed(chunk: int, limit: int) -> None:
    """However it was cut into pieces, and never half a character."""
    data = ("é€😀" * 300).encode()
    kept = Tail(limit)
    for at in range(0, len(data), chunk):
        kept.feed(data[at : at + chunk])
    assert kept.text() == tail(data.decode(), limit)
    assert limit - 4 < len(kept.text().encode()) <= limit


def test_bytes_that_are_no_text_are_replaced_within_the_bound() -> None:
    """The output of a program may be anything."""
    kept = Tail(100)
    kept.feed(b"\xff" * 100)
    assert kept.text() == "\N{REPLACEMENT CHARACTER}" * 33


class BareRetry(RetryAfter):
    """Forgets its base's delay."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class BareSnooze(Snooze):
    """Forgets its base's instant."""

    def __init__(self) -> None:
        Exception.__init__(self, "later")


class ExitingText(Exception):
    """Ends the process when it is shown."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Homeless(Exception):
    """Has no module."""

    __module__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (BareRetry("busy"), "BareRetry"),
        (BareSnooze(), "BareSnooze"),
        (ExitingText(), "ExitingText"),
        (Homeless("lost"), "Homeless"),
    ],
)
def test_an_exception_that_cannot_be_read_is_a_failure(error: BaseException, name: str) -> None:
    """Whatever an exception class does, sync and async handlers end with an answer."""
    for handler in raising(error):
        result = Bench().run(handler)
        assert isinstance(result, Failed), result
        assert result.error_type.rpartition(".")[2] == name
        assert result.message


def test_a_retry_without_its_delay_is_still_a_retry() -> None:
    """The back-off stands in for the delay that the exception lost."""
    result = Bench().run(raising(BareRetry("busy"))[0])
    assert isinstance(result, Failed)
    assert (result.hint, result.after) == (Hint.RETRY, None)
    assert "busy" in result.message


def test_a_run_that_was_given_back_before_its_start_does_not_start() -> None:
    """Its handler is not called: the run may be in another worker's hand by now."""
    stop, called = Stop(), list[int]()
    stop.set(StopReason.LEASE_LOST)
    result = Bench().run(lambda: called.append(1), stop=stop)
    assert (result, called) == (WasCancelled(reason=StopReason.LEASE_LOST), [])
