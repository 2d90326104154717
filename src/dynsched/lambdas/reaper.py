"""The reaper as a function: sweeps, looks at the store's health, and moves replay batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from dynsched.bootstrap import build_health, build_reaper, build_stepper
from dynsched.domain.health import Health
from dynsched.domain.job import Priority
from dynsched.lambdas.process import LambdaContext, Once, Process, last_begin, process_of

SWEPT = {
    "Sweeps": "",
    "SessionsClosed": "closed",
    "RunsReturned": "returned",
    "LateFinds": "late",
    "RowsFailed": "failed",
    "MessagesResent": "resent",
}
"""Figures of sweeps, and where a sweep's report has them."""
HEALTH_AGE = timedelta(seconds=30)  # a look that people have made lately is as good


class ReaperFunction:
    """One process of the function.

    Args:
        process: its store.
    """

    def __init__(self, process: Process) -> None:
        base = process.base
        self._clock, self._emf, self._period = base.clock, process.emf, base.settings.step_period
        self._reaper = build_reaper(base, name=process.name)
        self._health = build_health(base)
        self._stepper = build_stepper(base)

    def __call__(self, event: object, context: LambdaContext) -> dict[str, Any]:
        """Sweep, look, and step until no batch is running or the time is over.

        Raises:
            StoreError: the store failed; the next schedule goes on.
        """
        del event
        until = last_begin(context, self._clock)
        swept, again = self._sweep(until)
        while again and self._clock.now() < until:
            more, again = self._sweep(until)
            swept += more
        done: dict[str, float] = {name: swept[name] for name in SWEPT}
        self._emf.emit(done)
        done |= self._tell(self._health.health(HEALTH_AGE))
        return done | {"EntriesMoved": self._step(until)}

    def _sweep(self, until: datetime) -> tuple[Counter[str], bool]:
        """Make one pass; return what it did, and whether another one follows at once.

        Only behind one that has returned something: what cannot be returned now waits a minute.
        """
        report = self._reaper.sweep(until)
        done = {name: getattr(report, field) for name, field in SWEPT.items() if field}
        return Counter({"Sweeps": 1, **done}), report.behind and report.returned > 0

    def _tell(self, health: Health) -> dict[str, float]:
        levels: dict[str, float] = {
            "DeadRuns": health.dead.count,
            "DeadGrowth": health.dead_per_hour,
            "LeasedRuns": health.leased.count,
            "OldestDue": _seconds(health.at, (one.since for one in health.oldest_due.values())),
        }
        self._emf.emit(levels)
        for priority in Priority:
            level = health.depth.get(priority.value)
            ready = 0 if level is None else level.count
            self._emf.emit({"ReadyRuns": ready}, priority.value)
        return levels

    def _step(self, until: datetime) -> int:
        """Move replay batches while one is running and there is time; return how many entries."""
        moved = 0
        while self._clock.now() < until:
            report = self._stepper.step()
            moved += report.moved
            if not report.running and not report.again:
                break
            if not report.again:
                self._clock.wait(self._period.total_seconds())
        self._stepper.close()
        return moved


def _seconds(now: datetime, since: Iterable[datetime]) -> float:
    """Return how long the one has waited that has waited longest."""
    return max(((now - one).total_seconds() for one in since), default=0.0)


def _make() -> ReaperFunction:
    return ReaperFunction(process_of("reaper", os.environ))


_function = Once(_make)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Answer one event of a schedule."""
    return _function()(event, context)
