"""Run lines: what became of a run, in one line of the log for people who watch."""

from __future__ import annotations

import logging

from dynsched.domain.lifecycle import Transition
from dynsched.domain.moves import Event
from dynsched.domain.run import Run, RunState

log = logging.getLogger("dynsched.worker.runs")

_QUIET = frozenset({Event.STEP_BACK, Event.ASK_CANCEL, Event.PULL_FORWARD, Event.MARK_WAITER})


def log_move(job_name: str | None, move: Transition) -> None:
    """Write a line about a run's way out, unless nobody listens.

    Args:
        job_name: its job's name; None where the job was not read.
        move: the transition as it was applied.
    """
    level = logging.DEBUG if move.event in _QUIET else logging.INFO
    if log.isEnabledFor(level):
        run = move.after
        extra = {"run_id": run.run_id, "job_name": job_name, "attempt": run.attempt}
        about = run.run_id if job_name is None else f"{job_name} {run.run_id}"
        log.log(level, "%s: %s", about, words(run), extra=extra)


def words(run: Run) -> str:
    """Return what became of a run: its state, how long it took, and what comes next."""
    parts = [run.state.value]
    if run.state in (RunState.READY, RunState.FAILED):
        parts = [f"{run.reason or 'put back'}, may start again at {run.available_at:%H:%M:%S}"]
    elif run.reason:
        parts.append(f"({run.reason})")
    if run.state is RunState.DONE and run.started_at is not None and run.ended_at is not None:
        parts.append(f"after {(run.ended_at - run.started_at).total_seconds():.3f} s")
    if run.attempt > 1:
        parts.append(f"on attempt {run.attempt}")
    if run.error and run.state is not RunState.DONE:
        parts.append(f"- {run.error}")
    return " ".join(parts)
