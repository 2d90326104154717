"""The rules of batches and their entries, without a store."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain import lifecycle
from dynsched.domain.batch import Batch, breaker_trips, canary_says, counted, needs_of
from dynsched.domain.batch_entry import Fates, Mark, entry_of, fate_of, judge, merged
from dynsched.domain.job import JobState, Priority
from dynsched.domain.moves import Event
from dynsched.domain.run import Run, RunState
from dynsched.storage.batches import decode_batch, encode_batch
from dynsched.storage.engine import Key, Row, Table
from dynsched.testing.moves import event_of
from tests.unit.builders import NOW, job_of, run_of

DEAD = run_of(RunState.DEAD, signature="g", error="OSError: x")


def batch_of(**fields: Any) -> Batch:
    """Return a batch of ten."""
    batch = Batch(
        batch_id="b",
        actor="ada",
        filter="state:dead",
        cut_off=NOW,
        planned=10,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=15),
    )
    return replace(batch, **fields)


def moved(run: Run = DEAD, batch_id: str = "b") -> Run:
    """Return a dead run as a batch has moved it."""
    return lifecycle.replay(
        run, now=NOW, max_attempts=3, batch=batch_id, priority=Priority.BULK
    ).after


JUDGED = (
    ("as it was", DEAD, Mark.LEFT),
    ("gone", None, Mark.GONE),
    ("moved by this batch", moved(), Mark.MOVED),
    ("moved, and dead again", replace(moved(), state=RunState.DEAD), Mark.MOVED),
    ("moved by another batch", moved(batch_id="c"), Mark.REPLAYED),
    ("tried again", replace(DEAD, attempt=3), Mark.DIED_AGAIN),
    ("died later", replace(DEAD, ended_at=NOW + timedelta(seconds=1)), Mark.DIED_AGAIN),
    ("discarded", replace(DEAD, hidden=True), Mark.DISCARDED),
)


@pytest.mark.parametrize(("now", "mark"), [case[1:] for case in JUDGED], ids=[c[0] for c in JUDGED])
def test_an_entry_is_judged_by_its_run(now: Run | None, mark: Mark) -> None:
    """Only the death that was previewed may be moved."""
    assert judge(entry_of(DEAD), now, job_of(), batch_id="b") is mark


def test_an_entry_is_judged_by_its_job_too() -> None:
    """A run of a job that is gone or held would not start."""
    held = job_of(state=JobState.PAUSED, policies={"hold": True})
    found = [
        judge(entry_of(DEAD), DEAD, job, batch_id="b")
        for job in (None, job_of(state=JobState.DELETED), held, job_of(state=JobState.PAUSED))
    ]
    assert found == [Mark.NO_JOB, Mark.NO_JOB, Mark.HELD, Mark.LEFT]


@pytest.mark.parametrize("losses", [0, 1, lifecycle.POISON_LOSSES])
def test_a_pull_back_undoes_a_move(losses: int) -> None:
    """Nothing of the run tells that it was moved but the reason and the versions."""
    before = replace(DEAD, losses=losses, priority=Priority.HIGH, replays=2, batch="")
    ready = moved(before)
    move = lifecycle.pull_back(ready, now=NOW, ended_at=NOW, priority=Priority.HIGH)
    differ = {"version", "reason", "limit", "expires_at_s"}
    if losses == 1:
        differ.add("losses")  # a replay forgives them
    assert {
        name for name, value in vars(before).items() if getattr(move.after, name) != value
    } <= differ
    assert move.after.losses == (0 if losses == 1 else losses)
    assert event_of(ready, move.after) is Event.PULL_BACK


def test_whoever_moved_an_entry_knows_best() -> None:
    """Marks of two steppers are merged in any order to the same."""
    for old in Mark:
        assert merged(old.value, Mark.PULLED_BACK) == Mark.PULLED_BACK.value
        expected = Mark.PULLED_BACK if old is Mark.PULLED_BACK else Mark.MOVED
        assert merged(old.value, Mark.MOVED) == expected.value
        if old is not Mark.LEFT:
            assert merged(old.value, Mark.DISCARDED) == old.value


@given(st.lists(st.sampled_from(list(Mark)), min_size=1, max_size=60), st.integers(1, 7))
def test_every_entry_is_in_exactly_one_count(marks: list[Mark], chunk: int) -> None:
    """Planned is moved, skipped, failed and left, however the marks lie in chunks."""
    batch = batch_of(planned=len(marks), chunk=chunk)
    done = Counter(mark.value for mark in marks[:chunk])
    current = Counter(mark.value for mark in marks[chunk:])
    found = counted(batch, position=1, done=done, current=current)
    assert found.moved == marks.count(Mark.MOVED)
    assert found.failed == marks.count(Mark.FAILED)
    assert found.left == marks.count(Mark.LEFT)
    assert found.planned == found.moved + sum(found.skipped.values()) + found.failed + found.left


@pytest.mark.parametrize(
    ("planned", "tenants", "reason", "count"),
    [(1, 1, False, False), (2, 1, True, False), (99, 1, True, False), (100, 1, True, True),
     (2, 2, True, True)],
)  # fmt: skip
def test_a_confirm_needs_more_the_more_it_touches(
    planned: int, tenants: int, reason: bool, count: bool
) -> None:
    """One run is a yes, a hundred or two tenants are a number to be typed."""
    needs = needs_of(batch_of(planned=planned, tenants=tenants))
    assert (needs.reason, needs.count) == (reason, count)


@pytest.mark.parametrize(
    ("done", "dead", "trips"),
    [(0, 4, False), (0, 5, True), (3, 3, False), (2, 3, True), (25, 25, False), (24, 26, True)],
)
def test_the_breaker_trips_above_its_part_of_at_least_five(
    done: int, dead: int, trips: bool
) -> None:
    """Half is not more than half."""
    assert bool(breaker_trips(batch_of(), Fates(done, dead))) is trips
    assert not breaker_trips(batch_of(breaker=1.0), Fates(0, 50))


def test_a_canary_speaks_only_of_deaths_or_when_it_is_to_hold() -> None:
    """Else the others follow by themselves."""
    assert canary_says(batch_of(), Fates(3, 2)) == ""
    assert "3 are dead again" in canary_says(batch_of(), Fates(2, 3))
    assert "your turn" in canary_says(batch_of(canary_hold=True), Fates(5, 0))


def test_what_became_of_a_moved_run_is_told_by_its_row() -> None:
    """A run that another batch has moved since must have died in between."""
    told = [
        fate_of(one, "b")
        for one in (
            moved(),
            replace(moved(), state=RunState.LEASED),
            replace(moved(), state=RunState.DONE),
            replace(moved(), state=RunState.DEAD),
            moved(batch_id="c"),
            None,
        )
    ]
    assert told == ["open", "open", "done", "dead", "dead", "done"]


def test_a_batch_is_stored_and_read_back_whole() -> None:
    """Every field, those of a batch under way too."""
    batch = batch_of(
        counts={"job": {"j": 10}},
        skipped={"discarded": 1},
        notes=("n",),
        rate=None,
        canary=3,
        canary_passed=True,
        moved=2,
        done={"m": 2},
        confirmed_at=NOW,
        confirmed_by="ada",
        paced_at=NOW,
        owner="s",
        owned_until=NOW,
        parent="p",
        version=7,
    )
    row = Row(Key(Table.CONTROL, "batches", "b"), encode_batch(batch), version=7)
    assert decode_batch(row) == batch
