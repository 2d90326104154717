"""Payloads: what is let in, what is refused, and by which path it is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.payload import (
    BYTES_MAX,
    DEPTH_MAX,
    TEXT_BYTES_MAX,
    check_payload,
    parse_payload,
)
from dynsched.errors import InvalidInput

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


def refused(value: object) -> InvalidInput:
    """Return the error that a payload meets."""
    with pytest.raises(InvalidInput) as caught:
        check_payload(value)
    return caught.value


@given(JSON)
def test_a_json_value_survives_text_and_back(value: Any) -> None:
    """Canonical text is read back as the same value and is its own canonical text."""
    text = check_payload(value)
    assert parse_payload(text) == value
    assert check_payload(parse_payload(text)) == text


def test_equal_payloads_have_equal_texts() -> None:
    """The order of keys and the kind of sequence do not show."""
    assert check_payload({"b": 1, "a": (2,)}) == check_payload({"a": [2], "b": 1})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [1, 2, 3, {"price": float("nan")}]}, "payload.items[3].price"),
        ([float("-inf")], "payload[0]"),
        ({"a b": {"c": object()}}, "payload['a b'].c"),
        ("\ud800", "payload"),
        ({"name": "x\udfff"}, "payload.name"),
        ({"n": 10**38 + 1}, "payload.n"),
        ({"n": 10**126}, "payload.n"),
        ({"n": 10**100_000}, "payload.n"),
        ({"n": 1e127}, "payload.n"),
        ({"n": 1e-140}, "payload.n"),
        ({"when": b"bytes"}, "payload.when"),
        ({"set": {1}}, "payload.set"),
    ],
)
def test_what_is_not_json_is_refused_by_its_path(value: object, path: str) -> None:
    """The error names the place, so that it is found in a big payload."""
    assert refused(value).field == path


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, {"\ud800": 1}])
def test_a_key_that_is_no_good_text_is_refused(value: object) -> None:
    """JSON has text keys only; nothing is turned into text behind the caller's back."""
    assert refused(value).field.startswith("payload[")


def test_a_number_of_38_digits_and_trailing_zeros_is_kept() -> None:
    """Only significant digits count, as in DynamoDB."""
    assert json.loads(check_payload(int("9" * 38 + "0" * 20))) == int("9" * 38 + "0" * 20)


def test_nesting_is_bounded_even_in_a_circle() -> None:
    """A list that holds itself is told as too deep, not as a crash."""
    circle: list[object] = []
    circle.append(circle)
    assert f"deeper than {DEPTH_MAX}" in refused(circle).problem


def test_the_deepest_nesting_allowed_is_allowed() -> None:
    """The bound itself is inside."""
    value: object = 1
    for _ in range(DEPTH_MAX):
        value = [value]
    assert check_payload(value) == "[" * DEPTH_MAX + "1" + "]" * DEPTH_MAX


def test_the_size_is_counted_in_bytes_of_utf8() -> None:
    """Two-byte letters count twice; the limit itself is inside."""
    assert len(check_payload("é" * (BYTES_MAX // 2 - 1))) == BYTES_MAX // 2 + 1
    assert f"{BYTES_MAX + 2:,}" in refused("é" * (BYTES_MAX // 2)).problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("{'a': 1}", "line 1 column 2"),
        ('{"a": 1,\n "b" 2}', "line 2 column 6"),
        ('{"a": NaN}', "payload.a: nan"),
        ('{"a": [-Infinity]}', "payload.a[0]: -inf"),
        ('{"a": 1e999}', "payload.a: the number 1e999"),
        ('{"a": 0.' + "1" * 39 + "}", "payload.a: the number 0.1111111111"),
        ('{"a": ' + "9" * 5000 + "}", "payload.a: the number 999999999999"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ('"\\ud800"', "lone surrogate"),
        ("[" * 100_000, "nested deeper"),
        ("[" + " " * TEXT_BYTES_MAX + "]", "the text is"),
    ],
)
def test_a_text_that_is_no_payload_is_refused(text: str, told: str) -> None:
    """What the command line passes is checked as strictly as what Python passes."""
    with pytest.raises(InvalidInput, match=r"^payload") as caught:
        parse_payload(text)
    assert told in str(caught.value)


def test_bytes_of_a_file_may_have_a_byte_order_mark() -> None:
    """Editors on Windows put one there."""
    assert parse_payload(b'\xef\xbb\xbf{"a": 1.50}\r\n') == {"a": 1.5}


def test_bytes_that_are_not_utf8_are_named_by_offset() -> None:
    """The error says where to look."""
    with pytest.raises(InvalidInput, match="offset 6"):
        parse_payload(b'{"a":"\xff"}')
