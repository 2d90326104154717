"""The lifecycle: each row of its table, each move that it does not have, each dependent field."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.instants import EPOCH
from dynsched.domain.job import Priority
from dynsched.domain.lifecycle import Transition
from dynsched.domain.moves import BY_EVENT, MOVES, Event
from dynsched.domain.run import TERMINAL, Run, RunState
from dynsched.errors import IllegalTransition
from dynsched.testing.moves import event_of
from tests.unit.builders import NOW, run_of

LATER = NOW + timedelta(hours=1)
AHEAD = timedelta(seconds=30)
STARTED = NOW - timedelta(seconds=9)

MAKE: dict[Event, Callable[[Run], Transition]] = {
    Event.CLAIM: lambda run: lifecycle.claim(run, session="s"),
    Event.STEP_BACK: lambda run: lifecycle.step_back(run, available_at=NOW, now=NOW),
    Event.SUCCEED: lambda run: lifecycle.succeed(run, started_at=STARTED, now=NOW),
    Event.SNOOZE: lambda run: lifecycle.snooze(
        run, started_at=STARTED, now=NOW, until=LATER, look_ahead=AHEAD
    ),
    Event.AWAIT_CALLBACK: lambda run: lifecycle.await_callback(
        run, session="~callback:1", started_at=STARTED, ends_at=LATER, callback="digest"
    ),
    Event.RETRY: lambda run: retry(run, LATER),
    Event.BURY: lambda run: buried(run, started_at=STARTED),
    Event.HAND_BACK: lambda run: lifecycle.hand_back(
        run, started_at=STARTED, now=NOW, reason="drain"
    ),
    Event.SKIP: lambda run: lifecycle.skip(run, now=NOW, reason="overlap"),
    Event.CANCEL: lambda run: lifecycle.cancel(run, now=NOW, reason="by hand"),
    Event.RECLAIM: lambda run: lifecycle.reclaim(run, now=NOW, signature="g"),
    Event.DUE: lifecycle.due,
    Event.REPLAY: lambda run: lifecycle.replay(run, now=NOW, max_attempts=3),
    Event.PULL_BACK: lambda run: lifecycle.pull_back(
        run, now=NOW, ended_at=NOW, priority=Priority.HIGH
    ),
    Event.DISCARD: lifecycle.discard,
    Event.RESTORE: lifecycle.restore,
    Event.ASK_CANCEL: lifecycle.ask_cancel,
    Event.PULL_FORWARD: lambda run: lifecycle.pull_forward(run, now=NOW),
    Event.MARK_WAITER: lambda run: lifecycle.mark_waiter(run, waiter="w"),
}
LEGAL = [(move.event, state) for move in MOVES for state in sorted(move.sources)]
ILLEGAL = [
    (event, state) for event in Event for state in RunState if state not in BY_EVENT[event].sources
]
GIVING_BACK = [
    move.event
    for move in MOVES
    if RunState.LEASED in move.sources and RunState.READY in move.targets
]


def retry(run: Run, at: datetime) -> Transition:
    """Return the retry of a run at an instant."""
    return lifecycle.retry(
        run,
        started_at=STARTED,
        now=NOW,
        at=at,
        look_ahead=AHEAD,
        error="OSError: x",
        signature="g",
    )


def buried(run: Run, *, started_at: datetime | None) -> Transition:
    """Return the burial of a run, after a try or without one."""
    return lifecycle.bury(
        run,
        now=NOW,
        reason="permanent error" if started_at else "no handler",
        error="OSError: x",
        signature="g",
        started_at=started_at,
    )


def test_the_table_has_one_row_for_each_event() -> None:
    """No event is left out, and none has two meanings."""
    assert [move.event for move in MOVES] == list(Event)
    assert MAKE.keys() == set(Event)


@pytest.mark.parametrize(("event", "state"), LEGAL)
def test_each_row_of_the_table_is_a_move(event: Event, state: RunState) -> None:
    """A move leads to one of its row's states, under the version seen, as the same run."""
    before = run_of(state, hidden=event is Event.RESTORE)
    made = MAKE[event](before)
    assert (made.event, made.before) == (event, before)
    assert made.after.state in BY_EVENT[event].targets
    assert (made.after.version, made.after.key) == (before.version + 1, before.key)


@pytest.mark.parametrize(("event", "state"), ILLEGAL)
def test_what_the_table_does_not_have_is_refused(event: Event, state: RunState) -> None:
    """Each other pair of event and state raises, and says where the run stands."""
    with pytest.raises(IllegalTransition, match=state.value):
        MAKE[event](run_of(state))


@pytest.mark.parametrize(("event", "state"), LEGAL)
def test_a_lease_is_named_exactly_while_a_run_is_leased(event: Event, state: RunState) -> None:
    """No state but `leased` has a session, and `leased` always has one."""
    after = MAKE[event](run_of(state)).after
    assert (after.session is not None) == (after.state is RunState.LEASED)


