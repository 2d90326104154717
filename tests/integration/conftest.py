"""Engines on DynamoDB's stand-ins, for all tests of what is particular to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynsched.storage.engine import Engine
from tests.contract.dynamo_backends import on_ministack, on_moto
from tests.integration.scripted_wire import Wire, engine_on


@pytest.fixture
def wire() -> Wire:
    """Give a network that answers nothing yet."""
    return Wire()


@pytest.fixture
def engine(wire: Wire) -> Iterator[Engine]:
    """Give an engine whose client talks to `wire`."""
    with engine_on(wire) as engine:
        yield engine


@pytest.fixture
def moto_engine() -> Iterator[Engine]:
    """Give an engine on moto."""
    with on_moto() as engine:
        yield engine


@pytest.fixture
def ministack_engine() -> Iterator[Engine]:
    """Give an engine on ministack."""
    with on_ministack() as engine:
        yield engine
