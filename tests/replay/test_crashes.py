"""Replay batches under crashes: no entry twice, none lost, and the counts right."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dynsched.bootstrap import build_operations
from dynsched.domain.access import Access
from dynsched.domain.batch import Batch, BatchState
from dynsched.domain.run import Run
from dynsched.errors import Conflict, StoreError
from dynsched.services.stepper import BatchStepper
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.faults import Call, Crash, Fault, FaultyEngine
from tests.replay.ward import Ward

LONG = 30  # seconds: longer than a batch is owned
BOUNDS: dict[str, Any] = {"batch_chunk": 4, "step_runs": 3}


@dataclass(slots=True)
class Scene:
    """A batch of nine, over three chunks and four steps, of which two cannot be moved."""

    ward: Ward
    dead: list[Run]
    batch: Batch


def scene(*, aborted: bool = False) -> Scene:
    """Return a batch that is about to be stepped; or one that has moved four and is taken back."""
    ward = Ward(**BOUNDS)
    dead = ward.die(9)
    draft = ward.operations.preview_replay("", rate=None)
    ward.operations.discard(dead[1].run_id)
    ward.operations.replay(dead[5].run_id)
    batch = ward.operations.confirm_replay(draft.batch_id, reason="r")
    if aborted:
        for _ in range(2):
            ward.stepper.step()
        ward.operations.abort_replay(batch.batch_id, reason="no", pull_back=True)
        ward.clock.step(timedelta(seconds=LONG))
    return Scene(ward, dead, batch)


def go_on(stepper: BatchStepper) -> None:
    """Step for as long as there is something to do at once."""
    while stepper.step().again:
        pass


def calls(prepare: Callable[[], Scene]) -> list[Call]:
    """Return the calls that a stepper makes from a scene to the end."""
    plain = prepare()
    engine = FaultyEngine(plain.ward.engine)
    go_on(plain.ward.another(engine))
    return engine.calls


def blows(made: list[Call]) -> Iterator[tuple[int, Fault]]:
    """Return every place and way to die."""
    for call in made:
        yield call.number, Fault.CRASH_BEFORE
        if call.writes:
            yield call.number, Fault.CRASH_AFTER
        if len(call.writes) > 1:
            yield call.number, Fault.CRASH_HALFWAY


def check_moved(made: Scene) -> None:
    """Check that each entry was moved once, noted once, and is counted once."""
    ward, batch = made.ward, made.batch
    found = ward.batch(batch)
    assert (found.state, found.moved, found.left) == (BatchState.FINISHED, 7, 0)
    assert found.skipped == {
        "discarded": 1,
        "not dead any more: replayed by somebody else": 1,
    }
    stored = ward.store.batches.get(batch.batch_id)
    assert stored is not None
    assert (stored.moved, stored.skipped, stored.failed) == (found.moved, found.skipped, 0)
    for place, run in enumerate(made.dead):
        now = ward.run(run)
        moved = place not in (1, 5)
        assert (now.replays, now.batch == batch.batch_id) == (0 if place == 1 else 1, moved)
        notes = [item.batch for item in ward.store.runs.attempts(run.run_id) if item.by]
        assert notes == ([batch.batch_id] if moved else [""] * (place == 5))
    ward.adds_up(batch)
    check_ended_once(made)


def check_ended_once(made: Scene) -> None:
    """Check that the end is told once, and that no stepper has anything to do any more."""
    told = made.ward.store.audit.of_target(f"batch:{made.batch.batch_id}", most=100)
    assert [entry.action.value for entry in told].count("batch.finish") == 1
    assert made.ward.store.batches.pointed(most=10) == {}


def check_pulled_back(made: Scene) -> None:
    """Check that what was moved is dead as before, and everything is counted once."""
    ward = made.ward
    found = ward.batch(made.batch)
    assert (found.state, found.settled, found.moved) == (BatchState.ABORTED, True, 0)
    assert (found.skipped, found.left) == ({"pulled back": 3, "discarded": 1}, 5)
    for place, run in enumerate(made.dead):
        if place not in (1, 5):
            now = ward.run(run)
            assert (now.state, now.ended_at, now.replays) == (run.state, run.ended_at, 0)
    ward.adds_up(made.batch)
    check_ended_once(made)


@pytest.mark.parametrize(
    ("prepare", "check"),
    [(scene, check_moved), (lambda: scene(aborted=True), check_pulled_back)],
    ids=["moving", "pulling back"],
)
def test_a_stepper_may_die_at_any_call_and_another_finishes(
    prepare: Callable[[], Scene], check: Callable[[Scene], None]
) -> None:
    """By the history of each run: it was moved exactly once, whoever moved it."""
    for number, fault in blows(calls(prepare)):
        made = prepare()
        with pytest.raises(Crash):
            go_on(made.ward.another(FaultyEngine(made.ward.engine, {number: fault})))
        made.ward.clock.step(timedelta(seconds=LONG))
        go_on(made.ward.another())
        check(made)


@pytest.mark.parametrize(
    ("prepare", "check"),
    [(scene, check_moved), (lambda: scene(aborted=True), check_pulled_back)],
    ids=["moving", "pulling back"],
)
def test_a_stepper_may_freeze_at_any_call_while_another_does_its_work(
    prepare: Callable[[], Scene], check: Callable[[Scene], None]
) -> None:
    """Ownership is no lock: the one that wakes up changes nothing that was done meanwhile."""
    for frozen in calls(prepare):
        made = prepare()

        def plan(call: Call, made: Scene = made, frozen: Call = frozen) -> Fault:
            if call.number == frozen.number:
                made.ward.clock.step(timedelta(seconds=LONG))
                go_on(made.ward.another())
            return Fault.NONE

        go_on(made.ward.another(FaultyEngine(made.ward.engine, plan)))
        made.ward.clock.step(timedelta(seconds=LONG))
        go_on(made.ward.another())
        check(made)


def test_two_steppers_that_take_turns_move_each_entry_once() -> None:
    """The one that does not own the batch leaves it alone as long as the owner is heard of."""
    made = scene()
    other = made.ward.another()
    assert made.ward.stepper.step().moved == 2
    assert (other.step().moved, other.step().running) == (0, 1)
    go_on(made.ward.stepper)
    check_moved(made)


def test_a_stepper_that_ends_lets_another_go_on_at_once() -> None:
    """A restart is no reason to wait for the end of its ownership."""
    made = scene()
    assert made.ward.stepper.step().moved == 2
    made.ward.stepper.close()
    go_on(made.ward.another())
    check_moved(made)


def test_a_lost_answer_to_a_confirm_starts_one_batch() -> None:
    """Whatever is lost at whichever of its calls: it runs once, and a second confirm is refused."""
    made = Ward()
    made.die(2)
    draft = made.operations.preview_replay("", reason="r", rate=None)
    engine = FaultyEngine(made.engine)
    build_operations(made.connect(engine)).confirm_replay(draft.batch_id)
    for call in (one for one in engine.calls if one.writes):
        for fault in (Fault.LOST_APPLIED, Fault.LOST_UNAPPLIED):
            ward = Ward()
            dead = ward.die(2)
            draft = ward.operations.preview_replay("", reason="r", rate=None)
            faulty = FaultyEngine(ward.engine, {call.number: fault})
            build_operations(ward.connect(faulty)).confirm_replay(draft.batch_id)
            with pytest.raises(Conflict, match="was confirmed by"):
                ward.operations.confirm_replay(draft.batch_id)
            ward.step()
            assert [ward.run(run).replays for run in dead] == [1, 1]


def test_a_confirm_that_dies_anywhere_can_be_made_again() -> None:
    """Either the draft was not started yet, or the second confirm is told by whom it was."""
    plain = Ward()
    plain.die(2)
    draft = plain.operations.preview_replay("", reason="r", rate=None)
    engine = FaultyEngine(plain.engine)
    build_operations(plain.connect(engine)).confirm_replay(draft.batch_id)
    for number, fault in blows(engine.calls):
        ward = Ward()
        dead = ward.die(2)
        draft = ward.operations.preview_replay("", reason="r", rate=None)
        with pytest.raises(Crash):
            build_operations(
                ward.connect(FaultyEngine(ward.engine, {number: fault}))
            ).confirm_replay(draft.batch_id)
        if ward.batch(draft).state is BatchState.DRAFT:
            ward.operations.confirm_replay(draft.batch_id)
        with pytest.raises(Conflict, match="was confirmed by"):
            ward.operations.confirm_replay(draft.batch_id)
        ward.step()
        assert [ward.run(run).replays for run in dead] == [1, 1]


def test_of_many_confirms_at_once_one_wins_and_the_others_are_told_who(tmp_path: Path) -> None:
    """Two operators, a double click, and a retry: they start one batch."""
    ward = Ward(SqliteEngine(str(tmp_path / "jobs.db")))
    dead = ward.die(3)
    draft = ward.operations.preview_replay("", reason="r", rate=None)
    answers: list[str] = []
    gate = threading.Barrier(4)

    def confirm(name: str) -> None:
        verbs = ward.as_(Access(actor=name))
        gate.wait()
        try:
            verbs.confirm_replay(draft.batch_id)
        except (Conflict, StoreError) as refused:
            answers.append(str(refused))
        else:
            answers.append(f"won {name}")

    threads = [threading.Thread(target=confirm, args=(f"op{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (answer.split()[1] for answer in answers if answer.startswith("won"))
    lost = [answer for answer in answers if not answer.startswith("won")]
    assert len(lost) == 3
    assert all(f"was confirmed by {winner} at" in answer for answer in lost)
    ward.step()
    assert [ward.run(run).replays for run in dead] == [1, 1, 1]
    ward.base.store.engine.close()


def marks_are_written(call: Call) -> bool:
    """Return whether a call writes the marks of a chunk."""
    return any("m" in getattr(getattr(one, "row", None), "body", {}) for one in call.writes) and (
        call.writes[0].key.pk.startswith("batch#")
    )


def test_what_was_moved_by_a_stepper_that_died_is_counted_after_an_abort_too() -> None:
    """It died before it wrote its marks; what it moved is told by the runs."""
    made = scene()
    faulty = FaultyEngine(
        made.ward.engine,
        lambda call: Fault.CRASH_BEFORE if marks_are_written(call) else Fault.NONE,
    )
    with pytest.raises(Crash):
        go_on(made.ward.another(faulty))
    made.ward.operations.abort_replay(made.batch.batch_id)
    made.ward.clock.step(timedelta(seconds=LONG))
    go_on(made.ward.another())
    found = made.ward.batch(made.batch)
    assert (found.moved, found.left, found.skipped) == (2, 7, {})
    check_ended_once(made)


def test_who_moved_an_entry_is_believed_over_who_found_that_it_may_not_be() -> None:
    """A stepper that froze with an old verdict in hand does not write it over the newer mark."""
    ward = Ward(**BOUNDS)
    dead = ward.die(3)
    batch = ward.started()
    ward.operations.pause(ward.job().job_id, reason="r", hold=True)

    def plan(call: Call) -> Fault:
        if marks_are_written(call) and not ward.operations.get_run(dead[0].run_id).batch:
            ward.operations.resume(ward.job().job_id)
            ward.clock.step(timedelta(seconds=LONG))
            go_on(ward.another())
        return Fault.NONE

    go_on(ward.another(FaultyEngine(ward.engine, plan)))
    found = ward.batch(batch)
    assert (found.state, found.moved, found.skipped) == (BatchState.FINISHED, 3, {})
    assert ward.states(dead) == ["ready"] * 3
