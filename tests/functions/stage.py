"""A stage for the functions: a store in memory, its queue of messages, and a clock with a script.

Handlers go on until the script releases them, all in the test's own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from dynsched.bootstrap import (
    Base,
    build_message_worker,
    build_operations,
    build_reaper,
    init_store,
    open_base,
)
from dynsched.domain.instants import Signal
from dynsched.domain.job import Job, Overlap, Policies, Priority
from dynsched.domain.message import encode_message
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.exits import Slots
from dynsched.services.message_worker import Fate, Message, MessageWorker
from dynsched.services.slots import InlineSlots, ThreadSlots, Work
from dynsched.services.specs import JobSpec
from dynsched.settings import Settings
from dynsched.storage.engine import Engine
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext, Snooze
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import FaultyEngine, Plan
from dynsched.testing.messages import Kept, MemoryHandOff

START = datetime(2026, 3, 2, 9, 0, 10, tzinfo=UTC)
QUEUE = MessageQueue(queue="main", priority=Priority.DEFAULT, url="http://sqs/main")
RETRY = RetryPolicy(base=timedelta(seconds=5), jitter=Jitter.NONE)
PLAIN = Policies(timeout=None, retry=RETRY, overlap=Overlap.ALLOW)
MINUTE = timedelta(minutes=1)


class ScriptedClock(SettableClock):
    """A clock on which something happens when somebody waits until then."""

    def __init__(self) -> None:
        super().__init__(START)
        self._script: list[tuple[datetime, Callable[[], object]]] = []

    def after(self, seconds: float, event: Callable[[], object]) -> None:
        """Let an event happen so many seconds from now."""
        self._script.append((self.now() + timedelta(seconds=seconds), event))

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Let time pass, and what the script says happen."""
        done = super().wait_for(event, seconds)
        for at, happening in list(self._script):
            if at <= self.now():
                self._script.remove((at, happening))
                happening()
        return done or event.is_set()


class HeldSlots:
    """Slots on which handlers begin, and go on until the script releases them."""

    def __init__(self) -> None:
        self.held: list[Work] = []
        self.replaced = 0

    def start(self, work: Work) -> None:
        """Hold a piece of work."""
        self.held.append(work)

    def replace_one(self) -> None:
        """Count it."""
        self.replaced += 1

    def release(self) -> None:
        """Let the handlers do their work and return."""
        held, self.held = self.held, []
        for work in held:
            work()


class OneThread:
    """A slot on a thread of its own.

    Attributes:
        returned: set when its handler has returned and that was noted.
    """

    def __init__(self) -> None:
        self._slots = ThreadSlots(1)
        self.returned = threading.Event()
        self.replaced = 0

    def start(self, work: Work) -> None:
        """Run a piece of work on the thread."""

        def noted() -> None:
            work()
            self.returned.set()

        self._slots.start(noted)

    def replace_one(self) -> None:
        """Count it."""
        self.replaced += 1


class Stage:
    """The store, its messages, and people.

    Attributes:
        calls: the contexts of the handlers that were called.
        meanwhile: what `ok` does while it runs.
        faulty: the engines that were made with a plan.
    """

    def __init__(self) -> None:
        self.clock = ScriptedClock()
        self.messages = MemoryHandOff(self.clock)
        self.engine: Engine = SqliteEngine(None)
        self.calls: list[AnyContext] = []
        self.faulty: list[FaultyEngine] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self._made = 0
        self.people = self.base()
        init_store(self.people)
        topology = replace(self.people.store.topology, message_queues=(QUEUE,))
        assert self.people.store.control.write_map(topology)
        self.store = self.people.store
        self.store.refresh()
        self.operations = build_operations(self.people)

    def base(self, plan: Plan | None = None, **settings: Any) -> Base:
        """Return a process's view of the store, with faults."""
        self._made += 1
        engine = self.engine
        if plan is not None:
            engine = FaultyEngine(self.engine, plan)
            self.faulty.append(engine)
        return open_base(
            engine=engine,
            handoff=self.messages,
            clock=self.clock,
            rng=Random(self._made),
            settings=Settings(**settings),
            environment={},
        )

    def worker(
        self, slots: Slots | None = None, *, base: Base | None = None, app: App | None = None
    ) -> MessageWorker:
        """Return a message worker of a process of its own."""
        return build_message_worker(
            base or self.base(), app or self.app(), slots=slots or InlineSlots()
        )

    def app(self) -> App:
        """Return an app whose handlers note their calls."""
        app = App()

        @app.job("ok")
        def _ok(ctx: AnyContext) -> None:
            self.calls.append(ctx)
            self.meanwhile()

        @app.job("fail")
        def _fail(ctx: AnyContext) -> None:
            self.calls.append(ctx)
            raise RuntimeError("no luck")

        @app.job("snooze")
        def _snooze(ctx: AnyContext) -> None:
            self.calls.append(ctx)
            raise Snooze(after=timedelta(hours=1))

        return app

    def give_in(self) -> None:
        """End as a handler does that listens to its stop signal."""
        self.calls[-1].raise_if_cancelled()

    def retry(self, **changes: Any) -> RetryPolicy:
        """Return how failures are repeated: after five seconds."""
        return replace(RETRY, **changes)

    def job(self, name: str = "job", handler: str = "ok", *, tenant: str = "t", **more: Any) -> Job:
        """Create a job; what is more are its policies."""
        return self.operations.create(
            JobSpec(
                name=name,
                target=HandlerTarget(handler),
                tenant=tenant,
                policies=replace(PLAIN, **more),
            )
        )

    def enqueue(self, job: Job, **more: Any) -> Run:
        """Enqueue a run of a job."""
        return self.operations.enqueue(job.job_id, None, **more)

    def run(self, handler: str = "ok", **policies: Any) -> Run:
        """Enqueue a run of a job of its own."""
        return self.enqueue(self.job(handler=handler, **policies))

    def now(self, run: Run) -> Run:
        """Return a run as it is stored now."""
        found = self.store.runs.get(run.key)
        assert found is not None
        return found

    def receive(self) -> list[Kept]:
        """Receive what is visible in the queue of messages."""
        return self.messages.receive()

    def work(
        self,
        worker: MessageWorker,
        messages: Sequence[Kept],
        *,
        lasts: timedelta = MINUTE,
        invocation: str = "i",
    ) -> list[Fate]:
        """Let a worker run messages as a function does: drop or postpone them afterwards."""
        fates = worker.work(
            [
                Message(
                    id=one.message_id,
                    body=one.body,
                    receipt=one.receipt,
                    sent_at=one.sent_at,
                )
                for one in messages
            ],
            ends_at=self.clock.now() + lasts,
            invocation=invocation,
        )
        for one, fate in zip(messages, fates, strict=True):
            self.messages.settle(one, keep=fate.keep, again_in=fate.again_in)
        return fates

    def visit(self, **options: Any) -> list[Fate]:
        """Let a worker of a process of its own run all that is visible."""
        return self.work(self.worker(), self.receive(), **options)

    def drain(self, seconds: float = 600) -> None:
        """Let time pass, with workers for what is visible and a reaper, until nothing is left."""
        reaper = build_reaper(self.base())
        for _ in range(int(seconds // 5)):
            while self.receive_and_work():
                pass
            self.clock.step(seconds=5)
            reaper.sweep()

    def receive_and_work(self) -> bool:
        """Work on one message that is visible; return whether there was one."""
        received = self.messages.receive(most=1)
        if received:
            self.work(self.worker(), received)
        return bool(received)


def message_about(run: Run) -> Message:
    """Return a message that names a run."""
    return Message(id="m", body=encode_message(run.run_id))
