"""A screen of many things: filter line, table, detail pane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, TypeVar, cast

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Static

from dynsched.domain.filters import RUNS, Vocabulary
from dynsched.services.search import Found
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import ColumnsDialog
from dynsched_console.filterline import FilterLine
from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.table import Column, RowTable
from dynsched_console.text import Line, Piece, line, render_lines, sentence_lines
from dynsched_console.themes import Tone
from dynsched_console.window import HELD_MAX, PAGE, Window

T = TypeVar("T")
U = TypeVar("U")

NOTES_SHOWN = 2  # sentences on what was not looked at
ROOMY = 120  # columns from which on the status says more


def mapped(found: Found[U], items: tuple[T, ...]) -> Found[T]:
    """Return a page with other items in the place of its own."""
    return Found(
        items=items,
        matched=found.matched,
        examined=found.examined,
        cursor=found.cursor,
        indexed=found.indexed,
        tested=found.tested,
        notes=found.notes,
    )


class ListScreen(ConsoleScreen, Generic[T]):
    """A filtered list of things; see `dynsched_console.screens` for what a subclass declares."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority: what is typed behind it at once, as over a slow line, is the filter.
        Binding("slash", "filter", "filter", id="list.filter", priority=True),
        Binding("i", "detail", "detail", show=False, id="list.detail"),
        Binding("f", "follow", "follow the newest", show=False, id="list.follow"),
        Binding("c", "columns", "choose columns", show=False, id="list.columns"),
        Binding("z", "problems", "only problems", show=False, id="list.problems"),
    ]

    columns: ClassVar[tuple[Column[Any], ...]] = ()
    vocabulary: ClassVar[Vocabulary] = RUNS
    problems: ClassVar[str] = ""
    filtered: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.filter = ""
        self.window = Window[T](key=self.key)
        self.following = False
        self._before_problems: str | None = None
        self._wish: str | None = None

    # what a subclass declares

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[T]:
        """Read one page; blocking, in a thread."""
        raise NotImplementedError

    def key(self, item: T) -> str:
        """Return what names a row for good."""
        raise NotImplementedError

    def open_item(self, item: T) -> None:
        """Do what Enter does."""

    def empty(self) -> str:
        """Return what to say where there is nothing."""
        return "nothing is here"

    def title_words(self) -> str:
        """Return what stands in the place of the filter where there is none (`filtered`)."""
        return ""

    def detail(self, item: T) -> list[Line]:
        """Return the lines of the detail pane."""
        del item
        return []

    def copies_of(self, item: T) -> list[Copy]:
        """Return what `y` offers of a row."""
        del item
        return []

    # the frame

    def body(self) -> Iterator[Widget]:
        """Yield filter line, table, what is said when it is empty, and the detail pane."""
        yield FilterLine(self.vocabulary)
        with Vertical(classes="list"):
            yield RowTable[T](key=self.key, columns=self.columns, id="table")
            yield Static(classes="empty")
            yield Static(classes="notes")
            yield Static(classes="detail")

    @property
    def table(self) -> RowTable[T]:
        """Return the table."""
        return cast("RowTable[T]", self.query_one("#table", RowTable))

    @property
    def line(self) -> FilterLine:
        """Return the filter line."""
        return self.query_one(FilterLine)

    def on_mount(self) -> None:
        """Begin with the table."""
        self.query_one(".empty").display = False
        self.query_one(".detail").display = False
        self.query_one(".notes").display = False
        self.line.set_text(self.filter)
        if not self.filtered:
            self.line.be_title(self.title_words())
        self.table.focus()
        super().on_mount()

    # reading

    def apply_filter(self, text: str) -> None:
        """Filter by a text that can be read; marks are gone, as what they were on may be."""
        self.filter = text
        if not self.usable:
            return
        self.line.set_text(text)
        self.window.clear()
        self.table.marks.clear()
        self.table.show([])
        self.refresh_now()

    def reader(self) -> Callable[[], tuple[str, int, list[Found[T]]]]:
        """Return a call that reads the pages that are seen, one after the other."""
        text, (first, last) = self.filter, self.table.seen_rows()
        number, starts = self.window.pages_of(first, last)

        def read() -> tuple[str, int, list[Found[T]]]:
            founds: list[Found[T]] = []
            cursor = starts[0]
            for _ in starts:
                founds.append(self.prepared(self.fetch(text, cursor, PAGE)))
                cursor = founds[-1].cursor
                if cursor is None:
                    break
            return text, number, founds

        return read

    def prepared(self, found: Found[T]) -> Found[T]:
        """Return a page after reading what its cells need besides; blocking, in a thread."""
        return found

    def answered(self, answer: tuple[str, int, list[Found[T]]]) -> None:
        """Show what was read, unless the filter has changed meanwhile."""
        text, number, founds = answer
        if text != self.filter:
            self.call_later(self.refresh_now)
            return
        self.window.replace(number, founds)
        self.show()

    def show(self) -> None:
        """Show what the window holds."""
        table = self.table
        table.show(self.window.rows())
        if self.following and table.row_count:
            table.move_cursor(row=0)
        nothing = table.row_count == 0
        table.set_class(nothing, "bare")
        said = self.query_one(".empty", Static)
        said.display = nothing
        if nothing:
            words = [line(Piece(self.empty(), Tone.MUTED))]
            said.update(render_lines(words, self.app.theme, max(self.size.width - 4, 1)))
        self._say_status()
        self._show_detail()

    def _say_status(self) -> None:
        table, parts = self.table, list[Piece]()
        if table.choosing_sort:
            self.line.say(
                [Piece("sort by which letter? any other: as found; Esc: as it is", Tone.WARN)]
            )
            return
        if table.marks:
            parts.append(Piece(f"{len(table.marks):,} marked  ", Tone.WARN))
        if self.following:
            parts.append(Piece("following  ", Tone.BUSY))
        window = self.window
        count = f"matched {len(window):,}, examined {window.examined:,}"
        parts.append(Piece(count, Tone.MUTED))
        if window.full and window.more:
            parts.append(Piece(f"; only {HELD_MAX:,} are held, narrow the filter", Tone.WARN))
        elif window.more:
            parts.append(Piece("; more", Tone.MUTED))
        if window.tested and self.size.width >= ROOMY:
            parts.append(Piece(f" · {', '.join(window.tested)} tested row by row", Tone.MUTED))
        self.line.say(parts)
        notes = self.query_one(".notes", Static)
        notes.display = bool(window.notes)
        columns = max(self.size.width - 4, 20)
        said = [
            line(Piece(one, Tone.MUTED))
            for note in window.notes[:NOTES_SHOWN]
            for one in sentence_lines(f"note: {note}", columns, 2)
        ]
        notes.update(render_lines(said, self.app.theme, columns))

    def on_row_table_moved(self) -> None:
        """Show the row's detail, and fetch the next page in time."""
        self._show_detail()
        window = self.window
        if self.table.near_end and window.more and not window.full and not self.loading_now:
            self.loading_now = True
            self._read_on()

    @work(group="read", exit_on_error=False)
    async def _read_on(self) -> None:
        text, start = self.filter, self.window.next
        try:
            found = await self.source.ask(lambda: self.prepared(self.fetch(text, start, PAGE)))
        except Exception as error:  # noqa: BLE001 - the next move tries again
            self.fail(str(error))
            return
        finally:
            self.loading_now = False
            if self.stale:
                self.refresh_now()
        if text == self.filter and start == self.window.next and self.usable:
            self.window.append(found)
            self.show()

    def on_row_table_arranged(self) -> None:
        """Say what is marked and sorted."""
        self._say_status()

    # keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the filter's key where there is no filter, or it is edited already."""
        if action == "filter" and (not self.filtered or self.line.editing):
            return False
        return super().check_action(action, parameters)

    def on_filter_line_accepted(self, event: FilterLine.Accepted) -> None:
        """Filter, and remember it."""
        self._before_problems = None
        self.desk.history.add(self.name_of_place, event.text)
        self.desk.note_visit(self.name_of_place, event.text)
        self.apply_filter(event.text)

    def on_filter_line_closed(self) -> None:
        """Go back to the table."""
        self.table.focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the row under the cursor."""
        event.stop()
        item = self.table.current
        if item is not None:
            self.open_item(item)

    def action_filter(self) -> None:
        """Edit the filter."""
        self.line.edit(self.desk.history.of(self.name_of_place))

    def action_detail(self) -> None:
        """Show or hide the detail pane."""
        pane = self.query_one(".detail")
        pane.display = not pane.display
        self._show_detail()

    def _show_detail(self) -> None:
        pane = self.query_one(".detail", Static)
        if not pane.display:
            return
        item = self.table.current
        lines = [] if item is None else self.detail(item)
        pane.update(render_lines(lines, self.app.theme, max(self.size.width - 4, 1)))

    def action_follow(self) -> None:
        """Keep the cursor on the newest row, or stop doing so."""
        self.following = not self.following
        self.show()

    def action_problems(self) -> None:
        """Show only what is wrong, or all again."""
        if not self.problems:
            return
        if self._before_problems is None:
            self._before_problems, text = self.filter, self.problems
        else:
            text, self._before_problems = self._before_problems, None
        self.apply_filter(text)

    @work
    async def action_columns(self) -> None:
        """Choose the columns."""
        table = self.table
        chosen = table.chosen or frozenset(one.name for one in table.all_columns if not one.wide)
        names = [(one.name, f"{one.title or one.name}") for one in table.all_columns]
        found = await self.app.push_screen_wait(ColumnsDialog(names, chosen))
        if found is not None:
            table.choose(found)

    def hints(self) -> list[tuple[str, str, bool]]:
        """Return the hints; none while a filter is edited but how to leave."""
        if self.line.editing:
            return [("Enter", "filter", True), ("Esc", "keep the old", True),
                    ("↑ ↓", "history", True), ("Tab", "complete", True)]  # fmt: skip
        return super().hints()

    def copies(self) -> list[Copy]:
        """Return what `y` offers of the row under the cursor."""
        item = self.table.current
        return [] if item is None else self.copies_of(item)

    def chosen_items(self) -> list[T]:
        """Return what an action is about: the marked rows, else the one under the cursor.

        Marked rows that are not held any more are left out.
        """
        table = self.table
        marked = [self.window.get(key) for key in table.marked()]
        found = [item for item in marked if item is not None]
        if table.marks:
            return found
        return [] if table.current is None else [table.current]
