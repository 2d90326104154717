"""Values as people type them: durations, instants, payloads, tags; each fault names its option."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynsched.domain.durations import parse_duration
from dynsched.domain.instants import from_text
from dynsched.domain.payload import TEXT_BYTES_MAX, Json, parse_payload
from dynsched.errors import InvalidInput

# Generic since click 8.4 only, and for type checkers.
if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType

_SHOWN = 40  # characters of a wrong value that a message repeats


def option_name(param: click.Parameter | None) -> str:
    """Return how people type a parameter: `--every`, or an argument's `NAME`."""
    if isinstance(param, click.Option):
        return next((name for name in param.opts if name.startswith("--")), param.opts[0])
    if param is None:
        return "value"
    return param.metavar or (param.name or "value").upper()


def parse_instant(text: str, field: str) -> datetime:
    """Return the instant of an ISO text with an offset or `Z`.

    Raises:
        InvalidInput: it is none, has no offset, or lies outside of the years 1 to 9999.
    """
    try:
        return from_text(text, field)
    except OverflowError:
        raise InvalidInput(field, f"{text!r} is out of range", "the years 1 to 9999") from None


def read_file(path: str, field: str) -> bytes:
    """Return a file's bytes, of `-` those of standard input, up to what a payload may be.

    Raises:
        InvalidInput: it cannot be read, or is too long.
    """
    try:
        if path == "-":
            data = bytes(sys.stdin.buffer.read(TEXT_BYTES_MAX + 1))
        else:
            with Path(path).open("rb") as file:
                data = file.read(TEXT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(field, f"{path!r} cannot be read: {reason}", "name a file") from None
    if len(data) > TEXT_BYTES_MAX:
        raise InvalidInput(field, f"{path!r} is longer than {TEXT_BYTES_MAX:,} bytes", "split it")
    return data


class DurationType(ParamType):
    """A duration.

    Args:
        none: the word `none` is allowed and means None.
    """

    name = "duration"

    def __init__(self, *, none: bool = False) -> None:
        self._none = none

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | None:
        """Return the duration, None for `none`."""
        del ctx
        if isinstance(value, timedelta) or (self._none and value == "none"):
            return None if value == "none" else value
        return parse_duration(value, option_name(param))


class InstantType(ParamType):
    """An instant with an offset.

    Args:
        none: the word `none` is allowed and means None.
    """

    name = "instant"

    def __init__(self, *, none: bool = False) -> None:
        self._none = none

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | None:
        """Return the instant, None for `none`."""
        del ctx
        if isinstance(value, datetime) or (self._none and value == "none"):
            return None if value == "none" else value
        return parse_instant(value, option_name(param))


class PayloadType(ParamType):
    """A JSON document: the text itself, or `@file`, or `@-` for standard input."""

    name = "JSON|@file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Json:
        """Return the checked value."""
        del ctx
        field = option_name(param)
        data = read_file(value[1:], field) if value.startswith("@") else value
        try:
            return parse_payload(data)
        except InvalidInput as error:
            path = error.field.removeprefix("payload")
            raise InvalidInput(field + path, error.problem, error.mend) from None


class PairType(ParamType):
    """A name and a value with a separator between them.

    Args:
        separator: what stands between them.
        form: what to say it should look like.
    """

    name = "pair"

    def __init__(self, separator: str, form: str) -> None:
        self._separator, self._form = separator, form
        self.name = form

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return the name and the value, blanks around them stripped from headers only."""
        del ctx
        if isinstance(value, tuple):
            return value
        name, separator, rest = value.partition(self._separator)
        if not separator or not name.strip():
            shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            raise InvalidInput(option_name(param), f"{shown!r} has another form", self._form)
        return (name, rest) if self._separator == "=" else (name.strip(), rest.strip())


class CapType(ParamType):
    """A number of runs, or `none`."""

    name = "N|none"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Return the number, None for `none`."""
        del ctx
        if value == "none":
            return None
        if isinstance(value, int):
            return value
        if not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
            raise InvalidInput(option_name(param), f"{value!r} is no number", "a number, or none")
        return int(value)


DURATION = DurationType()
DURATION_OR_NONE = DurationType(none=True)
INSTANT = InstantType()
INSTANT_OR_NONE = InstantType(none=True)
PAYLOAD = PayloadType()
TAG = PairType("=", "key=value")
VARIABLE = PairType("=", "NAME=value")
HEADER = PairType(":", "Name: value")
CAP = CapType()


def pairs(values: tuple[tuple[str, str], ...], field: str) -> dict[str, str]:
    """Return pairs as a mapping.

    Raises:
        InvalidInput: a name is given twice.
    """
    found: dict[str, str] = {}
    for name, value in values:
        if name in found:
            raise InvalidInput(field, f"{name!r} is given twice", "give it once")
        found[name] = value
    return found


def is_terminal() -> bool:
    """Return whether people look at the standard output."""
    return sys.stdout.isatty()


def since_instant(text: str, now: datetime, field: str) -> datetime:
    """Return the instant that a duration back from now, or an ISO text, means.

    Raises:
        InvalidInput: it is neither.
    """
    if re.match(r"\d{4}-", text, re.ASCII):
        return parse_instant(text, field)
    return now - parse_duration(text, field)
