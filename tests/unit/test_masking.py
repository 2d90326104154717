"""Masking: what looks like a secret is not shown, and all else stays as it was."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.masking import MASK, PATTERNS, PLAIN, Masker, mask, mask_text
from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput

SECRET_KEYS = st.sampled_from(
    ["password", "X-Api-Key", "accessToken", "client_secret", "Authorization", "card", "cardNumber",
     "IBAN", "ssn", "db_pass", "Set-Cookie", "PGPASSWORD", "private_key", "MYSQL_PWD", "pin",
     "cards"]
)  # fmt: skip
PLAIN_KEYS = st.sampled_from(
    ["id", "n", "user", "to", "discard", "shipping", "className", "monkey"]
)
SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABCDEF0123456789+/_-.~!", min_size=1, max_size=30).map(
    lambda text: f"zq{text}Qz"
)
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "a", "two words", "é"])


def values(secrets: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return JSON values in which secrets lie under keys that name one, at any depth."""

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        hidden = secrets | st.lists(secrets, max_size=2) | st.dictionaries(PLAIN_KEYS, secrets)
        plain = st.dictionaries(PLAIN_KEYS, inner, max_size=3)
        secret = st.dictionaries(SECRET_KEYS, hidden, max_size=2)
        return st.lists(inner, max_size=3) | st.builds(lambda a, b: {**a, **b}, plain, secret)

    return st.recursive(SCALARS, deeper, max_leaves=12)


