"""Minute statistics: what one process counted in one minute, and their sum over processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from operator import add

from dynsched.domain.health import Delay
from dynsched.domain.histogram import SIZE, bucket_of, percentile_ms
from dynsched.domain.instants import MILLISECOND

NAMES_MAX = 100
"""Tenants and error groups that one process tells apart within a minute."""
OTHERS = ""
"""Stands for the tenants and groups that are not told apart."""


@dataclass(slots=True)
class Counts:
    """What happened to the runs of one priority.

    Attributes:
        started: handlers called, retries too.
        done: runs that succeeded.
        failed: tries that failed and are tried again.
        dead: runs that died.
        delay_max_ms: the longest start delay.
        delays: first starts by the bucket of their delay.
    """

    started: int = 0
    done: int = 0
    failed: int = 0
    dead: int = 0
    delay_max_ms: int = 0
    delays: list[int] = field(default_factory=lambda: [0] * SIZE)

    def delayed(self, delay_ms: int) -> None:
        """Count a first start by its delay."""
        self.delays[bucket_of(delay_ms)] += 1
        self.delay_max_ms = max(self.delay_max_ms, delay_ms)

    def add(self, other: Counts) -> None:
        """Add what others counted."""
        self.started += other.started
        self.done += other.done
        self.failed += other.failed
        self.dead += other.dead
        self.delay_max_ms = max(self.delay_max_ms, other.delay_max_ms)
        self.delays = list(map(add, self.delays, other.delays))

    def delay(self) -> Delay:
        """Return the start delays in short."""
        samples = sum(self.delays)
        if not samples:
            return Delay()
        half, most = (percentile_ms(self.delays, p, self.delay_max_ms) for p in (0.5, 0.95))
        return Delay(
            p50=_span(half), p95=_span(most), max=_span(self.delay_max_ms), samples=samples
        )


@dataclass(slots=True)
class MinuteTally:
    """One minute, of one process or of all.

    Attributes:
        minute: its bucket, minutes since 1970.
        priorities: counts by priority.
        starts: handlers called, by tenant.
        deaths: runs that died, by tenant.
        groups: runs that died, by error signature.
    """

    minute: int
    priorities: dict[str, Counts] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    deaths: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def of(self, priority: str) -> Counts:
        """Return the counts of a priority, to be added to."""
        found = self.priorities.get(priority)
        if found is None:
            found = self.priorities[priority] = Counts()
        return found

    def add(self, other: MinuteTally) -> None:
        """Add another one of the same or of another minute."""
        for priority, counts in other.priorities.items():
            self.of(priority).add(counts)
        for mine, theirs in (
            (self.starts, other.starts),
            (self.deaths, other.deaths),
            (self.groups, other.groups),
        ):
            for name, count in theirs.items():
                count_name(mine, name, count)

    def total(self) -> Counts:
        """Return the counts of all priorities together."""
        total = Counts()
        for counts in self.priorities.values():
            total.add(counts)
        return total


def count_name(counts: dict[str, int], name: str, count: int = 1) -> None:
    """Add to a name's count; what comes behind the first hundred names is one of the others."""
    if name not in counts and len(counts) >= NAMES_MAX:
        name = OTHERS
    counts[name] = counts.get(name, 0) + count


def busiest(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the largest counts, and the sum of all others under `OTHERS`.

    >>> busiest({"a": 1, "b": 5, "c": 2}, 1)
    {'b': 5, '': 3}
    """
    named = sorted((name for name in counts if name != OTHERS), key=lambda name: -counts[name])
    kept = {name: counts[name] for name in named[:most]}
    rest = sum(counts.values()) - sum(kept.values())
    return kept | {OTHERS: rest} if rest else kept


def summed(tallies: Iterable[MinuteTally], minute: int = 0) -> MinuteTally:
    """Return the sum of tallies."""
    total = MinuteTally(minute)
    for tally in tallies:
        total.add(tally)
    return total


def _span(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else milliseconds * MILLISECOND
