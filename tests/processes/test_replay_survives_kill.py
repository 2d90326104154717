"""`dynsched up` that is killed while it moves a replay batch, and another that finishes it."""

from __future__ import annotations

from time import monotonic

from dynsched.bootstrap import build_views
from dynsched.domain import lifecycle
from dynsched.domain.batch import BatchState
from dynsched.domain.job import Overlap, Policies
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.storage.runs import RunApplied
from tests.processes.conftest import Figure, NewStage
from tests.processes.stage import Stage, wait_until

COUNT = 400
RATE = 200.0


def dead_runs(stage: Stage) -> None:
    """Make dead runs of a handler that would end well now."""
    spec = JobSpec(
        name="touch", target=HandlerTarget("touch"), policies=Policies(overlap=Overlap.ALLOW)
    )
    job = stage.operations.create(spec)
    store, now = stage.base.store, stage.base.clock.now()
    made = stage.operations.enqueue_many(job.job_id, list(range(COUNT)))
    claims = [lifecycle.claim(run, session="gone") for run in made]
    assert all(isinstance(one, RunApplied) for one in store.runs.apply_many(claims))
    for claim in claims:
        move = lifecycle.bury(
            claim.after,
            now=now,
            reason="attempts spent",
            error="OSError: no disk",
            signature="g",
            started_at=now,
        )
        assert isinstance(store.runs.apply(move), RunApplied)


def test_an_up_that_is_killed_in_mid_batch_leaves_it_to_another(
    new_stage: NewStage, figure: Figure
) -> None:
    """Each run was brought back once, is done, and is counted once."""
    stage = new_stage(DYNSCHED_BATCH_LEASE_S="2", DYNSCHED_STEP_PERIOD_S="0.05")
    stage.init()
    dead_runs(stage)
    draft = stage.operations.preview_replay("", reason="the disk has room", rate=RATE)
    views = build_views(stage.base)
    stage.operations.confirm_replay(draft.batch_id, count=COUNT)
    first = stage.start("up")
    wait_until(lambda: views.batch(draft.batch_id, sample=0).batch.moved > COUNT // 4, 15, "a part")
    first.kill()
    began = monotonic()
    moved = views.batch(draft.batch_id, sample=0).batch.moved
    assert moved < COUNT
    stage.start("up")

    def over() -> bool:
        found = views.batch(draft.batch_id, sample=0).batch
        return found.state is BatchState.FINISHED and all(
            run.state is RunState.DONE for run in stage.runs()
        )

    wait_until(over, 30, "the end of the batch and of its runs")
    figure(f"up killed with {moved} of {COUNT} moved: all done after {monotonic() - began:.1f} s")
    found = views.batch(draft.batch_id).batch
    assert (found.moved, found.skipped, found.failed, found.left) == (COUNT, {}, 0, 0)
    runs = stage.runs()
    assert {(run.replays, run.batch) for run in runs} == {(1, draft.batch_id)}
    assert stage.unexplained(runs) == []
