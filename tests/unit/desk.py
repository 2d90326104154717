"""A desk: a store whose runs are handed off by messages, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from dynsched.bootstrap import Base, build_operations, init_store, open_base
from dynsched.domain.job import Job, Priority
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.dispatcher import Dispatcher
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import Call, CountingEngine, Fault, FaultyEngine
from dynsched.testing.messages import MemoryHandOff

MAIN = MessageQueue(queue="main", priority=Priority.DEFAULT, url="http://sqs/main")
HIGH = MessageQueue(queue="main", priority=Priority.HIGH, url="http://sqs/high")


class Desk:
    """A store whose main queue is handed off, with a job."""

    def __init__(self, *queues: MessageQueue, lanes: int = 1, **settings: Any) -> None:
        self.clock = SettableClock()
        self.messages = MemoryHandOff(self.clock)
        self.fails: Callable[[Call], bool] = lambda _: False
        self.engine = CountingEngine(FaultyEngine(SqliteEngine(None), self._fault))
        self.base: Base = open_base(
            engine=self.engine,
            handoff=self.messages,
            clock=self.clock,
            rng=Random(1),
            settings=Settings(**settings),
        )
        init_store(self.base, lanes=lanes)
        self.store = self.base.store
        self.hand_off(*queues)
        self.operations = build_operations(self.base)

    def _fault(self, call: Call) -> Fault:
        return Fault.THROTTLE if self.fails(call) else Fault.NONE

    def hand_off(self, *queues: MessageQueue) -> None:
        """Let the map name these queues of messages and no other."""
        assert self.store.control.write_map(replace(self.store.topology, message_queues=queues))
        self.store.refresh()

    def job(self, name: str = "job", **choices: Any) -> Job:
        """Create a job."""
        return self.operations.create(JobSpec(name=name, target=HandlerTarget("ok"), **choices))

    def told(self) -> list[str]:
        """Return the ids of the runs that were told of, in order, and forget them."""
        found = [notice.run_id for _, notice in self.messages.sent]
        self.messages.sent.clear()
        return found

    def tick(self) -> None:
        """Let a dispatcher make one tick."""
        Dispatcher(
            self.store, clock=self.clock, settings=self.base.settings, name="dispatcher"
        ).tick()

    def stored(self, run: Run) -> Run:
        """Return a run as it is stored now."""
        found = self.store.runs.get(run.key)
        assert found is not None
        return found
