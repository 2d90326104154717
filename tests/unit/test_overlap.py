"""Permits of overlap: who may start, who waits, who is skipped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dynsched.domain.job import Overlap, Priority
from dynsched.domain.overlap import Answer, OverlapDecision, decide_overlap, holds
from dynsched.domain.run import Run, RunKey, RunKind, RunState

AT = datetime(2026, 1, 1, tzinfo=UTC)
FORBIDDING = [policy for policy in Overlap if policy is not Overlap.ALLOW]


def cron(minute: int, *, fence: int = 1, state: RunState = RunState.LEASED) -> Run:
    """Return the job's run of a minute."""
    at = AT + timedelta(minutes=minute)
    return Run(
        key=RunKey("j", at, RunKind.CRON),
        tenant="t",
        queue="main",
        priority=Priority.DEFAULT,
        share="t",
        state=state,
        available_at=at,
        needs="http",
        limit=3,
        fence=fence,
        created_at=AT,
    )


def manual(minute: int) -> Run:
    """Return a leased run made by hand."""
    run = cron(minute)
    return replace(run, key=RunKey("j", run.scheduled_for, RunKind.MANUAL, "0-x"))


def ask(
    run: Run, policy: Overlap, holder: Run | None = None, waiter: Run | None = None
) -> OverlapDecision:
    """Decide for a run, with a permit that names these runs as they are stored."""
    return decide_overlap(
        run,
        policy,
        holder=None if holder is None else (holder.run_id, holder.fence),
        waiter=None if waiter is None else waiter.run_id,
        holder_run=holder,
        waiter_run=waiter,
    )


@pytest.mark.parametrize("policy", FORBIDDING)
def test_a_permit_that_was_never_held_is_granted(policy: Overlap) -> None:
    """The first run of a job starts, and the permit names it with its fence."""
    decision = ask(cron(1, fence=4), policy)
    assert (decision.answer, decision.holder) == (Answer.GRANT, (cron(1).run_id, 4))


@pytest.mark.parametrize("policy", FORBIDDING)
@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.LEASED])
def test_a_permit_whose_holder_is_not_leased_is_free(policy: Overlap, state: RunState) -> None:
    """Nobody has to release a permit: the end of its holder does."""
    assert ask(cron(2), policy, cron(1, state=state)).answer is Answer.GRANT


@pytest.mark.parametrize("policy", FORBIDDING)
def test_a_permit_of_an_older_lease_is_free(policy: Overlap) -> None:
    """A holder that was reclaimed and leased again must take the permit anew."""
    leased_again = cron(1, fence=2)
    decision = decide_overlap(
        cron(2),
        policy,
        holder=(leased_again.run_id, 1),
        waiter=None,
        holder_run=leased_again,
        waiter_run=None,
    )
    assert decision.answer is Answer.GRANT


@pytest.mark.parametrize("policy", FORBIDDING)
def test_a_claim_that_is_over_does_not_write_over_the_newer_one(policy: Overlap) -> None:
    """A frozen claim of the same run would free the permit under its newer holder."""
    stale = cron(1, fence=1)
    decision = decide_overlap(
        stale,
        policy,
        holder=(stale.run_id, 2),
        waiter=None,
        holder_run=stale,
        waiter_run=None,
    )
    assert (decision.answer, decision.holder) == (Answer.WAIT, (stale.run_id, 2))


@pytest.mark.parametrize("policy", FORBIDDING)
def test_a_holder_that_asks_again_is_granted_without_a_change(policy: Overlap) -> None:
    """A grant whose answer was lost costs no second write."""
    run = cron(1)
    decision = ask(run, policy, run)
    assert (decision.answer, decision.holder, decision.waiter) == (
        Answer.GRANT,
        (run.run_id, 1),
        None,
    )


def test_skip_skips_a_cron_run_beside_another() -> None:
    """The later occurrence is skipped, and says which run stood in its way."""
    decision = ask(cron(2), Overlap.SKIP, cron(1))
    assert (decision.answer, decision.blocker) == (Answer.SKIP, cron(1))


@pytest.mark.parametrize("policy", FORBIDDING)
@pytest.mark.parametrize(
    "run",
    [manual(2), replace(cron(2), attempt=1), replace(cron(2), replays=1)],
    ids=["manual", "retried", "replayed"],
)
def test_a_run_that_is_no_first_occurrence_waits_and_is_never_skipped(
    policy: Overlap, run: Run
) -> None:
    """What people asked for, and what was begun, is not dropped."""
    decision = ask(run, policy, cron(1), cron(3, state=RunState.READY))
    assert decision.answer is Answer.WAIT
    assert decision.waiter == cron(3).run_id


def test_queue_one_keeps_the_first_waiter() -> None:
    """One occurrence waits; those after it are skipped."""
    first, holder = cron(2), cron(1)
    waits = ask(first, Overlap.QUEUE_ONE, holder)
    assert (waits.answer, waits.waiter) == (Answer.WAIT, first.run_id)
    later = ask(cron(3), Overlap.QUEUE_ONE, holder, replace(first, state=RunState.READY))
    assert later.answer is Answer.SKIP


def test_queue_one_takes_another_waiter_when_the_first_is_gone() -> None:
    """A waiter that was cancelled does not keep the place."""
    gone = cron(2, state=RunState.CANCELLED)
    decision = ask(cron(3), Overlap.QUEUE_ONE, cron(1), gone)
    assert (decision.answer, decision.waiter) == (Answer.WAIT, cron(3).run_id)


def test_cancel_running_asks_the_holder_to_stop() -> None:
    """The newest occurrence waits for the running one, which is asked to end."""
    decision = ask(cron(2), Overlap.CANCEL_RUNNING, cron(1))
    assert decision.answer is Answer.WAIT
    assert decision.ask_cancel
    assert decision.waiter == cron(2).run_id


def test_cancel_running_skips_a_waiter_that_is_not_the_newest() -> None:
    """Only the newest occurrence is of use; an older one gives way to it."""
    newest = cron(3, state=RunState.READY)
    assert ask(cron(2), Overlap.CANCEL_RUNNING, cron(1), newest).answer is Answer.SKIP
    older = cron(2, state=RunState.READY)
    assert ask(cron(3), Overlap.CANCEL_RUNNING, cron(1), older).waiter == cron(3).run_id


def test_a_granted_waiter_leaves_the_place_free() -> None:
    """Its name would otherwise keep later occurrences out."""
    run = cron(2)
    decision = ask(run, Overlap.QUEUE_ONE, cron(1, state=RunState.DONE), run)
    assert (decision.answer, decision.waiter) == (Answer.GRANT, None)


def test_a_grant_leaves_another_waiter_in_its_place() -> None:
    """A manual run that starts first does not take the waiter's turn."""
    waiter = cron(2, state=RunState.READY)
    assert ask(manual(3), Overlap.QUEUE_ONE, None, waiter).waiter == waiter.run_id


def test_a_holder_that_is_gone_from_the_store_holds_nothing() -> None:
    """Rows expire; a permit that names one is free."""
    assert not holds(("j@x", 1), None)
    assert not holds(None, cron(1))
