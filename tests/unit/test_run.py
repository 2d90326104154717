"""Runs: the quick copy that each transition makes."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from dynsched.domain.job import Priority
from dynsched.domain.run import Run, RunKey, RunKind, RunState

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
def run() -> Run:
    """Return a ready run."""
    return Run(
        key=RunKey("job", NOW, RunKind.CRON),
        tenant="acme",
        queue="main",
        priority=Priority.DEFAULT,
        share="acme",
        state=RunState.READY,
        available_at=NOW,
        needs="http",
        limit=3,
        created_at=NOW,
    )


def test_a_quick_copy_is_what_replace_would_make(run: Run) -> None:
    """Equal in every field, and the original stays as it was."""
    copy = run.changed(state=RunState.LEASED, fence=1)
    assert copy == replace(run, state=RunState.LEASED, fence=1)
    assert (run.state, run.fence) == (RunState.READY, 0)


def test_a_quick_copy_has_every_field_and_no_other(run: Run) -> None:
    """Fields left at their defaults are copied too."""
    assert vars(run.changed()).keys() == {field.name for field in fields(Run)}


def test_a_quick_copy_refuses_a_field_that_does_not_exist(run: Run) -> None:
    """Else a slip of the pen would be written nowhere and noticed by nobody."""
    with pytest.raises(AssertionError, match="owner"):
        run.changed(owner="me")
