"""Replay batches under way: what is moved and what is not, and why; how they pause and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from dynsched.domain.access import Access, Role
from dynsched.domain.batch import BatchState
from dynsched.domain.run import Run
from dynsched.errors import Conflict, InvalidInput, NotFound
from dynsched.services.operations import Operations
from dynsched.services.views import AuditQuery
from dynsched.storage.engine import Delete, Replace
from dynsched.storage.runs import run_table_key
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler
from tests.replay.ward import SECOND, Ward


@pytest.fixture
def ward() -> Ward:
    """Return an empty ward."""
    return Ward()


# what happens meanwhile


def discarded(ward: Ward, run: Run) -> None:
    """Discard a run."""
    ward.operations.discard(run.run_id)


def replayed(ward: Ward, run: Run) -> None:
    """Replay a run by hand."""
    ward.operations.replay(run.run_id)


def moved_by_another_batch(ward: Ward, run: Run) -> None:
    """Replay a run by another batch."""
    batch = ward.started(f"id:{run.run_id}")
    other = ward.another()
    other.step()
    assert ward.run(run).batch == batch.batch_id


def gone(ward: Ward, run: Run) -> None:
    """Let a run's row go, as its retention does."""
    stored = ward.run(run)
    ward.store.engine.write(Delete(run_table_key(run.key), stored.version))


def damaged(ward: Ward, run: Run) -> None:
    """Make a run's row unreadable."""
    row = ward.store.engine.get(run_table_key(run.key))
    assert row is not None
    body = {**row.body, "av": "nonsense"}
    ward.store.engine.write(Replace(replace(row, body=body), row.version))


def job_deleted(ward: Ward, run: Run) -> None:
    """Delete a run's job."""
    ward.operations.delete(run.job_id)


def job_held(ward: Ward, run: Run) -> None:
    """Pause a run's job with hold."""
    ward.operations.pause(run.job_id, reason="r", hold=True)


MEANWHILE = (
    (discarded, "skipped", "discarded"),
    (replayed, "skipped", "not dead any more: replayed by somebody else"),
    (moved_by_another_batch, "skipped", "not dead any more: replayed by somebody else"),
    (gone, "skipped", "gone: its retention is over"),
    (job_deleted, "skipped", "its job is deleted"),
    (job_held, "skipped", "its job is paused with hold"),
    (damaged, "failed", ""),
)


def case_name(case: object) -> str:
    """Return a name that is the same in each process of the tests."""
    return getattr(case, "__name__", str(case))


@pytest.mark.parametrize(("change", "outcome", "why"), MEANWHILE, ids=case_name)
def test_what_changed_since_the_preview_is_left_alone_with_the_reason(
    ward: Ward, change: Callable[[Ward, Run], None], outcome: str, why: str
) -> None:
    """The others are moved all the same."""
    others = ward.die(2, "others")
    (run,) = ward.die(1)
    draft = ward.operations.preview_replay("", rate=None)
    change(ward, run)
    before = ward.store.engine.get(run_table_key(run.key))
    ward.operations.confirm_replay(draft.batch_id, reason="r")
    ward.step()
    assert ward.states(others) == ["ready"] * 2
    assert ward.store.engine.get(run_table_key(run.key)) == before
    found = ward.batch(draft)
    assert (found.state, found.moved) == (BatchState.FINISHED, 2)
    (entry,) = [
        one for one in ward.views.batch_entries(draft.batch_id).items if one.run_id == run.run_id
    ]
    assert (entry.outcome.value, entry.why) == (outcome, why)
    assert found.skipped == ({why: 1} if why else {})
    ward.adds_up(draft)


# the rate


@pytest.mark.parametrize(
    ("rate", "seconds", "moved"), [(10.0, 0, 1), (10.0, 1, 11), (0.5, 5, 3), (0.1, 9, 1)]
)
def test_the_rate_is_kept_whatever_the_steps(
    ward: Ward, rate: float, seconds: int, moved: int
) -> None:
    """One run moves at once, and from then on so many a second, below one too."""
    dead = ward.die(30)
    ward.started(rate=rate)
    total = ward.step(0).moved
    for _ in range(seconds * 2):
        total += ward.step(0.5).moved
    assert total == moved == ward.states(dead).count("ready")


