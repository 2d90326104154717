"""Dialogs: a change is confirmed in one, and the more it reaches the more it asks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from dynsched_console.fields import Field
from dynsched_console.text import Line, Piece, line, render_lines, sentence_lines, wrapped
from dynsched_console.themes import Tone

TYPED_FROM = 100
"""From so many on, or with a second tenant, the count is typed."""


ROOM = 68  # columns of text in a dialog
COMMAND_LINES = 4


class Weight(StrEnum):
    """What a dialog asks."""

    ENTER = "enter"  # one: Enter on a dialog whose default is Cancel
    REASON = "reason"  # some: the count is shown, a reason is asked
    TYPED = "typed"  # many, or several tenants: the count is typed too


def weigh(count: int, tenants: int = 1, *, typed: bool = False) -> Weight:
    """Return what a change of so many things of so many tenants asks.

    >>> weigh(1).value, weigh(99).value, weigh(100).value, weigh(2, tenants=2).value
    ('enter', 'reason', 'typed', 'typed')
    """
    if typed or count >= TYPED_FROM or tenants > 1:
        return Weight.TYPED
    return Weight.ENTER if count <= 1 else Weight.REASON


def command_line(*words: str) -> str:
    r"""Return a command line that can be pasted into a shell.

    >>> command_line("run", "cancel", "j@1", "--reason", "it's wrong")
    'dynsched run cancel j@1 --reason \'it\'"\'"\'s wrong\''
    """
    return shlex.join(("dynsched", *words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that waits for a yes.

    Attributes:
        verb: what the button says: `Cancel run`, `Replay`.
        sentence: what will happen, with the count.
        count: how many things it reaches.
        tenants: of how many tenants.
        command: words of the same on the command line, without `dynsched` and the reason.
        lines: what else is to be known before: what will be skipped, and why.
        typed: the count is typed whatever it is.
        reasoned: a reason is asked for even where it reaches one thing only.
        destructive: it takes something away.
    """

    verb: str
    sentence: str
    count: int
    tenants: int = 1
    command: tuple[str, ...]
    lines: Sequence[Line] = ()
    typed: bool = False
    reasoned: bool = False
    destructive: bool = False

    @property
    def weight(self) -> Weight:
        """Return what the dialog asks."""
        found = weigh(self.count, self.tenants, typed=self.typed)
        return Weight.REASON if self.reasoned and found is Weight.ENTER else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The answer yes.

    Attributes:
        reason: why; empty only for one thing.
        count: the number that was shown.
    """

    reason: str
    count: int


class ConfirmDialog(ModalScreen[Confirmed | None]):
    """Asks for a yes; None is no.

    Args:
        change: what waits.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "refuse", "no", id="dialog.refuse"),
        Binding("left", "app.focus_previous", "left", show=False, id="dialog.left"),
        Binding("right", "app.focus_next", "right", show=False, id="dialog.right"),
        Binding("ctrl+y", "copy", "copy the command", id="dialog.copy"),
    ]

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change

    def compose(self) -> ComposeResult:
        """Yield the question, what must be typed, and two buttons."""
        change = self.change
        with Vertical(classes="dialog"):
            yield Static(self._question(), classes="question")
            if change.weight is Weight.TYPED:
                yield Field(placeholder=f"type {change.count} to go on", id="count", compact=True)
            needed = "may be empty" if change.weight is Weight.ENTER else "needed, for the audit"
            yield Field(placeholder=f"reason ({needed})", id="reason", compact=True)
            yield Static(classes="command")
            yield Static(classes="missing")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button(change.verb, id="yes", variant=self._tint, compact=True)

    @property
    def _tint(self) -> Literal["error", "primary"]:
        return "error" if self.change.destructive else "primary"

    def on_mount(self) -> None:
        """Begin where nothing happens by accident."""
        first = "#count" if self.change.weight is Weight.TYPED else "#no"
        if self.change.weight is Weight.REASON:
            first = "#reason"
        self.query_one(first).focus()
        self._say()

    def _question(self) -> Text:
        head = [line(Piece(one, Tone.STRONG)) for one in sentence_lines(self.change.sentence, ROOM)]
        return render_lines([*head, *self.change.lines], self.app.theme, ROOM)

    @property
    def command(self) -> str:
        """Return the same as a command line, with the reason as it stands."""
        words = list(self.change.command)
        if self._reason:
            words += ["--reason", self._reason]
        return command_line(*words)

    @property
    def _reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()

    def missing(self) -> str:
        """Return what must be given before; empty if nothing."""
        change = self.change
        if change.weight is Weight.TYPED:
            typed = self.query_one("#count", Input).value.replace(",", "").strip()
            if typed != str(change.count):
                return f"type the number {change.count} to go on"
        if change.weight is not Weight.ENTER and not self._reason:
            return "give a reason; it goes into the audit"
        return ""

    def _say(self) -> None:
        theme = self.app.theme
        lines = [line(Piece("the same on the command line (ctrl-y copies it):", Tone.MUTED))]
        lines += [line("  ", one) for one in wrapped(self.command, ROOM - 2, COMMAND_LINES)]
        self.query_one(".command", Static).update(render_lines(lines, theme, ROOM))

    def on_input_changed(self) -> None:
        """Show the command with what is typed."""
        self._say()
        self.query_one(".missing", Static).update("")

    def on_input_submitted(self) -> None:
        """Go to the next field or button; Enter in a field changes nothing."""
        self.screen.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        if event.button.id != "yes":
            self.dismiss(None)
            return
        missing = self.missing()
        if missing:
            words = [line(Piece(missing, Tone.WARN))]
            self.query_one(".missing", Static).update(render_lines(words, self.app.theme, ROOM))
            return
        self.dismiss(Confirmed(reason=self._reason, count=self.change.count))

    def action_refuse(self) -> None:
        """Answer no."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the command line."""
        self.app.copy_to_clipboard(self.command)
        self.notify("copied the command line", markup=False)


class ColumnsDialog(ModalScreen[frozenset[str] | None]):
    """Chooses the columns of a table.

    Args:
        names: all columns, in their order: name and title.
        chosen: those that are shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "as before", id="columns.leave"),
        Binding("space", "choose", "show or hide", id="columns.choose", priority=True),
        Binding("c,enter", "take", "take these", id="columns.take", priority=True),
    ]

    def __init__(self, names: Sequence[tuple[str, str]], chosen: frozenset[str]) -> None:
        super().__init__()
        self._names = names
        self._chosen = set(chosen)

    def compose(self) -> ComposeResult:
        """Yield the list of columns."""
        with Vertical(classes="dialog"):
            yield Static("Columns: space chooses, Enter takes them", markup=False)
            yield OptionList(*(Option(self._prompt(name, title)) for name, title in self._names))

    def _prompt(self, name: str, title: str) -> Text:
        return Text(f"[{'x' if name in self._chosen else ' '}] {title}")

    def action_choose(self) -> None:
        """Show or hide the column under the cursor."""
        options = self.query_one(OptionList)
        number = options.highlighted or 0
        name, title = self._names[number]
        self._chosen ^= {name}
        options.replace_option_prompt_at_index(number, self._prompt(name, title))

    def action_take(self) -> None:
        """Take what is chosen."""
        self.dismiss(frozenset(self._chosen))

    def action_leave(self) -> None:
        """Leave them as they are."""
        self.dismiss(None)
