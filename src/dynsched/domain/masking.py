"""Masking: what looks like a secret is shown as `***`, wherever people look.

A value is masked when its key says what it is, a text where it has the shape of a credential. It
is a net for people's eyes and screenshots, not a vault: whoever may read the store reads all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput

MASK = "***"
PATTERNS = (
    "accesskey",
    "accountkey",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "card",
    "connectionstring",
    "cookie",
    "credential",
    "credentials",
    "creds",
    "cvc",
    "cvv",
    "dsn",
    "iban",
    "jwt",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "privatekey",
    "pw",
    "pwd",
    "secret",
    "sessionid",
    "sharedkey",
    "sig",
    "signature",
    "signingkey",
    "ssn",
    "token",
)
"""Keys that name a secret."""
ANYWHERE = 5
"""A pattern of so many letters is found anywhere in a key, a shorter one only as a word of it."""
ADDED_MAX = 100
DEPTH_MAX = 200
PAIR_NAMES = ("name", "key", "header", "field", "variable")
PAIR_VALUES = ("value", "val", "content")
BRACKETS = {"[": "]", "(": ")", "{": "}"}
BRACKETED_MAX = 4_000  # characters of a secret that is written as a list or an object

_ADDED = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{1,63}")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_NAME = r"(?<![\w.$-])(?:[A-Za-z]{1,30} )?[A-Za-z_$-][\w.$-]{0,79}"
_BACKSLASHES = r"\\{0,15}"  # JSON in JSON in JSON has more of them each time
_VALUE = re.compile(
    r"(?:\d{4}(?:[ -]\d{2,4})++|[A-Z]{2}\d\d(?: [A-Z0-9]{2,4})++)(?!\w)"
    r"|\\{1,15}\"[^\"\\\r\n]*+(?:\\{1,15}\")?"
    r"|[bBfFrRuU]{0,2}(?:\"(?:[^\"\\\r\n]|\\.)*+\"?|'(?:[^'\\\r\n]|\\.)*+'?)"
    r"|[^\s,;&\"'(){}\[\]<>|]++"
)
_QUOTE = re.compile(r"(?:\\{1,15}|[bBfFrRuU]{0,2})[\"']")
_BRACKETED = re.compile(rf"[\[(]|{{(?=\s{{0,20}}{_BACKSLASHES}[\"'])")
_PAIR = re.compile(
    rf"({_NAME})(?:{_BACKSLASHES}[\"']?[ \t]{{0,40}}(?:=>|[=:])[ \t]{{0,40}}|[\"']?%3[Dd])"
)
_TAG = re.compile(r"(<([A-Za-z_][\w.:-]{0,79})(?:\s[^<>]{0,200})?>)([^<>]++)(?=</)")
_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w.-]{0,79})[ \t]{1,3}")
_HEADER = re.compile(
    r"((?:proxy-)?authorization|(?:set-)?cookie)(\\?[\"']?[ \t]{0,3}(?:=>|[=:])[ \t]{0,3}\\?[\"']?)"
    r"((?:[^\r\n\"'\\]|\\(?![\"']))++)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer[ \t]{1,3})([^\s,;\"'<>]++)", re.IGNORECASE)
_BASIC = re.compile(r"\b((?i:basic)[ \t]{1,3})((?=[a-z+/_-]*[A-Z0-9=])[A-Za-z0-9+/_-]{4,}+={0,2})")
# A password may hold an @, and though it should not, a slash; a port is none.
_URL_USER = re.compile(
    r"(?<=://)([^\s/:@\"'<>]*+:)(?!\d{1,5}(?:[/?#]|$))"
    r"(?:[^\s/\"'<>]+|(?:(?!://)[^\s\"'<>])+)(?=@)"
)
_URL_TOKEN = re.compile(
    r"(?<=://)(?:[^\s/:@\"'<>]+(?=:@)|(?=[^\s/:@]{0,200}\d)[^\s/:@\"'<>]{16,}(?=@))"
)
_CURL_USER = re.compile(r"(?<![\w-])((?:-u|--user)[ =]{0,3}[\"']?[^\s:\"']{1,80}:)([^\s\"']++)")
_JWT = re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?")
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?:(?!-----END).)*+(?=-----END|\Z)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Masker:
    """Masks by patterns.

    Attributes:
        added: patterns beside `PATTERNS`; case, `_` and `-` in them do not matter.

    Raises:
        InvalidInput: a pattern is no name, or there are too many.

    >>> Masker(("plate",)).value({"user": "ann", "apiKey": "k", "number-plate": 7, "note": "pin=1"})
    {'user': 'ann', 'apiKey': '***', 'number-plate': '***', 'note': 'pin=***'}
    """

    added: tuple[str, ...] = ()
    _long: tuple[str, ...] = field(init=False, repr=False)
    _short: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.added) > ADDED_MAX:
            raise InvalidInput("mask_keys", f"more than {ADDED_MAX}", "drop some")
        for pattern in self.added:
            if not _ADDED.fullmatch(pattern):
                raise InvalidInput(
                    "mask_keys",
                    f"{pattern!r} is not the name of a key",
                    "give 2 to 64 letters, digits, - or _, several with commas between",
                )
        patterns = {_squashed(pattern) for pattern in (*PATTERNS, *self.added)} - {""}
        long = sorted(pattern for pattern in patterns if len(pattern) >= ANYWHERE)
        object.__setattr__(self, "_long", tuple(long))
        object.__setattr__(self, "_short", frozenset(patterns - set(long)))

    def hides(self, key: str) -> bool:
        """Return whether a key names a secret.

        >>> plain = Masker()
        >>> [plain.hides(key) for key in ("X-Api-Key", "cardNumber", "discard", "DB_PASS", "cards")]
        [True, True, False, True, True]
        """
        return _hides(self._long, self._short, key)

    def value(self, value: Json) -> Json:
        """Return a value of the same shape in which nothing secret is left.

        Every text and number below a key that names a secret becomes `***`; keys, lengths, None
        and truth values stay, so that two masked values can be compared.
        """
        return self._value(value, hidden=False, depth=0)

    def _value(self, value: Json, *, hidden: bool, depth: int) -> Json:
        if depth > DEPTH_MAX:
            return MASK
        if isinstance(value, str):
            return (MASK if value else value) if hidden else self._string(value, depth)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            named = self._names_a_secret(value)
            return {
                key: self._value(
                    one,
                    hidden=hidden or self.hides(key) or (named and key.lower() in PAIR_VALUES),
                    depth=depth + 1,
                )
                for key, one in value.items()
            }
        if isinstance(value, Sequence):
            return [
                self._value(
                    one, hidden=hidden or self._follows_its_name(value, at), depth=depth + 1
                )
                for at, one in enumerate(value)
            ]
        return MASK if hidden else value

    def _string(self, text: str, depth: int) -> str:
        """Return a text; one that is JSON is masked as the value that it holds."""
        if text.lstrip()[:1] not in ("{", "["):
            return self.text(text)
        try:
            value: Json = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        masked = self._value(value, hidden=False, depth=depth + 1)
        return text if masked == value else _compact(masked)

    def _follows_its_name(self, values: Sequence[Json], at: int) -> bool:
        """Return whether an element is the value of the one before: a flag's, or of a pair."""
        name = values[at - 1] if at else None
        if not isinstance(name, str):
            return False
        return (name[:1] == "-" or len(values) == len("kv")) and self.hides(name)

    def _names_a_secret(self, value: Mapping[str, Json]) -> bool:
        """Return whether an object is a pair such as `{"name": "TOKEN", "value": "..."}`."""
        names = [one for key, one in value.items() if key.lower() in PAIR_NAMES]
        return any(isinstance(name, str) and self.hides(name) for name in names)

    def headers(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return headers or variables without what their names, or their shapes, tell secret."""
        return {
            name: MASK if self.hides(name) and value else self.text(value)
            for name, value in values.items()
        }

    def json_text(self, text: str) -> str:
        """Return JSON text masked as its value is, any other text as a text."""
        return self._string(text, 0)

    def text(self, text: str) -> str:
        """Return a text without the credentials whose shape it shows.

        >>> Masker().text("401 for https://ann:hush@example.org/?token=abc&page=2")
        '401 for https://ann:***@example.org/?token=***&page=2'
        >>> Masker().text('Authorization: Digest a b; "password": "x y", --api-key k')
        'Authorization: ***"password": "***", --api-key ***'
        """
        if not text:
            return text
        text = _PEM.sub(rf"\1{MASK}", text)
        text = _HEADER.sub(rf"\1\2{MASK}", text)
        text = _SCHEME.sub(rf"\1{MASK}", text)
        text = _BASIC.sub(rf"\1{MASK}", text)
        text = _URL_USER.sub(rf"\1{MASK}", text)
        text = _URL_TOKEN.sub(MASK, text)
        text = _TAG.sub(self._tag, text)
        text = _CURL_USER.sub(rf"\1{MASK}", text)
        text = _JWT.sub(MASK, text)
        return self._pairs(_PAIR, self._pairs(_FLAG, text))

    def restored(self, edited: Json, original: Json) -> Json:
        """Return an edited value with the original where it still shows what masking left there.

        So people can edit what they were shown without seeing, or destroying, what was masked.

        >>> old = {"to": "ann", "token": "t0p"}
        >>> Masker().restored({"to": "bob", "token": "***"}, old)
        {'to': 'bob', 'token': 't0p'}
        """
        return _restored(edited, original, self.value(original))

    def shows_mask(self, value: Json) -> bool:
        """Return whether a value holds the mask where masking would have put it.

        >>> [Masker().shows_mask(one) for one in ({"token": "***"}, {"title": "*** sale ***"})]
        [True, False]
        """
        for text, masked in zip(_texts(value), _texts(self.value(_probed(value))), strict=True):
            if MASK in text and MASK in masked:
                return True
        return False

    def _tag(self, tag: re.Match[str]) -> str:
        """Return an element of XML, its text masked if its name tells secret."""
        return f"{tag[1]}{MASK}" if self.hides(tag[2]) and tag[3].strip() else tag[0]

    def _pairs(self, pairs: re.Pattern[str], text: str) -> str:
        """Mask values behind their names; what is no secret's value may hold further pairs."""
        found: list[str] = []
        start = kept = 0
        while (match := pairs.search(text, start)) is not None:
            start = match.end()
            end = _end_of_value(text, start) if self.hides(match[1]) else start
            if end > start:
                found += text[kept:start], _masked(text[start:end])
                start = kept = end
        return "".join((*found, text[kept:]))


def _restored(edited: Json, original: Json, masked: Json) -> Json:
    if edited == masked:
        return original
    if isinstance(edited, Mapping) and isinstance(original, Mapping):
        assert isinstance(masked, Mapping)
        return {
            key: _restored(one, original[key], masked[key]) if key in original else one
            for key, one in edited.items()
        }
    if isinstance(edited, list) and isinstance(original, Sequence):
        assert isinstance(masked, Sequence)
        if len(edited) == len(original):  # else nobody knows which is which
            rows = zip(edited, original, masked, strict=True)
            return [_restored(*row) for row in rows]
    return edited


def _probed(value: Json) -> Json:
    """Return a value with another secret for each mask, and without other scalars."""
    if isinstance(value, str):
        return value.replace(MASK, "pr0be")
    if isinstance(value, Mapping):
        return {key: _probed(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_probed(one) for one in value]
    return None


def _texts(value: Json) -> Iterator[str]:
    """Yield all texts of a value, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _end_of_value(text: str, start: int) -> int:
    """Return where a secret that begins at a place ends; there, if there is none."""
    value = _VALUE.match(text, start)
    if value is not None:
        return value.end()
    if _BRACKETED.match(text, start) is None:
        return start
    closers, quote = [""], ""
    end = min(len(text), start + BRACKETED_MAX)
    for place in range(start, end):
        letter, escaped = text[place], text[place - 1 : place] == "\\"
        if letter in "\"'" and not escaped and quote in ("", letter):
            quote = "" if quote else letter
        elif letter in BRACKETS and not quote:
            closers.append(BRACKETS[letter])
        elif letter == closers[-1] and not quote:
            closers.pop()
            if closers == [""]:
                return place + 1
    return end


def _masked(value: str) -> str:
    """Return the mask in the quotes, or brackets, that a value has."""
    if value[0] in BRACKETS:
        return f"{value[0]}{MASK}{BRACKETS[value[0]]}"
    quote = _QUOTE.match(value)
    before = "" if quote is None else quote[0]
    return f"{before}{MASK}{before.lstrip('bBfFrRuU')}"


def _squashed(key: str) -> str:
    return _SEPARATORS.sub("", key).lower()


@lru_cache(maxsize=4096)
def _hides(long: tuple[str, ...], short: frozenset[str], key: str) -> bool:
    squashed = _squashed(key)
    if any(pattern in squashed for pattern in long):
        return True
    words = _SEPARATORS.split(_HUMPS.sub("_", key))
    names = {squashed, *(word.lower() for word in words)}
    return not short.isdisjoint(names | {name.removesuffix("s") for name in names})


PLAIN = Masker()
"""Masks by `PATTERNS` alone."""


def mask(value: Json, patterns: Sequence[str] = ()) -> Json:
    """Return a value masked by `PATTERNS` and these.

    >>> mask({"login": {"password": "x", "tries": 3}})
    {'login': {'password': '***', 'tries': 3}}
    """
    return Masker(tuple(patterns)).value(value)


def mask_text(text: str, patterns: Sequence[str] = ()) -> str:
    """Return a text masked by `PATTERNS` and these.

    >>> mask_text("refused: Bearer abc.def")
    'refused: Bearer ***'
    """
    return Masker(tuple(patterns)).text(text)
