"""Stages for tests with real processes; what they measured is shown at the end of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.processes.stage import Stage

FIGURE = "figure"
NewStage = Callable[..., Stage]
Figure = Callable[[str], None]


@pytest.fixture
def new_stage(tmp_path: Path) -> Iterator[NewStage]:
    """Return what makes a stage; its processes are ended with the test, however that ends.

    By default the store is a SQLite file; settings are environment variables.
    """
    with ExitStack() as stack:

        def make(store: str = f"sqlite:///{tmp_path}/store.db", **settings: str) -> Stage:
            return stack.enter_context(closing(Stage(tmp_path, store, settings)))

        yield make


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Return what takes a measured figure, to be shown at the end of the session."""

    def take(text: str) -> None:
        record_property(FIGURE, text)

    return take


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of tests that wait for default bounds."""
    config.addinivalue_line("markers", "slow: waits for more than half a minute")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures of tests that passed."""
    figures = [
        str(text)
        for report in terminalreporter.getreports("passed")
        for name, text in report.user_properties
        if name == FIGURE
    ]
    if figures:
        terminalreporter.section("measured with real processes")
        for text in figures:
            terminalreporter.write_line(text)
