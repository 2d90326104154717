"""How many shards, lanes and sessions a load needs: the formula of `docs/capacity.md`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

KEY_UNITS: Final = 1_000
"""Write units a second that one partition key's value takes, of a table or an index."""
FILLED: Final = 0.62
"""How far to plan to fill it: hashing does not spread evenly."""
KEY_PLAN: Final = int(KEY_UNITS * FILLED)
COLD_UNITS: Final = 4_000
"""Write units a second that a new on-demand table takes at once."""
TABLE_QUOTA: Final = 40_000
"""Write units a second of a table with its indexes, unless a higher quota was granted."""
WRITTEN_AHEAD_S: Final = 10
"""Seconds over which the rows of one minute are written before it: a tick's period."""
UNITS_MADE: Final = 2
UNITS_RAN: Final = 6
"""Write units on the runs table: of making a row; of its claim and its end."""
UNITS_ADVANCED: Final = 3
"""Write units on the jobs table: of moving a job's pointer on."""
MAPPING_FIRST: Final = 5
MAPPING_MORE_A_MINUTE: Final = 300
MAPPING_MOST: Final = 1_000
"""Invocations at once of one queue's event source mapping: at first, more each minute, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to be sustained.

    Attributes:
        name: in a few words.
        starts_a_second: of one queue and priority.
        due_at_once: jobs that are due in one minute.
        steady: it goes on so; otherwise it is one burst.
    """

    name: str
    starts_a_second: float
    due_at_once: int
    steady: bool = True

    @property
    def lanes(self) -> int:
        """Return the lanes: a claim takes an entry out of one."""
        return ceil(self.starts_a_second / KEY_PLAN)

    @property
    def shards(self) -> int:
        """Return the shards for pulling workers: ends, and the rows of a minute, lie in them."""
        made = self.due_at_once / WRITTEN_AHEAD_S
        return ceil(max(self.starts_a_second, made) / KEY_PLAN)

    @property
    def shards_of_functions(self) -> int:
        """Return the shards for functions: their leases enter and leave a minute's partitions."""
        return max(self.shards, ceil(2 * self.starts_a_second / KEY_PLAN))

    @property
    def sessions(self) -> int:
        """Return the pulling workers: each one's partition sees a claim and an end of its runs."""
        return ceil(2 * self.starts_a_second / KEY_PLAN)

    @property
    def run_units(self) -> int:
        """Return the write units a second on the runs table and its index, at the worst second."""
        made = UNITS_MADE * self.starts_a_second if self.steady else 0
        return ceil(UNITS_RAN * self.starts_a_second + made)

    @property
    def job_units(self) -> int:
        """Return the write units a second on the jobs table and its index."""
        if self.steady:
            return ceil(UNITS_ADVANCED * self.starts_a_second)
        return ceil(UNITS_ADVANCED * self.due_at_once / WRITTEN_AHEAD_S)

    @property
    def warm(self) -> str:
        """Return the warm throughput to set beforehand, in words."""
        most = max(self.run_units, self.job_units)
        if most <= COLD_UNITS:
            return "none: cold is enough"
        quota = ", and ask for a higher quota" if most > TABLE_QUOTA else ""
        return f"{most:,} write units{quota}"


LOADS: Final = (
    Load(name="1 run a second, steadily", starts_a_second=1, due_at_once=60),
    Load(name="100 runs a second, steadily", starts_a_second=100, due_at_once=6_000),
    Load(
        name="100,000 at one minute's boundary, started within 5 s",
        starts_a_second=20_000,
        due_at_once=100_000,
        steady=False,
    ),
)


def drained_s(runs: int, each_s: float) -> float:
    """Return the seconds in which one queue's mapping starts so many runs that wait at once.

    It begins with a few invocations at once and adds some each second, up to its most; a batch
    holds one message, and each takes `each_s`.

    >>> round(drained_s(100_000, 0.2)), round(drained_s(25, 1.0))
    (88, 2)
    """
    more = MAPPING_MORE_A_MINUTE / 60
    full_after = (MAPPING_MOST - MAPPING_FIRST) / more
    # runs(t) = (first t + more t^2 / 2) / each
    grown = (sqrt(MAPPING_FIRST**2 + 2 * more * runs * each_s) - MAPPING_FIRST) / more
    if grown <= full_after:
        return grown
    by_then = (MAPPING_FIRST * full_after + more * full_after**2 / 2) / each_s
    return full_after + (runs - by_then) * each_s / MAPPING_MOST
