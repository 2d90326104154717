"""The table: rows by key, of which only changed cells are written, and marks that stay on them.

Textual's table has neither marks nor a keyed update; both are here. Cursor and scroll stay on their
rows when others come and go, because the operator is about to press a key on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import DataTable

from dynsched.domain.visible import width
from dynsched_console.text import Piece, render
from dynsched_console.themes import Tone, style_of

T = TypeVar("T")


class _Mark(Text):
    """The mark's cell; it knows its row, so that the table can be put in order by it."""

    row = ""


MARK = "mark"
MARK_SHOWN = "●"
GAP = 1  # blank columns on each side of a cell
NEAR_END = 50  # rows before the last one at which the next page is fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[T]):
    """One column of a table.

    Attributes:
        name: as people choose it.
        letter: what sorts by it after `s`; one lower-case letter, its own in the table.
        title: its heading; short.
        columns: how wide the cell is.
        cell: makes the cell's piece of text of a row.
        sort: makes what is compared; None sorts by the text.
        rank: columns of the highest rank go first where there is no room; 0 always stays.
        wide: shown only in the wide table, unless chosen.
        right: numbers stand at the right.
        stretch: takes the room that is left; one column of a table.
    """

    name: str
    letter: str
    title: str
    columns: int
    cell: Callable[[T], Piece]
    sort: Callable[[T], Any] | None = None
    rank: int = 0
    wide: bool = False
    right: bool = False
    stretch: bool = False


def fit(columns: Sequence[Column[T]], room: int) -> list[tuple[Column[T], int]]:
    """Return the columns that fit into so much room, in their order, with their widths.

    The last ones by rank go first; what room is left goes to the column that stretches.
    """
    kept = list(columns)
    while len(kept) > 1 and _taken(kept) > room:
        rank = max(column.rank for column in kept)
        if rank == 0:
            break
        kept.remove([column for column in kept if column.rank == rank][-1])
    spare = max(room - _taken(kept), 0)
    return [(one, one.columns + (spare if one.stretch else 0)) for one in kept]


def _taken(columns: Iterable[Column[T]]) -> int:
    return sum(column.columns + 2 * GAP for column in columns) + 1 + 2 * GAP


