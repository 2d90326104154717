"""What a handler is given, and what it may raise to say how its attempt ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from numbers import Real
from typing import Any, Generic, TypeAlias, TypeVar

from dynsched.domain.instants import to_text, to_utc
from dynsched.domain.payload import Json
from dynsched.domain.retry import DELAY_MAX
from dynsched.errors import InvalidInput
from dynsched.targets.stop import NO_LIMITS, Limits, Stop, StopReason

NOTE_LENGTH_MAX = 200
"""The longest note of a progress report, in characters."""
_EXACT_MAX = 2**53  # whole numbers up to here are themselves in every store

P = TypeVar("P")
_log = logging.getLogger("dynsched.run")


class HandlerSignal(Exception):
    """Base of what a handler raises to say how its attempt ended."""


class Permanent(HandlerSignal):
    """The run cannot succeed: it is dead at once, whatever attempts are left."""


class RetryAfter(HandlerSignal):
    """The attempt failed and is to be repeated, not before a delay.

    Args:
        delay: the shortest time to wait, 0 to `DELAY_MAX`. The job's back-off is waited for as
            well, so that 0 means "as the policy says, whatever its rules say".
        message: what went wrong.

    Raises:
        InvalidInput: the delay is out of range.
    """

    def __init__(self, delay: timedelta, message: str = "") -> None:
        self.delay = checked_delay(delay)
        super().__init__(message or f"asked to be tried again after {delay}")


class Snooze(HandlerSignal):
    """There is nothing to do yet: the run comes back later, and no attempt is counted as failed.

    Args:
        until: when to come back, an aware datetime; or
        after: how long from now, 0 to `DELAY_MAX`.

    Raises:
        InvalidInput: both or neither are given, or one is out of range or has no zone.
    """

    def __init__(self, *, until: datetime | None = None, after: timedelta | None = None) -> None:
        if (until is None) == (after is None):
            raise InvalidInput("snooze", "it needs one of until and after", "give exactly one")
        self.until = None if until is None else to_utc(until, "snooze.until")
        self.after = None if after is None else checked_delay(after)
        super().__init__(f"snoozed {until or after}")

    def instant(self, now: datetime) -> datetime:
        """Return when the run comes back, counted from `now` and not before it."""
        if self.until is not None:
            return min(max(self.until, now), now + DELAY_MAX)
        assert self.after is not None
        return to_utc(now + self.after, "snooze.after")


class Cancelled(HandlerSignal):
    """The attempt ends early because it was asked to; see `Context.raise_if_cancelled`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an attempt has come, in the handler's own units.

    Attributes:
        done: units done.
        total: units in all, if known.
        note: one short line for people.
    """

    done: float
    total: float | None = None
    note: str = ""


ProgressSink: TypeAlias = Callable[[Progress], None]


def _ignore(_: Progress) -> None:
    """Drop a progress report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Generic[P]):
    """One attempt, as its handler sees it. `P` is the type of the payload.

    Attributes:
        payload: what the job carries, JSON values.
        idempotency_key: the same for every attempt and for a plain replay of the run; send it
            along with side effects.
        job_id: the job's id.
        job_name: the job's name.
        run_id: the run's id.
        tenant: whose job it is.
        scheduled_for: the instant that the run is for; not the time it started.
        attempt: number of this try, from 1.
        fence: grows with each change of hands; a resource that remembers the greatest one can
            refuse a stale holder.
        deadline: instant of the soft time limit, or of the function's end if that is earlier.
        limits: the time limits, from the start of the attempt.
        stop: set as soon as the attempt is to end, for any reason.
        sink: where progress goes.
    """

    payload: P
    idempotency_key: str
    job_id: str
    job_name: str
    run_id: str
    tenant: str
    scheduled_for: datetime
    attempt: int = 1
    fence: int = 1
    deadline: datetime | None = None
    limits: Limits = NO_LIMITS
    stop: Stop = field(default_factory=Stop, compare=False)
    sink: ProgressSink = field(default=_ignore, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the handler ought to end now: cancelled, out of time, draining or lease lost."""
        return self.stop.is_set()

    @property
    def lease_lost(self) -> bool:
        """Whether another worker may have the run: no more side effects, please."""
        return self.stop.has(StopReason.LEASE_LOST)

    def raise_if_cancelled(self) -> None:
        """End the handler if it ought to end; call it between steps that may be left undone.

        Raises:
            Cancelled: the handler ought to end.
        """
        reason = self.stop.reason
        if reason is not None:
            raise Cancelled(reason.value)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tell how far the attempt has come. Cheap: only the latest report is ever written.

        Args:
            done: units done.
            total: units in all, if known.
            note: one short line, cut at `NOTE_LENGTH_MAX` characters.

        Raises:
            InvalidInput: a number is none or not finite, or the note is no text.
        """
        number = _checked_number("progress.done", done)
        whole = None if total is None else _checked_number("progress.total", total)
        self.sink(Progress(done=number, total=whole, note=_clean_note(note)))

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records name the run, as `dynsched.run`."""
        return _RunLogger(_log, self.fields())

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers by which a receiver can tell repeats and stale holders."""
        return {
            "Idempotency-Key": self.idempotency_key,
            "X-Dynsched-Run": self.run_id,
            "X-Dynsched-Attempt": str(self.attempt),
            "X-Dynsched-Fence": str(self.fence),
            "X-Dynsched-Scheduled-For": to_text(self.scheduled_for),
        }

    def fields(self) -> dict[str, Json]:
        """Return what identifies the attempt, as JSON."""
        return {
            "attempt": self.attempt,
            "fence": self.fence,
            "idempotency_key": self.idempotency_key,
            "job_id": self.job_id,
            "job_name": self.job_name,
            "run_id": self.run_id,
            "scheduled_for": to_text(self.scheduled_for),
            "tenant": self.tenant,
        }


AnyContext: TypeAlias = Context[Any]


class _RunLogger(logging.LoggerAdapter[logging.Logger]):
    """Puts job, run and attempt before each message and into each record."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[object, MutableMapping[str, Any]]:
        """Return the message and arguments to log with."""
        known = dict(self.extra or {})
        kwargs["extra"] = {**known, **(kwargs.get("extra") or {})}
        prefix = f"[{known['job_name']} {known['run_id']}#{known['attempt']}]".replace("%", "_")
        return f"{prefix} {msg}", kwargs


def _checked_number(field: str, value: object) -> float:
    """Return a number that every store can keep: an int of moderate size or a finite float."""
    mend = "give an int or a finite float"
    if not isinstance(value, Real):
        raise InvalidInput(field, f"a {type(value).__name__} is no number to count with", mend)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(field, "it is not finite", mend)
    return int(value) if isinstance(value, int) and abs(number) <= _EXACT_MAX else number


def _clean_note(note: object) -> str:
    """Return a note as one line of valid Unicode."""
    if not isinstance(note, str):
        raise InvalidInput("progress.note", f"a {type(note).__name__} is no text", "give a str")
    line = " ".join(note[: 4 * NOTE_LENGTH_MAX].split())[:NOTE_LENGTH_MAX]
    return line.encode("utf-8", "replace").decode()


def checked_delay(delay: timedelta) -> timedelta:
    """Return the delay if it is one that a handler may ask for.

    Raises:
        InvalidInput: it is out of range.
        TypeError: it is no timedelta.
    """
    if not timedelta(0) <= delay <= DELAY_MAX:
        raise InvalidInput("delay", f"{delay} is out of range", "give 0 to 366 days")
    return delay
