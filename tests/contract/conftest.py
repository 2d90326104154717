"""Runs each test of the conformance suite on each backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import pytest

from dynsched.storage.engine import Engine
from tests.contract.backends import BACKENDS, Backend


def _dynamo_backends() -> Mapping[str, Backend]:
    try:
        found = import_module("tests.contract.dynamo_backends")
    except ModuleNotFoundError as missing:
        # A fault inside it must not look like its absence.
        if missing.name not in ("tests.contract.dynamo_backends", "boto3", "moto"):
            raise
        return {}
    backends: Mapping[str, Backend] = found.BACKENDS
    return backends


ALL: dict[str, Backend] = {**BACKENDS, **_dynamo_backends()}


@pytest.fixture(params=ALL)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Return each kind of store in turn."""
    return ALL[request.param]


@pytest.fixture
def engine(backend: Backend) -> Iterator[Engine]:
    """Return an initialised engine on an empty store."""
    with backend() as fresh:
        yield fresh


@pytest.fixture(params=[name for name, one in ALL.items() if one.threads])
def threaded_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Return an engine whose guarded writes are atomic among threads; moto has no locks."""
    with ALL[request.param]() as fresh:
        yield fresh
