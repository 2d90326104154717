"""What a function does that answers by callback: its event read, and its exceptions as answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput
from dynsched.services.callbacks import Answer
from dynsched.targets.context import Permanent, RetryAfter
from dynsched.targets.result import error_name, message_of, trace_of


@dataclass(slots=True, kw_only=True)
class Work:
    """One attempt, as its function sees it.

    Attributes:
        payload: what the job carries, JSON values.
        run_id: the run's id.
        token: by which it is answered.
        fields: what else identifies the attempt, such as `idempotency_key` and `deadline`.
        output: what is kept with the run, JSON values of at most 4 KB; the function sets it.
    """

    payload: Any
    run_id: str
    token: str
    fields: Mapping[str, Json]
    output: Json = None


def read_event(event: Mapping[str, Any]) -> Work:
    """Return the work that an event asks for.

    Raises:
        InvalidInput: it is not from a job whose invocation is `callback`.
    """
    fields = event.get("dynsched")
    known: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    run_id, token = known.get("run_id"), known.get("token")
    if not isinstance(run_id, str) or not isinstance(token, str):
        raise InvalidInput(
            "event", "it has no token", "invoke the function by a job with --invocation callback"
        )
    return Work(payload=event.get("payload"), run_id=run_id, token=token, fields=known)


def answer_of(error: Exception) -> Answer:
    """Return the failure that an exception of a function's code is."""
    return Answer.failed(
        error_name(error),
        message_of(error),
        trace=trace_of(error),
        permanent=isinstance(error, Permanent),
        retry_after=error.delay if isinstance(error, RetryAfter) else None,
    )
