"""Ways out of `leased`: one guarded write each, and what follows it.

"Stale with my fence and my session" is no loss: a cancel flag or a waiter's mark was written by a
friend; the transition is built again on the current row. Only another fence or session is a loss.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain import lifecycle
from dynsched.domain.instants import EPOCH, LAST, Clock
from dynsched.domain.lifecycle import Transition
from dynsched.domain.retry import Bury, Failed, RetryAt, RetryPolicy, decide, signature
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.errors import StoreError
from dynsched.services.hand import InHand
from dynsched.services.permits import PermitDesk
from dynsched.services.run_lines import log_move
from dynsched.storage.runs import Attempt, RunApplied, RunOutcome
from dynsched.storage.store import Store
from dynsched.targets.result import AwaitsCallback, Snoozed, Succeeded, WasCancelled
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")

Build = Callable[[Run], Transition]

REBUILDS = 20  # how often one way out is built again on a row that a friend has changed
ALERT_WINDOW = timedelta(minutes=5)
SUMMARY_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Ending:
    """A run's way out.

    Attributes:
        item: the run in hand.
        build: the transition, from the row as it is now.
        attempt: what is known of the try; None if it was not started.
        keep: the attempt gets a row of its own, before the transition. A plain success needs
            none, as the run's row says it all; if its lease was lost, it is kept as late.
        reported: the handler ended by itself. A hand-back is the worker's own deed: it gets its
            row after the transition, and none at all if the lease was lost before it.
        written: the row says it already: the run waits for its callback, and nothing is to be
            written.
    """

    item: InHand
    build: Build
    attempt: Attempt | None = None
    keep: bool = True
    reported: bool = True
    written: bool = False


class Endings:
    """Writes ways out for one process.

    Args:
        on_move: told each way out that was written.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        desk: PermitDesk,
        on_move: Callable[[Transition], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._desk = desk
        self._on_move = on_move
        self._alerted: dict[str, datetime] = {}

    def write(self, endings: Sequence[Ending]) -> list[Run | None]:
        """Write ways out together; for each the run as stored, None if the lease was lost.

        Attempt rows go first: a crash in between leaves a note of a try that the reaper counts.
        """
        self._note(ending for ending in endings if ending.keep and ending.reported)
        results: dict[int, Run | None] = {}
        todo: list[int] = []
        for index, ending in enumerate(endings):
            # A write that failed half way is made again: what is out already stays as it is.
            if ending.item.run.state is RunState.LEASED and not ending.written:
                todo.append(index)
            else:
                results[index] = ending.item.run
        for _ in range(REBUILDS):
            if not todo:
                break
            todo = self._round(endings, todo, results)
        runs = [results.get(index) for index in range(len(endings))]
        pairs = list(zip(endings, runs, strict=True))
        self._note(ending for ending, run in pairs if run is not None and not ending.reported)
        self._note_late(ending for ending, run in pairs if run is None and ending.reported)
        return runs

    def _note(self, endings: Iterable[Ending]) -> None:
        self._store.runs.note_attempts(
            ending.attempt for ending in endings if ending.attempt is not None
        )

    def _round(
        self, endings: Sequence[Ending], todo: Sequence[int], results: dict[int, Run | None]
    ) -> list[int]:
        """Write some ways out; return those to be built again on a row that a friend changed."""
        moves = [endings[index].build(endings[index].item.run) for index in todo]
        outcomes = self._store.runs.apply_many(moves)
        again: list[int] = []
        made: list[tuple[InHand, Transition]] = []
        for index, move, outcome in zip(todo, moves, outcomes, strict=True):
            item = endings[index].item
            applied = _applied(move, outcome)
            results[index] = applied
            if applied is not None:
                item.run = applied
                made.append((item, move))
            elif (current := _still_mine(item, outcome)) is not None:
                item.run = current
                again.append(index)
        for item, move in made:
            self._follow(item, move)
        return again

    def _follow(self, item: InHand, move: Transition) -> None:
        """Do what follows a way out: hints and marks, which may all be lost without harm."""
        log_move(None if item.job is None else item.job.name, move)
        self._on_move(move)
        if item.run.state is RunState.DEAD:
            self._alert(item.run)
        try:
            if item.permit is not None:
                self._desk.freed(item.permit)
            if move.before.waiter is not None:
                self.pull_forward(move.before.waiter)
        except StoreError as error:
            log.warning("run %s: what waits for it finds out later: %s", item.run.run_id, error)

    def pull_forward(self, run_id: str) -> None:
        """Make a waiting run available now, if it still waits."""
        waiting = self._store.runs.get(parse_run_id(run_id))
        now = self._clock.now()
        if waiting is None or waiting.state is not RunState.READY or waiting.available_at <= now:
            return
        self._store.runs.apply(lifecycle.pull_forward(waiting, now=now))

    def _alert(self, run: Run) -> None:
        """Report a dead run once for its group and window."""
        now = self._clock.now()
        last = self._alerted.get(run.signature)
        if last is not None and now - last < ALERT_WINDOW:
            return
        if len(self._alerted) > 1_000:
            self._alerted.clear()
        self._alerted[run.signature] = now
        log.error("run %s is dead (%s): %s", run.run_id, run.reason, run.error)

    def _note_late(self, endings: Iterable[Ending]) -> None:
        notes = []
        for ending in endings:
            attempt = ending.attempt
            if attempt is None:
                continue
            log.warning(
                "run %s: the result of attempt %d under fence %d came after its lease was lost",
                attempt.run_id,
                attempt.number,
                attempt.fence,
            )
            notes.append(replace(attempt, outcome="late"))
        self._store.runs.note_attempts(notes)

    def note_late(self, item: InHand) -> None:
        """Keep the result of a handler whose run was given up while it went on."""
        # It may have returned in the very moment in which it was given up.
        item.result = item.late or item.result
        self._note_late([self.of_result(item, self._clock.now(), timedelta(0))])

    def of_result(self, item: InHand, now: datetime, look_ahead: timedelta) -> Ending:
        """Return the way out that a handler's result asks for."""
        result, started_at = item.result, item.started_at
        assert result is not None
        assert started_at is not None
        if isinstance(result, Succeeded):
            detail = "" if result.output is None else json.dumps(result.output)
            note = _attempt(item, now, "done", message=result.note, detail=detail)
            return Ending(
                item,
                lambda run: lifecycle.succeed(run, started_at=started_at, now=now),
                note,
                keep=bool(detail or result.note),
            )
        if isinstance(result, Snoozed):
            until = result.until
            return Ending(
                item,
                lambda run: lifecycle.snooze(
                    run, started_at=started_at, now=now, until=until, look_ahead=look_ahead
                ),
                _attempt(item, now, "snoozed"),
                keep=False,
            )
        if isinstance(result, WasCancelled):
            return self._of_stop(item, result.reason, now)
        if isinstance(result, AwaitsCallback):
            return Ending(item, _never, keep=False, written=True)
        return self._of_failure(item, result, now, look_ahead)

    def _of_stop(self, item: InHand, reason: StopReason, now: datetime) -> Ending:
        started_at = item.started_at
        assert started_at is not None
        if reason is StopReason.CANCELLED:
            return Ending(
                item,
                lambda run: lifecycle.cancel(
                    run,
                    now=now,
                    reason=run.reason or lifecycle.CANCEL_REQUESTED,
                    started_at=started_at,
                ),
                _attempt(item, now, "cancelled"),
            )
        return self.hand_back(item, now, reason.value)

    def hand_back(self, item: InHand, now: datetime, reason: str) -> Ending:
        """Return a started run under its fence: attempt counted, no loss, nothing spent."""
        started_at = item.started_at
        assert started_at is not None
        return Ending(
            item,
            lambda run: lifecycle.hand_back(run, started_at=started_at, now=now, reason=reason),
            _attempt(item, now, "handed back", message=reason),
            reported=False,
        )

    def _of_failure(
        self, item: InHand, failed: Failed, now: datetime, look_ahead: timedelta
    ) -> Ending:
        job = item.job
        decision = decide(
            RetryPolicy() if job is None else job.policies.retry,
            spent=item.run.spent + 1,
            failure=failed,
            now=now,
            rng=self._rng,
            limit=item.run.limit,
        )
        detail, output = _kept_of(failed)
        note = _attempt(
            item,
            now,
            "failed",
            error_type=failed.error_type,
            message=failed.message,
            detail=detail,
            output=output,
        )
        return Ending(item, _after_failure(item, failed, decision, now, look_ahead), note)


def _never(run: Run) -> Transition:
    raise AssertionError(f"run {run.run_id} waits for its callback: nothing is to be written")


def _kept_of(failed: Failed) -> tuple[str, str]:
    """Return what is kept of a failure: its trace, and its output as JSON text.

    A trace that is a part of the output (a command's error output) is not kept twice.
    """
    if failed.output is None:
        return failed.trace_tail, ""
    parts = failed.output.values() if isinstance(failed.output, dict) else ()
    detail = "" if failed.trace_tail in parts else failed.trace_tail
    return detail, json.dumps(failed.output, ensure_ascii=False, separators=(",", ":"))


def _after_failure(
    item: InHand, failed: Failed, decision: RetryAt | Bury, now: datetime, look_ahead: timedelta
) -> Build:
    """Return the transition that a failure's decision means."""
    started_at = item.started_at
    assert started_at is not None
    group = signature(failed.error_type, failed.message)
    error = f"{failed.error_type}: {failed.message}"[:SUMMARY_LENGTH]
    if isinstance(decision, Bury):
        return lambda run: lifecycle.bury(
            run,
            now=now,
            reason=decision.reason.value,
            error=error,
            signature=group,
            started_at=started_at,
        )
    return lambda run: lifecycle.retry(
        run,
        started_at=started_at,
        now=now,
        at=decision.at,
        look_ahead=look_ahead,
        error=error,
        signature=group,
    )


def _applied(move: Transition, outcome: RunOutcome) -> Run | None:
    """Return the run as this way out left it, None if it was not made.

    A stale answer may be one's own: the write was made earlier, and its answer was lost for so
    long that it is being written once more.
    """
    if isinstance(outcome, RunApplied):
        return outcome.run
    current, after = outcome.current, move.after
    if current is None or after.state is RunState.LEASED:
        return None
    same = (current.state, current.fence, current.attempt, current.spent, current.reason) == (
        after.state,
        after.fence,
        after.attempt,
        after.spent,
        after.reason,
    )
    return current if same else None


def _still_mine(item: InHand, outcome: RunOutcome) -> Run | None:
    """Return the row as a friend left it, if it is still leased under this fence and session."""
    current = outcome.run if isinstance(outcome, RunApplied) else outcome.current
    if current is None or current.state is not RunState.LEASED:
        return None
    mine = current.session == item.session and current.fence == item.run.fence
    return current if mine else None


def _attempt(
    item: InHand,
    now: datetime,
    outcome: str,
    *,
    error_type: str = "",
    message: str = "",
    detail: str = "",
    output: str = "",
) -> Attempt:
    run = item.run
    return Attempt(
        run_id=run.run_id,
        number=item.number or run.attempt + 1,
        fence=item.fence or run.fence,
        session=item.session,
        outcome=outcome,
        started_at=item.started_at,
        ended_at=now,
        error_type=error_type,
        message=message,
        detail=detail,
        output=output,
        expires_at_s=attempt_expiry(run, now),
    )


def attempt_expiry(run: Run, now: datetime) -> int:
    """Return when an attempt's row may go: its run's retention twice over, in epoch seconds."""
    kept = min(run.retention, (LAST - now) / 2)
    return int((now - EPOCH + 2 * kept).total_seconds())
