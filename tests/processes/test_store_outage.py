"""A store that lets nobody write for some seconds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from dynsched.domain.run import RunState
from tests.processes.conftest import NewStage
from tests.processes.stage import Actor, wait_until

SECONDS, JOBS = 10, 3


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold SQLite's only write lock."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute("begin exclusive")
        yield
        connection.execute("rollback")


def reported(actors: list[Actor], name: str) -> bool:
    """Return whether a process of that kind has said that the store keeps it waiting."""
    return any("is busy" in actor.said() for actor in actors if actor.name.endswith(name))


def test_services_report_an_outage_of_the_store_and_go_on_after_it(
    new_stage: NewStage, tmp_path: Path
) -> None:
    """Instants that fall into the outage are late, not lost; each run is done once."""
    stage = new_stage()
    stage.init(look_ahead_s=2)
    expected = stage.each_second("touch", count=SECONDS, jobs=JOBS)
    actors = [stage.start(role) for role in ("dispatcher", "reaper", "worker", "worker")]
    wait_until(lambda: len(stage.journal("end")) >= JOBS, 15, "the first runs")
    held = stage.work(1.0)
    stage.wait_for_start(held, fence=1, seconds=10)
    with locked(tmp_path / "store.db"):
        for name in ("dispatcher", "worker"):
            wait_until(partial(reported, actors, name), 30, f"a report of a {name}")
    wait_until(lambda: len(stage.journal("end")) > len(expected), 20, "the end of all runs")
    assert stage.stop_all() == [0] * len(actors)
    assert {(run.job_id, run.scheduled_for) for run in stage.runs()} >= expected
    assert {run.state for run in stage.runs()} == {RunState.DONE}
    assert {run.attempt for run in stage.runs()} == {1}
    assert len(stage.runs()) == len(expected) + 1
