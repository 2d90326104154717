"""Callbacks: runs that go on outside of any worker, until somebody who has their token answers.

The row first, the work second: before a function is invoked, the run's row has the token's digest
and the end of the wait. So an answer can never come too early, and whatever becomes of the worker
or of the function, the run ends: by its answer, or as a failure when the wait is over.
"""

from __future__ import annotations

import hmac
import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from weakref import WeakKeyDictionary

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock, instant_after, to_text
from dynsched.domain.job import Job
from dynsched.domain.names import new_id
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.run import CALLBACK_SESSION, Run, RunState
from dynsched.domain.time_words import span
from dynsched.domain.token import digest_of_secret, new_secret
from dynsched.errors import Conflict, Forbidden, InvalidInput
from dynsched.services.endings import Endings
from dynsched.services.hand import InHand
from dynsched.services.permits import PermitDesk
from dynsched.services.statistics import Statistics
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store
from dynsched.targets.context import checked_delay
from dynsched.targets.result import (
    MESSAGE_LENGTH_MAX,
    Result,
    Succeeded,
    WasCancelled,
    succeeded,
    tail,
)
from dynsched.targets.stop import Stop, StopReason
from dynsched.targets.ticket import Ticket

WAIT = timedelta(days=1)
"""How long an answer is waited for where the job has no time limit."""
REBUILDS = 20
TIMED_OUT = "CallbackTimeout"
NAME_LENGTH_MAX = 200


class CallbackOpener:
    """Lets the runs of one worker go on elsewhere, and gives out the tokens for their answers.

    Concurrency: handlers' threads call it, each for its own run.
    """

    def __init__(self, store: Store, *, clock: Clock, rng: Random) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng

    def open(self, item: InHand) -> Ticket | Result:
        """Write that a started run goes on elsewhere; return the ticket, or how it ended instead.

        Afterwards the row is no longer the worker's session's, but still under the same fence, so
        that the worker can fail it if the function cannot be invoked.

        Raises:
            StoreError: the store failed; the run may wait for its callback or not.
        """
        job, now = item.job, self._clock.now()
        assert job is not None
        secret, session = new_secret(self._rng), CALLBACK_SESSION + new_id(self._rng, 10)
        ends_at = instant_after(now, job.policies.timeout or WAIT, "timeout")
        run = item.run
        for _ in range(REBUILDS):
            if run.cancel_requested or item.stop.is_set():
                return WasCancelled(reason=item.stop.reason or StopReason.CANCELLED)
            move = lifecycle.await_callback(
                run,
                session=session,
                started_at=item.started_at or now,
                ends_at=ends_at,
                callback=digest_of_secret(secret),
            )
            outcome = self._store.runs.apply(move)
            if isinstance(outcome, RunApplied):
                item.session, item.run = session, outcome.run
                return Ticket(token=secret, ends_at=ends_at)
            current = outcome.current
            if current is not None and current.session == session:  # its answer was lost
                item.session, item.run = session, current
                return Ticket(token=secret, ends_at=ends_at)
            if current is None or not _same_lease(current, run):
                break
            run = item.run = current
        return WasCancelled(reason=StopReason.LEASE_LOST)


