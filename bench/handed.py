"""Capacity units where functions work: runs handed off by messages, and what idles each minute.

The functions' own classes are called, as AWS would: dispatcher and reaper once a minute, the
worker with one message each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta
from io import StringIO
from random import Random

from bench.options import Options, say
from bench.report import Figure
from bench.simulated import MIDNIGHT, SimClock
from bench.stores import HANDLER, Opened, spec
from bench.units import ApartMeter
from bench.ways import EMF_BYTES
from dynsched.bootstrap import build_message_worker, build_operations, init_store, open_base
from dynsched.domain.job import Overlap, Policies, Priority
from dynsched.lambdas.dispatcher import Deployment, DispatcherFunction
from dynsched.lambdas.metrics import Emf
from dynsched.lambdas.process import Process
from dynsched.lambdas.reaper import ReaperFunction
from dynsched.services.message_worker import Message
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import AtSpec, CronSpec
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.metering import LabelReport
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing.messages import MemoryHandOff

LOOK_AHEAD = timedelta(seconds=180)
LIMIT = timedelta(seconds=55)
MINUTE_S = 60
LOOK_AHEAD_MINUTES = 3
JOBS = 300
MINUTES = 2
STORED = 10_000
SETTLED_MINUTES = 75  # by then the last re-readings of closed minutes have begun
RECOUNT_MINUTES = 15  # the jobs are counted once in them
IDLE_MOST = {
    ("dispatcher", "written"): 4.0,
    ("dispatcher", "read"): 17.0,
    ("reaper", "written"): 8.0,
    ("reaper", "read"): 135.0,
}
QUEUES = tuple(
    MessageQueue(queue="main", priority=priority, url=f"https://messages/main-{priority.value}")
    for priority in Priority
)


@dataclass(slots=True)
class Invocation:
    """What the functions use of Lambda's context."""

    aws_request_id: str = "bench"

    def get_remaining_time_in_millis(self) -> int:
        """Return a dispatcher's time limit."""
        return int(LIMIT.total_seconds() * 1000)


class Handed:
    """A scheduler of functions over a meter, in simulated time.

    Args:
        jobs: minutely jobs.
        policies: theirs.
        keep_ended: runs that ended otherwise than dead are found by time too.
    """

    def __init__(self, jobs: int, policies: Policies | None, *, keep_ended: bool) -> None:
        self._clock = SimClock(MIDNIGHT + timedelta(seconds=30))
        self.meter = ApartMeter(SqliteEngine(None))
        self.messages = MemoryHandOff(self._clock, rng=Random(2))
        base = open_base(
            engine=self.meter,
            environment={},
            clock=self._clock,
            rng=Random(1),
            handoff=self.messages,
        )
        init_store(base, keep_ended=keep_ended, look_ahead=LOOK_AHEAD)
        topology = base.store.refresh()
        base.store.control.write_map(replace(topology, message_queues=QUEUES))
        self.store = Opened("", base, build_operations(base))
        self.runs = 0
        self.received = 0
        app = App()
        app.job(HANDLER)(self._count)
        for number in range(jobs):
            self.store.job(f"job-{number}", CronSpec(expr="* * * * *"), policies)
        deployment = Deployment(look_ahead=LOOK_AHEAD, message_queues=QUEUES)
        self._dispatcher = DispatcherFunction(self._process("dispatcher"), deployment)
        self._reaper = ReaperFunction(self._process("reaper"))
        self._worker = build_message_worker(base, app, slots=InlineSlots())

    def _process(self, function: str) -> Process:
        base = self.store.base
        return Process(base, Emf(function, "bench", base.clock), f"bench-{function}")

    def _count(self, _: AnyContext) -> None:
        self.runs += 1

    def reset(self) -> None:
        """Forget what was counted."""
        self.meter.reset()
        self.messages.sent.clear()
        self.runs = self.received = 0

    def over(self, minutes: int) -> dict[str, LabelReport]:
        """Let whole minutes pass, and return what they cost."""
        for _ in range(minutes):
            for second in range(MINUTE_S):
                if second == 0:
                    self._wake()
                self._deliver()
                self._clock.wait(1)
        return self.meter.report()

    def _wake(self) -> None:
        with silence():
            with self.meter.label("dispatcher"):
                self._dispatcher({}, Invocation())
            with self.meter.label("reaper"):
                self._reaper({}, Invocation())

    def _deliver(self) -> None:
        with self.meter.label("worker"):
            while received := self.messages.receive():
                for one in received:
                    self.received += 1
                    message = Message(id=one.message_id, body=one.body, receipt=one.receipt)
                    (fate,) = self._worker.work(
                        [message], ends_at=self._clock.now() + 5 * LIMIT, invocation="bench"
                    )
                    if fate.keep:
                        raise AssertionError(f"kept: {fate.why}")
                    self.messages.delete(one)


