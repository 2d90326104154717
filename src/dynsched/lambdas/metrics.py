"""Metrics: figures on standard output in the embedded metric format, which CloudWatch reads.

No call is made and no permission is needed: a line of the log is the metric.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dynsched.domain.instants import Clock, to_ms

NAMESPACE: Final = "dynsched"
STORE: Final = "Store"
PRIORITY: Final = "Priority"
VALUES_MAX: Final = 100  # values of one metric in one line

COUNT: Final = "Count"
SECONDS: Final = "Seconds"
MILLISECONDS: Final = "Milliseconds"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that alarms and the dashboard name.

    Attributes:
        unit: CloudWatch's.
        dimensions: the sets of dimensions under which it is found.
        meaning: in one clause.
    """

    unit: str
    meaning: str
    dimensions: tuple[tuple[str, ...], ...] = ((STORE,),)


_BY_PRIORITY = ((STORE, PRIORITY),)

METRICS: Final[Mapping[str, Mapping[str, Metric]]] = {
    "dispatcher": {
        "Ticks": Metric(COUNT, "ticks made"),
        "JobsServed": Metric(COUNT, "jobs whose due occurrences were made"),
        "RunsCreated": Metric(COUNT, "occurrences that got their row"),
        "RunsSkipped": Metric(COUNT, "occurrences that are not to run, each with its reason"),
        "RetriesDue": Metric(COUNT, "failed runs put back for their next attempt"),
        "LateEntries": Metric(COUNT, "entries that only a re-reading found"),
        "DispatcherLag": Metric(SECONDS, "how far the slowest cursor is behind; 3 min is healthy"),
    },
    "reaper": {
        "Sweeps": Metric(COUNT, "sweeps made"),
        "SessionsClosed": Metric(COUNT, "sessions of pulling workers found to be over"),
        "RunsReturned": Metric(COUNT, "runs taken from a lease that was over"),
        "LateFinds": Metric(COUNT, "runs that only a re-reading or the daily sweep found"),
        "RowsFailed": Metric(COUNT, "rows that could not be returned"),
        "MessagesResent": Metric(COUNT, "messages sent again for runs that nobody had claimed"),
        "DeadRuns": Metric(COUNT, "runs in the dead-letter queue"),
        "DeadGrowth": Metric(COUNT, "runs that died within the last hour"),
        "LeasedRuns": Metric(COUNT, "runs that workers hold"),
        "OldestDue": Metric(SECONDS, "how long the oldest due run has waited"),
        "ReadyRuns": Metric(COUNT, "runs that are due and wait", _BY_PRIORITY),
    },
    "worker": {
        "RunsStarted": Metric(COUNT, "handlers called"),
        "RunsDone": Metric(COUNT, "runs that succeeded"),
        "RunsFailed": Metric(COUNT, "failures that are tried again"),
        "RunsDied": Metric(COUNT, "runs that died"),
        "MessagesDropped": Metric(COUNT, "messages that are done with"),
        "MessagesKept": Metric(COUNT, "messages that come again"),
        "StartDelay": Metric(
            MILLISECONDS, "from a run's instant to its first start", ((STORE,), *_BY_PRIORITY)
        ),
    },
}
"""By function; the names are those that alarms, the dashboard and the runbooks use."""

Value = float | Sequence[float]


class Emf:
    """Writes the figures of one function's process.

    Args:
        function: one of `METRICS`.
        store: the tables' prefix, the dimension of all figures.
        clock: the source of time.
    """

    def __init__(self, function: str, store: str, clock: Clock) -> None:
        self._known = METRICS[function]
        self._store = store
        self._clock = clock

    def emit(self, values: Mapping[str, Value], priority: str | None = None) -> None:
        """Write figures of one instant on lines of their own.

        Args:
            values: by metric; a list holds several values of one metric, none if it is empty.
            priority: the dimension of those that have it.
        """
        for line in self.lines(values, priority):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def lines(self, values: Mapping[str, Value], priority: str | None = None) -> Iterator[str]:
        """Yield the lines that `emit` writes: at most a hundred values of a metric in each."""
        rest: dict[str, Value] = {}
        for name, value in values.items():
            if isinstance(value, Sequence):
                for start in range(0, len(value), VALUES_MAX):
                    yield self._line({name: list(value[start : start + VALUES_MAX])}, priority)
            else:
                rest[name] = value
        if rest:
            yield self._line(rest, priority)

    def _line(self, values: Mapping[str, Value], priority: str | None) -> str:
        groups: dict[tuple[tuple[str, ...], ...], list[dict[str, str]]] = {}
        for name in values:
            metric = self._known[name]
            groups.setdefault(metric.dimensions, []).append({"Name": name, "Unit": metric.unit})
        document: dict[str, object] = {
            "_aws": {
                "Timestamp": to_ms(self._clock.now()),
                "CloudWatchMetrics": [
                    {"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics}
                    for dimensions, metrics in groups.items()
                ],
            },
            STORE: self._store,
        }
        if priority is not None:
            document[PRIORITY] = priority
        return json.dumps(document | dict(values), separators=(",", ":"))