def _same_lease(current: Run, run: Run) -> bool:
    leased = current.state is RunState.LEASED
    return leased and (current.session, current.fence) == (run.session, run.fence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How work ended outside of any worker, as whoever did it tells.

    Attributes:
        result: success with its output, or failure.
    """

    result: Succeeded | Failed

    @classmethod
    def done(cls, output: object = None) -> Answer:
        """Return the answer that the work is done.

        Args:
            output: JSON values; what is longer than 4 KB is not kept.
        """
        return cls(result=succeeded(output))

    @classmethod
    def failed(
        cls,
        error_type: str,
        message: str = "",
        *,
        trace: str = "",
        permanent: bool = False,
        retry_after: timedelta | None = None,
    ) -> Answer:
        """Return the answer that the work failed.

        Args:
            error_type: a name such as an exception's; the retry policy's rules look at it.
            message: one line.
            trace: where; its end is kept.
            permanent: no try can succeed: the run is dead.
            retry_after: the shortest time until the next try.

        Raises:
            InvalidInput: the name is empty, or the delay is out of range or goes with `permanent`.
        """
        name = _line(error_type, NAME_LENGTH_MAX)
        if not name:
            raise InvalidInput("error_type", "it is empty", "give a name such as OutOfStock")
        if permanent and retry_after is not None:
            raise InvalidInput("retry_after", "the failure is permanent", "drop one of them")
        hint = Hint.PERMANENT if permanent else Hint.DEFAULT
        if retry_after is not None:
            checked_delay(retry_after)
            hint = Hint.AFTER
        return cls(
            result=Failed(
                error_type=name,
                message=_line(message, MESSAGE_LENGTH_MAX),
                trace_tail=tail(trace),
                hint=hint,
                after=retry_after,
            )
        )


def _line(text: str, length: int) -> str:
    return tail(" ".join(text[: 4 * length].split())[:length])


def check_token(run: Run | None, run_id: str, token: str) -> Run:
    """Return the run if the token is of its latest callback.

    Whether there is such a run at all is told to nobody else.

    Raises:
        Forbidden: the token is of another attempt or run, or mistyped.
    """
    digest = digest_of_secret(token)
    if run is None or not run.callback or not hmac.compare_digest(run.callback, digest):
        raise Forbidden(
            f"the token does not belong to the present attempt of run {run_id}: it is of an earlier"
            " attempt or of another run, or mistyped"
        )
    return run


def check_waits(run: Run) -> Run:
    """Return the run if it waits for an answer.

    Raises:
        Conflict: it has been answered, or its wait is over.
    """
    if run.awaits_callback:
        return run
    if not run.callback:
        raise Conflict(f"run {run.run_id} waits for no callback: it is {run.state.value}")
    if run.error.startswith(f"{TIMED_OUT}:"):
        raise Conflict(
            f"the answer for run {run.run_id} came too late: nobody had reported by the end of the"
            f" wait, so the attempt has failed, and the run is {run.state.value}"
        )
    raise Conflict(f"run {run.run_id} has been answered or called off: it is {run.state.value}")


def end_callback(
    endings: Endings,
    run: Run,
    result: Result,
    *,
    job: Job | None,
    now: datetime,
    look_ahead: timedelta,
) -> Run | None:
    """Write how a wait for a callback ended; return the run, None if somebody else was first.

    Args:
        endings: writes the way out, and what follows it.
        run: the one that waits.
        result: how the attempt ended.
        job: the run's, if it is known: without it a failure is final.
        now: the present instant.
        look_ahead: a next try within it is ready at once.

    Raises:
        StoreError: the store failed; nothing is known of the write.
    """
    if job is None and isinstance(result, Failed):
        # Without its job there is nothing to try again.
        result = Failed(error_type=result.error_type, message=result.message, hint=Hint.PERMANENT)
    item = InHand(run, run.session or "", Stop(), job=job, started_at=run.started_at or now)
    item.result = result
    # Two answers may come at once: the try's row is written by the one whose move was made.
    ending = replace(endings.of_result(item, now, look_ahead), reported=False)
    return endings.write([ending])[0]


def timed_out(run: Run) -> Failed | WasCancelled:
    """Return how an attempt ended for which nobody answered in time: a failure, never a loss."""
    if run.cancel_requested:
        return WasCancelled(reason=StopReason.CANCELLED)
    assert run.lease_ends_at is not None
    since = run.started_at or run.leased_at or run.lease_ends_at
    return Failed(
        error_type=TIMED_OUT,
        message=f"nobody reported within {span(run.lease_ends_at - since)},"
        f" by {to_text(run.lease_ends_at)}, how the work went",
    )


class AnswerDesk:
    """Ends waits for callbacks for one process, and counts how they ended.

    Concurrency: any number of threads may end runs; one at a time is written.
    """

    def __init__(self, store: Store, *, clock: Clock, rng: Random) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._statistics = Statistics(store)
        self._endings = Endings(
            store, clock=clock, rng=rng, desk=PermitDesk(store), on_move=self._statistics.moved
        )

    def end(self, run: Run, result: Result) -> Run | None:
        """Write how a wait for a callback ended; return the run, None if somebody was first.

        Raises:
            StoreError: the store failed; nothing is known of the write.
        """
        job = self._store.jobs.get(run.job_id) if isinstance(result, Failed) else None
        with self._lock:
            now = self._clock.now()
            self._statistics.turn(now)
            ended = end_callback(
                self._endings,
                run,
                result,
                job=job,
                now=now,
                look_ahead=self._store.topology.look_ahead,
            )
            self._statistics.write_by(now)
        return ended

    def call_off(self, run: Run) -> Run | None:
        """End a run that waits and was asked to stop: nobody would obey the flag in its row."""
        return self.end(run, WasCancelled(reason=StopReason.CANCELLED))


_DESKS: WeakKeyDictionary[Store, AnswerDesk] = WeakKeyDictionary()
_DESKS_LOCK = threading.Lock()


def answer_desk(store: Store, *, clock: Clock, rng: Random) -> AnswerDesk:
    """Return the process's desk of a store: one for all requests, so that one tally is written."""
    with _DESKS_LOCK:
        if store not in _DESKS:
            _DESKS[store] = AnswerDesk(store, clock=clock, rng=rng)
        return _DESKS[store]
