"""A store with processes around it: they are started, signalled and watched from a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TypeVar

from dynsched.bootstrap import STORE_VARIABLE, Base, build_operations, init_store, open_base
from dynsched.domain.instants import from_ms
from dynsched.domain.job import Overlap, Policies
from dynsched.domain.run import Run, parse_run_id
from dynsched.domain.target import HandlerTarget
from dynsched.services.operations import Operations
from dynsched.services.specs import EverySpec, JobSpec
from dynsched.storage.runs import Attempt
from tests.processes.handlers import JOURNAL_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.processes.handlers:app"
POLL_S = 0.05
STOP_S = 30.0
LOG_TAIL = 4_000  # characters of each process's log that a failed test shows

T = TypeVar("T")


def wait_until(predicate: Callable[[], T], seconds: float, what: str) -> T:
    """Return the first true answer of a predicate that is asked until a deadline."""
    end = monotonic() + seconds
    while True:
        answer = predicate()
        if answer:
            return answer
        if monotonic() >= end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        threading.Event().wait(POLL_S)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the handlers' journal."""

    word: str
    run_id: str
    fence: int
    attempt: int
    at: datetime

    @property
    def job_id(self) -> str:
        """Return the job of the run."""
        return self.run_id.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Actor:
    """A process of the program."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it as a crash would, and wait until it is gone."""
        self.process.kill()
        self.process.wait(STOP_S)

    def stop(self, within_s: float = STOP_S) -> int:
        """Ask it to end; return its exit code."""
        self.send(signal.SIGTERM)
        return self.process.wait(within_s)

    def said(self) -> str:
        """Return what it has logged."""
        return self.log.read_text("utf-8", "replace")


