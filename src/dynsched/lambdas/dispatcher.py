"""The dispatcher as a function: ticks once for each time that it is woken.

It may be woken late, twice in a second, or not at all for a while: its look-ahead is longer than
the time between two schedules, and any number of dispatchers may tick at once.
"""

from __future__ import annotations

import os
from typing import Any

from dynsched.bootstrap import build_dispatcher
from dynsched.lambdas.process import LambdaContext, Once, Process, last_begin, process_of
from dynsched.services.dispatcher import Dispatcher, TickReport


class DispatcherFunction:
    """One process of the function.

    Args:
        process: its store.
    """

    def __init__(self, process: Process) -> None:
        self._clock, self._emf = process.base.clock, process.emf
        self._dispatcher: Dispatcher = build_dispatcher(process.base, name=process.name)

    def __call__(self, event: object, context: LambdaContext) -> dict[str, Any]:
        """Tick, and again while it is behind and there is time; return what was done.

        Raises:
            StoreError: the store failed; the next schedule goes on.
        """
        del event
        until = last_begin(context, self._clock)
        total, ticks = TickReport(), 0
        while True:
            report = self._dispatcher.tick()
            ticks += 1
            total.served.add(report.served)
            total.promoted += report.promoted
            total.late += report.late
            total.behind, total.lag = report.behind, report.lag
            if not report.behind or self._clock.now() >= until:
                break
        done = {
            "Ticks": ticks,
            "JobsServed": total.served.jobs,
            "RunsCreated": total.served.created,
            "RunsSkipped": total.served.skipped,
            "RetriesDue": total.promoted,
            "LateEntries": total.late,
            "DispatcherLag": total.lag.total_seconds(),
        }
        self._emf.emit(done)
        return done | {"Behind": total.behind}


def _make() -> DispatcherFunction:
    return DispatcherFunction(process_of("dispatcher", os.environ))


_function = Once(_make)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Answer one event of a schedule."""
    return _function()(event, context)