def test_a_pace_changes_under_way(ward: Ward) -> None:
    """Slower and faster; none is as fast as the store takes them."""
    ward.die(30)
    batch = ward.started(rate=1.0)
    ward.step(0)
    ward.operations.pace_replay(batch.batch_id, 5)
    assert ward.step(1).moved == 5
    ward.operations.pace_replay(batch.batch_id, None)
    assert ward.step(1).moved == 24
    with pytest.raises(Conflict, match="no pace any more"):
        ward.operations.pace_replay(batch.batch_id, 1)


def test_a_stepper_that_was_away_makes_up_for_seconds_only(ward: Ward) -> None:
    """An outage of an hour is no reason to move an hour's runs at once."""
    ward.die(100)
    ward.started(rate=2.0)
    ward.step(0)
    assert ward.step(3_600).moved == 5


@pytest.mark.parametrize("back", [timedelta(seconds=3), timedelta(hours=5)])
def test_a_clock_that_is_set_back_does_not_stop_a_batch(ward: Ward, back: timedelta) -> None:
    """The rate counts from now on: neither is the past made up for, nor the future waited for.

    Source: a batch stood still until the clock had caught up.
    """
    ward.die(20)
    batch = ward.started(rate=1.0)
    assert ward.step(3).moved > 0
    ward.clock.set(ward.clock.now() - back)
    moved = [ward.step(1).moved for _ in range(5)]
    assert sum(moved) in (4, 5, 6)
    ward.adds_up(batch)


@pytest.mark.parametrize("ahead", [timedelta(seconds=3), timedelta(hours=5)])
def test_a_stepper_takes_over_from_one_whose_clock_was_ahead(ward: Ward, ahead: timedelta) -> None:
    """What that one has written of the rate is no reason to wait."""
    ward.die(20)
    ward.started(rate=1.0)
    now = ward.clock.now()
    ward.clock.set(now + ahead)
    ward.step(1)
    ward.clock.set(now)
    other = ward.another()
    ward.step(40, stepper=other)
    assert sum(ward.step(1, stepper=other).moved for _ in range(5)) in (4, 5, 6)


def test_a_step_moves_no_more_than_its_bound() -> None:
    """A step takes less than a second of the store's time, whatever the rate."""
    ward = Ward(step_runs=4)
    ward.die(10)
    batch = ward.started()
    assert [ward.stepper.step().moved for _ in range(3)] == [4, 4, 2]
    ward.step()
    assert ward.batch(batch).state is BatchState.FINISHED


# pause, resume, abort


def test_a_paused_batch_moves_nothing_until_it_is_resumed(ward: Ward) -> None:
    """What it has moved stays moved; the pause is seen at the next step."""
    dead = ward.die(5)
    batch = ward.started(rate=1.0)
    ward.step(0)
    ward.operations.pause_replay(batch.batch_id, reason="errors")
    assert ward.step(60).moved == 0
    found = ward.batch(batch)
    assert (found.state, found.why, found.moved) == (
        BatchState.PAUSED,
        "paused by ada: errors",
        1,
    )
    ward.operations.resume_replay(batch.batch_id)
    assert ward.step(0).moved == 1
    for _ in range(3):
        ward.step()
    ward.step()
    assert ward.batch(batch).state is BatchState.FINISHED
    assert ward.states(dead) == ["ready"] * 5


def test_an_abort_leaves_the_rest_untouched(ward: Ward) -> None:
    """They stay dead as they were, version and all, and can be replayed as the rest."""
    dead = ward.die(5)
    batch = ward.started(rate=1.0)
    ward.step(0)
    ward.step(1)
    before = [ward.run(run) for run in dead[2:]]
    ward.operations.abort_replay(batch.batch_id, reason="wrong group")
    ward.step(10)
    assert [ward.run(run) for run in dead[2:]] == before
    found = ward.batch(batch)
    assert (found.state, found.moved, found.left, found.settled) == (
        BatchState.ABORTED,
        2,
        3,
        True,
    )
    rest = ward.operations.rest_of_replay(batch.batch_id)
    assert (rest.planned, rest.parent, rest.reason) == (3, batch.batch_id, "disk is mended")
    ward.operations.confirm_replay(rest.batch_id)
    for _ in range(4):
        ward.step(1)
    assert ward.states(dead) == ["ready"] * 5
    ward.adds_up(batch)


