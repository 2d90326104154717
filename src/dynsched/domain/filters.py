"""Filters: one line that says which rows to show, the same in every console, CLI and URL.

`name:value` asks for one thing, a comma means any of, a leading `-` excludes, quotes hold blanks,
`> >= < <=` compare numbers, durations and times, a word without a name is looked for in texts, and
`@name` is a shipped filter. All terms must hold. A mistake is an error with its column, never an
empty list. Reading a filter is pure: `-1h` becomes an instant, and a job's name an id, only when a
search begins, so the same text can be kept and shared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from dynsched.domain.filter_values import (
    Content,
    Offset,
    Op,
    Span,
    Value,
    Wrong,
    is_run_id,
    nearest,
    read_content,
    shown,
)
from dynsched.domain.vocabulary import (
    AUDIT,
    COMPARED,
    GROUPS,
    JOBS,
    RUNS,
    TENANTS,
    WORKERS,
    Kind,
    Qualifier,
    Vocabulary,
)
from dynsched.errors import FilterError

__all__ = [
    "AUDIT",
    "GROUPS",
    "JOBS",
    "NAMED",
    "RUNS",
    "TENANTS",
    "WORD",
    "WORKERS",
    "Content",
    "Filter",
    "FilterError",
    "Offset",
    "Op",
    "Span",
    "Term",
    "Value",
    "Vocabulary",
    "parse",
    "term_text",
]

TEXT_MAX = 40_000  # characters of a filter; enough for some hundred run ids
TERMS_MAX = 50
VALUES_MAX = 500
WORD = ""  # the name of a term without a qualifier
NAMED = "@"  # the name of a term that stands for a shipped filter
_HEAD = re.compile(r"([A-Za-z][A-Za-z_-]*)((?:\.[^\s:,\"]*)?):")
_SIGN = re.compile(r">=|<=|>|<")
_SHIPPED = re.compile(r"@[A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition.

    Attributes:
        name: its qualifier's; `WORD` for a bare word, `NAMED` for a shipped filter.
        values: it holds if one of them does; never empty.
        negated: it holds if none of them does.
        path: behind `payload.`, the keys with dots between.
        column: where it begins in the text that was read; two terms differ by none of it.
    """

    name: str
    values: tuple[Value, ...]
    negated: bool = False
    path: str = ""
    column: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """Return the term as it is written."""
        head = {WORD: "", NAMED: "@"}.get(self.name, f"{self.name}:")
        if self.path:
            head = f"{self.name}.{self.path}:"
        listed = ",".join(_value_text(value, bare=self.name == WORD) for value in self.values)
        return f"{'-' if self.negated else ''}{head}{listed}"

    @property
    def words(self) -> tuple[str, ...]:
        """Return the values as texts."""
        return tuple(value.word for value in self.values)


@dataclass(frozen=True, slots=True)
class Filter:
    """Terms that must all hold; without terms everything fits.

    Attributes:
        terms: in the order in which they were written.
        vocabulary: what they may ask of.
        source: the text that was read, which columns count in; two filters differ by none of it.
    """

    terms: tuple[Term, ...]
    vocabulary: Vocabulary = field(repr=False)
    source: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """Return the filter as one line that reads back as the same filter."""
        return " ".join(term.text for term in self.terms)

    @property
    def digest(self) -> str:
        """Return a short hash that tells one filter from another."""
        text = f"{self.vocabulary.name}\n{self.text}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()

    def asking(self, name: str, *, negated: bool = False) -> list[Term]:
        """Return the terms of a qualifier, those of shipped filters included."""
        return [one for one in self.flat() if one.name == name and one.negated is negated]

    def flat(self) -> Iterator[Term]:
        """Yield the terms, a shipped filter as its own terms unless it is excluded."""
        for term in self.terms:
            if term.name == NAMED and not term.negated:
                for value in term.values:
                    yield from self.shipped(value.word).flat()
            else:
                yield term

    def names(self) -> Iterator[str]:
        """Yield the names of all qualifiers, those of shipped filters included."""
        for term in self.terms:
            if term.name == NAMED:
                for word in term.words:
                    yield from self.shipped(word).names()
            else:
                yield term.name

    def shipped(self, name: str) -> Filter:
        """Return the filter that a shipped name stands for."""
        return parse(self.vocabulary.named[name], self.vocabulary)

    def describe(self) -> str:
        """Return one line in plain words.

        >>> parse('state:dead -tenant:acme,beta err:"no disk" ended:>-1h', RUNS).describe()
        "runs whose state is dead, tenant is neither acme nor beta, error contains 'no disk', \
end is after 1h ago"
        """
        if not self.terms:
            return f"all {self.vocabulary.name}"
        shipped = [term for term in self.terms if term.name == NAMED]
        others = [term for term in self.terms if term.name != NAMED]
        parts = [_shipped_words(term, self.vocabulary) for term in shipped]
        if others:
            listed = ", ".join(_described(term, self.vocabulary) for term in others)
            parts.append(f"whose {listed}")
        return f"{self.vocabulary.name} {', '.join(parts)}"


