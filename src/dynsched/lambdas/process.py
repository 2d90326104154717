"""What the functions share: the store that their environment names, and the time they have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from dynsched.bootstrap import STORE_VARIABLE, Base, open_base
from dynsched.domain.instants import Clock
from dynsched.domain.masking import Masker
from dynsched.errors import InvalidInput
from dynsched.lambdas.logs import mask_logs
from dynsched.lambdas.metrics import Emf

Parts = TypeVar("Parts")

RUNTIME = "AWS_LAMBDA_RUNTIME_API"
NAME = "AWS_LAMBDA_FUNCTION_NAME"
RESERVE = timedelta(seconds=10)


class LambdaContext(Protocol):
    """What is used of the context that AWS gives a handler."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return how much of the time limit is left."""


class Once(Generic[Parts]):
    """Makes a function's parts once for each process.

    On AWS that is done while the module is imported: then the process has a whole core, and an
    environment that is wrong is told before the first event. Elsewhere the first event does it.
    """

    def __init__(self, make: Callable[[], Parts]) -> None:
        self._make = make
        self._made: Parts | None = None
        if RUNTIME in os.environ:
            self()

    def __call__(self) -> Parts:
        """Return the parts."""
        if self._made is None:
            self._made = self._make()
        return self._made


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a function.

    Attributes:
        base: the store.
        emf: writes its figures.
        name: the function's, by which people and other processes know it. All its processes
            have the same: none is missed when AWS ends it.
    """

    base: Base
    emf: Emf
    name: str


def process_of(function: str, environment: Mapping[str, str] | None = None) -> Process:
    """Return this process's view of the store that its environment names.

    Args:
        function: `dispatcher`, `reaper` or `worker`.
        environment: None is the process's.

    Raises:
        InvalidInput: the environment is wrong, or names no store.
    """
    environment = os.environ if environment is None else environment
    url = environment.get(STORE_VARIABLE)
    if not url:
        raise InvalidInput(
            STORE_VARIABLE, "the function is not told its store", "dynamodb://PREFIX?region=REGION"
        )
    base = open_base(url, environment=environment)
    mask_logs(Masker(base.settings.mask_keys))
    prefix = urlsplit(url).netloc or "local"
    name = environment.get(NAME) or f"{prefix}-{function}"
    return Process(base, Emf(function, prefix, base.clock), name)


def end_of(context: LambdaContext, clock: Clock) -> datetime:
    """Return when AWS ends the invocation, by the wall clock."""
    return clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())


def last_begin(context: LambdaContext, clock: Clock) -> datetime:
    """Return until when something more may be begun that takes a few seconds."""
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    return clock.now() + left - min(RESERVE, left / 4)