@contextmanager
def silence() -> Iterator[None]:
    """Let functions write their metrics nowhere."""
    with redirect_stdout(StringIO()):
        yield


def _occurrences(
    title: str, policies: Policies | None, *, keep_ended: bool, most: tuple[float, float]
) -> list[Figure]:
    """Return what an occurrence costs; what the dispatcher does without any is told apart."""
    handed = Handed(JOBS, policies, keep_ended=keep_ended)
    handed.over(LOOK_AHEAD_MINUTES)
    handed.reset()
    report = handed.over(MINUTES)
    runs, received = handed.runs, handed.received
    assert runs == JOBS * MINUTES, f"{runs} runs of {JOBS * MINUTES}"
    made, ran = report["dispatcher"], report["worker"]
    written = made["write"] - made["places"]["control"]["write"] + ran["write"]
    read = ran["read"] / runs
    note = f"and the dispatcher {made['read'] / MINUTES:.0f} a minute"
    return [
        Figure(f"{title}: written by a run", written / runs, "units", most=most[0]),
        Figure(f"{title}: read by a run", read, "units", most=most[1], note=note),
        Figure(f"{title}: messages of a run", received / runs, "messages", most=1.0),
    ]


def _idle(minutes: int) -> list[Figure]:
    """Return what functions do each minute that find nothing to do."""
    handed = Handed(0, None, keep_ended=True)
    tomorrow = AtSpec(at=MIDNIGHT + timedelta(days=2))
    handed.store.copies(handed.store.operations.check(spec("tomorrow", tomorrow)), STORED)
    handed.over(minutes)
    handed.reset()
    report = handed.over(RECOUNT_MINUTES)
    return [
        Figure(
            f"idle {name}, {STORED:,} jobs stored: {kind} a minute",
            report[name]["write" if kind == "written" else "read"] / RECOUNT_MINUTES,
            "units",
            most=IDLE_MOST[name, kind],
        )
        for name in ("dispatcher", "reaper")
        for kind in ("written", "read")
    ]


def _line_bytes() -> Figure:
    """Return how long the line of metrics is that a worker writes of one run."""
    emf = Emf("worker", "production", SimClock(MIDNIGHT))
    done = {"RunsStarted": 1, "RunsDone": 1, "MessagesDropped": 1}
    lines = [*emf.lines(done), *emf.lines({"StartDelay": [412.0]}, Priority.DEFAULT.value)]
    size = sum(len(line) + 1 for line in lines)
    return Figure("metrics logged of a run", size, "bytes", most=EMF_BYTES)


def measure(options: Options) -> list[Figure]:
    """Meter runs that are handed off, and functions that find nothing to do."""
    say(f"handed: {JOBS} minutely jobs, by functions")
    allow = Policies(overlap=Overlap.ALLOW)
    return [
        *_occurrences("handed, defaults", None, keep_ended=True, most=(12.0, 5.1)),
        *_occurrences("handed, allow, no ended index", allow, keep_ended=False, most=(10.0, 3.1)),
        *_idle(5 if options.quick else SETTLED_MINUTES),
        _line_bytes(),
    ]
