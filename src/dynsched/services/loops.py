"""Loops: thin threads around the services' bounded steps, and how they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from dynsched.domain.instants import Clock
from dynsched.errors import DynschedError, NotInitialised
from dynsched.services.dispatcher import Dispatcher
from dynsched.services.reaper import Reaper
from dynsched.services.session import BEATS_PER_LEASE, SessionKeeper
from dynsched.services.worker import Worker
from dynsched.settings import Settings

log = logging.getLogger("dynsched")

RETRY_S = 1.0  # pause after a step that failed
IDLE_MIN_S = 0.05


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
    clock: Clock, stopper: Stopper, period: Callable[[], float], step: Callable[[], bool]
) -> None:
    """Repeat a step until stopped.

    Args:
        period: seconds from a step's beginning to the next one's.
        step: does one pass; True asks for the next at once.

    A step that fails is reported and repeated after a pause; a store without tables ends all.
    """
    while not stopper.event.is_set():
        began = clock.monotonic()
        try:
            again = step()
            pause = 0.0 if again else period() - (clock.monotonic() - began)
        except NotInitialised as error:
            stopper.fail(error)
            return
        except DynschedError as error:
            log.error("%s", error)
            pause = RETRY_S
        except Exception as error:
            log.exception("unexpected failure")
            del error
            pause = RETRY_S
        if pause > 0:
            clock.wait_for(stopper.event, pause)


def run_dispatcher(dispatcher: Dispatcher, clock: Clock, stopper: Stopper) -> None:
    """Tick until stopped, each third of the look-ahead, at once while there is a backlog."""

    def step() -> bool:
        report = dispatcher.tick()
        if report.served.created or report.promoted or report.served.skipped:
            log.info(
                "tick: %d jobs served, %d runs made, %d skipped, %d retries due",
                report.served.jobs,
                report.served.created,
                report.served.skipped,
                report.promoted,
            )
        return report.behind

    every(clock, stopper, lambda: dispatcher.period.total_seconds(), step)


def run_reaper(reaper: Reaper, clock: Clock, settings: Settings, stopper: Stopper) -> None:
    """Sweep until stopped."""

    def step() -> bool:
        report = reaper.sweep()
        if report.closed or report.returned:
            log.info("sweep: %d sessions closed, %d runs returned", report.closed, report.returned)
        return False

    every(clock, stopper, lambda: settings.reaper_period.total_seconds(), step)


def run_worker(
    worker: Worker, keeper: SessionKeeper, clock: Clock, settings: Settings, stopper: Stopper
) -> None:
    """Poll until stopped, then drain: handlers get the grace, the rest is handed back."""
    ended = threading.Event()
    period_s = settings.lease.total_seconds() / BEATS_PER_LEASE

    def beat() -> bool:
        if not keeper.beat():
            worker.wake.set()
        return False

    def beats() -> None:
        beating = Stopper()
        beating.event = ended
        every(clock, beating, lambda: period_s, beat)

    heart = threading.Thread(target=beats, name="dynsched-heart", daemon=True)
    heart.start()
    idle_s = IDLE_MIN_S
    idle_max_s = settings.poll_idle.total_seconds()
    while True:
        if stopper.event.is_set():
            worker.drain()
        if worker.drained:
            break
        try:
            report = worker.poll()
            busy = bool(report.claimed or report.ended)
            idle_s = IDLE_MIN_S if busy else min(2 * idle_s, idle_max_s)
            pause = idle_s
            if report.next_at is not None:
                pause = min(pause, (report.next_at - clock.now()).total_seconds())
            if report.claimed and report.again:
                pause = 0.0
        except NotInitialised as error:
            stopper.fail(error)
            break
        except DynschedError as error:
            log.error("%s", error)
            pause = RETRY_S
        except Exception:
            log.exception("unexpected failure")
            pause = RETRY_S
        if pause > 0:
            clock.wait_for(worker.wake, pause)
    try:
        worker.close()
    finally:
        ended.set()
