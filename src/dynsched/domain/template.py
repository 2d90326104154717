"""Body templates of HTTP targets: placeholders in braces, filled with JSON.

A placeholder is a name between braces with nothing else: `{payload.order.id}`, `{payload.tags[0]}`,
`{run_id}`. It is replaced by the JSON text of the value, quotes included, so that no value can
break out of its place. All other braces stay as they are, so a template can itself be JSON.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping

from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput

RUN_FIELDS = (
    "attempt",
    "fence",
    "idempotency_key",
    "job_id",
    "job_name",
    "run_id",
    "scheduled_for",
    "tenant",
)
"""What a template may name beside the payload."""

_BRACED = re.compile(r"""\{([A-Za-z_][^{}\s"':,]*)\}""")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d{1,6})\]")
_PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+|\[\d{1,6}\])*")


def check_template(template: str, field: str, *, is_json: bool) -> None:
    """Refuse a template that names something unknown or that would not make JSON.

    Args:
        template: the template's text.
        field: what to call it in an error.
        is_json: whether the filled template must be JSON.

    Raises:
        InvalidInput: a placeholder is malformed or unknown, or a filled one would not be JSON.

    >>> check_template('{"id": {payload.order.id}}', "body", is_json=True)
    """
    for place in _places(template):
        _check_place(place, field)
    if not is_json:
        return
    try:
        # A quoted value stands for all: it shows up placeholders that are already inside quotes.
        json.loads(_BRACED.sub('"x"', template))
    except ValueError as error:
        raise InvalidInput(
            field,
            f"the filled template is not JSON: {error}",
            "placeholders bring their own quotes; HTTP may have another content-type header",
        ) from None


def fill(template: str, payload: Json, fields: Mapping[str, Json]) -> str:
    """Return the template with every placeholder replaced by the JSON text of its value.

    Args:
        template: a template that `check_template` let pass.
        payload: what `{payload…}` refers to.
        fields: values of `RUN_FIELDS`.

    Raises:
        InvalidInput: the payload has no such place.

    >>> fill('{"id": {payload.id}, "try": {attempt}}', {"id": "a"}, {"attempt": 2})
    '{"id": "a", "try": 2}'
    """

    def value(match: re.Match[str]) -> str:
        place = match[1]
        if place in fields:
            return _text(fields[place])
        return _text(_reach(payload, place))

    return _BRACED.sub(value, template)


def check_fits(template: str, payload: Json) -> None:
    """Refuse a payload that lacks a place which the template names.

    Raises:
        InvalidInput: it lacks one; the field is that place.
    """
    for place in _places(template):
        if place not in RUN_FIELDS:
            _reach(payload, place)


def _places(template: str) -> Iterator[str]:
    return (match[1] for match in _BRACED.finditer(template))


def _check_place(place: str, field: str) -> None:
    root = re.split(r"[.\[]", place, maxsplit=1)[0]
    if place in RUN_FIELDS or (root == "payload" and _PLACE.fullmatch(place)):
        return
    if root == "payload":
        raise InvalidInput(
            field, f"{{{place}}} is malformed", "write {payload.name} or {payload.list[0].name}"
        )
    known = ("payload", *RUN_FIELDS)
    close = difflib.get_close_matches(root, known, n=1)
    mend = f"did you mean {{{close[0]}}}?" if close else "known are payload.…, " + ", ".join(known)
    raise InvalidInput(field, f"the placeholder {{{place}}} is unknown", mend)


def _reach(payload: Json, place: str) -> Json:
    """Follow a place's steps down into the payload."""
    value = payload
    for name, index in _STEP.findall(place):
        if index and isinstance(value, list | tuple) and int(index) < len(value):
            value = value[int(index)]
        elif name and isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            raise InvalidInput(place, "the payload has no such value", "the body template names it")
    return value


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