class Stage:
    """A store, its journal and its processes.

    Args:
        folder: for the journal and the logs.
        store: the store's URL.
        environment: settings of all processes, besides this process's environment.
    """

    def __init__(self, folder: Path, store: str, environment: Mapping[str, str]) -> None:
        self.folder, self.store = folder, store
        self._journal = folder / "journal"
        self._forgotten = 0  # lines of the journal that `unended` passes over
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DYNSCHED_")}
        self.environment = kept | {
            STORE_VARIABLE: store,
            JOURNAL_VARIABLE: str(self._journal),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "TMPDIR": str(folder),
            **environment,
        }
        self.actors: list[Actor] = []

    @cached_property
    def base(self) -> Base:
        """This process's own view of the store."""
        return open_base(self.store, environment=self.environment)

    @cached_property
    def operations(self) -> Operations:
        """The door for people."""
        return build_operations(self.base)

    def init(self, look_ahead_s: float = 30.0, shards: int = 1, lanes: int = 2) -> None:
        """Make the store."""
        init_store(
            self.base, look_ahead=timedelta(seconds=look_ahead_s), shards=shards, lanes=lanes
        )

    # processes

    def start(self, role: str, *arguments: str, store: str | None = None) -> Actor:
        """Start a process; one that runs handlers gets the tests' app."""
        handlers = ("--app", APP) if role in ("worker", "up") else ()
        log = self.folder / f"{len(self.actors)}-{role}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "dynsched", role, *handlers, *arguments],
                env=self.environment | ({STORE_VARIABLE: store} if store else {}),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        actor = Actor(log.stem, process, log)
        self.actors.append(actor)
        return actor

    def stop_all(self) -> list[int]:
        """Ask all living processes to end, at once; return their exit codes."""
        living = [actor for actor in self.actors if actor.process.poll() is None]
        for actor in living:
            actor.send(signal.SIGTERM)
        return [actor.process.wait(STOP_S) for actor in living]

    def close(self) -> None:
        """End what is left, frozen processes too, and show what they have said."""
        for actor in self.actors:
            if actor.process.poll() is None:
                actor.kill()
            print(f"--- {actor.name}: {actor.process.returncode}\n{actor.said()[-LOG_TAIL:]}")  # noqa: T201
        if "base" in self.__dict__:
            self.base.store.engine.close()

    # what was asked for

    def work(self, seconds: float) -> str:
        """Enqueue a run that works so long; return its id."""
        job_id = self.operations.find_id("default", "work")
        if job_id is None:
            spec = JobSpec(name="work", target=HandlerTarget("work"))
            job_id = self.operations.create(spec).job_id
        return self.operations.enqueue(job_id, seconds).run_id

    def each_second(
        self, handler: str, *, jobs: int, count: int, every_s: int = 1, payload: float = 0.0
    ) -> set[tuple[str, datetime]]:
        """Create interval jobs that end; return the job and instant of each run that is to be."""
        start = self.base.clock.now() + timedelta(seconds=2)
        instants = [start + timedelta(seconds=every_s * number) for number in range(count)]
        schedule = EverySpec(every=timedelta(seconds=every_s), start=start, end=instants[-1])
        made = [
            self.operations.create(
                JobSpec(
                    name=f"{handler}-{every_s}-{number}",
                    target=HandlerTarget(handler),
                    schedule=schedule,
                    policies=Policies(overlap=Overlap.ALLOW),
                    payload=payload,
                )
            )
            for number in range(jobs)
        ]
        return {(job.job_id, instant) for job in made for instant in instants}

    # what happened

    def journal(self, word: str = "", run_id: str = "") -> list[Line]:
        """Return what the handlers have written, optionally of one word or run."""
        text = self._journal.read_text() if self._journal.exists() else ""
        lines = [_line(each) for each in text.splitlines()]
        return [
            line for line in lines if line.word.startswith(word) and line.run_id.startswith(run_id)
        ]

    def unended(self) -> list[Line]:
        """Return the starts that have no end in the journal, without those forgotten."""
        lines = self.journal()[self._forgotten :]
        ended = {(line.run_id, line.fence) for line in lines if line.word == "end"}
        starts = [line for line in lines if line.word == "start"]
        return [line for line in starts if (line.run_id, line.fence) not in ended]

    def forget_unended(self) -> list[Line]:
        """Return what is unended and will remain so, since its process is dead."""
        lines = self.unended()
        self._forgotten = len(self.journal())
        return lines

    def wait_for_start(self, run_id: str, fence: int, seconds: float) -> Line:
        """Wait until a handler was called for a run under a fence."""

        def started() -> Line | None:
            lines = self.journal("start", run_id)
            return next((line for line in lines if line.fence == fence), None)

        found = wait_until(started, seconds, f"start of {run_id} under fence {fence}")
        assert found is not None
        return found

    def run(self, run_id: str) -> Run:
        """Return a run's row."""
        run = self.base.store.runs.get(parse_run_id(run_id))
        assert run is not None
        return run

    def runs(self) -> list[Run]:
        """Return all runs of the store."""
        found, cursor = self.base.store.runs.scan(1_000, None)
        while cursor is not None:
            more, cursor = self.base.store.runs.scan(1_000, cursor)
            found += more
        return found

    def attempts(self, run_id: str) -> list[Attempt]:
        """Return what is kept of a run's tries."""
        return self.base.store.runs.attempts(run_id)

    def outcomes(self, run_id: str) -> list[tuple[int, str]]:
        """Return the number and outcome of each try that was kept."""
        return [(item.number, item.outcome) for item in self.attempts(run_id)]

    def unexplained(self, runs: Iterable[Run]) -> list[str]:
        """Return runs that were started more often than their lost leases explain."""
        starts = Counter(line.run_id for line in self.journal("start"))
        more = [run.run_id for run in runs if starts[run.run_id] != 1]
        return [
            run_id
            for run_id in more
            if starts[run_id] - 1 > sum(outcome == "lost" for _, outcome in self.outcomes(run_id))
        ]


def _line(text: str) -> Line:
    word, run_id, fence, attempt, at_ms = text.split()
    return Line(word, run_id, int(fence), int(attempt), from_ms(int(at_ms)))
