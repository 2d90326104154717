"""Peeks: runs with their jobs, read in one call before any of them is claimed.

What is read before a claim may refuse a start, never permit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynsched.domain.job import Job
from dynsched.domain.run import Run, RunKey
from dynsched.storage.codec import decode_job, decode_run
from dynsched.storage.engine import Engine, Row
from dynsched.storage.jobs import Unreadable
from dynsched.storage.placement import job_key
from dynsched.storage.rows import UNREADABLE
from dynsched.storage.runs import Damaged, run_table_key


@dataclass(frozen=True, slots=True)
class Peeked:
    """A run and its job as they were stored a moment ago; None for what is not there."""

    run: Run | Damaged | None
    job: Job | Unreadable | None


def peek(engine: Engine, keys: Sequence[RunKey]) -> list[Peeked]:
    """Read runs and their jobs, each strongly, in the order of the runs.

    Cost: 1 read unit for each run and for each job, in one request for each hundred of them.
    """
    jobs = list(dict.fromkeys(key.job_id for key in keys))
    wanted = [run_table_key(key) for key in keys] + [job_key(job_id) for job_id in jobs]
    rows = engine.get_many(wanted) if wanted else []
    found = dict(zip(jobs, map(_job, jobs, rows[len(keys) :]), strict=True))
    pairs = zip(keys, rows, strict=False)
    return [Peeked(_run(row), found[key.job_id]) for key, row in pairs]


def _run(row: Row | None) -> Run | Damaged | None:
    try:
        return None if row is None else decode_run(row)
    except UNREADABLE as error:
        return Damaged(repr(error))


def _job(job_id: str, row: Row | None) -> Job | Unreadable | None:
    try:
        return None if row is None else decode_job(row)
    except UNREADABLE as error:
        return Unreadable(job_id, str(error))
