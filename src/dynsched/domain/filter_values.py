"""Values of a filter: how each kind is read from text, and printed so that it is read back."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from dynsched.domain.durations import DURATION_FORM, duration_text, parse_duration
from dynsched.domain.instants import MILLISECOND, to_text, to_utc
from dynsched.domain.names import NAME
from dynsched.domain.run import RUN_ID, parse_run_id
from dynsched.domain.vocabulary import Kind, Qualifier
from dynsched.errors import InvalidInput

LAST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
TIME_FORM = "an instant such as 2026-11-29T10:00Z, a date, or -1h for an hour ago"
OFFERED_MAX = 12  # choices that a message lists
_SHOWN = 40  # characters of a wrong value that a message repeats
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?([Zz]|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WIDTHS = (
    (timedelta(days=1), 10, ""),
    (timedelta(minutes=1), 16, "Z"),
    (timedelta(seconds=1), 19, "Z"),
    (MILLISECOND, 23, "Z"),
)


class Op(StrEnum):
    """How a value is compared; without a sign it is to be equal, or inside."""

    IS = ""
    ABOVE = ">"
    FROM = ">="
    BELOW = "<"
    TO = "<="


@dataclass(frozen=True, slots=True)
class Offset:
    """An instant relative to the search's own: negative is past."""

    offset: timedelta

    def __str__(self) -> str:
        """Return the text that is read back."""
        if not self.offset:
            return "now"
        return ("-" if self.offset < timedelta(0) else "+") + duration_text(abs(self.offset))


@dataclass(frozen=True, slots=True)
class Span:
    """All instants that a text names: a date is a day, `10:00Z` is a minute.

    Attributes:
        start: the first instant.
        width: a day, a minute, a second or a millisecond.
    """

    start: datetime
    width: timedelta

    def __str__(self) -> str:
        """Return the text that is read back."""
        text = to_text(self.start)
        return next(text[:size] + end for width, size, end in _WIDTHS if width == self.width)

    @property
    def end(self) -> datetime:
        """Return the first instant behind it; the calendar's last one if it ends there."""
        return self.start + self.width if self.start <= LAST - self.width else LAST


Content = str | int | timedelta | Offset | Span


@dataclass(frozen=True, slots=True)
class Value:
    """One of the values that a term allows.

    Attributes:
        op: how it is compared.
        content: what it is compared with; a text for all kinds that are no number or time.
        column: where it stands in the text that was read; two values differ by none of it.
    """

    op: Op
    content: Content
    column: int = field(default=0, compare=False)

    @property
    def word(self) -> str:
        """Return the content as text, without a comparison and without quotes."""
        if isinstance(self.content, timedelta):
            return duration_text(self.content)
        return str(self.content)


class Wrong(Exception):
    """A value cannot be read; the parser adds where it stands."""

    def __init__(self, problem: str, mend: str) -> None:
        self.problem, self.mend = problem, mend
        super().__init__(problem)


