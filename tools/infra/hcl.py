"""The structure of a Terraform file: blocks, their labels, and the arguments with their text.

It reads what `terraform fmt` writes and understands no expression: what stands behind `=` is kept
as it is written. Here-documents are refused; the module has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>[ \t\r]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<line>\n)
  | (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
  | (?P<open>[{([])
  | (?P<close>[])}])
  | (?P<other>[^\s"])
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN: Final = re.compile(r'(?:[^"\\$%]|\\.|\$\$\{|%%\{|[$%](?!\{))+')


class NotHcl(ValueError):
    """The text cannot be read; says where."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block: `kind "label" "label" { ... }`; a whole file is one without a kind.

    Attributes:
        kind: the word before the labels.
        labels: as written, without quotes.
        arguments: the text behind each `=`.
        blocks: those inside, in order.
    """

    kind: str = ""
    labels: tuple[str, ...] = ()
    arguments: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    def of_kind(self, kind: str) -> Iterator[Block]:
        """Yield the blocks inside of one kind."""
        return (block for block in self.blocks if block.kind == kind)

    def words(self, name: str) -> str:
        """Return an argument that is a plain text.

        Raises:
            NotHcl: it is something else.
        """
        try:
            return str(json.loads(self.arguments[name]))
        except ValueError:
            raise NotHcl(f"{name} of {self.labels} is no plain text") from None


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def _string_end(text: str, start: int) -> int:
    """Return where the text in quotes that begins at `start` ends, its templates included."""
    place = start + 1
    while place < len(text) and text[place] != '"':
        plain = _PLAIN.match(text, place)
        place = plain.end() if plain else _template_end(text, place + 2)
    if place >= len(text):
        raise NotHcl("a text without an end")
    return place + 1


def _template_end(text: str, place: int) -> int:
    depth = 1
    while depth:
        if place >= len(text):
            raise NotHcl("a template without an end")
        if text[place] == '"':
            place = _string_end(text, place)
            continue
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return place


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        if text[place] == '"':
            end = _string_end(text, place)
            yield _Token("string", text[place:end], place, end)
            place = end
            continue
        if text.startswith("<<", place):
            raise NotHcl(f"a here-document at character {place}")
        found = _TOKEN.match(text, place)
        if not found or not found.lastgroup:
            raise NotHcl(f"{text[place]!r} at character {place}")
        if found.lastgroup != "skip":
            yield _Token(found.lastgroup, found.group(), place, found.end())
        place = found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*_tokens(text), _Token("end", "", len(text), len(text))]
        self._place = 0

    def _next(self) -> _Token:
        if self._place >= len(self._tokens):
            raise NotHcl("a block without an end")
        token = self._tokens[self._place]
        self._place += 1
        return token

    def body(self, block: Block, end: str) -> Block:
        while (token := self._next()).text != end or (end == "" and token.kind != "end"):
            if token.kind == "line":
                continue
            if token.kind != "word":
                raise NotHcl(f"{token.text!r} at character {token.start} begins nothing")
            self._part(block, token.text)
        return block

    def _part(self, block: Block, name: str) -> None:
        labels: list[str] = []
        while (token := self._next()).kind in {"word", "string"}:
            labels.append(token.text.strip('"'))
        if token.text == "=" and not labels:
            block.arguments[name] = self._expression()
        elif token.text == "{":
            block.blocks.append(self.body(Block(name, tuple(labels)), "}"))
        else:
            raise NotHcl(f"{token.text!r} at character {token.start} is neither = nor {{")

    def _expression(self) -> str:
        start, depth = self._tokens[self._place].start, 0
        while True:
            token = self._tokens[self._place]
            if depth == 0 and (token.kind in {"line", "end"} or token.text == "}"):
                return self._text[start : token.start].strip()
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            self._place += 1


def read_hcl(text: str) -> Block:
    r"""Read the text of a file.

    Raises:
        NotHcl: it is not what `terraform fmt` would write.

    >>> made = read_hcl('resource "a" "b" {\n  size = max(1,\n    2)\n}\n').blocks[0]
    >>> made.labels, made.arguments
    (('a', 'b'), {'size': 'max(1,\n    2)'})
    """
    return _Reader(text).body(Block(), "")


def read_folder(folder: Path) -> dict[str, Block]:
    """Read the files of a module, by name."""
    return {path.name: read_hcl(path.read_text("utf-8")) for path in sorted(folder.glob("*.tf"))}
