"""Invocations of the worker's function, in the small world."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from dynsched.bootstrap import build_message_worker
from dynsched.domain.message import encode_message
from dynsched.domain.run import Run
from dynsched.services.message_worker import Fate, Message, MessageWorker
from dynsched.services.slots import InlineSlots
from tests.rules.small_world import Process, World

MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class FunctionProcess(Process):
    """A sandbox of the worker's function, whose handlers return at once."""

    worker: MessageWorker
    world: World

    def visit(self, *runs: Run, invocation: str = "a", lasts: timedelta = MINUTE) -> list[Fate]:
        """Be handed a message about each run."""
        messages = [Message(id=run.run_id, body=encode_message(run.run_id)) for run in runs]
        ends_at = self.clock.now() + lasts
        return self.worker.work(messages, ends_at=ends_at, invocation=invocation)

    def receive(self, invocation: str = "a") -> list[Fate]:
        """Be handed what is visible; drop or postpone it afterwards, as the function does."""
        queue = self.world.messages
        fates = []
        for one in queue.receive():
            message = Message(id=one.message_id, body=one.body, sent_at=one.sent_at)
            ends_at = self.clock.now() + MINUTE
            (fate,) = self.worker.work([message], ends_at=ends_at, invocation=invocation)
            fates.append(fate)
            queue.settle(one, keep=fate.keep, again_in=fate.again_in)
        return fates


def function(world: World) -> FunctionProcess:
    """Start a sandbox."""
    _, process = world.operator()
    worker = build_message_worker(process.base, world.app(), slots=InlineSlots())
    return FunctionProcess(process.base, process.wire, process.clock, worker, world)
