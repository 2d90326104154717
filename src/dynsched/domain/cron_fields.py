"""The grammar of cron expressions: what is accepted, and which values each field stands for.

The accepted grammar is that of the Vixie family, strictly: numbers, names, lists, ranges `a-b`,
steps after `*` or a range, and the macros. `H` is ours: a value hashed from the job, so that many
jobs spread out, and stable for ever. Whatever other engines read in differing ways (steps after a
single number, backward ranges, `?`, `L`, `W`, `#`, `~`, `R`) is refused with the reason.

This module decides what is valid and rewrites each field into a form without the corners in
which croniter differs (see `docs/decisions/001-cron-stepping-is-ours.md`); croniter then expands
the rewritten field into its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from croniter import croniter

from dynsched.errors import InvalidInput

EXPRESSION_LENGTH_MAX = 256
"""Characters of the longest accepted expression; a cap keeps parsing cheap."""

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_TERM = re.compile(
    r"(?P<star>\*)(/(?P<star_step>[0-9]+))?"
    r"|H(\((?P<hash_low>[0-9]+)-(?P<hash_high>[0-9]+)\))?(/(?P<hash_step>[0-9]+))?"
    r"|(?P<low>[0-9]+|[A-Za-z]+)(-(?P<high>[0-9]+|[A-Za-z]+)(/(?P<step>[0-9]+))?)?"
)
_FOREIGN = (
    (re.compile(r"[0-9A-Za-z]+/"), "has a step after a single value", "write a-b/n or */n"),
    (re.compile(r".*\?"), "uses the Quartz sign ?", "write *"),
    (re.compile(r".*[#LW]"), "uses a Quartz form (L, W or #) that cron does not have", ""),
    (re.compile(r".*~|R"), "would be drawn at random by each process", "use H"),
    (re.compile(r"-"), "is negative", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an expression.

    Attributes:
        name: its name in messages.
        low: smallest value.
        high: largest value; 7 for the day of week, where 0 and 7 are both Sunday.
        hash_high: largest value that `H` takes: day 28, so that each month has it.
        position: where croniter expects such a field among its five.
        names: names of the values, from `low` on; empty if the field takes numbers only.
    """

    name: str
    low: int
    high: int
    hash_high: int
    position: int
    names: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        """The allowed values, for a message."""
        named = f", or {self.names[0].upper()} to {self.names[-1].upper()}" if self.names else ""
        return f"give {self.low} to {self.high}{named}"


SECOND = Field(name="second", low=0, high=59, hash_high=59, position=0)
MINUTE = Field(name="minute", low=0, high=59, hash_high=59, position=0)
HOUR = Field(name="hour", low=0, high=23, hash_high=23, position=1)
DAY_OF_MONTH = Field(name="day of month", low=1, high=31, hash_high=28, position=2)
MONTH = Field(name="month", low=1, high=12, hash_high=12, position=3, names=_MONTHS)
DAY_OF_WEEK = Field(name="day of week", low=0, high=7, hash_high=6, position=4, names=_DAYS)

FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
"""The five fields of a crontab line, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """The values of a checked expression, as bit masks: bit n is set if value n is named.

    Attributes:
        seconds: bits 0 to 59; bit 0 only where the expression has no seconds field.
        minutes: bits 0 to 59.
        hours: bits 0 to 23.
        days: days of the month, bits 1 to 31.
        months: bits 1 to 12.
        weekdays: bits 0 (Sunday) to 6.
        both_days: a day must be named by both day fields (one of them begins with `*`); otherwise
            by either.
        wildcard: a time-of-day field begins with `*` (or is `H/n`, which stands for `*/n`), so the
            job follows the wall clock through zone changes.
    """

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    both_days: bool
    wildcard: bool


def normalise(expr: object) -> str:
    """Return the expression with single blanks, or raise if it is no short line of ASCII text.

    Raises:
        InvalidInput: it is not text, empty, too long, or has a character that no field can have.

    >>> normalise(" 0   9 * * mon-fri ")
    '0 9 * * mon-fri'
    """
    if not isinstance(expr, str):
        raise InvalidInput("cron", "the expression is not text", "for example '*/5 * * * *'")
    if len(expr) > EXPRESSION_LENGTH_MAX:
        raise InvalidInput(
            "cron",
            f"the expression has {len(expr)} characters",
            f"at most {EXPRESSION_LENGTH_MAX}",
        )
    odd = next((char for char in expr if not ("!" <= char <= "~" or char in " \t")), None)
    if odd in ("\n", "\r"):
        raise InvalidInput("cron", "the expression has a line break", "give one line")
    if odd is not None:
        raise InvalidInput(
            "cron", f"the expression has the character U+{ord(odd):04X}", "use plain ASCII"
        )
    words = expr.split()
    if not words:
        raise InvalidInput("cron", "the expression is empty", "for example '*/5 * * * *'")
    return " ".join(words)


def uses_hash(expr: str) -> bool:
    """Tell whether an expression draws a value from the job's key.

    >>> uses_hash("H * * * *"), uses_hash("0 0 1 mar THU")
    (True, False)
    """
    return re.search(r"(?<![A-Za-z])H(?![A-Za-z])", expr) is not None


@lru_cache(maxsize=4096)
def parse_fields(expr: str, seconds: bool, key: str) -> CronFields:
    """Check an expression and return the values of its fields.

    Args:
        expr: five fields, or a macro; six with a leading seconds field if `seconds`.
        seconds: the expression has a seconds field (a macro then means second 0).
        key: what `H` is hashed from.

    Raises:
        InvalidInput: the expression is wrong; the message names the field and the reason.

    >>> bin(parse_fields("*/20 9-10 * * *", seconds=False, key="").minutes)
    '0b10000000000000000000100000000000000000001'
    """
    texts = _split(normalise(expr), seconds)
    values = [
        _values(field, resolve_field(field, text, key))
        for field, text in zip((SECOND, *FIELDS), texts, strict=True)
    ]
    stars = [_is_star(text) for text in texts]
    fields = CronFields(
        seconds=values[0],
        minutes=values[1],
        hours=values[2],
        days=values[3],
        months=values[4],
        weekdays=values[5],
        both_days=stars[3] or stars[5],
        wildcard=any(stars[:3]),
    )
    _refuse_impossible_dates(fields, texts[3], texts[4])
    return fields


def resolve_field(field: Field, text: str, key: str) -> str:
    """Check one field and return it in numbers, with `H` drawn and without special corners.

    Raises:
        InvalidInput: the field is wrong.

    >>> resolve_field(DAY_OF_WEEK, "fri-SUN,3-3", "")
    '5-7,3'
    """
    return ",".join(
        _resolve_term(field, term, f"{key}:{field.name}:{index}" if key else "")
        for index, term in enumerate(text.split(","))
    )


def _split(expr: str, seconds: bool) -> list[str]:
    """Return six field texts, the seconds first."""
    if expr.startswith("@"):
        return ["0", *_macro(expr).split()]
    texts = expr.split()
    wanted = 6 if seconds else 5
    if len(texts) == wanted:
        return texts if seconds else ["0", *texts]
    mend = "minute, hour, day of month, month, day of week"
    if seconds:
        mend = f"second, {mend}"
    elif len(texts) == 6:
        mend = "a leading seconds field must be declared"
    found = "1 field" if len(texts) == 1 else f"{len(texts)} fields"
    raise InvalidInput("cron", f"the expression has {found}, not {wanted}", mend)


def _macro(name: str) -> str:
    if name in MACROS:
        return MACROS[name]
    mend = "one of " + ", ".join(MACROS)
    if name.startswith("@reboot"):
        mend = "there is no boot here; start a run by hand or give a time"
    elif name.startswith("@every"):
        mend = "use an interval schedule"
    elif name.lower() in MACROS:
        mend = f"write {name.lower()}"
    raise InvalidInput("cron", f"{_quoted(name)} is not a macro", mend)


def _is_star(text: str) -> bool:
    """Tell whether a field follows the clock: it begins with `*`, or is `H/n`, a shifted `*/n`."""
    return text.startswith(("*", "H/"))


def _resolve_term(field: Field, term: str, seed: str) -> str:
    match = _TERM.fullmatch(term)
    if match is None:
        raise _term_error(field, term)
    if match["star"]:
        return _stepped(field, field.low, field.high, match["star_step"], term)
    if match["low"] is None:
        return _hashed(field, match, seed)
    low = _number(field, match["low"], term)
    if match["high"] is None:
        return str(low)
    high = _number(field, match["high"], term)
    if field is DAY_OF_WEEK and high == 0 < low:
        high = 7  # "fri-sun": a range that ends on Sunday ends the week
    if low > high:
        raise InvalidInput(
            "cron",
            f"{field.name} range {_quoted(term)} runs backwards",
            f"write {match['low']}-{field.high},{field.low}-{match['high']}",
        )
    return _stepped(field, low, high, match["step"], term)


def _stepped(field: Field, low: int, high: int, step: str | None, term: str) -> str:
    """Return the range as croniter reads it rightly: never `a-a`, never a step past the end."""
    width = 1 if step is None else int(step)
    if width == 0:
        raise InvalidInput("cron", f"{field.name} {_quoted(term)} has a step of zero")
    if low + width > high:
        return str(low)
    if (low, high) == (field.low, field.high) and field is not DAY_OF_WEEK:
        return "*" if width == 1 else f"*/{width}"
    return f"{low}-{high}" if width == 1 else f"{low}-{high}/{width}"


def _hashed(field: Field, match: re.Match[str], seed: str) -> str:
    """Draw the value of an `H` term; of `H/n`, draw where among the first n values it begins."""
    if not seed:
        raise InvalidInput("cron", "H needs the job's identity", "give a key")
    low, high = field.low, field.hash_high
    if match["hash_low"] is not None:
        low, high = (_number(field, match[name], match[0]) for name in ("hash_low", "hash_high"))
        if low > high:
            raise InvalidInput("cron", f"{field.name} {_quoted(match[0])} runs backwards")
    span = high - low + 1
    if match["hash_step"] is None:
        return str(low + _draw(seed, span))
    step = int(match["hash_step"])
    if step == 0:
        raise InvalidInput("cron", f"{field.name} {_quoted(match[0])} has a step of zero")
    first = low + _draw(seed, min(step, span))
    return _stepped(field, first, high, match["hash_step"], match[0])


def _draw(seed: str, span: int) -> int:
    """Return a number below `span`, the same in every process and release."""
    digest = blake2b(seed.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % span


def _number(field: Field, text: str, term: str) -> int:
    if text.isdigit():
        value = int(text)
        if not field.low <= value <= field.high:
            raise InvalidInput(
                "cron", f"{field.name} {_quoted(term)} is out of range", field.bounds
            )
        return value
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    raise _term_error(field, text)


def _term_error(field: Field, term: str) -> InvalidInput:
    if not term:
        return InvalidInput("cron", f"{field.name} has an empty item", "look for a stray comma")
    if term.isalpha() and term not in ("L", "W", "LW", "R"):
        kind = "neither a number nor a name" if field.names else "not a number"
        return InvalidInput("cron", f"{field.name} {_quoted(term)} is {kind}", field.bounds)
    for pattern, problem, mend in _FOREIGN:
        if pattern.match(term):
            return InvalidInput("cron", f"{field.name} {_quoted(term)} {problem}", mend)
    return InvalidInput("cron", f"{field.name} {_quoted(term)} is malformed", field.bounds)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


@lru_cache(maxsize=4096)
def _values(field: Field, text: str) -> int:
    """Return the values of a resolved field as a mask; the expansion is croniter's."""
    line = ["*"] * len(FIELDS)
    line[field.position] = text
    values = croniter.expand(" ".join(line))[0][field.position]
    if "*" in values:
        return _mask(range(field.low, field.high + (field is not DAY_OF_WEEK)))
    return _mask(int(value) for value in values)


def _mask(values: Iterable[int]) -> int:
    return sum(1 << value for value in set(values))


def _refuse_impossible_dates(fields: CronFields, days: str, months: str) -> None:
    """Refuse an expression that names no day of any year, such as 31 February."""
    if not fields.both_days:
        return
    for month, length in enumerate(_MONTH_LENGTHS, start=1):
        if fields.months >> month & 1 and fields.days & ((2 << length) - 2):
            return
    raise InvalidInput(
        "cron",
        f"day of month {_quoted(days)} never falls in month {_quoted(months)}",
        "it never runs",
    )
