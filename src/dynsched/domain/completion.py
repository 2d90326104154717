"""Completion of filters, for consoles: what may be written where the cursor stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dynsched.domain.vocabulary import Kind, Qualifier, Vocabulary

EXAMPLES: dict[Kind, tuple[tuple[str, str], ...]] = {
    Kind.NUMBER: ((">1", "more than one"),),
    Kind.DURATION: ((">1m", "more than a minute"),),
    Kind.TIME: ((">-1h", "within the last hour"), ("<-1d", "longer ago than a day")),
}
_VALUE = re.compile(r"(?P<head>-?[A-Za-z][A-Za-z_-]*(?:\.[^\s:,\"]*)?:)(?P<before>(?:[^\s]*,)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One thing that may be written.

    Attributes:
        text: what to put between `start` and `end`.
        start: where the word at the cursor begins.
        end: where it ends: the cursor.
        hint: what it means.
    """

    text: str
    start: int
    end: int
    hint: str

    def apply(self, text: str) -> str:
        """Return a text with this in its place."""
        return text[: self.start] + self.text + text[self.end :]


def complete(text: str, position: int, vocabulary: Vocabulary) -> list[Completion]:
    """Return what may be written at a position, in the vocabulary's order.

    Args:
        text: the filter so far; it need not be whole.
        position: where the cursor stands, from 0.
        vocabulary: what may be asked for.

    >>> from dynsched.domain.vocabulary import RUNS
    >>> [one.text for one in complete("state:de", 8, RUNS)]
    ['dead']
    >>> [one.text for one in complete("-sta", 4, RUNS)]
    ['state:', 'started:']
    """
    end = max(0, min(position, len(text)))
    start = end
    while start and not text[start - 1].isspace():
        start -= 1
    word = text[start:end]
    if word.count('"') % 2:
        return []
    head = _VALUE.match(word)
    if head is not None:
        qualifier = vocabulary.find(head["head"].lstrip("-").partition(":")[0].partition(".")[0])
        begun = start + head.end()
        return [] if qualifier is None else _values(qualifier, text[begun:end], begun, end)
    start += word.startswith("-")
    return _names(vocabulary, text[start:end], start, end)


def _names(vocabulary: Vocabulary, begun: str, start: int, end: int) -> list[Completion]:
    known = [(one.name + ("." if one.path else ":"), one.hint) for one in vocabulary.qualifiers] + [
        (f"@{name}", vocabulary.hints.get(name, "")) for name in vocabulary.named
    ]
    return [
        Completion(text=name, start=start, end=end, hint=hint)
        for name, hint in known
        if name.startswith(begun.lower())
    ]


def _values(qualifier: Qualifier, begun: str, start: int, end: int) -> list[Completion]:
    known = tuple(qualifier.choices.items()) or EXAMPLES.get(qualifier.kind, ())
    return [
        Completion(text=word, start=start, end=end, hint=hint)
        for word, hint in known
        if word.startswith(begun.lower())
    ]
