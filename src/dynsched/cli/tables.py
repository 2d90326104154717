"""What people read: aligned tables, times with a hint, states in colour and in words."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click

from dynsched.cli.values import is_terminal
from dynsched.cli.visible import cut, visible, width
from dynsched.domain.time_words import distance, span, stamp, when
from dynsched.services.search import Found

__all__ = [
    "coloured",
    "distance",
    "print_block",
    "print_fields",
    "print_json",
    "print_notes",
    "print_sentence",
    "print_status",
    "print_table",
    "span",
    "stamp",
    "when",
]

COLOURS = {
    "dead": "red",
    "parked": "red",
    "failed": "yellow",
    "paused": "yellow",
    "leased": "cyan",
    "done": "green",
}
GAP = "  "
LAST_COLUMN_MIN = 40
INDENT = "    "


def print_json(document: object) -> None:
    """Write one JSON document; ASCII only, so that no terminal can be fooled by its texts."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=True))


def coloured() -> bool:
    """Return whether colour is welcome: on a terminal, unless `NO_COLOR` says otherwise."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str, more: bool = False
) -> None:
    """Write an aligned table; its last column is cut at a terminal's edge.

    Where the columns have no room side by side there, the last ones go below the others, each on
    a line of its own that names it, so that an id is never torn in two.

    Args:
        headers: names of the columns.
        rows: a text for each column; what a terminal must not see is made visible here.
        empty: what to say instead of a table without rows.
        more: the search behind the rows has not come to its end, so that none is no answer yet.
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    if not shown:
        click.echo(f"{empty} so far: not all rows were looked at" if more else empty)
        return
    columns = list(zip(headers, *shown, strict=True))
    widths = [max(map(width, column)) for column in columns]
    wide = shutil.get_terminal_size().columns if is_terminal() else 0
    beside = _beside(widths, wide) if wide else len(widths)
    for number, row in enumerate([list(headers), *shown]):
        cells = [cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True)]
        if beside == len(widths):
            taken = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
            cells[-1] = cut(row[-1], wide - taken) if wide else row[-1]
        line = [_tinted(cell, heading=number == 0) for cell in cells[:beside]]
        click.echo(GAP.join(line).rstrip())
        if number:
            _print_below(headers[beside:], row[beside:], wide)


def _beside(widths: Sequence[int], wide: int) -> int:
    """Return how many columns go side by side; the last is cut only if much of it is left."""
    taken = [sum(widths[:number]) + len(GAP) * number for number in range(len(widths))]
    if wide - taken[-1] >= min(widths[-1], LAST_COLUMN_MIN):
        return len(widths)
    fitting = [number for number in range(1, len(widths)) if taken[number] - len(GAP) <= wide]
    return max(fitting, default=1)


def _print_below(headers: Sequence[str], cells: Sequence[str], wide: int) -> None:
    """Write cells that have no room beside the others; an empty one says nothing."""
    size = max(map(width, headers), default=0)
    room = max(wide - len(INDENT) - size - len(GAP), 1)
    for place, (name, cell) in enumerate(zip(headers, cells, strict=True), 1):
        if cell:
            shown = cut(cell, room) if place == len(cells) else cell
            click.echo(f"{INDENT}{name.lower():<{size}}{GAP}{shown}")


def _tinted(cell: str, *, heading: bool) -> str:
    if not coloured():
        return cell
    if heading:
        return click.style(cell, bold=True)
    colour = COLOURS.get(cell.strip())
    return click.style(cell, fg=colour) if colour else cell


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Write one thing, a line for each of its fields that is not empty."""
    kept = [(name, visible(value)) for name, value in fields if value]
    size = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        click.echo(f"{name:<{size}}{GAP}{_tinted(value, heading=False)}")


def print_sentence(text: str, *, head: str = "", indent: int = 0) -> None:
    """Write a sentence; on a terminal its lines are broken between words.

    Args:
        text: the sentence; what a terminal must not see is made visible here.
        head: what stands before it, made for a terminal already.
        indent: columns that the head takes, or that the sentence is moved by.
    """
    shown = visible(text)
    room = shutil.get_terminal_size().columns - indent if is_terminal() else 0
    lines = [shown]
    if room >= LAST_COLUMN_MIN:
        lines = textwrap.wrap(shown, room, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        click.echo((head if head and number == 0 else " " * indent) + line)


def print_block(title: str, text: str) -> None:
    """Write a text of several lines under a title, each line made safe."""
    click.echo(f"{title}:")
    for line in text.splitlines():
        click.echo(f"    {visible(line.expandtabs(4))}")


def print_notes(notes: Iterable[str], *, more: bool) -> None:
    """Write what a list left out, on standard error, so that pipes get rows only."""
    for note in notes:
        click.echo(f"note: {visible(note)}", err=True)
    if more:
        click.echo("note: there are more (--limit N shows them)", err=True)


def print_status(found: Found[Any]) -> None:
    """Write what a search left out, and how far it came, on standard error."""
    print_notes(found.notes, more=False)
    tested = f" (row by row: {', '.join(found.tested)})" if found.tested else ""
    more = f"; more with --cursor {found.cursor}" if found.cursor is not None else ""
    click.echo(f"matched {found.matched:,}, examined {found.examined:,}{tested}{more}", err=True)
