"""Loops: thin threads around the services' bounded steps, and how they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from dynsched.domain.instants import Clock
from dynsched.errors import DynschedError, NotInitialised
from dynsched.services.dispatcher import Dispatcher
from dynsched.services.reaper import Reaper
from dynsched.services.session import BEATS_PER_LEASE, SessionKeeper
from dynsched.services.stepper import BatchStepper, StepReport
from dynsched.services.worker import PollReport, Worker
from dynsched.settings import Settings

log = logging.getLogger("dynsched")
dispatcher_log = logging.getLogger("dynsched.dispatcher")
reaper_log = logging.getLogger("dynsched.reaper")
stepper_log = logging.getLogger("dynsched.stepper")

T = TypeVar("T")

RETRY_S = 1.0  # pause after a step that failed
IDLE_MIN_S = 0.002  # after a claim: where one run was, more may come
IDLE_ENDED_S = 0.05  # after an end, which may have let a waiting run go


class Stopper:
    """Tells loops to end; one for each process."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.failure: BaseException | None = None

    def stop(self) -> None:
        """Ask every loop to end after its present step."""
        self.event.set()

    def fail(self, failure: BaseException) -> None:
        """End the process's loops because one of them cannot go on."""
        self.failure = failure
        self.event.set()


def every(
    clock: Clock, stopper: Stopper, period_s: Callable[[], float], step: Callable[[], bool]
) -> None:
    """Repeat a step until stopped.

    A step that fails is reported and repeated after a pause; a store without tables ends all.

    Args:
        clock: measures the pauses.
        stopper: ends the loop.
        period_s: seconds from a step's beginning to the next one's.
        step: does one pass; True asks for the next at once.
    """
    while not stopper.event.is_set():
        began = clock.monotonic()
        again = attempt(stopper, step)
        if again is None:
            pause = RETRY_S
        else:
            pause = 0.0 if again else period_s() - (clock.monotonic() - began)
        if pause > 0:
            clock.wait_for(stopper.event, pause)


def attempt(stopper: Stopper, step: Callable[[], T]) -> T | None:
    """Return what a step answers; None after a failure, which is reported."""
    try:
        return step()
    except NotInitialised as error:
        stopper.fail(error)
    except DynschedError as error:
        log.error("%s", error)  # noqa: TRY400  the store's faults need no traceback
    except Exception:
        log.exception("unexpected failure")
    return None


def run_dispatcher(dispatcher: Dispatcher, clock: Clock, stopper: Stopper) -> None:
    """Tick until stopped, each third of the look-ahead, at once while there is a backlog."""

    def step() -> bool:
        report = dispatcher.tick()
        served = report.served
        if served.created or report.promoted or served.skipped:
            dispatcher_log.info(
                "tick: %d jobs served, %d runs made, %d skipped, %d retries due",
                served.jobs,
                served.created,
                served.skipped,
                report.promoted,
            )
        return report.behind

    def period() -> float:
        return dispatcher.period.total_seconds()

    every(clock, stopper, period, step)
    attempt(stopper, dispatcher.end)


def run_reaper(reaper: Reaper, clock: Clock, settings: Settings, stopper: Stopper) -> None:
    """Sweep until stopped."""

    def step() -> bool:
        report = reaper.sweep()
        if report.closed or report.returned:
            reaper_log.info(
                "sweep: %d sessions closed, %d runs returned", report.closed, report.returned
            )
        return report.behind

    every(clock, stopper, settings.reaper_period.total_seconds, step)
    attempt(stopper, reaper.end)


def run_stepper(stepper: BatchStepper, clock: Clock, settings: Settings, stopper: Stopper) -> None:
    """Step replay batches until stopped; while none is running, look for one now and then."""
    last = StepReport()

    def step() -> bool:
        nonlocal last
        last = stepper.step()
        if last.moved or last.skipped or last.failed:
            stepper_log.info(
                "step: %d dead runs moved, %d skipped, %d failed",
                last.moved,
                last.skipped,
                last.failed,
            )
        return last.again

    def period() -> float:
        period = settings.step_period if last.running else settings.step_idle
        return period.total_seconds()

    every(clock, stopper, period, step)
    attempt(stopper, stepper.close)


@contextmanager
def beating(
    worker: Worker, keeper: SessionKeeper, clock: Clock, settings: Settings
) -> Iterator[None]:
    """Renew the worker's session on a thread of its own while the block runs."""
    stopper = Stopper()

    def beat() -> bool:
        if not keeper.beat():
            worker.wake.set()
        return False

    def beats() -> None:
        period_s = settings.lease.total_seconds() / BEATS_PER_LEASE
        every(clock, stopper, lambda: period_s, beat)

    heart = threading.Thread(target=beats, name="dynsched-heart", daemon=True)
    heart.start()
    try:
        yield
    finally:
        stopper.stop()


def run_worker(
    worker: Worker, keeper: SessionKeeper, clock: Clock, settings: Settings, stopper: Stopper
) -> None:
    """Poll until stopped, then drain: handlers get the grace, the rest is handed back."""
    pace = Pace(settings.poll_idle.total_seconds())
    with beating(worker, keeper, clock, settings):
        while not worker.drained and not isinstance(stopper.failure, NotInitialised):
            if stopper.event.is_set():
                worker.drain()
            report = attempt(stopper, worker.poll)
            pause = RETRY_S if report is None else pace.after(report, clock.now())
            if pause > 0:
                clock.wait_for(worker.wake, pause)
        attempt(stopper, worker.close)


def run_worker_once(
    worker: Worker, keeper: SessionKeeper, clock: Clock, settings: Settings, stopper: Stopper
) -> PollReport:
    """Poll until nothing is claimable now and what was started has ended; return the sums.

    Raises:
        StoreError: the store failed; runs in hand are left to the reaper.
    """
    total = PollReport()
    with beating(worker, keeper, clock, settings):
        while not worker.drained:
            if stopper.event.is_set():
                worker.drain()
            worker.look_again()
            report = worker.poll()
            total.claimed += report.claimed
            total.started += report.started
            total.ended += report.ended
            if not report.claimed and worker.idle:
                break
            if not report.claimed:
                clock.wait_for(worker.wake, settings.poll_idle.total_seconds())
        worker.close()
    return total


class Pace:
    """How long a worker waits between two polls: not at all while there is work, longer when idle.

    Args:
        idle_max_s: longest pause, in seconds.
    """

    def __init__(self, idle_max_s: float) -> None:
        self._idle_max_s = idle_max_s
        self._idle_s = IDLE_MIN_S

    def after(self, report: PollReport, now: datetime) -> float:
        """Return the seconds to wait after a poll, unless the worker is woken."""
        if report.claimed and report.again:
            return 0.0
        longest_s = min(IDLE_ENDED_S, self._idle_max_s) if report.ended else self._idle_max_s
        self._idle_s = min(IDLE_MIN_S if report.claimed else 2 * self._idle_s, longest_s)
        if report.next_at is None:
            return self._idle_s
        return min(self._idle_s, (report.next_at - now).total_seconds())
