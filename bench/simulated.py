"""A whole scheduler in simulated time: each service steps when its loop would let it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta

from dynsched.bootstrap import Base, build_dispatcher, build_reaper, build_worker
from dynsched.domain.instants import Signal
from dynsched.services.loops import Pace
from dynsched.services.session import BEATS_PER_LEASE
from dynsched.services.slots import InlineSlots
from dynsched.targets.app import App

Label = Callable[[str], AbstractContextManager[None]]


class SimClock:
    """A clock that moves only when it is told to."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return its instant."""
        return self._at

    def monotonic(self) -> float:
        """Return its instant in seconds."""
        return self._at.timestamp()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._at += timedelta(seconds=seconds)

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Let time pass."""
        self.wait(seconds)
        return event.is_set()


def _no_label(_: str) -> AbstractContextManager[None]:
    return nullcontext()


class Simulation:
    """A dispatcher, a reaper and a worker over one store, driven by simulated time.

    Args:
        base: with a `SimClock`.
        clock: that clock.
        app: the worker's handlers, which run at once in its thread.
        label: wraps each step, with the step's name.
    """

    def __init__(self, base: Base, clock: SimClock, app: App, label: Label = _no_label) -> None:
        self._clock, self._label = clock, label
        self._dispatcher = build_dispatcher(base)
        self._reaper = build_reaper(base)
        self._parts = build_worker(base, app, slots=InlineSlots())
        settings = base.settings
        self._pace = Pace(settings.poll_idle.total_seconds())
        self._steps: dict[str, Callable[[], float]] = {
            "tick": self._tick,
            "sweep": self._sweep,
            "heartbeat": self._beat,
            "poll": self._poll,
        }
        self._beat_s = settings.lease.total_seconds() / BEATS_PER_LEASE
        self._sweep_s = settings.reaper_period.total_seconds()
        self._next = dict.fromkeys(self._steps, clock.now())

    def run(self, span: timedelta) -> None:
        """Let that much time pass."""
        end = self._clock.now() + span
        while True:
            name = min(self._next, key=lambda one: self._next[one])
            at = self._next[name]
            if at >= end:
                break
            self._clock.wait(max(0.0, (at - self._clock.now()).total_seconds()))
            with self._label(name):
                pause_s = self._steps[name]()
            self._next[name] = self._clock.now() + timedelta(seconds=pause_s)
        self._clock.wait(max(0.0, (end - self._clock.now()).total_seconds()))

    def sweep_all(self) -> None:
        """Make the sweep that comes once a day."""
        for part in (timedelta(hours=23, minutes=40), timedelta(minutes=25)):
            self._clock.wait(part.total_seconds())
            with self._label("daily sweep" if part < timedelta(hours=1) else "catching up"):
                self._reaper.sweep()

    def _tick(self) -> float:
        report = self._dispatcher.tick()
        return 0.0 if report.behind else self._dispatcher.period.total_seconds()

    def _sweep(self) -> float:
        self._reaper.sweep()
        return self._sweep_s

    def _beat(self) -> float:
        self._parts.keeper.beat()
        return self._beat_s

    def _poll(self) -> float:
        report = self._parts.worker.poll()
        pause_s = self._pace.after(report, self._clock.now())
        return 0.0 if self._parts.worker.wake.is_set() else max(0.0, pause_s)


MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
