"""What every kind of target shares: its kind's name, and how its texts are checked and shown."""

from __future__ import annotations

from enum import StrEnum

from dynsched.errors import InvalidInput

TEXT_LENGTH_MAX = 64 * 1024
"""The longest command, standard input or body template, in characters."""
DESCRIPTION_LENGTH_MAX = 80


class TargetKind(StrEnum):
    """What kinds of target there are."""

    HANDLER = "handler"
    """A Python function registered in the worker's app."""
    HTTP = "http"
    """One HTTP request."""
    COMMAND = "command"
    """A shell command, where the worker allows commands."""
    LAMBDA = "lambda"
    """One invocation of a Lambda function."""
    SQS = "sqs"
    """One message to an SQS queue."""


def check_text(name: str, text: str) -> None:
    """Refuse a text that is too long or cannot be stored.

    Args:
        name: the field, for the error.
        text: what was given for it.

    Raises:
        InvalidInput: it is too long, has a NUL character, or is no Unicode.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput(name, f"longer than {TEXT_LENGTH_MAX:,} characters", "use a file")
    if "\0" in text:
        raise InvalidInput(name, "it contains a NUL character", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            name, f"it has a lone surrogate at position {error.start}", "save it as UTF-8"
        ) from None


def cut(text: str, length: int = DESCRIPTION_LENGTH_MAX) -> str:
    """Return a text in at most so many characters; a cut one ends in an ellipsis.

    >>> cut("daily report", 6)
    'daily…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"
