"""Messages: what a hand-off carries to a function, which is only the run that it is about.

The run's row decides everything, so a message that is lost, doubled or late does no harm.
"""

from __future__ import annotations

import json

from dynsched.domain.lifecycle import Transition
from dynsched.domain.moves import Event
from dynsched.domain.run import RunState, parse_run_id
from dynsched.errors import InvalidInput

MESSAGE_VERSION = 1
FIELD = "message"
_MEND = 'a hand-off sends {"run": RUN ID, "v": 1}'


def encode_message(run_id: str) -> str:
    """Return the body of a message about a run.

    >>> encode_message("j1@2026-01-02T03:04:05.000Z-c")
    '{"run":"j1@2026-01-02T03:04:05.000Z-c","v":1}'
    """
    body = {"run": run_id, "v": MESSAGE_VERSION}
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def decode_message(text: str) -> str:
    """Return the id of the run that a message is about.

    Raises:
        InvalidInput: it is no message of a hand-off, or one of another version.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(FIELD, "it is not JSON", _MEND) from None
    if not isinstance(body, dict):
        raise InvalidInput(FIELD, "it is not an object", _MEND)
    version, run_id = body.get("v"), body.get("run")
    if version != MESSAGE_VERSION or isinstance(version, bool):
        raise InvalidInput(f"{FIELD}.v", f"{version!r} is not a version that is known", _MEND)
    if not isinstance(run_id, str):
        raise InvalidInput(f"{FIELD}.run", "it is not text", _MEND)
    return parse_run_id(run_id).run_id


def calls_for_message(transition: Transition) -> bool:
    """Return whether functions are to be told of a run after a transition of it.

    A step back keeps the message that its claim came by; with another one they would double at
    each visit. A worker that pulls has none, and its run is found by pulling or by the resend.
    """
    return transition.after.state is RunState.READY and transition.event is not Event.STEP_BACK