@pytest.mark.parametrize(("event", "state"), LEGAL)
def test_an_end_and_an_expiry_go_with_terminal_states_only(event: Event, state: RunState) -> None:
    """What may still run never expires, and what has ended always does."""
    after = MAKE[event](run_of(state)).after
    assert (after.ended_at is not None) == (after.state in TERMINAL)
    assert (after.expires_at_s is not None) == (after.state in TERMINAL)


@pytest.mark.parametrize(("event", "state"), LEGAL)
def test_only_a_claim_changes_hands(event: Event, state: RunState) -> None:
    """The fence grows by one with a claim, and by nothing else."""
    before = run_of(state)
    assert MAKE[event](before).after.fence - before.fence == (event is Event.CLAIM)


@pytest.mark.parametrize(
    ("event", "attempt", "spent"),
    [
        (Event.SUCCEED, 1, 0),
        (Event.SNOOZE, 1, 0),
        (Event.RETRY, 1, 1),
        (Event.BURY, 1, 1),
        (Event.HAND_BACK, 1, 0),
        (Event.RECLAIM, 1, 0),
        (Event.STEP_BACK, 0, 0),
        (Event.SKIP, 0, 0),
    ],
)
def test_a_try_is_counted_if_it_started_or_may_have(event: Event, attempt: int, spent: int) -> None:
    """`attempt` counts starts and lost leases, `spent` only failures that were reported."""
    before = run_of(RunState.LEASED)
    after = MAKE[event](before).after
    assert (after.attempt - before.attempt, after.spent - before.spent) == (attempt, spent)


@pytest.mark.parametrize("event", GIVING_BACK)
def test_a_requested_cancel_wins_over_every_way_back(event: Event) -> None:
    """Who was asked to stop is not started again."""
    after = MAKE[event](run_of(RunState.LEASED, cancel_requested=True)).after
    assert (after.state, after.reason) == (RunState.CANCELLED, "cancel requested")


def test_the_third_loss_in_a_row_is_dead() -> None:
    """A run that seems to kill its process is not tried for ever."""
    run = run_of(RunState.LEASED, losses=2)
    after = MAKE[Event.RECLAIM](run).after
    assert (after.state, after.reason, after.losses) == (RunState.DEAD, "poison", 3)


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.SNOOZE, Event.RETRY, Event.BURY])
def test_a_reported_outcome_zeroes_the_losses(event: Event) -> None:
    """Losses of separate tries do not add up to poison."""
    after = MAKE[event](run_of(RunState.LEASED, losses=2)).after
    assert (after.losses, after.reported) == (0, True)


def test_a_hand_back_is_no_loss_and_forgets_none() -> None:
    """A living worker says that it goes on elsewhere; what was lost before stays counted."""
    assert MAKE[Event.HAND_BACK](run_of(RunState.LEASED, losses=1)).after.losses == 1


def test_a_replay_keeps_the_attempts_and_raises_the_limit() -> None:
    """The history goes on; only what would end it at once is put back."""
    dead = run_of(RunState.DEAD, attempt=6, spent=5, limit=5, waits=3, cancel_requested=True)
    after = MAKE[Event.REPLAY](dead).after
    assert (after.attempt, after.spent, after.limit) == (6, 5, 8)
    assert (after.replays, after.waits, after.cancel_requested) == (1, 0, False)
    assert after.idempotency_key == dead.idempotency_key


def test_a_replayed_poison_run_dies_at_its_next_loss() -> None:
    """It comes back with two losses, so that it runs alone."""
    replayed = MAKE[Event.REPLAY](run_of(RunState.DEAD, losses=3)).after
    leased = MAKE[Event.CLAIM](replayed).after
    assert MAKE[Event.RECLAIM](leased).after.state is RunState.DEAD


def test_a_retry_within_the_look_ahead_is_ready_at_once() -> None:
    """Workers time it in memory; only later ones wait in a minute bucket."""
    run = run_of(RunState.LEASED)
    assert retry(run, NOW + AHEAD).after.state is RunState.READY
    assert retry(run, NOW + AHEAD + timedelta(milliseconds=1)).after.state is RunState.FAILED


def test_a_run_without_a_handler_is_dead_without_a_try() -> None:
    """Nothing was called, so nothing is counted."""
    before = run_of(RunState.LEASED)
    after = buried(before, started_at=None).after
    assert (after.state, after.attempt, after.spent) == (RunState.DEAD, 2, 1)
    assert not after.reported


def test_the_expiry_is_the_end_plus_the_retention() -> None:
    """A row is kept for as long as its job asks."""
    after = MAKE[Event.SUCCEED](run_of(RunState.LEASED, retention=timedelta(days=3))).after
    assert after.expires_at_s == int((NOW + timedelta(days=3) - EPOCH).total_seconds())


@pytest.mark.parametrize(("event", "state"), LEGAL)
def test_a_move_can_be_told_from_its_rows(event: Event, state: RunState) -> None:
    """The checker of histories names each move, or one that writes the same."""
    made = MAKE[event](run_of(state, hidden=event is Event.RESTORE))
    told = event_of(made.before, made.after)
    assert told is not None
    assert made.after.state in BY_EVENT[told].targets
