"""Tickets: what a target needs whose attempt goes on elsewhere and is answered from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from dynsched.targets.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What whoever ends a run that waits for its callback must show, and until when.

    Attributes:
        token: proves that an answer belongs to this attempt.
        ends_at: the attempt has failed if there is no answer by then.
    """

    token: str
    ends_at: datetime


OpenCallback: TypeAlias = Callable[[], Ticket | Result]
"""Writes that a run waits for its callback; a result says that it does not, and how it ended."""
