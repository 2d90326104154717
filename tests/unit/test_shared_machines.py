"""Worker processes that share a machine, and clocks that are set back."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from dynsched.domain.instants import within
from dynsched.domain.selection import shards_to_serve
from dynsched.services.session import SessionLocks
from dynsched.testing import SettableClock


def test_a_lock_file_of_another_user_counts_as_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease decides then; a worker must not stop working for it."""
    SessionLocks(tmp_path).hold("abc")

    def refused(*_: object) -> int:
        raise PermissionError("not yours")

    monkeypatch.setattr(os, "open", refused)
    assert SessionLocks(tmp_path).dead() == []


def test_a_folder_that_cannot_be_written_costs_the_lock_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users may share a store: the second works without a lock file."""

    def refused(*_: object) -> int:
        raise PermissionError("not yours")

    monkeypatch.setattr(os, "open", refused)
    assert SessionLocks(tmp_path).hold("abc") == ""


def test_what_is_remembered_does_not_last_longer_when_a_clock_is_set_back() -> None:
    """Five minutes back: a refusal of three seconds must not become one of five minutes."""
    since = SettableClock().now()
    assert not within(since - timedelta(minutes=5), since, timedelta(seconds=3))


def test_a_shard_is_free_whose_owner_is_unknown() -> None:
    """A dispatcher takes it at its next tick."""
    assert shards_to_serve("b", [("", None)], SettableClock().now()) == {0}
