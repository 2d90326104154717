"""The runner: does what a run's target says and answers with how it ended."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from dynsched.domain.instants import Clock
from dynsched.domain.retry import Failed
from dynsched.domain.target import CommandTarget, HandlerTarget, HttpTarget, Target
from dynsched.domain.target_aws import LambdaTarget, SqsTarget
from dynsched.targets.app import App
from dynsched.targets.command import (
    KILL_GRACE,
    LEASE_LOST_GRACE,
    Groups,
    refusal_of_user,
    run_command,
)
from dynsched.targets.context import AnyContext
from dynsched.targets.forks import one_process
from dynsched.targets.result import Result, outcome_of, stopped, succeeded
from dynsched.targets.stop import Limits, LimitWatch, StopReason
from dynsched.targets.ticket import OpenCallback

if TYPE_CHECKING:
    from urllib3 import PoolManager

    from dynsched.targets.aws import AwsClients
    from dynsched.targets.loop import LoopThread

HTTP_LIMIT = timedelta(minutes=5)
"""The soft limit of an HTTP request whose run has none."""


class TargetRunner:
    """Runs targets for a worker.

    Args:
        app: the worker's handlers; None for none.
        allow_commands: whether shell commands may be run.
        clock: measures time limits and counts snoozes.
        http_pool: connections for HTTP targets; by default one of its own, made when needed. A
            request over a given pool ends by its time-out only, not by the stop signal.
        aws: clients for Lambda and SQS targets; by default its own, made when needed.
        region: where functions are that are known by plain names; None asks the environment.
        kill_grace: from SIGTERM to SIGKILL for a command without a hard limit.
        lease_lost_grace: the same after a lost lease; keep it shorter than the lease margin.

    Concurrency: any number of threads may call `run`.
    """

    def __init__(
        self,
        app: App | None,
        *,
        allow_commands: bool,
        clock: Clock,
        http_pool: PoolManager | None = None,
        aws: AwsClients | None = None,
        region: str | None = None,
        kill_grace: timedelta = KILL_GRACE,
        lease_lost_grace: timedelta = LEASE_LOST_GRACE,
    ) -> None:
        self._app = app or App()
        self._allow_commands = allow_commands
        self._clock = clock
        self._given_pool = http_pool
        self._own_pool: PoolManager | None = None
        self._clients, self._region = aws, region
        self._lock = threading.Lock()
        self._kill_grace, self._lease_lost_grace = kill_grace, lease_lost_grace
        self._groups = Groups()
        self._loop: LoopThread | None = None
        self._watch = LimitWatch(clock)

    def knows(self, target: Target) -> bool:
        """Tell whether this worker can run the target."""
        return not self.refusal(target)

    def refusal(self, target: Target) -> str:
        """Return why this worker cannot run the target, in one line; empty if it can."""
        if isinstance(target, HandlerTarget) and target.name not in self._app.handlers:
            problem, mend = self._app.unknown(target.name)
            return f"{problem} ({mend})"
        if isinstance(target, CommandTarget):
            if not self._allow_commands:
                return "this worker was started without --allow-commands"
            return refusal_of_user(target)
        if isinstance(target, LambdaTarget | SqsTarget):
            return self._aws().refusal()
        return ""

    def run(
        self, target: Target, context: AnyContext, *, open_callback: OpenCallback | None = None
    ) -> Result:
        """Run the target in the calling thread and return how it ended; never raises.

        The context's limits count from this call. A sync handler that ignores its stop signal
        cannot be ended: this call then returns when the handler does. An async one is given up at
        the hard limit, a command is killed, a request is hung up on.

        Args:
            target: what to run.
            context: the attempt's.
            open_callback: writes that the run waits for its callback; a target with one needs it.
        """
        refusal = self.refusal(target)
        if refusal:
            return Failed(error_type="TargetRefused", message=refusal)
        if context.lease_lost or context.stop.has(StopReason.DRAIN):
            # It waited for a thread until its run was given back: another worker may have it.
            return stopped(context)
        if isinstance(target, HttpTarget) and context.limits.soft is None:
            soft = min(HTTP_LIMIT, context.limits.hard or HTTP_LIMIT)
            context = replace(context, limits=Limits(soft=soft, hard=context.limits.hard))
        try:
            with self._watch.over(context.limits, context.stop):
                return self._dispatch(target, context, open_callback)
        except BaseException as error:  # noqa: BLE001  # an exit raised by a handler is its failure
            return outcome_of(error, context, self._clock.now())

    def close(self) -> None:
        """Kill the commands and cancel the async handlers that still run; end the threads."""
        self._groups.kill()
        if self._loop is not None:
            self._loop.close()
        self._watch.close()
        if self._own_pool is not None:
            self._own_pool.clear()
        if self._clients is not None:
            self._clients.close()

    def _dispatch(
        self, target: Target, context: AnyContext, open_callback: OpenCallback | None
    ) -> Result:
        if isinstance(target, LambdaTarget | SqsTarget):
            return self._ask_aws(target, context, open_callback)
        if isinstance(target, HttpTarget):
            return self._run_http(target, context)
        if isinstance(target, CommandTarget):
            return run_command(
                target,
                context,
                clock=self._clock,
                kill_grace=self._kill_grace,
                lease_lost_grace=self._lease_lost_grace,
                groups=self._groups,
            )
        handler = self._app.handlers[target.name]
        if inspect.iscoroutinefunction(handler.function):
            return self._await(lambda: handler.function(*handler.arguments(context)), context)
        with one_process():
            output = handler.function(*handler.arguments(context))
        if inspect.isawaitable(output):
            return self._await(lambda: output, context)
        return succeeded(output)

    def _await(self, make: Callable[[], Awaitable[object]], context: AnyContext) -> Result:
        return self._loop_thread().run(
            make,
            succeeded,
            lambda error: outcome_of(error, context, self._clock.now()),
            context,
        )

    def _loop_thread(self) -> LoopThread:
        # Imported here: many workers have no async handler, and a function starts faster.
        from dynsched.targets.loop import LoopThread  # noqa: PLC0415

        with self._lock:
            if self._loop is None:
                self._loop = LoopThread()
            return self._loop

    def _run_http(self, target: HttpTarget, context: AnyContext) -> Result:
        # Imported here: a worker without HTTP jobs, and every inline test, starts faster.
        from dynsched.targets.http import new_pool, run_http  # noqa: PLC0415

        with self._lock:
            if self._own_pool is None and self._given_pool is None:
                self._own_pool = new_pool()
            pool = self._given_pool or self._own_pool
        assert pool is not None
        return run_http(target, context, pool=pool, clock=self._clock)

    def _aws(self) -> AwsClients:
        # Imported here: AWS's client takes a quarter of a second, and few workers need it so.
        from dynsched.targets.aws import AwsClients  # noqa: PLC0415

        with self._lock:
            if self._clients is None:
                self._clients = AwsClients(self._clock, region=self._region)
            return self._clients

    def _ask_aws(
        self,
        target: LambdaTarget | SqsTarget,
        context: AnyContext,
        open_callback: OpenCallback | None,
    ) -> Result:
        from dynsched.targets.aws import run_lambda, run_sqs  # noqa: PLC0415

        if isinstance(target, SqsTarget):
            return run_sqs(target, context, clients=self._aws())
        return run_lambda(target, context, clients=self._aws(), open_callback=open_callback)
