"""The stop signal, the watch over time limits, and the context that shows them to handlers."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from dynsched.domain.instants import Signal
from dynsched.errors import InvalidInput
from dynsched.targets.context import Cancelled, Context, Progress, RetryAfter, Snooze
from dynsched.targets.stop import Limits, LimitWatch, Stop, StopReason

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


class HandClock:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the instant."""
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.seconds

    def wait_for(self, event: Signal, seconds: float) -> bool:
        """Step, and say whether the event is set."""
        self.wait(seconds)
        return event.is_set()

    def wait(self, seconds: float) -> None:
        """Move on."""
        self.seconds += seconds


def context(**more: object) -> Context[object]:
    """Return the context of an ordinary attempt."""
    plain: dict[str, object] = {
        "payload": None,
        "idempotency_key": "k",
        "job_id": "j",
        "job_name": "nightly",
    }
    plain |= {"run_id": "r", "tenant": "t", "scheduled_for": NOW}
    return Context(**(plain | more))  # type: ignore[arg-type]  # a test's own choice


def test_the_weightier_reason_takes_precedence() -> None:
    """A drain after a time limit is still a time limit; a lost lease goes before all."""
    stop = Stop()
    told: list[StopReason | None] = []
    for reason in (StopReason.DRAIN, StopReason.SOFT_LIMIT, StopReason.LEASE_LOST):
        stop.set(reason)
        told.append(stop.reason)
    stop.set(StopReason.DRAIN)
    assert told == [StopReason.DRAIN, StopReason.SOFT_LIMIT, StopReason.LEASE_LOST]
    assert stop.reason is StopReason.LEASE_LOST


def test_a_listener_hears_each_reason_once_the_earlier_ones_too() -> None:
    """Nobody misses a signal that came just before he listened."""
    stop, heard = Stop(), list[StopReason]()
    stop.set(StopReason.DRAIN)
    with stop.heard_by(heard.append):
        stop.set(StopReason.DRAIN)
        stop.set(StopReason.CANCELLED)
    stop.set(StopReason.LEASE_LOST)
    assert heard == [StopReason.DRAIN, StopReason.CANCELLED]


def test_a_failing_listener_keeps_no_other_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    """Each target's way of listening is its own affair."""
    stop, heard = Stop(), list[StopReason]()

    def fail(_: StopReason) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.CRITICAL), stop.heard_by(fail), stop.heard_by(heard.append):
        stop.set(StopReason.DRAIN)
    assert heard == [StopReason.DRAIN]


def test_limits_are_raised_in_their_order_as_time_goes() -> None:
    """Soft, then hard, each at its time from the start of the attempt."""
    clock, stop, raised = HandClock(), Stop(), (StopReason.SOFT_LIMIT, StopReason.HARD_LIMIT)
    watch = LimitWatch(clock)
    clock.seconds = 100
    with watch.over(Limits(soft=timedelta(seconds=10), hard=timedelta(seconds=15)), stop):
        assert watch.look() == 10
        clock.wait(10)
        assert watch.look() == 5
        assert [stop.has(one) for one in raised] == [True, False]
        clock.wait(7)
        assert watch.look() == float("inf")
        assert [stop.has(one) for one in raised] == [True, True]
    watch.close()


def test_an_earlier_limit_is_not_overslept() -> None:
    """The watch sleeps for the first attempt's limit when a second one comes with a nearer one."""

    class Running(HandClock):
        def monotonic(self) -> float:
            """Return running seconds."""
            return time.monotonic()

    watch, far, near = LimitWatch(Running()), Stop(), Stop()
    with watch.over(Limits(soft=timedelta(minutes=5)), far):
        far.wait(0.05)
        with watch.over(Limits(soft=timedelta(milliseconds=20)), near):
            assert near.wait(5)
    assert not far.is_set()
    watch.close()


def test_an_attempt_that_ended_is_watched_no_more() -> None:
    """A late limit does not touch what is over."""
    clock, stop = HandClock(), Stop()
    watch = LimitWatch(clock)
    with watch.over(Limits(soft=timedelta(seconds=10)), stop):
        pass
    clock.wait(20)
    watch.look()
    assert not stop.is_set()
    watch.close()


def test_an_attempt_without_limits_costs_no_thread() -> None:
    """Most runs of a drain have none."""
    before = threading.active_count()
    with LimitWatch(HandClock()).over(Limits(), Stop()):
        assert threading.active_count() == before


@pytest.mark.parametrize("limits", [{"soft": 0}, {"hard": -1}, {"soft": 5, "hard": 4}], ids=str)
def test_impossible_limits_are_refused(limits: dict[str, int]) -> None:
    """A limit in the past would kill every attempt at its start."""
    with pytest.raises(InvalidInput, match="timeout"):
        Limits(**{name: timedelta(seconds=value) for name, value in limits.items()})


def test_a_context_shows_any_reason_to_end() -> None:
    """A handler needs one question only, and one more for side effects."""
    ctx = context()
    ctx.raise_if_cancelled()
    assert not ctx.cancelled
    ctx.stop.set(StopReason.DRAIN)
    assert ctx.cancelled
    assert not ctx.lease_lost
    with pytest.raises(Cancelled, match="drain"):
        ctx.raise_if_cancelled()


def test_progress_goes_to_the_sink_with_a_bounded_note() -> None:
    """What is written into the run's row stays small."""
    told: list[Progress] = []
    context(sink=told.append).progress(3, 10, "x" * 1000)
    assert told == [Progress(done=3, total=10, note="x" * 200)]


def test_records_name_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """A line of a handler's log can be found again by its run, whatever the job is called."""
    with caplog.at_level(logging.INFO, "dynsched.run"):
        context(job_name="50%d").log.info("read %d rows", 7, extra={"rows": 7})
    assert caplog.messages == ["[50_d r#1] read 7 rows"]
    assert (caplog.records[0].__dict__["run_id"], caplog.records[0].__dict__["rows"]) == ("r", 7)


def test_headers_carry_the_key_and_the_fence() -> None:
    """A receiver can refuse repeats and stale holders."""
    headers = context(fence=7).headers()
    assert (headers["Idempotency-Key"], headers["X-Dynsched-Fence"]) == ("k", "7")
    assert headers["X-Dynsched-Scheduled-For"] == "2026-03-01T09:00:00.000Z"


def test_a_snooze_never_ends_in_the_past() -> None:
    """A run that is due again before now is due now."""
    assert Snooze(until=NOW - timedelta(days=1)).instant(NOW) == NOW
    assert Snooze(after=timedelta(seconds=5)).instant(NOW) == NOW + timedelta(seconds=5)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"until": NOW, "after": timedelta(1)},
        {"until": NOW.replace(tzinfo=None)},
        {"after": timedelta(-1)},
        {"after": timedelta(10_000)},
    ],
)
def test_an_impossible_snooze_is_refused(arguments: dict[str, object]) -> None:
    """The handler fails with a clear error instead of vanishing for ever."""
    with pytest.raises(InvalidInput):
        Snooze(**arguments)  # type: ignore[arg-type]  # that it is wrong is the point


def test_a_retry_after_a_negative_delay_is_refused() -> None:
    """Delays are never negative."""
    with pytest.raises(InvalidInput):
        RetryAfter(timedelta(seconds=-1))
