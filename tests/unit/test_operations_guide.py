"""The guide for whoever is on call names commands and causes that exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from dynsched.cli.main import main
from dynsched.domain.explanation import Cause

GUIDE = (Path(__file__).resolve().parents[2] / "docs/operations.md").read_text("utf-8")
LINES = sorted(set(re.findall(r"dynsched (?:--[a-z-]+ )?([a-z-]+(?: [a-z-]+)?)", GUIDE)))
CAUSES = sorted({*re.findall(r"`([a-z]+(?:_[a-z]+)+)`", GUIDE)})


@pytest.mark.parametrize("line", LINES)
def test_every_command_of_the_guide_exists(line: str) -> None:
    """At night nobody wants to learn that a command was renamed."""
    first, _, second = line.partition(" ")
    command = main.commands[first]
    if isinstance(command, click.Group):
        assert second in command.commands


def test_every_cause_of_the_guide_is_one_that_why_gives() -> None:
    """A code that was renamed would be looked for in vain."""
    assert len(CAUSES) > 10
    assert set(CAUSES) <= {cause.value for cause in Cause}