class RowTable(DataTable[Text], Generic[T]):
    """A table of rows by key.

    Args:
        key: the text that names a row for good.
        columns: all that there are, in their order.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open", id="table.open"),
        Binding("j", "cursor_down", "down", show=False, id="table.down"),
        Binding("k", "cursor_up", "up", show=False, id="table.up"),
        Binding("g", "scroll_top", "top", show=False, id="table.top"),
        Binding("G", "scroll_bottom", "bottom", show=False, id="table.bottom"),
        Binding("ctrl+d", "page_down", "page down", show=False, id="table.page-down"),
        Binding("ctrl+u", "page_up", "page up", show=False, id="table.page-up"),
        Binding("space", "mark", "mark", show=False, id="table.mark"),
        Binding("V", "mark_range", "mark from the last mark to here", show=False, id="table.range"),
        Binding("asterisk", "mark_all", "mark all shown", show=False, id="table.mark-all"),
        Binding("u", "unmark", "unmark all", show=False, id="table.unmark"),
        Binding("s", "sort", "sort by a column's letter", show=False, id="table.sort"),
        Binding("w", "wide", "wide table", show=False, id="table.wide"),
    ]

    class Moved(Message):
        """The cursor came to another row, perhaps near the end."""

    class Arranged(Message):
        """Marks, sort or columns changed."""

    def __init__(
        self, *, key: Callable[[T], str], columns: Sequence[Column[T]], id: str | None = None
    ) -> None:
        super().__init__(cursor_type="row", cell_padding=GAP, id=id)
        self._key = key
        self.all_columns = tuple(columns)
        self.chosen: frozenset[str] | None = None
        self.is_wide = False
        self.marks: set[str] = set()
        self.sorting: tuple[str, bool] | None = None
        self.choosing_sort = False
        self._anchor_mark: str | None = None
        self._held: int | None = None
        self._found: list[T] = []  # in the order of the listing
        self._items: dict[str, T] = {}
        self._shown: list[tuple[Column[T], int]] = []
        self._cells: dict[str, list[tuple[Piece, bool]]] = {}
        self._laid_out_for: tuple[Any, ...] = ()

    # what is shown

    @property
    def current(self) -> T | None:
        """Return the row under the cursor; None in an empty table."""
        key = self._key_at(self.cursor_row)
        return None if key is None else self._items.get(key)

    @property
    def near_end(self) -> bool:
        """Return whether the cursor is so far down that the next page will be wanted."""
        return self.cursor_row >= self.row_count - NEAR_END

    def seen_rows(self) -> tuple[int, int]:
        """Return the first and the last row that can be seen."""
        first = int(self.scroll_offset.y)
        return first, first + max(self.size.height - 1, 1)

    def show(self, rows: Iterable[T]) -> None:
        """Show these rows; only what differs from before is written.

        Cursor and scroll stay where they are on their rows. If the cursor's row is gone, the next
        one that is still there takes its place.
        """
        self._found = list(rows)
        self._items = {self._key(row): row for row in self._sorted(self._found)}
        with self.app.batch_update():
            before = [row.value or "" for row in self._order()]
            top = int(self.scroll_offset.y) if self._held is None else self._held
            anchor = (self.cursor_row, top)
            rebuilt = self._arrange()
            self._write(set(before), rebuilt=rebuilt)
            self._reorder()
            self._settle(before, anchor)

    def again(self) -> None:
        """Show the same rows once more: the theme, the width or the columns have changed."""
        self._laid_out_for = ()
        self.show(self._found)

    def _order(self) -> list[Any]:
        return [row.key for row in self.ordered_rows]

    def _key_at(self, index: int) -> str | None:
        if not 0 <= index < self.row_count:
            return None
        return self.ordered_rows[index].key.value

    def _sorted(self, rows: list[T]) -> list[T]:
        if self.sorting is None:
            return rows
        name, descending = self.sorting
        column = next(one for one in self.all_columns if one.name == name)
        by = column.sort or (lambda row: column.cell(row).text)
        known = [row for row in rows if by(row) is not None]
        unknown = [row for row in rows if by(row) is None]
        return sorted(known, key=by, reverse=descending) + unknown

    def _wanted(self) -> list[Column[T]]:
        if self.chosen is not None:
            return [one for one in self.all_columns if one.name in self.chosen or one.rank == 0]
        return [one for one in self.all_columns if self.is_wide or not one.wide]

    def _arrange(self) -> bool:
        """Lay out the columns if width, choice, sort or theme changed; return whether they did."""
        room = max(self.scrollable_content_region.width, 20)
        layout = (
            room,
            self.is_wide,
            self.chosen,
            self.sorting,
            self.choosing_sort,
            self.app.theme,
        )
        if layout == self._laid_out_for:
            return False
        self._laid_out_for = layout
        self._shown = fit(self._wanted(), room if not self.is_wide else 10_000)
        if self.is_wide:
            self._shown = [(column, column.columns) for column in self._wanted()]
        self.clear(columns=True)
        self.add_column(Text(" "), key=MARK, width=1)
        for column, size in self._shown:
            self.add_column(self._heading(column, size), key=column.name, width=size)
        self._cells = {}
        return True

    def _heading(self, column: Column[T], size: int) -> Text:
        arrow = ""
        if self.sorting is not None and self.sorting[0] == column.name:
            arrow = "▼" if self.sorting[1] else "▲"
        if self.choosing_sort:
            words = f"{column.letter}:{column.title}"[:size]  # the letter must not be cut
            return render([Piece(words, Tone.WARN)], self.app.theme, size)
        words = column.title + arrow
        blanks = " " * max(size - width(words), 0) if column.right else ""
        return render([Piece(blanks + words, Tone.MUTED)], self.app.theme, size)

    def _write(self, before: set[str], *, rebuilt: bool) -> None:
        there = set() if rebuilt else before
        for key, row in self._items.items():
            pieces = self._pieces(key, row)
            if key not in there:
                self.add_row(*(self._drawn(key, *one) for one in enumerate(pieces)), key=key)
            else:
                for number, (old, new) in enumerate(zip(self._cells[key], pieces, strict=True)):
                    if old != new:
                        self.update_cell(
                            key, self._column_name(number), self._drawn(key, number, new)
                        )
            self._cells[key] = pieces
        # Last, so that the table is never shorter than before and does not jump.
        for key in there - self._items.keys():
            self.remove_row(key)
            del self._cells[key]

    def _pieces(self, key: str, row: T) -> list[tuple[Piece, bool]]:
        mark = Piece(MARK_SHOWN if key in self.marks else " ", Tone.WARN)
        return [(mark, False)] + [(column.cell(row), column.right) for column, _ in self._shown]

    def _column_name(self, number: int) -> str:
        return MARK if number == 0 else self._shown[number - 1][0].name

    def _drawn(self, key: str, number: int, cell: tuple[Piece, bool]) -> Text:
        piece, right = cell
        if number == 0:
            mark = _Mark(piece.text, style_of(piece.tone, self.app.theme))
            mark.row = key
            return mark
        size = self._shown[number - 1][1]
        found = render([piece], self.app.theme, size)
        if right:
            found.pad_left(max(size - found.cell_len, 0))
        return found

    def _reorder(self) -> None:
        wanted = list(self._items)
        if [row.value for row in self._order()] == wanted:
            return
        place = {key: number for number, key in enumerate(wanted)}
        self.sort(MARK, key=lambda mark: place[mark.row])

    # cursor and scroll

    def _settle(self, before: Sequence[str], anchor: tuple[int, int]) -> None:
        cursor, top = anchor
        if not self._items or not before:
            return
        place = {key: number for number, key in enumerate(self._items)}
        target = next(
            (place[key] for key in before[cursor:] if key in place),
            min(cursor, len(place) - 1),
        )
        self.move_cursor(row=target, scroll=False)
        if cursor > 0 or top > 0:
            self._hold(target - (cursor - top))

    def _hold(self, top: int) -> None:
        """Scroll so that this row is the first that is seen, once the rows are laid out.

        Until then it counts as the first one, so that a second change does not take the old
        place for the wanted one.
        """
        self._held = max(top, 0)
        self.call_after_refresh(self._let_go, self._held)

    def _let_go(self, top: int) -> None:
        if self._held == top:
            self._held = None
        self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Tell the screen that the cursor moved."""
        event.stop()
        self.post_message(self.Moved())

    # marks, sort, columns

    def marked(self) -> list[str]:
        """Return the keys of the marked rows: those that are shown in their order, then others."""
        here = [key for key in self._items if key in self.marks]
        return here + sorted(self.marks - self._items.keys())

    def action_mark(self) -> None:
        """Mark the row under the cursor, or unmark it, and go to the next."""
        key = self._key_at(self.cursor_row)
        if key is None:
            return
        self.marks ^= {key}
        self._anchor_mark = key if key in self.marks else None
        self._marks_changed([key])
        self.action_cursor_down()

    def action_mark_range(self) -> None:
        """Mark all rows from the last mark to the cursor."""
        keys = list(self._items)
        here = self._key_at(self.cursor_row)
        if here is None:
            return
        other = self._anchor_mark if self._anchor_mark in self._items else here
        first, last = sorted((keys.index(here), keys.index(other or here)))
        self.marks |= set(keys[first : last + 1])
        self._anchor_mark = here
        self._marks_changed(keys[first : last + 1])

    def action_mark_all(self) -> None:
        """Mark all rows that the table holds."""
        self.marks |= set(self._items)
        self._marks_changed(self._items)

    def action_unmark(self) -> None:
        """Unmark all rows."""
        old, self.marks, self._anchor_mark = self.marks, set(), None
        self._marks_changed(old)

    def _marks_changed(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self._cells:
                piece = Piece(MARK_SHOWN if key in self.marks else " ", Tone.WARN)
                self._cells[key][0] = (piece, False)
                self.update_cell(key, MARK, self._drawn(key, 0, (piece, False)))
        self.post_message(self.Arranged())

    def action_sort(self) -> None:
        """Wait for the letter of a column; the headings show them."""
        self.choosing_sort = not self.choosing_sort
        self.again()
        self.post_message(self.Arranged())

    def on_key(self, event: Key) -> None:
        """Take the next key for a column's letter while one is asked for, and Esc for none."""
        if not self.choosing_sort:
            return
        event.stop()
        event.prevent_default()
        if event.key == "escape":
            self.action_sort()
        else:
            self.sort_by(event.character or "")

    def sort_by(self, letter: str) -> bool:
        """Sort by the column of this letter, the other way round if it is so already.

        Any other letter goes back to the order of the listing.
        """
        self.choosing_sort = False
        column = next((one for one in self.all_columns if one.letter == letter), None)
        if column is None:
            self.sorting = None
        else:
            again = self.sorting is not None and self.sorting[0] == column.name
            self.sorting = (column.name, not self.sorting[1] if again and self.sorting else False)
        self.again()
        self.post_message(self.Arranged())
        return column is not None

    def action_wide(self) -> None:
        """Show all columns, as wide as they are; arrows scroll sideways."""
        self.is_wide = not self.is_wide
        self.set_class(self.is_wide, "wide")
        self.again()
        self.post_message(self.Arranged())

    def choose(self, names: Iterable[str] | None) -> None:
        """Show these columns; None for the usual ones."""
        self.chosen = None if names is None else frozenset(names)
        self.again()

    def on_resize(self) -> None:
        """Lay the columns out anew, if there is another width for them."""
        self.show(self._found)

    def item(self, key: str) -> T | None:
        """Return a row by its key; None if it is not shown."""
        return self._items.get(key)

    def items(self) -> Mapping[str, T]:
        """Return the rows by key, in their order."""
        return self._items
