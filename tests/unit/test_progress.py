"""Progress: bad reports are refused where they are made and never fail a poll."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dynsched.domain.run import RunState
from dynsched.errors import InvalidInput
from dynsched.services.hand import Hand
from dynsched.services.progress import ProgressNotes
from dynsched.targets.context import Context, Progress
from dynsched.testing.manual import ManualScheduler

from .builders import manual_of, run_of

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def reported(*values: Any) -> Progress:
    """Return what a handler's report of these values becomes."""
    told: list[Progress] = []
    plain: dict[str, Any] = {"payload": None, "idempotency_key": "k", "job_id": "j"}
    plain |= {"job_name": "n", "run_id": "r", "tenant": "t", "scheduled_for": NOW}
    Context(**plain, sink=told.append).progress(*values)
    return told[0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), Decimal(1), "3", None, 10**400, 1j])
def test_what_no_store_can_keep_is_refused_to_the_handler(bad: Any) -> None:
    """The handler hears of it at the call, not the worker at its next poll."""
    with pytest.raises(InvalidInput, match=r"progress\.done"):
        reported(bad)
    if bad is not None:
        with pytest.raises(InvalidInput, match=r"progress\.total"):
            reported(1, bad)


def test_a_note_becomes_one_line_of_valid_text() -> None:
    """Lone surrogates, line ends and length are mended; what is no text is refused."""
    assert reported(1, 2, "a\n\udc80b").note == "a ?b"
    assert len(reported(1, 2, "x" * 999).note) == 200
    with pytest.raises(InvalidInput, match=r"progress\.note"):
        reported(1, 2, b"x")


def test_good_numbers_are_kept() -> None:
    """Whole numbers stay whole; a huge one or a fraction becomes a float."""
    assert reported(3, 0.5) == Progress(done=3, total=0.5)
    assert isinstance(reported(3).done, int)
    assert reported(Fraction(1, 4), 10**60) == Progress(done=0.25, total=1e60)


def test_one_bad_report_does_not_fail_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A report that cannot be written is dropped and logged once; the next one is written."""
    with ManualScheduler() as scheduler:
        hand = Hand()
        notes = ProgressNotes(scheduler.store, clock=scheduler.clock, hand=hand)
        bad = hand.enter(run_of(RunState.LEASED), "s")
        good = hand.enter(manual_of(RunState.LEASED), "s")
        assert bad is not None
        assert good is not None
        bad.progress, good.progress = Progress(done=object()), Progress(done=1)  # type: ignore[arg-type]
        assert notes.write(NOW) == 1
        kept = scheduler.store.runs.progress(good.run.run_id)
    assert kept is not None
    assert kept.done == 1
    assert caplog.text.count("was dropped") == 1
