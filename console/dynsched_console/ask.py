"""A line that asks for one value, checked before it is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from dynsched.errors import InvalidInput
from dynsched_console.dialogs import ROOM
from dynsched_console.fields import Field
from dynsched_console.text import Piece, line, render_lines, sentence_lines
from dynsched_console.themes import Tone


class AskLine(ModalScreen[str | None]):
    """Asks for a value; None is that none is wanted.

    Args:
        question: one sentence.
        value: what stands there at first.
        example: shown in an empty field.
        check: raises `InvalidInput` for what cannot be taken; its sentence is shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "never mind", id="ask.leave"),
    ]

    def __init__(
        self, question: str, *, value: str = "", example: str = "", check: Callable[[str], object]
    ) -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._example = example
        self._check = check

    def compose(self) -> ComposeResult:
        """Yield question, field and what is wrong with what was given."""
        with Vertical(classes="dialog"):
            head = [line(Piece(one, Tone.STRONG)) for one in sentence_lines(self._question, ROOM)]
            yield Static(render_lines(head, self.app.theme, ROOM))
            yield Field(self._value, placeholder=self._example, compact=True)
            yield Static(classes="wrong")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the value if it can be taken; else say why not."""
        event.stop()
        value = event.value.strip()
        try:
            self._check(value)
        except InvalidInput as error:
            said = [line(Piece(one, Tone.WARN)) for one in sentence_lines(str(error), ROOM, 3)]
            self.query_one(".wrong", Static).update(render_lines(said, self.app.theme, ROOM))
            return
        self.dismiss(value)

    def action_leave(self) -> None:
        """Give none."""
        self.dismiss(None)
