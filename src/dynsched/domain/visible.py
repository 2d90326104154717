"""Text for terminals: nothing that a name or an error holds may move the cursor or hide itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Control, format (bidirectional and zero-width ones), surrogates, unassigned, line breaks."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without ink, which can make two names look alike."""
_MARKS = frozenset(("Mn", "Me", "Mc"))
_MARKS_MAX = 4
"""Combining marks on one letter; more of them climb over other lines."""
_JAMO = frozenset((*range(0x1160, 0x1200), *range(0xD7B0, 0xD800)))
"""Vowels and ends of Korean syllables, which join the letter before them."""
_SELECTORS = (range(0xFE00, 0xFE10), range(0x1F3FB, 0x1F400), range(0xE0100, 0xE01F0))
_COUNTING = (range(0x2630, 0x2638), range(0x268A, 0x2690), range(0x4DC0, 0x4E00),
             range(0x1D300, 0x1D377))  # fmt: skip
_UNSURE = frozenset(code for codes in (*_SELECTORS, *_COUNTING) for code in codes)
"""Variation selectors, skin tones and counting signs: terminals do not agree how wide they are."""


def visible(text: str) -> str:
    r"""Return the text on one line with every character that does not show as an escape.

    >>> visible("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(escaped(letter) if hides else letter for letter, hides in _judged(text))


def replaced(text: str) -> str:
    r"""Return the text with a sign for every character that does not show; as long as before.

    >>> replaced("a\x1b[31mb")
    'a\ufffd[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join("\ufffd" if hides else letter for letter, hides in _judged(text))


def _judged(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it hides, moves others or climbs over them."""
    marks = 0
    for letter in text:
        category = unicodedata.category(letter)
        marks = marks + 1 if category in _MARKS or ord(letter) in _JAMO else 0
        yield (
            letter,
            category in _HIDDEN_CATEGORIES
            or letter in _BLANK_LETTERS
            or marks > _MARKS_MAX
            or ord(letter) in _UNSURE,
        )


def escaped(letter: str) -> str:
    r"""Return the escape of one character, as Python writes it.

    >>> escaped("\u200b"), escaped("\n"), escaped("a")
    ('\\u200b', '\\n', '\\x61')
    """
    code = ord(letter)
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter)
    if short is not None:
        return short
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(text: str, columns: int) -> str:
    r"""Return what fits of a text of any length, made visible, in so many columns.

    Only the beginning is looked at, so that a line of a megabyte costs what is seen of it.

    >>> shown("a\x1b[2J" + "b" * 1_000_000, 9)
    'a\\x1b[2J…'
    """
    # Marks take no column, so more letters than columns may be needed.
    head = text[: columns * (_MARKS_MAX + 1) + 1]
    return cut(visible(head), columns)


def width(text: str) -> int:
    """Return how many columns a visible text takes.

    >>> width("ab"), width("日本"), width("e\u0301")
    (2, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in _MARKS or ord(letter) in _JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def cut(text: str, columns: int) -> str:
    """Return the text in so many columns at most, its cut end as `…`.

    >>> cut("abcdef", 4), cut("abc", 4)
    ('abc…', 'abc')
    """
    if width(text) <= columns:
        return text
    found, used = "", 0
    for letter in text:
        if used + _columns(letter) > columns - 1:
            break
        found, used = found + letter, used + _columns(letter)
    return found + "…"
