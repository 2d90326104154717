"""What the tests of the functions share."""

from __future__ import annotations

import pytest

from tests.functions.stage import Stage


@pytest.fixture
def stage() -> Stage:
    """Return a store whose main queue is handed off by messages."""
    return Stage()
