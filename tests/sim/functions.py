"""Simulated functions: handed messages, each invocation ended at its time, whatever it does."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random
from typing import Protocol

from dynsched.bootstrap import Base
from dynsched.domain.job import Priority
from dynsched.errors import Unavailable
from dynsched.services.exits import Slots
from dynsched.services.message_worker import Fate, Message, MessageWorker
from dynsched.storage.handoff import MessageQueue
from dynsched.targets.runner import TargetRunner
from dynsched.testing.history import History
from dynsched.testing.messages import Kept, MemoryHandOff
from tests.sim.baton import Baton, Life
from tests.sim.simtime import SimClock
from tests.sim.work import make_app

QUEUES = tuple(
    MessageQueue(queue="main", priority=one, url=f"https://queues.test/main-{one.value}")
    for one in Priority
)
IDLE_S = 1.0
LOOK_S = 2.0  # less than a sandbox lives for
LIVES_S = (10.0, 14.0, 30.0)
VISIBILITY = timedelta(seconds=45)


class Place(Protocol):
    """Where functions run."""

    seed: int
    rng: Random
    baton: Baton
    messages: MemoryHandOff
    counts: Counter[str]

    @property
    def history(self) -> History:
        """Return where starts are noted."""


def messages_of(baton: Baton, rng: Random) -> MemoryHandOff:
    """Return queues that lose, double and delay."""
    return MemoryHandOff(
        SimClock(baton, 0.0),
        rng=rng,
        loss=rng.choice([0.0, 0.1]),
        doubling=rng.choice([0.0, 0.2]),
        late_s=rng.choice([0.0, 3.0]),
        visibility=VISIBILITY,
    )


class Function:
    """One sandbox of a function: it serves one invocation after the other."""

    def __init__(self, place: Place, life: Life, base: Base, slots: Slots) -> None:
        self._place, self._life, self._base = place, life, base
        self.runner = TargetRunner(make_app(place, life), allow_commands=False, clock=base.clock)
        self._worker = MessageWorker(
            base.store,
            clock=base.clock,
            rng=base.rng,
            settings=base.settings,
            runner=self.runner,
            slots=slots,
        )
        self._end_s: float | None = None

    def serve(self) -> None:
        """Receive messages and run what they name."""
        place, number = self._place, 0
        while True:
            kept = place.messages.receive(most=place.rng.choice([1, 1, 1, 3]))
            if not kept:
                place.baton.pause(IDLE_S)
                continue
            number += 1
            lives_s = place.rng.choice(LIVES_S)
            self._end_s = place.baton.now_s + lives_s
            fates = self._worker.work(
                [Message(id=one.message_id, body=one.body, receipt=one.receipt) for one in kept],
                ends_at=self._base.clock.now() + timedelta(seconds=lives_s),
                invocation=f"{self._life.name}.{number}",
            )
            self._end_s = None
            place.counts["invocations"] += 1
            for one, fate in zip(kept, fates, strict=True):
                self._settle(one, fate)

    def _settle(self, kept: Kept, fate: Fate) -> None:
        try:
            self._place.messages.settle(kept, keep=fate.keep, again_in=fate.again_in)
        except Unavailable:
            self._place.counts["receipts out of date"] += 1

    def end_in_time(self) -> None:
        """Kill the sandbox when an invocation is over its time, as AWS does."""
        baton = self._place.baton
        while True:
            end_s = self._end_s
            if end_s is not None and baton.now_s >= end_s:
                self._place.counts["functions cut off"] += 1
                baton.kill(self._life)
            baton.pause(LOOK_S if end_s is None else max(end_s - baton.now_s, 0.0))
