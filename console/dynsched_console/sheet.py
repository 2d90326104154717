"""The sheet: lines to read, some of which lead somewhere by Enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dynsched_console.text import Line, line, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a line leads.

    Attributes:
        place: name of a screen.
        filter: what that screen is filtered by.
        subject: the one thing it shows, for screens of one thing.
    """

    place: str
    filter: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """One line of a sheet.

    Attributes:
        line: its text.
        link: where Enter leads; None for nowhere.
        key: what it is, so that the cursor stays on it when others come; empty for its number.
    """

    line: Line = ()
    link: Link | None = None
    key: str = ""


def row(*parts: object, link: Link | None = None, key: str = "") -> SheetRow:
    """Return a line of pieces and plain texts."""
    return SheetRow(line=line(*parts), link=link, key=key)  # type: ignore[arg-type]


class Sheet(ScrollView, can_focus=True):
    """Lines with a cursor, which stays on its line when the lines change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"sheet--cursor", "sheet--cursor-plain"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False, id="sheet.down"),
        Binding("up,k", "move(-1)", "up", show=False, id="sheet.up"),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False, id="sheet.page-down"),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False, id="sheet.page-up"),
        Binding("home,g", "edge(-1)", "top", show=False, id="sheet.top"),
        Binding("end,G", "edge(1)", "bottom", show=False, id="sheet.bottom"),
        Binding("enter", "follow", "open", id="sheet.open"),
        Binding("tab", "next_link(1)", "next that opens", show=False, id="sheet.next"),
        Binding("shift+tab", "next_link(-1)", "one before", show=False, id="sheet.previous"),
    ]

    class Followed(Message):
        """Enter was pressed on a line that leads somewhere."""

        def __init__(self, link: Link) -> None:
            super().__init__()
            self.link = link

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[SheetRow, ...] = ()
        self.cursor = 0

    @property
    def current(self) -> SheetRow | None:
        """Return the line under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show(self, rows: Sequence[SheetRow]) -> None:
        """Show these lines; the cursor stays on its line by key, and where it is on the screen."""
        old = self.current
        first = not self.rows
        below = self.cursor - int(self.scroll_offset.y)
        self.rows = tuple(rows)
        if first:
            self.cursor = next((n for n, one in enumerate(rows) if one.link is not None), 0)
        elif old is not None and old.key:
            keys = [one.key for one in rows]
            self.cursor = keys.index(old.key) if old.key in keys else self.cursor
        self.cursor = max(min(self.cursor, len(rows) - 1), 0)
        self.virtual_size = Size(self.size.width, len(rows))
        if not first and self.scroll_offset.y:
            self.scroll_to(y=self.cursor - below, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        """Fit the lines to the new width."""
        self.virtual_size = Size(self.size.width, len(self.rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        number = y + int(self.scroll_offset.y)
        columns = self.size.width
        base = self.rich_style
        if number >= len(self.rows):
            return Strip.blank(columns, base)
        one = self.rows[number]
        text = render(one.line, self.app.theme, columns)
        segments = [Segment(part.text, part.style) for part in text.render(self.app.console)]
        if number == self.cursor and self.has_focus:
            name = "sheet--cursor" if one.link is not None else "sheet--cursor-plain"
            base = self.get_component_rich_style(name)
        strip = Strip(segments, text.cell_len).adjust_cell_length(columns)
        return strip.apply_style(base)

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    def _to(self, number: int) -> None:
        self.cursor = max(min(number, len(self.rows) - 1), 0)
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()

    def action_move(self, step: int) -> None:
        """Go up or down, over empty lines."""
        number = self.cursor + step
        while 0 < number < len(self.rows) - 1 and not self.rows[number].line:
            number += step
        self._to(number)

    def action_page(self, step: int) -> None:
        """Go a page up or down."""
        self._to(self.cursor + step * max(self.size.height - 1, 1))

    def action_edge(self, step: int) -> None:
        """Go to the first or the last line."""
        self._to(0 if step < 0 else len(self.rows) - 1)

    def action_next_link(self, step: int) -> None:
        """Go to the next line that leads somewhere."""
        numbers = [n for n, one in enumerate(self.rows) if one.link is not None]
        ahead = [n for n in numbers[::step] if (n - self.cursor) * step > 0]
        if numbers:
            self._to(ahead[0] if ahead else numbers[::step][0])

    def action_follow(self) -> None:
        """Go where the line leads."""
        current = self.current
        if current is not None and current.link is not None:
            self.post_message(self.Followed(current.link))