@lru_cache(maxsize=128)
def parse(text: str, vocabulary: Vocabulary) -> Filter:
    """Return the filter that a text means.

    Args:
        text: one line; empty means everything.
        vocabulary: what may be asked for.

    Raises:
        FilterError: it cannot be read; the column says where.

    >>> parse("State:dead  -tenant:acme", RUNS).text
    'state:dead -tenant:acme'
    """
    if len(text) > TEXT_MAX:
        raise FilterError(
            f"it is longer than {TEXT_MAX:,} characters", "ask for less", TEXT_MAX, text
        )
    return Filter(tuple(_Reader(text, vocabulary).terms()), vocabulary, text)


def term_text(name: str, *words: str, negated: bool = False) -> str:
    """Return a term as text, from words that people gave in another way than in a filter.

    >>> term_text("err", "no disk", "full"), term_text("state", "dead", negated=True)
    ('err:"no disk",full', '-state:dead')
    """
    listed = ",".join(_quoted(word) if _needs_quotes(word) else word for word in words)
    return f"{'-' if negated else ''}{name}:{listed}"


class _Reader:
    """Reads one filter from left to right."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self._text = text
        self._vocabulary = vocabulary
        self._at = 0

    def terms(self) -> Iterator[Term]:
        """Yield the terms."""
        count = 0
        while self._skip_blanks():
            count += 1
            if count > TERMS_MAX:
                raise self._wrong(f"it has more than {TERMS_MAX} terms", "ask for less")
            yield self._term()

    def _wrong(self, problem: str, mend: str, column: int | None = None) -> FilterError:
        return FilterError(problem, mend, self._at if column is None else column, self._text)

    def _skip_blanks(self) -> bool:
        """Go to the next term; return whether there is one."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _ended(self) -> bool:
        return self._at >= len(self._text) or self._text[self._at].isspace()

    def _term(self) -> Term:
        start = self._at
        negated = self._text[start] == "-"
        self._at += negated
        if self._ended():
            raise self._wrong("nothing follows the minus sign", "for example -state:done", start)
        if self._text[self._at] == "@":
            return self._shipped(start, negated)
        head = _HEAD.match(self._text, self._at)
        if head is not None:
            return self._qualified(head, start, negated)
        return self._bare(start, negated)

    def _shipped(self, start: int, negated: bool) -> Term:
        match = _SHIPPED.match(self._text, self._at)
        assert match is not None
        name, column, known = match[0][1:].lower(), self._at, list(self._vocabulary.named)
        self._at = match.end()
        if name not in known or not self._ended():
            while not self._ended():
                self._at += 1
            written = self._text[column : self._at]
            near = nearest(name, known)
            listed = ", ".join(f"@{one}" for one in known) or f'"{written}" looks for the text'
            mend = f"did you mean @{near}?" if near else listed
            raise self._wrong(f"there is no filter {shown(written)}", mend, column)
        return Term(NAMED, (Value(Op.IS, name, column),), negated, column=start)

    def _qualified(self, head: re.Match[str], start: int, negated: bool) -> Term:
        column = self._at
        qualifier = self._vocabulary.find(head[1].lower())
        path = head[2][1:]
        if qualifier is None:
            raise self._unknown(head, column)
        if qualifier.path != bool(head[2]) or (head[2] and not all(path.split("."))):
            raise self._wrong_path(qualifier, head, column)
        self._at = head.end()
        return Term(qualifier.name, self._values(qualifier), negated, path, start)

    def _unknown(self, head: re.Match[str], column: int) -> FilterError:
        known = self._vocabulary.names
        near = nearest(head[1], known)
        mend = f"did you mean {near}:?" if near else f"known are {', '.join(known)}"
        return self._wrong(
            f"{self._vocabulary.name} have no {shown(head[0])}",
            f"{mend}; quotes look for the text itself",
            column,
        )

    def _wrong_path(self, qualifier: Qualifier, head: re.Match[str], column: int) -> FilterError:
        if not qualifier.path:
            return self._wrong(
                f"{qualifier.name} takes no path", f"write {qualifier.name}:", column
            )
        return self._wrong(
            f"{shown(head[0])} does not say where in the {qualifier.name}",
            f"for example {qualifier.name}.order.id:7",
            column,
        )

    def _bare(self, start: int, negated: bool) -> Term:
        words = tuple(self._values(None))
        if self._vocabulary.run_ids and all(is_run_id(value.word) for value in words):
            return Term("id", words, negated, column=start)
        return Term(WORD, words, negated, column=start)

    def _values(self, qualifier: Qualifier | None) -> tuple[Value, ...]:
        values = [self._value(qualifier)]
        while self._at < len(self._text) and self._text[self._at] == ",":
            self._at += 1
            values.append(self._value(qualifier))
            if len(values) > VALUES_MAX:
                raise self._wrong(f"a term has more than {VALUES_MAX} values", "ask for less")
        return tuple(values)

    def _value(self, qualifier: Qualifier | None) -> Value:
        column, op = self._at, Op.IS
        sign = _SIGN.match(self._text, self._at)
        if sign is not None and qualifier is not None and qualifier.kind in COMPARED:
            op = Op(sign[0])
            self._at = sign.end()
        elif sign is not None:
            name = "a word" if qualifier is None else qualifier.name
            raise self._wrong(
                f"{name} cannot be compared by {sign[0]}", "quotes look for the text itself"
            )
        text = self._token(qualifier, op)
        if qualifier is None:
            if not text:
                raise self._wrong("the quotes are empty", "write what to look for", column)
            return Value(op, text, column)
        try:
            return Value(op, read_content(qualifier, op, text), column)
        except Wrong as error:
            raise self._wrong(error.problem, error.mend, column) from None

    def _token(self, qualifier: Qualifier | None, op: Op) -> str:
        if self._at < len(self._text) and self._text[self._at] == '"':
            return self._quoted()
        start = self._at
        while not self._ended() and self._text[self._at] not in ',"':
            self._at += 1
        if not self._ended() and self._text[self._at] == '"':
            raise self._wrong("a quote stands inside a word", "put the whole value in quotes")
        if self._at == start:
            raise self._missing(qualifier, op)
        return self._text[start : self._at]

    def _missing(self, qualifier: Qualifier | None, op: Op) -> FilterError:
        before = self._text[self._at - 1] if self._at else ""
        if before == "," or qualifier is None:
            return self._wrong("a value is missing at the comma", "for example a,b without a blank")
        example = next(iter(qualifier.choices), "VALUE")
        return self._wrong(
            f"{qualifier.name}:{op.value} has no value",
            f"write {qualifier.name}:{op.value}{example} without a blank",
        )

    def _quoted(self) -> str:
        start = self._at
        found: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
            if letter == '"':
                if not self._ended() and self._text[self._at] != ",":
                    raise self._wrong("a blank or a comma must follow the quotes", "add a blank")
                return "".join(found)
            if letter == "\\" and self._text[self._at : self._at + 1] in ('"', "\\"):
                letter = self._text[self._at]
                self._at += 1
            found.append(letter)
        raise self._wrong("the quotes are not closed", 'end the value with "', start)


