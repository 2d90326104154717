"""Durations as people type and read them: `90s`, `5m`, `1h30m`."""

from __future__ import annotations

import re
from datetime import timedelta

from dynsched.errors import InvalidInput

UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
DURATION_MAX = timedelta(days=3660)
DURATION_FORM = "30s, 5m, 2h, 1d or 1h30m"
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)", re.ASCII)
_SHOWN = 40  # characters of a wrong value that a message repeats
_SPELLED = ("d", "h", "m", "s", "ms")


def parse_duration(text: str, field: str) -> timedelta:
    """Return the duration that a text such as `1h30m` means.

    Args:
        text: numbers with a unit each (ms, s, m, h, d, w); not negative.
        field: how the caller calls the value.

    Raises:
        InvalidInput: it has another form, is negative or longer than ten years.

    >>> parse_duration("1h30m", "--every")
    datetime.timedelta(seconds=5400)
    """
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    if text.startswith("-"):
        raise InvalidInput(field, f"{shown!r} is negative", "give 0s or more")
    total, end = timedelta(0), 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        end = part.end()
        if float(part[1]) * UNITS[part[2]].total_seconds() > DURATION_MAX.total_seconds():
            raise InvalidInput(field, f"{shown!r} is longer than ten years", "give a shorter one")
        total += float(part[1]) * UNITS[part[2]]
    if end != len(text) or not text:
        raise InvalidInput(field, f"{shown!r} is no duration", f"for example {DURATION_FORM}")
    if total > DURATION_MAX:
        raise InvalidInput(field, f"{shown!r} is longer than ten years", "give a shorter one")
    return total


def duration_text(duration: timedelta) -> str:
    """Return the shortest text of whole units that `parse_duration` reads back.

    Args:
        duration: whole milliseconds, not negative.

    >>> duration_text(timedelta(minutes=90)), duration_text(timedelta(0))
    ('1h30m', '0s')
    """
    rest, parts = duration, []
    for unit in _SPELLED:
        count, rest = divmod(rest, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
