"""Body templates: what is replaced, what stays, and what is refused when a target is made."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.template import check_template, fill
from dynsched.errors import InvalidInput

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_no_value_can_break_out_of_its_place(one: str, other: str) -> None:
    """Whatever the payload holds, the filled body is JSON with that value in that place."""
    template = '{"a": {payload.x}, "b": [{payload.list[1]}], "n": {attempt}}'
    filled = fill(template, {"x": one, "list": [0, {"k": other}]}, {"attempt": 3})
    assert json.loads(filled) == {"a": one, "b": [{"k": other}], "n": 3}


def test_the_whole_payload_can_be_put_somewhere() -> None:
    """An envelope around the payload is the commonest template."""
    assert fill('{"data": {payload}}', {"a": [1]}, {}) == '{"data": {"a":[1]}}'


@pytest.mark.parametrize("template", ["{}", '{"a": {"b": 1}}', "{ }", "[{}, {}]", '{"a":{}}'])
def test_other_braces_stay_as_they_are(template: str) -> None:
    """A template is JSON itself and needs no escapes."""
    check_template(template, "body", is_json=True)
    assert fill(template, None, {}) == template


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{payloda.id}", "did you mean {payload}"),
        ("{runid}", "did you mean {run_id}"),
        ("{run_id.x}", "unknown"),
        ("{now}", "known are payload"),
        ("{payload.}", "malformed"),
        ("{payload[x]}", "malformed"),
        ("{payload..a}", "malformed"),
        ("{payload.a[-1]}", "malformed"),
        ("{payload.__class__()}", "malformed"),
    ],
)
def test_an_unknown_placeholder_is_refused_with_a_hint(template: str, told: str) -> None:
    """A typing error must not be sent as it stands, night after night."""
    with pytest.raises(InvalidInput, match=r"^body: ") as caught:
        check_template(template, "body", is_json=False)
    assert told in str(caught.value)


def test_a_placeholder_inside_quotes_is_refused_for_json() -> None:
    """It would double the quotes and break the body for texts."""
    template = '{"a": "order {payload.id}"}'
    check_template(template, "body", is_json=False)
    with pytest.raises(InvalidInput, match="bring their own quotes"):
        check_template(template, "body", is_json=True)


@pytest.mark.parametrize("payload", [None, [], {"a": []}, {"a": [1]}, {"a": "xy"}, "a"])
def test_a_place_that_the_payload_lacks_is_named(payload: object) -> None:
    """A text is not indexed letter by letter, and nothing is taken for null."""
    with pytest.raises(InvalidInput, match=r"^payload\.a\[1\]: "):
        fill("{payload.a[1]}", payload, {})  # type: ignore[arg-type]


def test_attributes_of_python_objects_cannot_be_reached() -> None:
    """Places are keys and indexes of JSON, never attributes."""
    with pytest.raises(InvalidInput):
        fill("{payload.__class__}", {}, {})