def _value_text(value: Value, *, bare: bool) -> str:
    word = value.word
    if isinstance(value.content, str) and (
        _needs_quotes(word) or (bare and (":" in word or word[0] in "-@"))
    ):
        word = _quoted(word)
    return f"{value.op.value}{word}"


def _needs_quotes(word: str) -> bool:
    return (
        not word or word[0] in "<>" or any(letter in ',"\\' or letter.isspace() for letter in word)
    )


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_SUBJECTS = {
    "prio": "priority",
    "err": "error",
    "group": "error group",
    "attempt": "number of tries",
    "replays": "number of replays",
    "sched": "scheduled instant",
    "due": "earliest start",
    "started": "last start",
    "ended": "end",
    "dead": "death",
    "key": "idempotency key",
    "next": "next occurrence",
    "at": "time",
}
_VERBS = {Op.IS: "", Op.ABOVE: "over ", Op.FROM: "at least ", Op.BELOW: "under ", Op.TO: "at most "}
_TIME_VERBS = {
    Op.IS: "in ",
    Op.ABOVE: "after ",
    Op.FROM: "at or after ",
    Op.BELOW: "before ",
    Op.TO: "at or before ",
}


def _shipped_words(term: Term, vocabulary: Vocabulary) -> str:
    what = " or ".join(vocabulary.hints[word] for word in term.words)
    return f"that are {'not ' if term.negated else ''}{what}"


def _described(term: Term, vocabulary: Vocabulary) -> str:
    """Return one term in words."""
    qualifier = vocabulary.find(term.name)
    subject = _SUBJECTS.get(term.name, f"{term.name} {term.path}" if term.path else term.name)
    verb = "is"
    if qualifier is None or qualifier.kind is Kind.TEXT:
        subject, verb = subject or vocabulary.bare, "contains"
    elif term.name == "is":
        subject, verb = "condition", "is"
    values = [_value_words(value, qualifier) for value in term.values]
    if not term.negated:
        return f"{subject} {verb} {' or '.join(values)}"
    if len(values) == 1:
        return f"{subject} {'does not contain' if verb == 'contains' else 'is not'} {values[0]}"
    return f"{subject} {verb} neither {' nor '.join(values)}"


def _value_words(value: Value, qualifier: Qualifier | None) -> str:
    if qualifier is None or qualifier.kind is Kind.TEXT:
        return repr(value.word)
    if qualifier.kind is Kind.TIME:
        return _TIME_VERBS[value.op] + _time_words(value.content)
    return _VERBS[value.op] + value.word


def _time_words(content: Content) -> str:
    text = str(content)
    if not isinstance(content, Offset) or text == "now":
        return text
    return f"{text[1:]} {'ago' if text[0] == '-' else 'from now'}"