def shape(value: Json) -> object:
    """Return a value's keys and lengths, and None and truth values, without the rest."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return value if value is None or isinstance(value, bool) else "scalar"


def secrets_in(value: Json, *, hidden: bool = False) -> list[str]:
    """Return what lies under keys that name a secret."""
    if isinstance(value, dict):
        return [
            found
            for key, one in value.items()
            for found in secrets_in(one, hidden=hidden or PLAIN.hides(key))
        ]
    if isinstance(value, list):
        return [found for one in value for found in secrets_in(one, hidden=hidden)]
    return [value] if hidden and isinstance(value, str) and value else []


@given(values(SECRETS))
def test_masking_keeps_the_shape_and_leaves_no_secret(value: Json) -> None:
    """Keys, lengths, None and truth values stay, so that two masked values can be compared."""
    masked = mask(value)
    assert shape(masked) == shape(value)
    text = json.dumps(masked)
    assert [secret for secret in secrets_in(value) if secret in text] == []


@given(values(SECRETS | st.integers()))
def test_masking_twice_is_masking_once(value: Json) -> None:
    """Views mask and so may documents."""
    once = mask(value)
    assert mask(once) == once


@given(values(st.just("zqzq")), SECRETS, SECRETS)
def test_a_masked_difference_tells_nothing_of_a_secret(value: Json, one: str, two: str) -> None:
    """Values that differ in nothing but their secrets look the same."""
    text = json.dumps(value)
    assert mask(json.loads(text.replace("zqzq", one))) == mask(
        json.loads(text.replace("zqzq", two))
    )


@given(values(SECRETS))
def test_what_was_masked_is_restored_where_it_was_not_edited(value: Json) -> None:
    """A person may edit what is shown without seeing, or losing, what is not."""
    edited: Any = mask({"v": value, "n": 1})
    original = {"v": value, "n": 1}
    restored = PLAIN.restored({**edited, "n": 2}, original)
    assert restored == {"v": value, "n": 2}
    assert not PLAIN.shows_mask(restored)


@given(values(SECRETS))
def test_a_masked_value_is_recognised_if_anything_was_masked(value: Json) -> None:
    """So that it is not taken for the value itself."""
    assert PLAIN.shows_mask(mask(value)) == bool(secrets_in(value))


TEXTS = st.text("abc XYZ019.,;:=&?/\\\"'\n\t-_%{}[]()<>|@$é", max_size=40)
SHAPES = st.sampled_from(
    ["password={}", "password = '{}'", 'api_key: "{}"', "Bearer {}", "https://x/?token={}&a=1",
     "--api-key {}", '{{"secret": "{}"}}', "{{'pwd': '{}'}}", "postgres://ann:{}@host/db",
     "Authorization: Digest a={}", "Cookie: a=1; b={}", "curl -u ann:{} url", "DB_PASS='{}' run",
     '{{\\"token\\": \\"{}\\"}}', "access_token%3D{}",
     # what is written as a list, an object or bytes, and what lies in JSON in JSON in JSON
     '{{"card": {{"number": "{}"}}}}', "{{'password': ['a]', '{}']}}", "token=b'{}'",
     "pin: ({}, 1)",
     '{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}', '{{\\"cards\\": [{{\\"n\\": \\"{}\\"}}]}}',
     # addresses as people write them by mistake, and tokens in the place of a user
     "postgres://ann:p@{}@host/db", "postgres://ann:p/{}@host/db", "https://{}:@host/",
     "https://x1234567890123{}@host/a", "https://x/?a=1&X-Amz-Signature={}", "https://x/?sig={}",
     "<password>{}</password>", '<ns:token type="x">{}</ns:token>', "AccountKey={};Suffix=y",
     "password          =   {}"]
)  # fmt: skip
CREDENTIALS = st.text("abcdefXYZ0123456789", min_size=6, max_size=20).map(lambda one: f"zq{one}")


@given(TEXTS, SHAPES, CREDENTIALS, TEXTS)
def test_no_credential_survives_in_a_text(before: str, form: str, secret: str, after: str) -> None:
    """Each shape that it is known by, on a line of its own in any text."""
    text = f"{before}\n{form.format(secret)}\n{after}"
    assert secret not in mask_text(text)


@given(TEXTS, SHAPES, CREDENTIALS, TEXTS)
def test_masking_a_text_twice_is_masking_it_once(
    before: str, form: str, secret: str, after: str
) -> None:
    """The log may mask what a view has masked."""
    once = mask_text(f"{before} {form.format(secret)} {after}")
    assert mask_text(once) == once


@given(st.text("abcdef", min_size=1), CREDENTIALS)
def test_basic_credentials_are_masked_wherever_they_stand(user: str, secret: str) -> None:
    """Base64 is no secrecy."""
    encoded = base64.b64encode(f"{user}:{secret}".encode()).decode()
    assert encoded not in mask_text(f"sent Basic {encoded} to the host")


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'password'",
        "token expired",
        "a basic error in Basic mode",
        "discard=3 shipping=free className=big",
        "12:30:01 connection to 10.0.0.1:5432 refused",
        "no disk 7",
        "the passenger: Ann",
        "",
    ],
)
def test_a_text_without_a_secret_stays_as_it_is(text: str) -> None:
    """Errors must stay readable."""
    assert mask_text(text) == text


def test_a_private_key_is_masked_from_its_head_to_its_foot() -> None:
    """Also when the text was cut before the foot."""
    head = "-----BEGIN RSA PRIVATE KEY-----"
    assert "zqabc" not in mask_text(f"{head}\nzqabc\n-----END RSA PRIVATE KEY-----")
    assert "zqabc" not in mask_text(f"{head}\nzqabc")


def test_a_token_that_tells_its_own_form_is_masked() -> None:
    """Three parts of base64, the first of which is JSON."""
    assert mask_text("invalid eyJhbGciOiJI.eyJzdWIiOiIx.abcDEF_x") == f"invalid {MASK}"


def test_a_name_and_its_value_side_by_side_are_masked() -> None:
    """The form of variables in many configurations."""
    value = [{"name": "DB_PASSWORD", "value": "hush"}, {"name": "HOST", "value": "db"}]
    assert mask(value) == [{"name": "DB_PASSWORD", "value": MASK}, {"name": "HOST", "value": "db"}]


def test_added_patterns_are_blind_to_case_and_separators() -> None:
    """As the built-in ones are."""
    masker = Masker(("license_plate",))
    assert masker.hides("LicensePlate")
    assert masker.hides("the-license-plate-no")
    assert not PLAIN.hides("LicensePlate")


def test_short_patterns_are_words_and_long_ones_are_found_anywhere() -> None:
    """`card` is in `discard`, `ssn` in `className`."""
    assert [
        key for key in ("discard", "className", "shipping", "passenger") if PLAIN.hides(key)
    ] == []
    assert all(PLAIN.hides(pattern) for pattern in PATTERNS)
    assert PLAIN.hides("userpasswordhash")


@pytest.mark.parametrize("pattern", ["", "x", "a*", "a" * 70, "é"])
def test_a_pattern_that_is_no_key_is_refused(pattern: str) -> None:
    """One letter would hide nearly everything."""
    with pytest.raises(InvalidInput, match="mask_keys"):
        Masker((pattern,))


@pytest.mark.parametrize(
    "text",
    ["x:y:", "://a:", 'a="b ', "basic ", "-u a:", "password=", "-", "eyJ", "a b ", '\\"'],
)
def test_long_texts_are_masked_in_time(text: str) -> None:
    """What a handler printed must not hold up a page: the work grows with the length alone."""
    long = text * (200_000 // len(text))
    assert len(mask_text(long)) > 0


def test_json_text_is_masked_by_its_keys_and_other_text_by_its_shape() -> None:
    """Payloads and outputs are JSON, cut ones are not."""
    assert PLAIN.json_text('{"a":1,"token":"x"}') == '{"a":1,"token":"***"}'
    assert PLAIN.json_text('{"a": 1, "token": "x') == '{"a": 1, "token": "***"'
    assert PLAIN.json_text('{"a":  1}') == '{"a":  1}'


@pytest.mark.parametrize(
    "value",
    [
        {"body": json.dumps({"card": {"number": "zqsecret"}})},
        {"body": json.dumps({"a": json.dumps({"b": json.dumps({"password": "zqsecret"})})})},
        {"headers": [["X-Api-Key", "zqsecret"], ["Accept", "text/html"]]},
        {"command": ["mysql", "--password", "zqsecret"]},
        {"env": [{"name": "TOKEN", "val": "zqsecret"}]},
        ["--token", "zqsecret"],
    ],
)
def test_no_secret_survives_in_what_programs_write_for_each_other(value: Json) -> None:
    """JSON within texts, headers as pairs, arguments of commands.

    Source: a payload with a request's body in it showed the card's number.
    """
    masked = mask(value)
    assert "zqsecret" not in json.dumps(masked)
    assert mask(masked) == masked
    assert PLAIN.restored(masked, value) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("card: 4111 1111 1111 1111, ok", "card: ***, ok"),
        ("iban=DE89 3704 0044 0532 0130 00 of Ann", "iban=*** of Ann"),
        ("https://host:8080/a@2 https://git@host/x", "https://host:8080/a@2 https://git@host/x"),
        ("https://ann:pw@host/@scope/pkg", "https://ann:***@host/@scope/pkg"),
        ("token={payload.token} of 3", "token={payload.token} of 3"),
        ("password=['a', 'b'] left", "password=[***] left"),
        ("<name>Ann</name><token/>", "<name>Ann</name><token/>"),
    ],
)
def test_what_stands_beside_a_secret_stays(text: str, shown: str) -> None:
    """All of a secret goes, and nothing else."""
    assert mask_text(text) == shown
