"""Packs frozen dataclasses into compact JSON text and back, by their fields and types.

Records become arrays in the order of their fields, instants and durations milliseconds. A text
carries a mark of the shape it was packed with: another version's is not read, but made anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from dynsched.domain.instants import MILLISECOND, from_ms, to_ms

T = TypeVar("T")

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def packed(value: object) -> str:
    """Return a record as text."""
    return _encode([shape(cast(Any, type(value))), _pack(value)])


def unpacked(kind: type[T], text: str) -> T | None:
    """Return the record in a text; None if it was packed with another shape."""
    mark, body = json.loads(text)
    return cast(T, _unpack(kind, body)) if mark == shape(cast(Any, kind)) else None


@cache
def shape(kind: Any) -> str:
    """Return a short text that is another one for records with other fields."""
    return hashlib.blake2b(_described(kind).encode(), digest_size=6).hexdigest()


def _described(kind: Any) -> str:
    inner = "".join(_described(one) for one in get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        inner = "".join(
            f"{name}:{_described(hint)}," for name, hint in _hints(cast(Any, kind)).items()
        )
    return f"{getattr(kind, '__name__', kind)}({inner})"


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _pack(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_ms(value)
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if isinstance(value, Mapping):
        return {name: _pack(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_pack(one) for one in value]
    if is_dataclass(value):
        return [_pack(getattr(value, name)) for name in _hints(cast(Any, type(value)))]
    return value


def _unpack(kind: Any, value: Any) -> Any:
    if get_origin(kind) is not None:
        return _unpack_generic(get_origin(kind), get_args(kind), value)
    if kind is datetime:
        return from_ms(value)
    if kind is timedelta:
        return value * MILLISECOND
    if is_dataclass(kind):
        named = zip(_hints(cast(Any, kind)).items(), value, strict=True)
        return cast(Any, kind)(**{name: _unpack(hint, one) for (name, hint), one in named})
    return kind(value) if issubclass(kind, StrEnum) else value


def _unpack_generic(origin: Any, inner: tuple[Any, ...], value: Any) -> Any:
    if origin is UnionType:
        (only,) = (one for one in inner if one is not type(None))
        return None if value is None else _unpack(only, value)
    if origin is tuple:
        return tuple(_unpack(inner[0], one) for one in value)
    return {name: _unpack(inner[1], one) for name, one in value.items()}
