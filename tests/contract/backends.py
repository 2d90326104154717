"""The stores on which the conformance suite of the engine protocol runs.

`BACKENDS[name]()` is a context manager that gives an initialised engine without rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from dynsched.storage.engine import Engine
from dynsched.storage.sqlite import SqliteEngine
from dynsched.storage.steady import SteadyEngine
from dynsched.testing.faults import CountingEngine, FaultyEngine, LaggingEngine
from tests.contract.builders import HandClock


class Backend(Protocol):
    """A kind of store."""

    @property
    def threads(self) -> bool:
        """Whether guarded writes of several threads are atomic there (moto's are not)."""

    def __call__(self) -> AbstractContextManager[Engine]:
        """Give an initialised engine on an empty store, and remove both afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteBackend:
    """A kind of SQLite store."""

    open: Callable[[], AbstractContextManager[Engine]]
    threads: bool = True

    def __call__(self) -> AbstractContextManager[Engine]:
        """Give an initialised engine on an empty store."""
        return self.open()


@contextmanager
def in_file() -> Iterator[Engine]:
    """Give an engine on a file of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="dynsched-") as folder,
        closing(SqliteEngine(str(Path(folder) / "store.db"))) as engine,
    ):
        engine.init()
        yield engine


@contextmanager
def in_memory() -> Iterator[Engine]:
    """Give an engine in memory."""
    with closing(SqliteEngine(None)) as engine:
        engine.init()
        yield engine


@contextmanager
def wrapped() -> Iterator[Engine]:
    """Give an engine behind all that may be put around one: none of it may break a promise."""
    clock = HandClock()
    with in_memory() as engine:
        lagging = LaggingEngine(engine, clock=clock, lag_s=0)
        yield SteadyEngine(CountingEngine(FaultyEngine(lagging)), clock=clock, rng=Random(7))


BACKENDS: dict[str, Backend] = {
    "sqlite-file": SqliteBackend(open=in_file),
    "sqlite-memory": SqliteBackend(open=in_memory),
    "sqlite-wrapped": SqliteBackend(open=wrapped),
}
