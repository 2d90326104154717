"""Stores for benchmarks: fresh ones, with jobs and runs in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Literal

from dynsched.bootstrap import Base, build_operations, init_store, open_base
from dynsched.domain.job import Job, Policies
from dynsched.domain.names import new_id
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.services.operations import Operations
from dynsched.services.specs import JobSpec, ScheduleSpec
from dynsched.storage.engine import PutNew

CHUNK = 500
HANDLER = "note"


def spec(
    name: str, schedule: ScheduleSpec | None = None, policies: Policies | None = None
) -> JobSpec:
    """Return a job whose handler notes its start."""
    return JobSpec(name=name, target=HandlerTarget(HANDLER), schedule=schedule, policies=policies)


@dataclass(frozen=True, slots=True)
class Opened:
    """A fresh store.

    Attributes:
        url: for other processes.
        base: for this one.
        operations: its verbs.
    """

    url: str
    base: Base
    operations: Operations

    def job(
        self,
        name: str,
        schedule: ScheduleSpec | None = None,
        policies: Policies | None = None,
    ) -> Job:
        """Create a job whose handler notes its start."""
        return self.operations.create(spec(name, schedule, policies))

    def runs_at(self, job: Job, at: datetime, count: int) -> None:
        """Write manual runs of a job for one instant, in commits of many."""
        self.operations.enqueue_many(job.job_id, [None] * count, at=at, priority=job.priority)

    def copies(self, job: Job, count: int) -> None:
        """Write copies of a job under other ids and names, without serving them."""
        engine, rows, rng = self.base.store.engine, self.base.store.jobs, Random(count)
        for start in range(0, count, CHUNK):
            jobs = [
                replace(job, job_id=new_id(rng), name=f"copy-{number}", version=1)
                for number in range(start, min(count, start + CHUNK))
            ]
            engine.write_many([PutNew(rows.row_of(one)) for one in jobs])

    def all_runs(self) -> Iterator[Run]:
        """Yield every run in the store."""
        cursor: str | None = None
        while True:
            runs, cursor = self.base.store.runs.scan(CHUNK, cursor)
            yield from runs
            if cursor is None:
                return

    def close(self) -> None:
        """Close this process's connections."""
        self.base.store.engine.close()


def fresh(
    folder: Path,
    name: str,
    *,
    durability: Literal["power", "process"] = "process",
    environment: Mapping[str, str] | None = None,
) -> Opened:
    """Make a new SQLite store in a file.

    Args:
        folder: where its file is made.
        name: of the file.
        durability: what accepting writes wait for; lease traffic never waits for the disk.
        environment: settings.
    """
    path = folder / f"{name}.db"
    for old in folder.glob(f"{name}.db*"):
        if old.is_file():
            old.unlink()
    url = f"sqlite:///{path}?durability={durability}"
    base = open_base(url, environment=environment or {})
    init_store(base)
    base.store.refresh()
    return Opened(url, base, build_operations(base))
