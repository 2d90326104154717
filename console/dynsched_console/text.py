"""Text for the screen: made of pieces with a tone, never parsed as markup, always made harmless."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text

from dynsched.domain.run import RunState
from dynsched.domain.time_words import span
from dynsched.domain.visible import shown, width
from dynsched_console.themes import Tone, style_of

LINE_MAX = 2_000  # columns of one line that a screen may be asked to lay out


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text of one tone; what it holds may be hostile.

    Attributes:
        text: as it is stored.
        tone: what it is.
    """

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Piece, ...]


def line(*parts: Piece | str) -> Line:
    """Return a line of pieces; plain texts are pieces without a tone."""
    return tuple(part if isinstance(part, Piece) else Piece(part) for part in parts)


def render(parts: Iterable[Piece], theme: str, columns: int = LINE_MAX) -> Text:
    """Return pieces as a text of one line, cut to the width.

    Args:
        parts: the pieces.
        theme: whose colours.
        columns: how wide at most.
    """
    found = Text(no_wrap=True, end="")
    room = columns
    for part in parts:
        if room <= 0:
            break
        piece = shown(part.text, room)
        found.append(piece, style_of(part.tone, theme))
        room -= width(piece)
    return found


def render_lines(lines: Iterable[Line], theme: str, columns: int = LINE_MAX) -> Text:
    """Return lines as one text, each cut to the width."""
    return Text("\n", no_wrap=True).join([render(one, theme, columns) for one in lines])


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text made visible in exactly so many columns.

    >>> pad("7", 3, right=True), pad("abcdef", 4)
    ('  7', 'abc…')
    """
    found = shown(text, columns)
    blanks = " " * (columns - width(found))
    return blanks + found if right else found + blanks


def short_error(error: str) -> str:
    """Return an error without the module of its type, which a narrow column has no room for.

    >>> short_error("app.mails.errors.BadAddress: a.b: bounced"), short_error("no such file: a.b")
    ('BadAddress: a.b: bounced', 'no such file: a.b')
    """
    name, colon, rest = error.partition(":")
    dotted = name.replace(".", "").replace("_", "").isalnum() and "." in name
    return f"{name.rpartition('.')[2]}{colon}{rest}" if dotted else error


STATES: dict[RunState, tuple[str, Tone]] = {
    RunState.READY: ("R", Tone.PLAIN),
    RunState.LEASED: ("L", Tone.BUSY),
    RunState.FAILED: ("F", Tone.WARN),
    RunState.DONE: ("D", Tone.GOOD),
    RunState.DEAD: ("X", Tone.BAD),
    RunState.CANCELLED: ("C", Tone.MUTED),
    RunState.SKIPPED: ("S", Tone.MUTED),
}


def state_piece(state: RunState) -> Piece:
    """Return a run's state as a letter and a word, in its colour.

    >>> state_piece(RunState.DEAD)
    Piece(text='X dead', tone=<Tone.BAD: 'bad'>)
    """
    letter, tone = STATES[state]
    return Piece(f"{letter} {state.value}", tone)


def ago(then: datetime | None, now: datetime) -> str:
    """Return how far an instant is, short enough for a column: `3m 5s`, ahead as `in 3m 5s`.

    >>> from dynsched.domain.instants import EPOCH
    >>> ago(EPOCH, EPOCH + timedelta(minutes=3)), ago(EPOCH + timedelta(hours=1), EPOCH)
    ('3m', 'in 1h')
    """
    if then is None:
        return ""
    if then > now:
        return f"in {span(then - now)}"
    return span(now - then)


def long(duration: timedelta | None) -> str:
    """Return a duration for people; a dash for none."""
    return "–" if duration is None else span(duration)


TEXT_MAX = 100_000  # characters of a text of many lines that are shown or copied


def visible_lines(text: str) -> list[str]:
    r"""Return a text of many lines with every line made harmless, tabs as blanks.

    >>> visible_lines("a\tb\n\x1b[2J")
    ['a   b', '\\x1b[2J']
    """
    return [shown(one.expandtabs(4), LINE_MAX) for one in text[:TEXT_MAX].splitlines()]


def sentence_lines(text: str, columns: int, most: int = 6) -> list[str]:
    """Return a text of one line made harmless and broken at blanks, at most so many lines.

    >>> sentence_lines("one two three", 8)
    ['one two', 'three']
    """
    found = textwrap.wrap(shown(text, LINE_MAX), columns)
    return found if len(found) <= most else [*found[: most - 1], f"{found[most - 1][:-1]}…"]


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """Return a text's lines made harmless and broken at the width, at most so many.

    >>> wrapped("abcdef", 4, 9)
    ['abcd', 'ef']
    """
    found: list[str] = []
    for one in visible_lines(text):
        rest = one
        while True:
            head, used = "", 0
            for letter in rest:
                used += width(letter)
                if used > columns:
                    break
                head += letter
            head = head or rest[:1]
            found.append(head)
            rest = rest[len(head) :]
            if len(found) >= most:
                return [*found[: most - 1], "… (y copies it)"] if rest else found
            if not rest:
                break
    return found
