"""How an attempt ended, as a value, and the bounded text that is kept of it."""

from __future__ import annotations

import json
import sys
import traceback
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from dynsched.domain.instants import to_utc
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.retry import Failed, Hint
from dynsched.errors import InvalidInput
from dynsched.targets.context import (
    AnyContext,
    Cancelled,
    Permanent,
    RetryAfter,
    Snooze,
    checked_delay,
)
from dynsched.targets.stop import StopReason

TAIL_BYTES_MAX = 4096
"""The longest output or trace that is kept, in bytes of UTF-8; the end is what is kept."""
OUTPUT_BYTES_MAX = 4096
"""The longest returned value that is kept, in bytes of its JSON text."""
MESSAGE_LENGTH_MAX = 500
"""The longest error message that is kept, in characters."""
TRACE_FRAMES_MAX = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The attempt did what it should.

    Attributes:
        output: what it returned, as JSON, or tails of what it wrote.
        note: why its output was not kept, else empty.
    """

    output: Json = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snoozed:
    """There was nothing to do yet.

    Attributes:
        until: when the run is due again.
    """

    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WasCancelled:
    """The attempt ended early because it was asked to.

    Attributes:
        reason: cancelled, lease lost or drain; a time limit is a failure instead.
    """

    reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsCallback:
    """The attempt goes on outside of this process, and somebody reports how it ended.

    Its row says so already: nothing is left to be written.

    Attributes:
        ends_at: the attempt has failed if nobody has reported by then.
    """

    ends_at: datetime


Result: TypeAlias = Succeeded | Failed | Snoozed | WasCancelled | AwaitsCallback


class Tail:
    """Keeps the last bytes of a stream, in bounded memory."""

    def __init__(self, limit: int = TAIL_BYTES_MAX) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._fed = 0

    def feed(self, chunk: bytes) -> None:
        """Add what was read."""
        self._fed += len(chunk)
        self._chunks.append(chunk[-self._limit :])
        self._size += len(self._chunks[-1])
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        """Return the end as valid UTF-8; bytes that are not become U+FFFD."""
        kept = b"".join(self._chunks)[-self._limit :]
        # The cut may have split a character: its remains are not the stream's fault.
        start = 0
        while self._fed > self._limit and start < min(3, len(kept)) and kept[start] & 0xC0 == 0x80:
            start += 1
        return tail(kept[start:].decode("utf-8", "replace"), self._limit)


def tail(text: str, limit: int = TAIL_BYTES_MAX) -> str:
    r"""Return the end of a text in at most so many bytes of valid UTF-8.

    >>> tail("good \udc80 end", 5)
    '? end'
    """
    return text.encode("utf-8", "replace")[-limit:].decode("utf-8", "ignore")


def succeeded(output: object) -> Succeeded:
    """Return the success with its output, if that is JSON and short enough.

    The work is done: an output that cannot be kept is dropped with a note, never a failure.

    >>> succeeded({"rows": 3})
    Succeeded(output={'rows': 3}, note='')
    """
    if output is None:
        return Succeeded()
    try:
        text = check_payload(output)
    except InvalidInput as error:
        problem = error.problem[:MESSAGE_LENGTH_MAX]
        return Succeeded(note=tail(f"the output was not kept: {problem}"))
    size = len(text.encode())
    if size > OUTPUT_BYTES_MAX:
        return Succeeded(note=f"the output was not kept: {size:,} bytes, over {OUTPUT_BYTES_MAX:,}")
    kept: Json = json.loads(text)
    return Succeeded(output=kept)


def stopped(
    context: AnyContext, reason: StopReason | None = None, *, output: Json = None
) -> WasCancelled | Failed:
    """Return how an attempt ended that was asked to end and did.

    Args:
        context: the attempt's.
        reason: why; by default the stop signal's reason, or cancelled if it has none.
        output: what it had written by then; kept where a time limit is the reason.
    """
    reason = reason or context.stop.reason or StopReason.CANCELLED
    limit = {
        StopReason.SOFT_LIMIT: context.limits.soft,
        StopReason.HARD_LIMIT: context.limits.hard,
        StopReason.FUNCTION_LIMIT: None,
    }
    if reason not in limit:
        return WasCancelled(reason=reason)
    length = limit[reason]
    told = f" of {length.total_seconds():g} s" if length else ""
    return Failed(error_type="TimeLimit", message=f"{reason.value}{told} reached", output=output)


def outcome_of(error: BaseException, context: AnyContext, now: datetime) -> Result:
    """Return how an attempt ended whose handler raised; never raises, whatever the error does.

    Args:
        error: what it raised; `SystemExit` and the like are failures as any other.
        context: the attempt's.
        now: the instant from which a snooze counts.
    """
    try:
        return _told(error, context, now)
    except BaseException as broken:  # noqa: BLE001  # a lost answer would keep the run leased
        # Most often a subclass of a signal that does not call its base's `__init__`.
        problem = f"the exception cannot be read ({error_name(broken)}: {message_of(broken)})"
        return Failed(
            error_type=error_name(error),
            message=tail(f"{problem}: {message_of(error)}"[:MESSAGE_LENGTH_MAX]),
            trace_tail=trace_of(error),
            hint=Hint.RETRY if isinstance(error, RetryAfter) else Hint.DEFAULT,
        )


def _told(error: BaseException, context: AnyContext, now: datetime) -> Result:
    if isinstance(error, Snooze):
        return Snoozed(until=to_utc(error.instant(now), "snooze.until"))
    if isinstance(error, Cancelled):
        return stopped(context)
    if _ends_a_coroutine(error) and context.stop.is_set():
        return stopped(context)
    failed = Failed(
        error_type=error_name(error), message=message_of(error), trace_tail=trace_of(error)
    )
    if isinstance(error, RetryAfter):
        return replace(failed, hint=Hint.AFTER, after=checked_delay(error.delay))
    return replace(failed, hint=Hint.PERMANENT) if isinstance(error, Permanent) else failed


def _ends_a_coroutine(error: BaseException) -> bool:
    """Return whether asyncio raised it to cancel a coroutine; who never loaded it need not now."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def error_name(error: BaseException) -> str:
    """Return an exception's name, with its module unless it is built in or ours.

    >>> error_name(KeyError("x"))
    'KeyError'
    """
    kind = type(error)
    try:
        module, name = kind.__module__, kind.__qualname__
        # A class may say None or anything else of its module; its own name is enough then.
        known = not isinstance(module, str) or module in ("builtins", "__main__")
        return tail(name if known or module.startswith("dynsched.") else f"{module}.{name}", 200)
    except BaseException:  # noqa: BLE001  # a handler's exception class may do anything
        return "Exception"


def message_of(error: BaseException) -> str:
    r"""Return an exception's message in one line, even if it cannot be made into text.

    >>> message_of(ValueError("two\nlines"))
    'two lines'
    """
    try:
        line = " ".join(str(error)[: 4 * MESSAGE_LENGTH_MAX].split())
    except BaseException:  # noqa: BLE001  # a handler's exception class may do anything
        return "(the message cannot be shown)"
    return tail(line[:MESSAGE_LENGTH_MAX])


def trace_of(error: BaseException) -> str:
    """Return the end of an exception's traceback, without our own frames at its beginning."""
    frames = error.__traceback__
    while frames is not None and _is_ours(frames.tb_frame.f_globals.get("__name__")):
        frames = frames.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frames, limit=-TRACE_FRAMES_MAX)
    except BaseException:  # noqa: BLE001  # a handler's exception class may do anything
        return "(the traceback cannot be shown)"
    return tail("".join(lines))


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.startswith("dynsched.targets.")
