"""Matching: whether a row is what a filter asks for, whatever kind of row it is.

The row is given as facts: a function from a qualifier's name to what holds of the row. Which type
a fact has follows from the qualifier's kind; None, or an empty collection, fits nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from dynsched.domain.filter_values import LAST, Offset, Op, Span, Value
from dynsched.domain.filters import NAMED, Filter, Term
from dynsched.domain.instants import EPOCH, MILLISECOND
from dynsched.domain.payload import Json
from dynsched.domain.vocabulary import Kind

_INDEX = re.compile(r"\d{1,6}", re.ASCII)
FIRST = datetime.min.replace(tzinfo=EPOCH.tzinfo)

Fact: TypeAlias = "None | timedelta | datetime | Collection[str] | Mapping[str, str] | Json"
Facts = Callable[[str], Fact]
"""Gives what holds of a row, by qualifier: texts for choices, names, words and texts (several are
a collection), an integer, a duration, an instant, a mapping of tags, or a payload."""


@dataclass(frozen=True, slots=True)
class Range:
    """Instants from `low` on and before `high`."""

    low: datetime = FIRST
    high: datetime = LAST

    def holds(self, instant: datetime) -> bool:
        """Return whether an instant lies inside."""
        return self.low <= instant < self.high

    def meet(self, other: Range) -> Range:
        """Return the instants that lie in both."""
        return Range(max(self.low, other.low), min(self.high, other.high))

    def hull(self, other: Range) -> Range:
        """Return the smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def empty(self) -> bool:
        """Return whether no instant lies inside."""
        return self.low >= self.high


def range_of(value: Value, now: datetime) -> Range:
    """Return the instants that a time asks for, relative ones counted from `now`."""
    content = value.content
    if isinstance(content, Span):
        start, end = content.start, content.end
    else:
        assert isinstance(content, Offset)
        start = _shifted(now, content.offset)
        end = _shifted(start, MILLISECOND)
    if value.op is Op.IS:
        return Range(start, end)
    if value.op is Op.ABOVE:
        return Range(low=end)
    if value.op is Op.FROM:
        return Range(low=start)
    return Range(high=start if value.op is Op.BELOW else end)


def _shifted(instant: datetime, offset: timedelta) -> datetime:
    try:
        return instant + offset
    except OverflowError:
        return LAST if offset > timedelta(0) else FIRST


def window(found: Filter, name: str, now: datetime) -> Range:
    """Return the range of instants outside of which no row fits the terms of one time qualifier.

    Rows inside need not fit: of several values the smallest range around them counts.
    """
    within = Range()
    for term in found.asking(name):
        ranges = [range_of(value, now) for value in term.values]
        hull = ranges[0]
        for one in ranges[1:]:
            hull = hull.hull(one)
        within = within.meet(hull)
    for term in found.asking(name, negated=True):
        for value in term.values:
            without = range_of(value, now)
            if without.low == FIRST:
                within = within.meet(Range(low=without.high))
            elif without.high == LAST:
                within = within.meet(Range(high=without.low))
    return within


def matches(found: Filter, facts: Facts, now: datetime) -> bool:
    """Return whether all terms of a filter hold for a row.

    Args:
        found: what is asked for.
        facts: what holds of the row.
        now: what relative times count from.
    """
    return all(holds(term, found, facts, now) for term in found.terms)


def holds(term: Term, found: Filter, facts: Facts, now: datetime) -> bool:
    """Return whether one term of a filter holds for a row."""
    if term.name == NAMED:
        fits = any(matches(found.shipped(word), facts, now) for word in term.words)
    else:
        fits = _fits(term, found, facts, now)
    return fits is not term.negated


def _fits(term: Term, found: Filter, facts: Facts, now: datetime) -> bool:
    fact = facts(term.name)
    if fact is None and term.name != "payload":
        return False
    qualifier = found.vocabulary.find(term.name)
    kind = Kind.TEXT if qualifier is None else qualifier.kind
    if kind is Kind.JSON:
        leaves = list(_leaves(fact, term.path.split(".")))
        return any(_json_fits(value, leaf) for value in term.values for leaf in leaves)
    return any(_value_fits(value, kind, fact, now) for value in term.values)


def _value_fits(value: Value, kind: Kind, fact: Fact, now: datetime) -> bool:
    if kind is Kind.TIME:
        return isinstance(fact, datetime) and range_of(value, now).holds(fact)
    if kind in (Kind.NUMBER, Kind.DURATION):
        return _compared(value.op, fact, value.content)
    if kind is Kind.TAG:
        assert isinstance(fact, Mapping)
        name, separator, wanted = value.word.partition("=")
        return name in fact and (not separator or fact[name] == wanted)
    texts = (fact,) if isinstance(fact, str) else fact
    assert isinstance(texts, Collection)
    if kind is Kind.TEXT:
        wanted = value.word.casefold()
        return any(wanted in str(text).casefold() for text in texts)
    return value.word in texts


def _compared(op: Op, fact: object, wanted: object) -> bool:
    """Compare two numbers, or two durations."""
    if not isinstance(fact, int | float | timedelta):
        return False
    answers: Mapping[Op, Callable[[], bool]] = {
        Op.IS: lambda: fact == wanted,
        Op.ABOVE: lambda: fact > wanted,  # type: ignore[operator]
        Op.FROM: lambda: fact >= wanted,  # type: ignore[operator]
        Op.BELOW: lambda: fact < wanted,  # type: ignore[operator]
        Op.TO: lambda: fact <= wanted,  # type: ignore[operator]
    }
    return answers[op]()


def _leaves(value: object, path: Sequence[str]) -> Iterator[object]:
    """Yield what lies at a path: each element of a list counts, or one of them by its number."""
    if isinstance(value, Mapping):
        if path and path[0] in value:
            yield from _leaves(value[path[0]], path[1:])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if path and _INDEX.fullmatch(path[0]) and int(path[0]) < len(value):
            yield from _leaves(value[int(path[0])], path[1:])
        for one in value:
            yield from _leaves(one, path)
    elif not path:
        yield value


_WORDS = {"null": None, "true": True, "false": False}


def _json_fits(value: Value, leaf: object) -> bool:
    word = value.word
    if isinstance(leaf, str):
        return value.op is Op.IS and leaf == word
    if leaf is None or isinstance(leaf, bool):
        return value.op is Op.IS and word in _WORDS and _WORDS[word] is leaf
    if not isinstance(leaf, int | float):
        return False
    try:
        wanted = int(word) if word.lstrip("-").isdecimal() else float(word)
    except ValueError:
        return False
    return math.isfinite(wanted) and _compared(value.op, leaf, wanted)
