"""The one event loop of a worker: async handlers of all slots run on it, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import TypeAlias

from dynsched.targets.context import AnyContext
from dynsched.targets.forks import one_process
from dynsched.targets.result import Result, stopped
from dynsched.targets.stop import StopReason

Settle: TypeAlias = Callable[[BaseException], Result]
Make: TypeAlias = Callable[[], Awaitable[object]]

CLOSE_SECONDS_MAX = 5.0
"""How long closing waits for handlers that were cancelled to end."""

_log = logging.getLogger(__name__)


class LoopThread:
    """An event loop in a daemon thread, started with the first coroutine.

    Concurrency: any number of threads may call `run`; each waits for its own coroutine.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Result]] = set()

    def run(
        self, make: Make, succeed: Callable[[object], Result], settle: Settle, context: AnyContext
    ) -> Result:
        """Run a coroutine on the loop and wait for it.

        When the context's stop signal is set, the coroutine is cancelled. One that does not end
        until the hard limit is given up: it goes on, but nobody waits for it any more.

        Args:
            make: makes the awaitable; called on the loop.
            succeed: turns what it returned into a result.
            settle: turns what it raised into a result; must not raise.
            context: the attempt's.
        """
        loop = self._started()
        answers: SimpleQueue[Result] = SimpleQueue()

        async def drive() -> Result:
            try:
                with one_process():
                    output = await make()
                return succeed(output)
            except BaseException as error:  # noqa: BLE001  # an exit would end the shared loop
                return settle(error)

        def finish(task: asyncio.Task[Result]) -> None:
            self._tasks.discard(task)
            # A task cancelled before its first step never ran `drive`.
            try:
                answers.put(stopped(context) if task.cancelled() else task.result())
            except BaseException as error:  # noqa: BLE001  # without an answer `run` never returns
                answers.put(settle(error))

        def start() -> None:
            task = loop.create_task(drive())
            self._tasks.add(task)
            task.add_done_callback(finish)
            started.append(task)

        def cancel() -> None:
            for task in started:
                task.cancel()

        def stop(reason: StopReason) -> None:
            loop.call_soon_threadsafe(cancel)
            if reason is StopReason.HARD_LIMIT:
                answers.put(stopped(context))

        started: list[asyncio.Task[Result]] = []
        loop.call_soon_threadsafe(start)
        with context.stop.heard_by(stop):
            return answers.get()

    def close(self) -> None:
        """Cancel what still runs, wait a bounded time for it and end the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._wind_up(), loop)
        thread.join(CLOSE_SECONDS_MAX + 1)

    async def _wind_up(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS_MAX)
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()
        loop.stop()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="dynsched-async", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, even if a handler's own task raises an exit into it."""
    asyncio.set_event_loop(loop)
    while True:
        try:
            loop.run_forever()
        except BaseException:  # noqa: BLE001  # SystemExit and KeyboardInterrupt pass through tasks
            _log.exception("a task of an async handler raised an exit; the loop goes on")
        else:
            break
    loop.close()