def shown(text: str) -> str:
    """Return a wrong text as a message repeats it."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def nearest(word: str, known: list[str]) -> str:
    """Return the known word that was probably meant, empty if none is near."""
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return close[0] if close else ""


def read_content(qualifier: Qualifier, op: Op, text: str) -> Content:
    """Return what a value's text means.

    Raises:
        Wrong: it is no value of this qualifier.
    """
    return _READERS[qualifier.kind](qualifier, op, text)


def _choice(qualifier: Qualifier, _: Op, text: str) -> str:
    word = text.lower()
    if word in qualifier.choices:
        return word
    known = list(qualifier.choices)
    near = nearest(word, known)
    some = known if len(known) <= OFFERED_MAX else [*known[:OFFERED_MAX], "…"]
    mend = f"did you mean {near}?" if near else f"one of {', '.join(some)}"
    raise Wrong(f"{shown(text)} is no value of {qualifier.name}", mend)


def _name(qualifier: Qualifier, _: Op, text: str) -> str:
    if NAME.fullmatch(text):
        return text
    raise Wrong(
        f"{shown(text)} is not a name of a {qualifier.name}",
        "1 to 64 of A-Z a-z 0-9 . _ - that start with a letter or digit",
    )


def _word(qualifier: Qualifier, _: Op, text: str) -> str:
    if text:
        return text
    raise Wrong(f"the value of {qualifier.name} is empty", "write what to look for")


def _run_id(_: Qualifier, __: Op, text: str) -> str:
    if not is_run_id(text):
        raise Wrong(
            f"{shown(text)} is not a whole run id", "without `id:` a part of it is looked for"
        )
    return text


def is_run_id(text: str) -> bool:
    """Return whether a text is the whole id of a run.

    >>> is_run_id("j1@2026-01-02T03:04:05.000Z-c"), is_run_id("j1@2026")
    (True, False)
    """
    if not RUN_ID.fullmatch(text):
        return False
    try:
        return parse_run_id(text).run_id == text
    except InvalidInput:
        return False


def _number(qualifier: Qualifier, _: Op, text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    raise Wrong(
        f"{shown(text)} is no number",
        f"for example {qualifier.name}:3, {qualifier.name}:>3 or {qualifier.name}:<=3",
    )


def _duration(qualifier: Qualifier, op: Op, text: str) -> timedelta:
    try:
        value = parse_duration(text, qualifier.name)
    except InvalidInput as error:
        raise Wrong(error.problem, f"for example {qualifier.name}:>30s") from None
    if op is Op.IS:
        raise Wrong(f"{qualifier.name} needs a comparison", f"for example {qualifier.name}:>{text}")
    return value // MILLISECOND * MILLISECOND


def _time(qualifier: Qualifier, op: Op, text: str) -> Offset | Span:
    if _TIME.fullmatch(text):
        return _span(text)
    if text == "now" or text[:1] in ("-", "+"):
        offset = _offset(text)
        if op is Op.IS:
            raise Wrong(
                f"{shown(text)} is a moment, so it needs a comparison",
                f"for example {qualifier.name}:>{text}",
            )
        return offset
    try:
        parse_duration(text, qualifier.name)
    except InvalidInput:
        raise Wrong(f"{shown(text)} is no time", TIME_FORM) from None
    raise Wrong(
        f"{shown(text)} does not say whether past or to come",
        f"-{text} is so long ago, +{text} is to come",
    )


def _offset(text: str) -> Offset:
    if text == "now":
        return Offset(timedelta(0))
    try:
        value = parse_duration(text[1:], "time")
    except InvalidInput:
        raise Wrong(f"{shown(text)} is no time", f"{text[0]} needs {DURATION_FORM}") from None
    whole = value // MILLISECOND * MILLISECOND
    return Offset(-whole if text[0] == "-" else whole)


def _span(text: str) -> Span:
    match = _TIME.fullmatch(text)
    assert match is not None
    seconds, fraction, zone = match.groups()
    day = len(text) == 10
    if not day and zone is None:
        raise Wrong(f"{shown(text)} has no zone", f"{text}Z is in UTC")
    whole = text.upper().replace(" ", "T") if not day else text + "T00:00Z"
    try:
        start = to_utc(datetime.fromisoformat(whole), "time")
    except (ValueError, InvalidInput):
        raise Wrong(f"{shown(text)} is no time of the calendar", TIME_FORM) from None
    width = timedelta(days=1) if day else timedelta(minutes=1)
    if fraction:
        width = MILLISECOND
    elif seconds:
        width = timedelta(seconds=1)
    return Span(start, width)


def _tag(_: Qualifier, __: Op, text: str) -> str:
    if NAME.fullmatch(text.partition("=")[0]):
        return text
    raise Wrong(f"{shown(text)} is no tag", "for example tag:team or tag:team=ops")


def _json(qualifier: Qualifier, op: Op, text: str) -> str:
    if op is not Op.IS and (not _DECIMAL.fullmatch(text) or not math.isfinite(float(text))):
        raise Wrong(f"{shown(text)} is no number", "only numbers can be compared")
    del qualifier
    return text


_READERS: dict[Kind, Callable[[Qualifier, Op, str], Content]] = {
    Kind.CHOICE: _choice,
    Kind.NAME: _name,
    Kind.WORD: _word,
    Kind.RUN_ID: _run_id,
    Kind.TEXT: _word,
    Kind.NUMBER: _number,
    Kind.DURATION: _duration,
    Kind.TIME: _time,
    Kind.TAG: _tag,
    Kind.JSON: _json,
}
