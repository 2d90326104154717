"""The dispatcher as a function: ticks once for each time that it is woken.

It may be woken late, twice in a second, or not at all for a while: its look-ahead is longer than
the time between two schedules, and any number of dispatchers may tick at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from dynsched.bootstrap import build_dispatcher, prepare_store
from dynsched.errors import InvalidInput
from dynsched.lambdas.process import LambdaContext, Once, Process, last_begin, process_of
from dynsched.services.dispatcher import Dispatcher, TickReport
from dynsched.storage.handoff import DELAY_MAX, MessageQueue, read_message_queues

QUEUES = "DYNSCHED_MESSAGE_QUEUES"
LOOK_AHEAD = "DYNSCHED_LOOK_AHEAD_S"
SHARDS, LANES = "DYNSCHED_SHARDS", "DYNSCHED_LANES"
COUNT_MAX = 1_000  # each shard costs reads in each tick, each lane in each look for ready runs
DIGITS_MAX = 9
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a deployment says of its store; each process writes it into the map once.

    Attributes:
        look_ahead: longer than two times between schedules, so that one may be missed.
        shards: of a new map.
        lanes: of a new map.
        message_queues: to which ready runs are handed off.
    """

    look_ahead: timedelta = timedelta(seconds=180)
    shards: int = 1
    lanes: int = 2
    message_queues: tuple[MessageQueue, ...] = ()

    @classmethod
    def told_by(cls, environment: Mapping[str, str]) -> Self:
        """Return what the function's environment says.

        Raises:
            InvalidInput: a variable is wrong; it is named.
        """
        look_ahead_s = _number(environment, LOOK_AHEAD, 180, most=DELAY_MAX // SECOND)
        return cls(
            look_ahead=timedelta(seconds=look_ahead_s),
            shards=_number(environment, SHARDS, 1, most=COUNT_MAX),
            lanes=_number(environment, LANES, 2, most=COUNT_MAX),
            message_queues=read_message_queues(environment.get(QUEUES) or "[]", QUEUES),
        )


def _number(environment: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    text = environment.get(name, str(default))
    # So long a text is too much in any case, and Python refuses to read one of thousands of digits.
    if not text.isdecimal() or len(text) > DIGITS_MAX or not 1 <= int(text) <= most:
        raise InvalidInput(
            name, f"{text[:40]!r} is out of range", f"give a whole number, 1 to {most}"
        )
    return int(text)


class DispatcherFunction:
    """One process of the function.

    Args:
        process: its store.
        deployment: what the store's map is to say.
    """

    def __init__(self, process: Process, deployment: Deployment) -> None:
        self._base, self._deployment = process.base, deployment
        self._clock, self._emf = process.base.clock, process.emf
        self._dispatcher: Dispatcher = build_dispatcher(process.base, name=process.name)
        self._prepared = False

    def __call__(self, event: object, context: LambdaContext) -> dict[str, Any]:
        """Tick, and again while it is behind and there is time; return what was done.

        Raises:
            NotInitialised: the tables are missing.
            StoreError: the store failed; the next schedule goes on.
        """
        del event
        until = last_begin(context, self._clock)
        self._prepare()
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

    def _prepare(self) -> None:
        """Let the map say what the deployment says; once for each process."""
        if not self._prepared:
            said = self._deployment
            prepare_store(
                self._base,
                look_ahead=said.look_ahead,
                shards=said.shards,
                lanes=said.lanes,
                message_queues=said.message_queues,
            )
            self._prepared = True


def _make() -> DispatcherFunction:
    return DispatcherFunction(process_of("dispatcher", os.environ), Deployment.told_by(os.environ))


_function = Once(_make)


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Answer one event of a schedule."""
    return _function()(event, context)
