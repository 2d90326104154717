"""A worker that is killed in mid-run: how soon its run starts again."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from dynsched.domain.run import RunState
from tests.processes.conftest import Figure, NewStage

LONG_S = 60.0


@pytest.mark.slow
def test_a_killed_workers_run_starts_again_on_another_host(
    new_stage: NewStage, tmp_path: Path, figure: Figure
) -> None:
    """Nobody comes back on the dead host: the run restarts when its lease is over, by default."""
    stage = new_stage()
    stage.init()
    killed = stage.start("worker")
    run_id = stage.work(LONG_S)
    stage.wait_for_start(run_id, fence=1, seconds=15)
    # By another name of the same file: lock files lie beside the name, so none is seen from here.
    (tmp_path / "elsewhere.db").symlink_to(tmp_path / "store.db")
    for role in ("reaper", "worker"):
        stage.start(role, store=f"sqlite:///{tmp_path}/elsewhere.db")
    killed.kill()
    began = monotonic()
    stage.wait_for_start(run_id, fence=2, seconds=45)
    figure(f"worker killed, nobody comes back: run restarted after {monotonic() - began:.1f} s")
    assert stage.outcomes(run_id) == [(1, "lost")]
    assert (stage.run(run_id).losses, stage.run(run_id).spent) == (1, 0)


@pytest.mark.parametrize("reaper", [True, False], ids=["with a reaper", "without one"])
def test_a_killed_workers_run_starts_again_when_a_worker_is_started_on_its_host(
    new_stage: NewStage, figure: Figure, *, reaper: bool
) -> None:
    """The new worker takes the dead one's lock and does not wait for the lease nor a reaper."""
    stage = new_stage()
    stage.init()
    if reaper:
        stage.start("reaper")
    killed = stage.start("worker")
    run_id = stage.work(LONG_S)
    stage.wait_for_start(run_id, fence=1, seconds=15)
    killed.kill()
    began = monotonic()
    stage.start("worker")
    stage.wait_for_start(run_id, fence=2, seconds=5)
    helped = "with" if reaper else "without"
    figure(f"worker killed and restarted {helped} a reaper: {monotonic() - began:.1f} s")
    assert stage.run(run_id).state is RunState.LEASED
    assert stage.outcomes(run_id) == [(1, "lost")]
