"""Payloads: what a job carries to its target, as one canonical JSON text.

A payload that passes here can be written to every store and read back the same: the bounds on
numbers are DynamoDB's, the others keep one job from being a burden on its neighbours.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dynsched.errors import InvalidInput

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"

BYTES_MAX = 256 * 1024
"""The longest payload, in bytes of its canonical UTF-8 text."""
DEPTH_MAX = 32
"""The deepest nesting of objects and lists: as deep as a DynamoDB item can be."""
DIGITS_MAX = 38
"""The most significant digits of a number: DynamoDB's limit."""
TEXT_BYTES_MAX = 4 * BYTES_MAX
"""The longest text that is parsed at all; it may be laid out with spaces and escapes."""

_MAGNITUDE_MAX = 1e126
_MAGNITUDE_MIN = 1e-130
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class _Fault(Exception):
    """What is wrong with a value, and the steps from the payload down to it, innermost first."""

    def __init__(self, problem: str, mend: str) -> None:
        self.problem, self.mend = problem, mend
        self.steps: list[str | int] = []
        super().__init__(problem)


class _LongNumeral:
    """A number in a text that no float can hold; it is refused once its path is known."""

    def __init__(self, text: str) -> None:
        self.text = text


def check_payload(value: object) -> str:
    """Return the payload's canonical JSON text: sorted keys, no spaces, no escapes but the needed.

    Args:
        value: made of dict with text keys, list or tuple, str, int, float, bool and None.

    Raises:
        InvalidInput: it is not JSON, or breaks a bound of this module; the field is the path of
            the offending value, such as `payload.items[3].price`.

    >>> check_payload({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    try:
        _check(value, depth=0)
    except _Fault as fault:
        raise InvalidInput(_path(fault.steps), fault.problem, fault.mend) from None
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    size = len(text.encode())
    if size > BYTES_MAX:
        raise InvalidInput(
            "payload",
            f"it is {size:,} bytes long, the limit is {BYTES_MAX:,}",
            "store the data elsewhere and pass its address",
        )
    return text


def parse_payload(text: str | bytes) -> Json:
    """Return the checked value of a JSON text, such as the command line or a file gives.

    Args:
        text: one JSON document, with or without a byte order mark if it is bytes.

    Raises:
        InvalidInput: it is no JSON, an object names a key twice, or `check_payload` refuses it.

    >>> parse_payload('{"order": 7}')
    {'order': 7}
    """
    if len(text) > TEXT_BYTES_MAX:
        raise InvalidInput(
            "payload",
            f"the text is {len(text):,} long, the limit is {TEXT_BYTES_MAX:,}",
            "store the data elsewhere and pass its address",
        )
    value = read_json(text)
    check_payload(value)
    return value


def read_json(text: str | bytes, field: str = "payload") -> Json:
    """Return the value of a JSON text, of which `check_payload` has still to look at payloads.

    A number that no float can hold is none of JSON's types in it, so that it is refused and not
    rounded.

    Args:
        text: one JSON document, with or without a byte order mark if it is bytes.
        field: how the caller calls it.

    Raises:
        InvalidInput: it is no JSON, or an object names a key twice.
    """
    try:
        return _loads(_decoded(text))
    except InvalidInput as error:
        raise InvalidInput(field, error.problem, error.mend) from None


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "payload", f"the byte at offset {error.start} is not UTF-8", "save the file as UTF-8"
        ) from None


def _loads(text: str) -> Json:
    mend = 'give one JSON value, for example {"order": 7}'
    if not text.strip():
        raise InvalidInput("payload", "the text is empty", mend)
    try:
        value: Json = json.loads(
            text,
            parse_float=_numeral,
            parse_int=_numeral,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidInput("payload", f"not JSON at {where}: {error.msg}", mend) from None
    except RecursionError:
        raise InvalidInput("payload", f"nested deeper than {DEPTH_MAX} levels", mend) from None
    return value


def _numeral(text: str) -> object:
    """Return the number that a numeral names, or a marker for one that would lose its value."""
    mantissa = re.split("[eE]", text)[0]
    digits = mantissa.lstrip("-").replace(".", "").strip("0")
    if len(digits) > DIGITS_MAX or len(text) > 300:
        return _LongNumeral(text)
    number = float(text) if mantissa != text or "." in text else int(text)
    return _LongNumeral(text) if math.isinf(number) else number


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build an object, refusing a key that occurs twice: readers disagree on which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput("payload", f"the key {twice!r} occurs twice in one object", "drop one")
    return found


def _check(value: object, depth: int) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int):
        _check_int(value)
    elif isinstance(value, float):
        _check_float(value)
    elif isinstance(value, dict | list | tuple):
        _check_nested(value, depth + 1)
    elif isinstance(value, _LongNumeral):
        raise _too_long(value.text)
    else:
        raise _Fault(
            f"a {type(value).__name__} is not JSON",
            "use dict, list, str, int, float, bool or None",
        )


def _check_nested(
    value: dict[object, object] | list[object] | tuple[object, ...], depth: int
) -> None:
    """Check what is inside; a fault collects the steps on its way out, so good values pay none."""
    if depth > DEPTH_MAX:
        raise _Fault(f"nested deeper than {DEPTH_MAX} levels", "flatten it")
    step: str | int = 0
    items = value.items() if isinstance(value, dict) else enumerate(value)
    try:
        for step, item in items:  # type: ignore[assignment]  # a wrong key is told just below
            if isinstance(value, dict):
                _check_key(step)
            _check(item, depth)
    except _Fault as fault:
        fault.steps.append(step)
        raise


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise _Fault(f"the key {key!r} is not text", "write it as a string")
    _check_text(key)


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(
            f"the text has a lone surrogate at position {error.start}", "remove or replace it"
        ) from None


def _check_int(value: int) -> None:
    # The bit length goes first: turning a giant into text takes time that grows as its square.
    if value.bit_length() > 420 or abs(value) >= 10**126:
        raise _Fault("the number is beyond 10^126", "send it as text")
    text = str(abs(value))
    if len(text.rstrip("0")) > DIGITS_MAX:
        raise _too_long(text)


def _check_float(value: float) -> None:
    if not math.isfinite(value):
        raise _Fault(f"{value} is not JSON", "use null or text")
    if value and not _MAGNITUDE_MIN <= abs(value) < _MAGNITUDE_MAX:
        raise _Fault(f"the number {value!r} is outside 1e-130 to 1e126", "send it as text")


def _too_long(text: str) -> _Fault:
    return _Fault(
        f"the number {text[:12]}… cannot be kept exactly: more than {DIGITS_MAX} digits"
        " or out of range",
        "send it as text",
    )


def _path(steps: Sequence[str | int]) -> str:
    """Return the path of a value from its steps, innermost first, as `payload.items[3]`."""
    parts = ["payload"]
    for step in reversed(steps):
        if isinstance(step, str) and _PLAIN_KEY.fullmatch(step):
            parts.append(f".{step}")
        else:
            shown = repr(step)
            parts.append(f"[{shown[:40]}{'…' if len(shown) > 40 else ''}]")
    return "".join(parts)
