"""Schemas: what a value may be, declared once, checked here and printed into the OpenAPI document.

They are plain JSON Schema, of which `check` knows as much as the API's requests need: types, fixed
words, bounds, objects without unknown fields, lists, and objects that their `kind` tells apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from dynsched.errors import InvalidInput

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {}
SHOWN_MAX = 40  # characters of a wrong value that an error repeats

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_ARTICLES = {"string": "text", "integer": "a whole number", "number": "a number", "null": "null"}
_ARTICLES |= {"boolean": "true or false", "object": "an object", "array": "a list"}


def orelse_null(schema: Schema) -> Schema:
    """Return a schema that lets null in too."""
    if "type" in schema and "enum" not in schema and "title" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def word(kind: type[StrEnum]) -> Schema:
    """Return the schema of an enum's words."""
    return {"type": "string", "enum": [one.value for one in kind]}


def whole(low: int, high: int, default: int | None = None) -> Schema:
    """Return the schema of a whole number within bounds, both included."""
    schema: dict[str, Any] = {"type": "integer", "minimum": low, "maximum": high}
    return schema if default is None else schema | {"default": default}


def list_of(schema: Schema, most: int | None = None) -> Schema:
    """Return the schema of a list."""
    found: dict[str, Any] = {"type": "array", "items": schema}
    return found if most is None else found | {"maxItems": most}


def dict_of(schema: Schema) -> Schema:
    """Return the schema of an object with any names and values of one kind."""
    return {"type": "object", "additionalProperties": schema}


def fields(
    title: str, needed: Mapping[str, Schema], other: Mapping[str, Schema] | None = None
) -> Schema:
    """Return the schema of an object.

    Args:
        title: its name among the document's components; empty for one that needs none.
        needed: what it must have.
        other: what it may have; it has nothing else.
    """
    schema: dict[str, Any] = {"title": title} if title else {}
    schema |= {
        "type": "object",
        "properties": {**needed, **(other or {})},
        "additionalProperties": False,
    }
    return schema | {"required": list(needed)} if needed else schema


def by_kind(title: str, *variants: Schema) -> Schema:
    """Return the schema of objects that the constant in their field `kind` tells apart."""
    return {"title": title, "oneOf": list(variants)}


def page_of(title: str, item: Schema) -> Schema:
    """Return the schema of a list's answer."""
    return fields(
        title,
        {
            "items": list_of(item),
            "matched": COUNT,
            "examined": COUNT,
            "cursor": orelse_null(TEXT),
            "notes": list_of(TEXT),
        },
    )


def check(value: object, schema: Schema, field: str) -> None:
    """Check a value that came in.

    Args:
        value: as JSON gave it.
        schema: what it may be.
        field: where it stands, for the error.

    Raises:
        InvalidInput: it is something else; the field is the place of what is wrong.
    """
    if "oneOf" in schema:
        schema = _variant(value, schema["oneOf"], field)
    if "anyOf" in schema:
        if value is not None:
            check(value, schema["anyOf"][0], field)
        return
    _check_type(value, schema, field)
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(map(str, schema["enum"]))
        raise InvalidInput(field, f"{_shown(value)} is unknown", f"give {known}")
    if isinstance(value, str):
        _check_text(value, schema, field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(value, schema, field)
    elif isinstance(value, dict) and schema.get("type") is not None:
        _check_object(value, schema, field)
    elif isinstance(value, list) and "items" in schema:
        _check_list(value, schema, field)


def _variant(value: object, variants: Sequence[Schema], field: str) -> Schema:
    known = {one["properties"]["kind"]["const"]: one for one in variants}
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(
            f"{field}.kind", f"{_shown(kind)} is unknown", f"give {', '.join(known)}"
        )
    return known[kind]


def _check_type(value: object, schema: Schema, field: str) -> None:
    names = schema.get("type")
    if names is None:
        return
    listed: list[str] = [names] if isinstance(names, str) else names
    kinds = tuple(kind for name in listed for kind in _TYPES[name])
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(_ARTICLES[name] for name in listed)
        raise InvalidInput(field, f"{_shown(value)} is not {wanted}", f"give {wanted}")


def _check_text(value: str, schema: Schema, field: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "it has half a surrogate pair", "remove it") from None
    most = schema.get("maxLength")
    if most is not None and len(value) > most:
        raise InvalidInput(field, f"longer than {most:,} characters", "shorten it")


def _check_bounds(value: float, schema: Schema, field: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if not math.isfinite(value):
        raise InvalidInput(field, f"{value} is no number", "give a finite one")
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
        raise InvalidInput(field, f"{_shown(value)} is out of range", f"give {bounds}")


def _check_object(value: Mapping[str, object], schema: Schema, field: str) -> None:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidInput(_place(field, name), "it is missing", "give it")
    for name, item in value.items():
        if name in known:
            check(item, known[name], _place(field, name))
        elif others is False:
            raise InvalidInput(
                _place(field, name), "the field is unknown", f"known are {', '.join(known)}"
            )
        elif others is not True:
            check(name, TEXT, field)
            check(item, others, _place(field, name))


def _check_list(value: Sequence[object], schema: Schema, field: str) -> None:
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        raise InvalidInput(field, f"it has {len(value):,} items", f"give at most {most:,}")
    for number, item in enumerate(value):
        check(item, schema["items"], f"{field}[{number}]")


def _place(field: str, name: str) -> str:
    shown = name.encode("ascii", "replace").decode()[:SHOWN_MAX]
    return shown if field == "body" else f"{field}.{shown}"


def _shown(value: object) -> str:
    text = ascii(value) if isinstance(value, str | int | float) else type(value).__name__
    names = {"NoneType": "null", "dict": "an object", "list": "a list"}
    text = names.get(text, text)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
