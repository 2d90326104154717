"""Capacity: what workers and functions can run, and so why a ready run waits for nobody."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from dynsched.domain.job import Priority
from dynsched.domain.lease_words import holder_words
from dynsched.domain.run import Run, RunState
from dynsched.storage.control import Session
from dynsched.storage.handoff import MessageQueue

PATIENCE = timedelta(seconds=5)
"""A run due for less has only not been taken yet."""


def alive_sessions(sessions: Iterable[Session], now: datetime) -> list[Session]:
    """Return the sessions that are open and whose lease has not ended."""
    return [one for one in sessions if one.open and one.expires_at > now]


class Capacity:
    """What the living sessions say of themselves; a session that says nothing may know anything.

    Args:
        alive: open sessions whose lease has not ended.
        handed_off: where runs are handed off to functions, which say nothing of themselves.
    """

    def __init__(self, alive: Iterable[Session], handed_off: Iterable[MessageQueue] = ()) -> None:
        self._alive = tuple(alive)
        self._handed_off = tuple(handed_off)

    @property
    def empty(self) -> bool:
        """Return whether no worker lives at all."""
        return not self._alive

    def lack(self, queue: str, needs: str, priority: Priority | None = None) -> str:
        """Return why no living worker of a queue can run what has these needs; empty if one can.

        Args:
            queue: whose workers.
            needs: of a run.
            priority: of the run; None is any.
        """
        if any(one.queue == queue and priority in (None, one.priority) for one in self._handed_off):
            return ""
        serving = [one for one in self._alive if queue in one.queues]
        if not serving:
            return f"no living worker serves queue {queue}"
        kind, _, name = needs.partition(":")
        if kind == "handler":
            known = any(one.handlers is None or name in one.handlers for one in serving)
            return "" if known else f"no living worker of queue {queue} has handler {name}"
        if kind == "command" and all(one.commands is False for one in serving):
            return (
                f"no living worker of queue {queue} allows commands"
                " (start one with --allow-commands)"
            )
        return ""

    def lack_of(self, run: Run, now: datetime) -> str:
        """Return why a run that is due for some seconds is not taken; empty if it can be."""
        return self.lack(run.queue, run.needs, run.priority) if is_overdue(run, now) else ""


def is_overdue(run: Run, now: datetime) -> bool:
    """Return whether a run should have been taken by now, if anybody could."""
    return run.state is RunState.READY and now - run.available_at > PATIENCE


def why_words(run: Run, lack: str = "") -> str:
    """Return the reason, what nobody has, and the last error, whatever of them there is."""
    hint = "asked to stop" if run.cancel_requested and not run.terminal else ""
    hint = hint or (holder_words(run) if run.awaits_callback else "")
    error = "" if run.state is RunState.DONE else run.error
    return " - ".join(filter(None, (run.reason, hint, lack, error)))
