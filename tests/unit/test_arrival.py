"""What a message that has arrived is worth, by its run's row, and when it is looked at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dynsched.domain.arrival import (
    AGAIN_MAX,
    CAPPED_MAX,
    HELD_MAX,
    Arrival,
    again_after,
    again_at,
    again_waiting,
    arrival_of,
    first_due,
)
from dynsched.domain.run import RunState
from tests.unit.builders import run_of

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.READY])
def test_a_message_of_a_run_that_is_not_ready_is_dropped(state: RunState) -> None:
    """Leased, failed or ended: whoever makes it ready again sends another."""
    assert arrival_of(run_of(state=state, available_at=NOW), NOW)[0] is Arrival.DROP


def test_a_message_without_a_run_is_dropped() -> None:
    """Its row has expired."""
    assert arrival_of(None, NOW)[0] is Arrival.DROP


@pytest.mark.parametrize(
    ("available_at", "worth"),
    [(NOW, Arrival.DUE), (NOW - SECOND, Arrival.DUE), (NOW + SECOND, Arrival.EARLY)],
)
def test_a_ready_run_is_due_from_its_instant_on(available_at: datetime, worth: Arrival) -> None:
    """To the millisecond, by this process's clock."""
    assert arrival_of(run_of(state=RunState.READY, available_at=available_at), NOW)[0] is worth


def test_an_early_message_is_hidden_within_what_sqs_allows() -> None:
    """At least a second, else it would come back at once; never twelve hours."""
    assert again_at(NOW + timedelta(milliseconds=3), NOW) == SECOND
    assert again_at(NOW + 90 * SECOND, NOW) == 90 * SECOND
    assert again_at(NOW + timedelta(days=9), NOW) == AGAIN_MAX < timedelta(hours=12)


def test_a_refused_message_comes_back_ever_more_rarely() -> None:
    """So a day at a cap counts some hundred receives, and the queue gives none up."""
    age, visits = SECOND, 0
    while age < timedelta(days=1):
        age += again_after(age, CAPPED_MAX)
        visits += 1
    assert 200 < visits < 400
    assert again_after(timedelta(days=1), HELD_MAX) == HELD_MAX


def test_a_message_is_as_old_as_its_run_is_due_and_told_of() -> None:
    """Neither a delay nor a second message makes it older."""
    due = run_of(state=RunState.READY, available_at=NOW, at=NOW - 60 * SECOND)
    assert first_due(due, None) == NOW
    assert first_due(due, NOW - 30 * SECOND) == NOW
    assert first_due(due, NOW + 30 * SECOND) == NOW + 30 * SECOND


def test_a_run_that_waits_for_long_is_looked_at_more_rarely_than_its_row_says() -> None:
    """Its blocker's end pulls it forward and sends a message; this one is the net below."""
    at = NOW + 30 * SECOND
    few, many = (run_of(state=RunState.READY, available_at=at, waits=n) for n in (3, 100))
    assert again_waiting(few, NOW) == 30 * SECOND
    assert again_waiting(many, NOW) == CAPPED_MAX
