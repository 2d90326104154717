"""Widths: the console and Textual count the same columns, else a hostile text moves the others."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dynsched.domain.visible import cut, visible, width

SURROGATES = range(0xD800, 0xE000)


def test_every_character_is_as_wide_here_as_where_it_is_drawn() -> None:
    """One character that is counted otherwise shifts whatever stands behind it."""
    other = [
        f"{code:x}"
        for code in range(sys.maxunicode + 1)
        if code not in SURROGATES and width(visible(chr(code))) != cell_len(visible(chr(code)))
    ]
    assert other == []


@given(st.text(max_size=40), st.integers(1, 20))
def test_texts_are_as_wide_as_their_characters_and_cut_to_fit(text: str, columns: int) -> None:
    """Joined emoji, flags and marks must not be narrower or wider together than one by one."""
    seen = visible(text)
    assert width(seen) == cell_len(seen)
    assert cell_len(cut(seen, columns)) <= columns


def test_signs_whose_width_terminals_dispute_are_shown_as_escapes() -> None:
    """A heart with a selector is one column here and two there."""
    assert visible("\u2764\ufe0f") == "\u2764\\ufe0f"
    assert visible("\U0001f44d\U0001f3fd") == "\U0001f44d\\U0001f3fd"
    assert visible("\u0928\u093f\u092e\u094d") == "\u0928\u093f\u092e\u094d"
