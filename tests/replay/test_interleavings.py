"""Whatever people, workers and steppers do to a batch and its runs, its counts add up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsched.domain.batch import Batch, BatchState
from dynsched.domain.run import Run
from dynsched.errors import DynschedError
from dynsched.services.stepper import BatchStepper
from dynsched.storage.runs import PULLED_BACK, REPLAYED
from tests.replay.ward import SECOND, Ward

COUNT = 6


class Play:
    """A batch of six with a canary of two, in chunks of two, and everybody around it."""

    def __init__(self) -> None:
        self.ward = Ward(batch_chunk=2, step_runs=2)
        self.dead = self.ward.die(COUNT)
        self.batch: Batch = self.ward.started(canary=2, rate=None)
        self.other: BatchStepper = self.ward.another()

    def step(self, place: int) -> None:
        """Let one of two steppers step."""
        (self.ward.stepper if place % 2 else self.other).step()

    def away(self, place: int) -> None:
        """Let time pass, until the batch is nobody's any more or the breaker looks again."""
        self.ward.clock.step(timedelta(seconds=30 if place % 2 else 5))

    def work(self, place: int) -> None:
        """Let what is ready run, and die or end well."""
        self.ward.work(broken=bool(place % 2))

    def discard(self, place: int) -> None:
        """Discard a run, or show it again."""
        run = self._run(place)
        verbs = self.ward.operations
        (verbs.restore if run.hidden else verbs.discard)(run.run_id)

    def replay(self, place: int) -> None:
        """Replay a run by hand."""
        self.ward.operations.replay(self._run(place).run_id)

    def hold(self, place: int) -> None:
        """Pause the job with hold, or resume it."""
        job_id = self.dead[0].job_id
        if place % 2:
            self.ward.operations.pause(job_id, reason="r", hold=True)
        else:
            self.ward.operations.resume(job_id)

    def pause(self, _: int) -> None:
        """Pause the batch."""
        self.ward.operations.pause_replay(self.batch.batch_id)

    def resume(self, _: int) -> None:
        """Resume the batch."""
        self.ward.operations.resume_replay(self.batch.batch_id, reason="r")

    def abort(self, place: int) -> None:
        """Abort the batch, perhaps pulling back."""
        self.ward.operations.abort_replay(self.batch.batch_id, pull_back=bool(place % 2))

    def _run(self, place: int) -> Run:
        return self.ward.run(self.dead[place])

    def check(self) -> None:
        """Check the counts, and that each run was moved at most once."""
        self.ward.adds_up(self.batch)
        found = self.ward.batch(self.batch)
        deeds = [
            item
            for run in self.dead
            for item in self.ward.store.runs.attempts(run.run_id)
            if item.batch == found.batch_id
        ]
        moves = [item.run_id for item in deeds if item.outcome == REPLAYED]
        backs = [item.run_id for item in deeds if item.outcome == PULLED_BACK]
        assert len(moves) == len(set(moves))
        if found.settled:
            assert found.moved == len(moves) - len(backs)
            assert found.skipped.get("pulled back", 0) == len(backs)


ACTIONS: tuple[Callable[[Play, int], None], ...] = (
    Play.step,
    Play.step,
    Play.step,
    Play.away,
    Play.work,
    Play.discard,
    Play.replay,
    Play.hold,
    Play.pause,
    Play.resume,
    Play.abort,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Leave out the lines about hundreds of deaths."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, COUNT - 1)), max_size=25))
def test_any_interleaving_adds_up(moves: list[tuple[Callable[[Play, int], None], int]]) -> None:
    """Planned is moved, skipped, failed and left; and in the end the batch has ended."""
    play = Play()
    for act, place in moves:
        with suppress(DynschedError):  # what does not apply is refused
            act(play, place)
        play.ward.clock.step(SECOND)
        play.check()
    ward, batch_id = play.ward, play.batch.batch_id
    for _ in range(30):
        with suppress(DynschedError):
            ward.operations.resume_replay(batch_id, reason="r")
        ward.work(broken=False)
        ward.step(30)
    play.check()
    held = ward.operations.get_job(play.dead[0].job_id).policies.hold
    found = ward.batch(play.batch)
    assert held or found.state in (BatchState.FINISHED, BatchState.ABORTED)
    assert held or found.settled