def test_the_rest_of_a_running_batch_is_not_known_yet(ward: Ward) -> None:
    """It would take what the batch is about to move."""
    ward.die(2)
    batch = ward.started(rate=0.5)
    with pytest.raises(Conflict, match="its rest is known"):
        ward.operations.rest_of_replay(batch.batch_id)


def test_a_pull_back_makes_untried_runs_dead_as_they_were(ward: Ward) -> None:
    """Those that were tried meanwhile keep what became of them."""
    dead = ward.die(4)
    batch = ward.started()
    ward.step()
    ward.operations.cancel(dead[0].run_id)
    ward.operations.abort_replay(batch.batch_id, pull_back=True)
    ward.step()
    assert ward.states(dead) == ["cancelled", "dead", "dead", "dead"]
    same = ("ended_at", "priority", "error", "signature", "attempt", "spent", "replays", "losses")
    for run in dead[1:]:
        now = ward.run(run)
        assert [getattr(now, name) for name in same] == [getattr(run, name) for name in same]
        assert (now.batch, now.reason) == ("", "pulled back")
        outcomes = [item.outcome for item in ward.store.runs.attempts(run.run_id)]
        assert outcomes == ["failed", "replayed", "pulled back"]
    found = ward.batch(batch)
    assert (found.state, found.moved, found.skipped) == (
        BatchState.ABORTED,
        1,
        {"pulled back": 3},
    )
    ward.adds_up(batch)
    assert ward.operations.rest_of_replay(batch.batch_id).planned == 3


def test_a_draft_is_neither_paused_nor_aborted(ward: Ward) -> None:
    """The error says what to do instead."""
    ward.die(1)
    draft = ward.operations.preview_replay("")
    with pytest.raises(Conflict, match="it is draft"):
        ward.operations.pause_replay(draft.batch_id)
    with pytest.raises(Conflict, match="expires by itself"):
        ward.operations.abort_replay(draft.batch_id)
    with pytest.raises(NotFound):
        ward.operations.pause_replay("nothing")


# the canary, and the breaker


def canary(ward: Ward, **options: Any) -> tuple[str, list[Run]]:
    """Start a batch of ten with a canary of three, and move that."""
    dead = ward.die(10)
    batch = ward.started(canary=3, **options)
    for _ in range(3):
        ward.step()
    assert ward.states(dead).count("ready") == 3
    return batch.batch_id, dead


def test_the_others_follow_a_canary_that_ends_well(ward: Ward) -> None:
    """By themselves, as soon as all of the canary have ended."""
    _, dead = canary(ward)
    ward.work(broken=False)
    assert ward.step(2).moved == 7
    assert ward.states(dead) == ["done"] * 3 + ["ready"] * 7


def test_a_canary_that_dies_pauses_the_batch_with_a_sentence(ward: Ward) -> None:
    """Whoever resumes it has seen that."""
    batch_id, dead = canary(ward)
    ward.work(broken=True)
    assert ward.step(2).moved == 0
    found = ward.views.batch(batch_id).batch
    assert (found.state, found.cause) == (BatchState.PAUSED, "canary")
    assert found.why == "of the first 3 runs 3 are dead again, more than 50%"
    ward.operations.resume_replay(batch_id, reason="go on")
    ward.step(2)
    assert ward.states(dead[3:]) == ["ready"] * 7


def test_a_canary_with_hold_pauses_however_it_went(ward: Ward) -> None:
    """For whoever wants to look before the others follow."""
    batch_id, _ = canary(ward, canary_hold=True)
    ward.work(broken=False)
    ward.step(2)
    found = ward.views.batch(batch_id).batch
    assert (found.state, found.cause) == (BatchState.PAUSED, "canary")
    assert "your turn" in found.why


