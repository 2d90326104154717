"""A million runs and an idle month, in amounts of what AWS sells: pure arithmetic.

It takes the units that `bench.units` and `bench.kinds` meter, and the prices of
`bench.price_list`. What is assumed is named so: nothing was timed or billed on AWS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bench.price_list import PRICES

MINUTES_A_MONTH: Final = 43_830
HOURS_A_MONTH: Final = 730.5
GIB: Final = 1024**3

HANDLER_S: Final = 0.1
"""Seconds that the work itself takes, in every row of the comparison."""
MEMORY_GB: Final = 0.5
"""Memory of a function that works."""
OVERHEAD_S: Final = 0.1
"""Seconds that a worker function takes beside the handler, for some seven calls of DynamoDB.
Assumed."""
LOG_BYTES: Final = 700
"""The lines that Lambda itself logs of an invocation, about. Assumed."""
EMF_BYTES: Final = 600
"""The lines of metrics that a worker function logs of a run, at most. Metered."""
POLLERS: Final = 5
"""Long polls that Lambda keeps open at an idle queue with a maximum concurrency. Documented."""
POLL_S: Final = 20
"""Seconds that each of them waits. Documented."""
QUEUES: Final = 3
"""Message queues of one scheduler queue: one for each priority."""
WAKING_S: Final = 0.7
WAKING_GB: Final = 0.5
"""Seconds of a dispatcher or reaper that finds nothing to do, for thirty and ninety calls of
DynamoDB (assumed), and its memory in the module."""
WAKING_LOG_BYTES: Final = 2_000
METRICS_IDLE: Final = 20
"""Metrics that dispatcher and reaper write each minute, work or not."""
METRICS_BUSY: Final = 10
"""Metrics that worker functions write besides, in hours in which something runs."""
ALARMS: Final = 55
"""Metrics that the module's alarms watch, with one scheduler queue."""
TASK_VCPU: Final = 0.25
TASK_GB: Final = 0.5
"""The smallest Fargate task, for a worker that pulls."""
TRANSITIONS: Final = 3
"""State transitions of a run in Step Functions Standard: start, one task, end."""
EXPRESS_GB: Final = 0.0625
EXPRESS_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Metered write and read units of one run, or of a minute."""

    written: float
    read: float


METERED: Final = MappingProxyType({
    "cron, defaults": Units(written=12.0, read=3.9),
    "cron, allow": Units(written=10.0, read=1.9),
    "enqueued in bulk": Units(written=8.0, read=0.14),
    "enqueued one by one": Units(written=8.0, read=1.14),
    "one-off job": Units(written=22.0, read=5.32),
})  # fmt: skip
"""Units of a run by a worker that pulls."""
WORKER_IDLE: Final = Units(written=6.0, read=373.0)
"""Units of a minute of a worker that pulls and finds nothing: polls of two lanes, heartbeats."""
MESSAGE_METERED: Final = MappingProxyType({
    "cron, defaults": Units(written=12.0, read=5.05),
    "cron, allow": Units(written=10.0, read=3.05),
    "enqueued in bulk": Units(written=8.0, read=3.0),
})  # fmt: skip
"""Units of a run by a worker function."""
METERED_IDLE: Final = Units(written=12.0, read=143.0)
"""Units of a minute in which dispatcher and reaper are woken and nothing is due,
with 10,000 jobs stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to have work done, in amounts of what is sold.

    Attributes:
        name: of the way.
        amounts: by the key of the price; for one run or for a month.
        note: what it is, and what it is not.
    """

    name: str
    amounts: Mapping[str, float]
    note: str = ""

    def usd(self, *keys: str) -> float:
        """Return US dollars for the amounts of some prices, or of all."""
        chosen = keys or tuple(self.amounts)
        return sum(PRICES[key].of(self.amounts.get(key, 0.0)) for key in chosen)

    def usd_beyond_free(self) -> float:
        """Return US dollars where the account uses none of its free amounts for anything else."""
        return sum(
            PRICES[key].of(max(0.0, amount - PRICES[key].free))
            for key, amount in self.amounts.items()
        )


def invocation(seconds: float, *, logged: int = LOG_BYTES) -> dict[str, float]:
    """Return the amounts of one invocation that works for so long."""
    return {"invoke": 1, "arm": seconds * MEMORY_GB, "logs": logged / GIB}


def by_pulling(units: Units) -> dict[str, float]:
    """Return the amounts of one run by a worker that pulls; its machine is not in them."""
    return {"write": units.written, "read": units.read}


def by_message(units: Units) -> dict[str, float]:
    """Return the amounts of one run by a worker function: units, a message and an invocation.

    A message is sent, received and deleted one by one; a dispatcher that makes many runs at once
    sends ten by one request, which is not counted on.
    """
    working = invocation(HANDLER_S + OVERHEAD_S, logged=LOG_BYTES + EMF_BYTES)
    return {"write": units.written, "read": units.read, "sqs": 3, "fair": 3, **working}


LAMBDA: Final = invocation(HANDLER_S)
_FIRES: Final = "fires and forgets; what failed lies in a queue, what ran nowhere"
_PULLED: Final = "rows, attempts, retries, replay; on machines of yours, which are not priced here"
_HANDED: Final = "the same, with the function that works"

WAYS: Final = (
    Way(
        name="SQS → Lambda, delay of 15 minutes at most",
        amounts={"sqs": 3, **LAMBDA},
        note="no schedules; " + _FIRES,
    ),
    Way(
        name="EventBridge Scheduler → Lambda",
        amounts={"schedule": 1, **LAMBDA},
        note="within a minute of its time; " + _FIRES,
    ),
    Way(
        name="EventBridge Scheduler → SQS → Lambda",
        amounts={"schedule": 1, "sqs": 3, **LAMBDA},
        note="the same, with a buffer",
    ),
    Way(
        name="EventBridge Scheduler → Step Functions Express → Lambda",
        amounts={"schedule": 1, "express": 1, "express_s": EXPRESS_S * EXPRESS_GB, **LAMBDA},
        note="retries within five minutes; a history only as logs, which are not priced here",
    ),
    Way(
        name="**dynsched**, workers that pull: enqueued run",
        amounts=by_pulling(METERED["enqueued in bulk"]),
        note=_PULLED,
    ),
    Way(
        name="**dynsched**, workers that pull: cron, cheapest",
        amounts=by_pulling(METERED["cron, allow"]),
        note=_PULLED,
    ),
    Way(
        name="**dynsched**, workers that pull: cron, defaults",
        amounts=by_pulling(METERED["cron, defaults"]),
        note=_PULLED,
    ),
    Way(
        name="**dynsched**, functions: enqueued run",
        amounts=by_message(MESSAGE_METERED["enqueued in bulk"]),
        note=_HANDED,
    ),
    Way(
        name="**dynsched**, functions: cron, cheapest",
        amounts=by_message(MESSAGE_METERED["cron, allow"]),
        note=_HANDED,
    ),
    Way(
        name="**dynsched**, functions: cron, defaults",
        amounts=by_message(MESSAGE_METERED["cron, defaults"]),
        note=_HANDED,
    ),
    Way(
        name="EventBridge Scheduler → Step Functions Standard → Lambda",
        amounts={"schedule": 1, "transition": TRANSITIONS, **LAMBDA},
        note="a history for 90 days, retries as transitions that are paid again",
    ),
)
"""A million runs, from the cheapest kind of service to the dearest; ours where they belong."""

WAKINGS: Final = 2 * MINUTES_A_MONTH
"""Invocations of dispatcher and reaper in a month."""

IDLE: Final = (
    Way(
        name="tables: what dispatcher and reaper read and write",
        amounts={
            "write": METERED_IDLE.written * MINUTES_A_MONTH,
            "read": METERED_IDLE.read * MINUTES_A_MONTH,
        },
    ),
    Way(
        name="dispatcher and reaper, woken each minute",
        amounts={
            "schedule": WAKINGS,
            "invoke": WAKINGS,
            "arm": WAKINGS * WAKING_S * WAKING_GB,
            "logs": WAKINGS * WAKING_LOG_BYTES / GIB,
        },
    ),
    Way(
        name=f"empty receives at {QUEUES} queues, {POLLERS} pollers each",
        amounts={"sqs": QUEUES * POLLERS * MINUTES_A_MONTH * 60 / POLL_S},
    ),
    Way(name=f"{METRICS_IDLE} metrics of dispatcher and reaper", amounts={"metric": METRICS_IDLE}),
    Way(name=f"alarms on {ALARMS} metrics", amounts={"alarm": ALARMS}),
    Way(name="the dashboard", amounts={"dashboard": 1}),
)
"""A month of a deployment in which nothing is due."""

TASK: Final = Way(
    name="a task of Fargate, 0.25 vCPU and 0.5 GB, with a worker that pulls",
    amounts={
        "vcpu": TASK_VCPU * HOURS_A_MONTH,
        "gb_hour": TASK_GB * HOURS_A_MONTH,
        "write": WORKER_IDLE.written * MINUTES_A_MONTH,
        "read": WORKER_IDLE.read * MINUTES_A_MONTH,
    },
)
"""A month of one worker that pulls, with what it polls and its heartbeats."""


def even_runs_a_month() -> float:
    """Return from how many runs a month on such a worker is cheaper than functions."""
    units = METERED["cron, defaults"]
    handed, pulled = by_message(MESSAGE_METERED["cron, defaults"]), by_pulling(units)
    saved = Way(name="", amounts=handed).usd() - Way(name="", amounts=pulled).usd()
    return TASK.usd() / saved
