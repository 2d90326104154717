"""Reading stored bodies: JSON objects back into values, with errors that name the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias, TypeVar

from dynsched.domain.instants import MILLISECOND
from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput

Body: TypeAlias = Mapping[str, Json]

DURATION_MAX = timedelta(days=36_525)
"""The longest duration that a body may hold."""

_Word = TypeVar("_Word", bound=StrEnum)


class Reader:
    """Takes fields out of a body one by one and checks their types.

    Args:
        name: what the body is, put before a field's name in errors.
        body: the object read.
    """

    def __init__(self, name: str, body: Body) -> None:
        self._name = name
        self._left: dict[str, Json] = dict(body)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text; without a default it must be there."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Take a text that may be absent."""
        return self.text(key) if key in self._left else None

    def integer(self, key: str, default: int) -> int:
        """Take a whole number; one written as a float without a fraction is taken too."""
        value = self.number(key, default)
        if value != int(value):
            raise self._wrong(key, "a whole number")
        return int(value)

    def number(self, key: str, default: float) -> float:
        """Take a finite number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number")
        if not math.isfinite(value):
            raise self._wrong(key, "a finite number")
        return value

    def duration(self, key: str, default: timedelta | None) -> timedelta | None:
        """Take a duration stored in milliseconds, at most `DURATION_MAX`."""
        if key not in self._left:
            return default
        value = self.integer(key, 0)
        if abs(value) > DURATION_MAX // MILLISECOND:
            raise self._wrong(key, f"at most {DURATION_MAX.days} days in milliseconds")
        return value * MILLISECOND

    def word(self, key: str, kind: type[_Word], default: _Word | None = None) -> _Word:
        """Take one of the words of an enum."""
        word = self.text(key, default)
        try:
            return kind(word)
        except ValueError:
            raise self._wrong(key, " or ".join(kind)) from None

    def texts(self, key: str) -> dict[str, str]:
        """Take an object whose values are texts, empty if absent."""
        found = self._take(key, {})
        if not isinstance(found, Mapping):
            raise self._wrong(key, "an object")
        texts = {name: value for name, value in found.items() if isinstance(value, str)}
        if len(texts) < len(found):
            raise self._wrong(key, "an object of texts")
        return texts

    def integers(self, key: str) -> tuple[int, ...]:
        """Take a list of whole numbers, empty if absent."""
        found = self._take(key, [])
        if not isinstance(found, list | tuple):
            raise self._wrong(key, "a list")
        return tuple(Reader(self._name, {key: item}).integer(key, 0) for item in found)

    def bodies(self, key: str) -> tuple[Body, ...]:
        """Take a list of objects, empty if absent."""
        found = self._take(key, [])
        if not isinstance(found, list | tuple):
            raise self._wrong(key, "a list")
        bodies = tuple(item for item in found if isinstance(item, Mapping))
        if len(bodies) < len(found):
            raise self._wrong(key, "a list of objects")
        return bodies

    def done(self) -> None:
        """Refuse fields that nobody took.

        Raises:
            InvalidInput: some are left.
        """
        if self._left:
            key = min(self._left)
            raise InvalidInput(f"{self._name}.{key}", "the field is unknown", "drop it")

    def _take(self, key: str, default: Json) -> Json:
        return self._left.pop(key, default)

    def _wrong(self, key: str, wanted: str) -> InvalidInput:
        return InvalidInput(f"{self._name}.{key}", f"it is not {wanted}", f"give {wanted}")
