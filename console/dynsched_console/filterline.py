"""The filter line: what the list is filtered by, and what the filter found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from dynsched.domain.completion import complete
from dynsched.domain.filters import parse
from dynsched.domain.vocabulary import Vocabulary
from dynsched.errors import InvalidInput
from dynsched_console.fields import Field
from dynsched_console.text import Line, Piece, line, render, render_lines
from dynsched_console.themes import Tone

INDENT = 3  # columns before the text of the filter


class Words(Suggester):
    """Completes the qualifier or the value that is being typed at the end.

    Args:
        vocabulary: what may be asked for.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._vocabulary = vocabulary

    async def get_suggestion(self, value: str) -> str | None:
        """Return the text with its last word completed; None if nothing fits."""
        if not value or value[-1].isspace():
            return None
        found = [one.apply(value) for one in complete(value, len(value), self._vocabulary)]
        return next((text for text in found if text != value), None)


class FilterInput(Field):
    """The text of the filter while it is edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older", "older filter", show=False, id="filter.older"),
        Binding("down", "newer", "newer filter", show=False, id="filter.newer"),
        Binding("escape", "leave", "keep the old filter", show=False, id="filter.leave"),
        Binding("tab", "cursor_right", "accept the completion", show=False, id="filter.accept"),
    ]

    class Left(Message):
        """Escape was pressed."""

    def __init__(self) -> None:
        super().__init__(compact=True, placeholder="everything", select_on_focus=False)
        self.lines: list[str] = []
        self._place = 0
        self._draft = ""

    def begin(self, lines: list[str]) -> None:
        """Begin to edit; `lines` are the earlier filters, the newest last."""
        self.lines, self._place, self._draft = lines, len(lines), self.value
        self.cursor_position = len(self.value)

    def _recall(self, place: int) -> None:
        if not 0 <= place <= len(self.lines):
            return
        if self._place == len(self.lines):
            self._draft = self.value
        self._place = place
        self.value = self._draft if place == len(self.lines) else self.lines[place]
        self.cursor_position = len(self.value)

    def action_older(self) -> None:
        """Take the filter that was used before."""
        self._recall(self._place - 1)

    def action_newer(self) -> None:
        """Take the filter that was used after."""
        self._recall(self._place + 1)

    def action_leave(self) -> None:
        """Leave it as it was."""
        self.post_message(self.Left())


class FilterLine(Vertical):
    """The filter with its status, and below it the error of a filter that cannot be read.

    Args:
        vocabulary: what may be asked for.
    """

    class Accepted(Message):
        """A new filter that can be read."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Closed(Message):
        """Editing has ended; the focus may go back."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self.text = ""
        self._input = FilterInput()
        self._input.suggester = Words(vocabulary)
        self._title = Static(classes="title", markup=False)
        self._title.display = False
        self._status = Static(classes="status")
        self._error = Static(classes="error")
        self._error.display = False

    def compose(self) -> ComposeResult:
        """Yield the parts."""
        with Horizontal():
            yield Static("/", classes="slash", markup=False)
            yield self._input
            yield self._title
            yield self._status
        yield self._error

    def set_text(self, text: str) -> None:
        """Show a filter that is in force."""
        self.text = text
        self._input.value = text
        self._error.display = False

    def be_title(self, text: str) -> None:
        """Be no filter but a title, on a list that cannot be filtered."""
        self.query_one(".slash").display = False
        self._input.display = False
        self._title.display = True
        self._title.update(render([Piece(text, Tone.STRONG)], self.app.theme))

    def say(self, status: Sequence[Piece]) -> None:
        """Show what the filter found."""
        columns = max(self.app.size.width * 3 // 4 - 2, 16)
        self._status.update(render(status, self.app.theme, columns))

    def edit(self, history: list[str]) -> None:
        """Begin to edit."""
        self.screen.set_focus(self._input)  # at once, and not when messages have been handled
        self._input.begin(history)

    @property
    def editing(self) -> bool:
        """Return whether the filter is being edited."""
        return self._input.has_focus

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the filter if it can be read; else say where it cannot."""
        event.stop()
        try:
            parse(event.value, self._vocabulary)
        except InvalidInput as error:
            self._explain(error)
            return
        self.set_text(event.value)
        self.post_message(self.Accepted(event.value))
        self.post_message(self.Closed())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Forget the error of what was there before."""
        event.stop()
        self._error.display = False

    def on_filter_input_left(self, event: FilterInput.Left) -> None:
        """Keep the old filter."""
        event.stop()
        self.set_text(self.text)
        self.post_message(self.Closed())

    def _explain(self, error: InvalidInput) -> None:
        lines: list[Line] = []
        column = getattr(error, "column", None)
        if isinstance(column, int):
            self._input.cursor_position = column
            lines.append(line(Piece(" " * (INDENT + column) + "^", Tone.BAD)))
        words = error.problem + (f" ({error.mend})" if error.mend else "")
        lines.append(line(Piece("   " + words, Tone.BAD)))
        columns = max(self.app.size.width - 2, 1)
        self._error.update(render_lines(lines, self.app.theme, columns))
        self._error.display = True