def test_the_breaker_pauses_a_batch_whose_runs_die_again(ward: Ward) -> None:
    """And a resume after it needs a reason, and begins a new count."""
    dead = ward.die(40)
    batch = ward.started(rate=1.0)
    for _ in range(6):
        ward.step()
    ward.work(broken=True)
    for _ in range(6):
        ward.step()
    found = ward.batch(batch)
    assert (found.state, found.cause) == (BatchState.PAUSED, "breaker")
    assert "are dead again, more than 50%" in found.why
    assert found.moved < 14
    with pytest.raises(InvalidInput, match="reason"):
        ward.operations.resume_replay(batch.batch_id)
    ward.operations.resume_replay(batch.batch_id, reason="the disk has room")
    for _ in range(40):
        ward.step()
        ward.work(broken=False)
    assert ward.batch(batch).state is BatchState.FINISHED
    assert ward.states(dead).count("done") == 40 - found.moved + ward.states(
        dead[: found.moved]
    ).count("done")


def test_four_deaths_are_too_few_for_the_breaker(ward: Ward) -> None:
    """A handful tells nothing; the canary is for that."""
    ward.die(30)
    batch = ward.started(rate=0.2)
    for _ in range(15):
        ward.step()
    ward.work(broken=True)
    for _ in range(10):
        ward.step()
    found = ward.batch(batch)
    assert ward.views.batch(batch.batch_id).dead_again == 4
    assert found.state is BatchState.RUNNING


# the audit


def test_every_step_of_a_batch_leaves_an_entry(ward: Ward) -> None:
    """Also its end, in the name of who confirmed it, with its counts."""
    ward.die(3)
    bob: Operations = ward.as_(Access(actor="bob", role=Role.OPERATOR, via="web"))
    draft = bob.preview_replay("", reason="bug 71", rate=1.0)
    ward.clock.step(SECOND)
    ward.operations.confirm_replay(draft.batch_id, reason="bug 71 is fixed")
    for verb in (bob.pause_replay, bob.resume_replay, partial(bob.pace_replay, rate=2.0)):
        ward.clock.step(SECOND)
        verb(draft.batch_id)
    ward.step(0)
    ward.clock.step(SECOND)
    bob.abort_replay(draft.batch_id, reason="wrong one")
    ward.clock.step(SECOND)
    ward.step(0)
    entries = list(ward.store.audit.of_target(f"batch:{draft.batch_id}", most=100))
    told = [(one.action.value, one.actor, one.outcome.value) for one in reversed(entries)]
    assert told == [
        ("batch.preview", "bob", "done"),
        ("batch.confirm", "ada", "done"),
        ("batch.pause", "bob", "done"),
        ("batch.resume", "bob", "done"),
        ("batch.pace", "bob", "done"),
        ("batch.abort", "bob", "done"),
        ("batch.finish", "ada", "done"),
    ]
    assert entries[0].note == "aborted: 1 moved, 2 left"
    assert entries[-1].details["planned"] == "3"


def test_a_pause_that_nobody_made_is_in_the_audit_too(ward: Ward) -> None:
    """The batch forgets it when it is resumed; and what the stepper did can be asked for.

    Source: after a resume nothing told that the canary had died.
    """
    batch_id, _ = canary(ward)
    ward.work(broken=True)
    ward.step(2)
    ward.operations.resume_replay(batch_id, reason="go on")
    (entry,) = ward.views.audit(AuditQuery(filter=f"via:stepper target:batch:{batch_id}")).items
    assert (entry.action.value, entry.actor) == ("batch.pause", "ada")
    assert entry.note.startswith("paused by its canary: of the first 3 runs 3 are dead again")


def test_users_tests_may_let_batches_run_with_everything_else() -> None:
    """The scheduler of `dynsched.testing` steps them as time passes."""
    app, mended = App(), [False]

    @app.job("work", max_attempts=1)
    def work() -> None:
        if not mended[0]:
            raise ValueError("no disk")

    with ManualScheduler(app) as scheduler:
        for _ in range(5):
            scheduler.enqueue("work")
        scheduler.run_due()
        draft = scheduler.operations.preview_replay("", reason="r", rate=1.0)
        mended[0] = True
        scheduler.operations.confirm_replay(draft.batch_id)
        assert scheduler.step_batches() == 1
        assert scheduler.advance(seconds=10) == 5
        assert {run.state.value for run in scheduler.runs("work")} == {"done"}
