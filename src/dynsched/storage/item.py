"""A row as a DynamoDB item: which attributes it has, and how many bytes it takes.

The body is one attribute of compact JSON text (see docs/decisions/002-row-body-is-json-text.md).
Pure, so that the capacity meter can count what DynamoDB would charge over any engine.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from dynsched.errors import InvalidInput, StoreError
from dynsched.storage.engine import Body, Key, Row, Table

Item: TypeAlias = dict[str, dict[str, str]]
"""Attribute name → {type: value}; the types in use are S (text) and N (number, as text)."""

PARTITION: Final = "pk"
SORT: Final = "sk"
VERSION: Final = "ver"
TOKEN: Final = "tok"  # noqa: S105 - the name of an attribute
BODY: Final = "body"
INDEX_PARTITION: Final = "ipk"
INDEX_SORT: Final = "isk"
EXPIRES: Final = "expires_at_s"

ITEM_BYTES_MAX: Final = 400 * 1024
"""Bytes of one item, attribute names included: DynamoDB's limit."""
BATCH_GET_KEYS: Final = 100
"""Keys in one BatchGetItem: DynamoDB's limit."""
_KEY_PARTS: Final = (PARTITION, SORT, INDEX_PARTITION, INDEX_SORT)
_KEY_BYTES_MAX: Final = {PARTITION: 2048, SORT: 1024, INDEX_PARTITION: 2048, INDEX_SORT: 1024}

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_encode_ascii = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_decode = json.JSONDecoder().decode


def body_text(body: Body) -> str:
    """Return the body as compact JSON text.

    Raises:
        InvalidInput: it holds something that is no JSON value, or is nested too deeply.

    >>> body_text({"state": "ready", "n": [1, None]})
    '{"state":"ready","n":[1,null]}'
    """
    try:
        text = _encode(body)
        if not _has_utf8(text):
            # A lone surrogate has no UTF-8 form; escaped it survives the round trip.
            text = _encode_ascii(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("body", f"it cannot be stored as JSON: {error}") from None
    return text


def to_item(row: Row, version: int) -> Item:
    """Return the item that stores `row` as `version`.

    Raises:
        InvalidInput: a key is empty or too long, or the item is larger than DynamoDB takes.
    """
    item = _attributes(row, version)
    for name in _KEY_PARTS:
        if name in item:
            _check_key(item[name]["S"], name, row.key.table)
    size = item_size(item)
    if size > ITEM_BYTES_MAX:
        raise InvalidInput(
            "row",
            f"{row.key.pk!r} {row.key.sk!r} of table {row.key.table} takes {size} bytes, "
            f"DynamoDB stores at most {ITEM_BYTES_MAX}",
            "shorten its payload or texts",
        )
    return item


def _attributes(row: Row, version: int) -> Item:
    item: Item = {
        PARTITION: {"S": row.key.pk},
        SORT: {"S": row.key.sk},
        VERSION: {"N": str(version)},
        BODY: {"S": body_text(row.body)},
    }
    if row.token:
        item[TOKEN] = {"S": row.token}
    if row.index is not None:
        # Without these attributes the index has no entry: that is what makes it sparse.
        item[INDEX_PARTITION] = {"S": row.index[0]}
        item[INDEX_SORT] = {"S": row.index[1]}
    if row.expires_at_s is not None:
        item[EXPIRES] = {"N": str(row.expires_at_s)}
    return item


def key_item(key: Key) -> Item:
    """Return the primary key as item attributes.

    Raises:
        InvalidInput: a part is empty or too long.
    """
    _check_key(key.pk, PARTITION, key.table)
    _check_key(key.sk, SORT, key.table)
    return {PARTITION: {"S": key.pk}, SORT: {"S": key.sk}}


def from_item(table: Table, item: Mapping[str, Mapping[str, str]]) -> Row:
    """Return the row that an item stores.

    Raises:
        StoreError: something else than dynsched wrote the item.
    """
    try:
        token, expires = item.get(TOKEN), item.get(EXPIRES)
        index = None
        if INDEX_PARTITION in item and INDEX_SORT in item:
            index = (item[INDEX_PARTITION]["S"], item[INDEX_SORT]["S"])
        return Row(
            key=Key(table, item[PARTITION]["S"], item[SORT]["S"]),
            body=_decode(item[BODY]["S"]),
            index=index,
            expires_at_s=None if expires is None else int(expires["N"]),
            token="" if token is None else token["S"],
            version=int(item[VERSION]["N"]),
        )
    except (KeyError, ValueError, RecursionError) as error:
        name = {part: item.get(part) for part in (PARTITION, SORT)}
        raise StoreError(
            f"the item {name} of table {table} is no dynsched row ({error!r}); remove or mend it"
        ) from error


def row_size(row: Row) -> int:
    """Return the bytes that a stored row takes by DynamoDB's rules, attribute names included."""
    return item_size(_attributes(row, row.version))


def item_size(item: Mapping[str, Mapping[str, str]]) -> int:
    """Return the bytes of an item: names and texts in UTF-8, numbers by their digits.

    >>> item_size({"pk": {"S": "é"}, "ver": {"N": "120"}})
    9
    """
    size = 0
    for name, value in item.items():
        size += len(name)
        size += _text_size(value["S"]) if "S" in value else _number_size(value["N"])
    return size


def cursor_text(last: Mapping[str, Mapping[str, str]]) -> str:
    """Return the opaque text for the last key of a page; `start_key` reads it back."""
    parts = [last[name]["S"] for name in _KEY_PARTS if name in last]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


def start_key(cursor: str, *, index: bool) -> Item:
    """Return the key after which a page begins.

    Args:
        cursor: what `cursor_text` made.
        index: whether the page is one of the index, whose keys have two parts more.

    Raises:
        InvalidInput: it is no such text.
    """
    names = _KEY_PARTS if index else _KEY_PARTS[:2]
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, UnicodeError):
        parts = None
    if not isinstance(parts, list) or len(parts) != len(names):
        raise InvalidInput("cursor", "it is not from this list", "begin again without it")
    return {name: {"S": str(part)} for name, part in zip(names, parts, strict=True)}


def _number_size(digits: str) -> int:
    # One byte, one more for each two significant digits, one more for a sign.
    significant = digits.lstrip("-").strip("0")
    return 1 + (len(significant) + 1) // 2 + digits.startswith("-")


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _has_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check_key(text: str, name: str, table: Table) -> None:
    if not text:
        raise InvalidInput(name, f"an empty key in table {table}", "every part needs a text")
    if not _has_utf8(text):
        raise InvalidInput(name, f"the key {text!r} in table {table} is not valid Unicode")
    if _text_size(text) > _KEY_BYTES_MAX[name]:
        raise InvalidInput(
            name,
            f"the key {text[:40]!r}… in table {table} takes {_text_size(text)} bytes",
            f"at most {_KEY_BYTES_MAX[name]}",
        )
