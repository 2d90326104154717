"""Forms: values as people type them into fields; each fault names its field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from dynsched.domain.batch import RATE
from dynsched.domain.durations import parse_duration
from dynsched.domain.instants import from_text
from dynsched.errors import InvalidInput

NO_LIMIT = "none"
NUMBER_MAX = 10**9
DIGITS_MAX = 20  # Python refuses to read thousands of them


class Form:
    """The fields of a form.

    Args:
        fields: texts by the names of fields.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """Return a field's text without blanks around it."""
        return self._fields.get(name, default).strip()

    def sent(self, name: str) -> bool:
        """Return whether a field is there, empty or not."""
        return name in self._fields

    def ticked(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self._fields.get(name, "") not in ("", "off")

    def whole(self, name: str) -> int | None:
        """Return a whole number, thousands with or without commas; None for an empty field.

        Raises:
            InvalidInput: it is none.
        """
        text = self.text(name).replace(",", "")
        if not text:
            return None
        digits = text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX
        if not digits or int(text) > NUMBER_MAX:
            raise InvalidInput(name, f"{text[:40]!r} is no whole number", "give digits only")
        return int(text)

    def number(self, name: str) -> float | None:
        """Return a number; None for an empty field.

        Raises:
            InvalidInput: it is none.
        """
        text = self.text(name)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidInput(name, f"{text[:40]!r} is no number", "give a number")
        return value

    def rate(self, name: str) -> float | None:
        """Return runs a second; None for `none`, the usual rate for an empty field.

        Raises:
            InvalidInput: it is neither.
        """
        if self.text(name).lower() == NO_LIMIT:
            return None
        value = self.number(name)
        return RATE if value is None else value

    def duration(self, name: str) -> timedelta | None:
        """Return a duration such as `1h30m`; None for an empty field or `none`.

        Raises:
            InvalidInput: it is none.
        """
        text = self.text(name)
        return None if text.lower() in ("", NO_LIMIT) else parse_duration(text, name)

    def instant(self, name: str) -> datetime:
        """Return an instant with its offset.

        Raises:
            InvalidInput: it is none.
        """
        try:
            return from_text(self.text(name), name)
        except OverflowError:
            raise InvalidInput(name, "it is out of range", "give a year from 1 to 9999") from None
