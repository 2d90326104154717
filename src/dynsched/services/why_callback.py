"""Why a run is leased that waits for its callback: whose answer is waited for, and until when."""

from __future__ import annotations

from datetime import datetime

from dynsched.domain.explanation import Cause, Finding
from dynsched.domain.time_words import span, stamp
from dynsched.services.why_case import Case


def why_awaits_callback(leased: Case, ends_at: datetime) -> Finding:
    """Return who ends a run that waits for its callback, or that its wait is over."""
    run, now = leased.run, leased.evidence.now
    since = run.started_at or run.leased_at
    began = "" if since is None else f" The wait began at {stamp(since)}."
    spent = f"{run.spent} of {run.limit} failures so far; the last: {run.error}"
    by_hand = f"dynsched run complete {run.run_id}"
    if ends_at > now:
        return Finding(
            cause=Cause.CALLBACK,
            headline=(
                f"{leased.name}, attempt {run.attempt + 1}, goes on outside of its worker and waits"
                f" for its callback until {stamp(ends_at)}, for {span(ends_at - now)} more."
            ),
            sentences=(
                f"Whoever has the token of the attempt ends it.{began}",
                "Without an answer by then the attempt fails with CallbackTimeout, and the retry"
                " policy says what follows.",
            ),
            hints=(by_hand, f"dynsched run fail {run.run_id}"),
        ).adding(
            f"{run.waiter} waits for its end." if run.waiter else "", spent if run.spent else ""
        )
    return Finding(
        cause=Cause.CALLBACK,
        headline=(
            f"{leased.name} waited for its callback until {stamp(ends_at)},"
            f" {span(now - ends_at)} ago, and nobody has answered."
        ),
        sentences=("A reaper fails such an attempt some seconds later; if this lasts, none runs.",),
        hints=("dynsched reaper", "dynsched health", by_hand),
    )
