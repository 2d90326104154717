"""Dialogs that choose: one of a few ways, and how a replay batch is paced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from dynsched.domain.batch import check_options
from dynsched.domain.job import Priority
from dynsched.errors import InvalidInput
from dynsched_console.fields import Field
from dynsched_console.replaying import NO_LIMIT, Plan
from dynsched_console.text import Piece, line, render_lines, sentence_lines
from dynsched_console.themes import Tone

ROOM = 68  # columns of text in a dialog


class ChoiceDialog(ModalScreen[int | None]):
    """Chooses one of a few ways; None is none of them.

    Args:
        question: a sentence.
        ways: what can be chosen, harmless texts of ours.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "none of them", id="choice.leave")
    ]

    def __init__(self, question: str, ways: Sequence[str]) -> None:
        super().__init__()
        self._question = question
        self._ways = ways

    def compose(self) -> ComposeResult:
        """Yield the question and the ways."""
        with Vertical(classes="dialog"):
            head = [line(Piece(one, Tone.STRONG)) for one in sentence_lines(self._question, ROOM)]
            yield Static(render_lines(head, self.app.theme, ROOM))
            yield OptionList(*(Option(Text(one)) for one in self._ways))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with the number of the way."""
        self.dismiss(event.option_index)

    def action_leave(self) -> None:
        """Choose none."""
        self.dismiss(None)


class PlanDialog(ModalScreen[Plan | None]):
    """Says how a batch is paced.

    Args:
        plan: as it is now.
        count: how many runs there are.
        only_rate: the batch was confirmed, so that nothing else can be changed any more.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "as before", id="plan.leave"),
        # With priority, so that what is typed behind it at once goes to the next field.
        Binding("tab", "app.focus_next", "next field", show=False, id="plan.next", priority=True),
        Binding(
            "shift+tab",
            "app.focus_previous",
            "field before",
            show=False,
            id="plan.previous",
            priority=True,
        ),
    ]

    def __init__(self, plan: Plan, count: int, *, only_rate: bool = False) -> None:
        super().__init__()
        self._plan = plan
        self._count = count
        self._only_rate = only_rate

    def compose(self) -> ComposeResult:
        """Yield a field for each setting."""
        plan = self._plan
        rate = NO_LIMIT if plan.rate is None else f"{plan.rate:g}"
        with Vertical(classes="dialog plan"):
            yield Static("How the runs are brought back", markup=False)
            yield from self._field("rate", rate, f"runs a second, or {NO_LIMIT} for no limit")
            if not self._only_rate:
                yield from self._field("canary", str(plan.canary), "so many first; 0 is none")
                held = "yes" if plan.canary_hold else "no"
                yield from self._field("hold", held, "yes: pause after the canary in any case")
                part = f"{plan.breaker:.0%}"
                yield from self._field(
                    "breaker", part, "pause when more are dead again; 100% never"
                )
                words = ", ".join(one.value for one in Priority)
                yield from self._field("priority", plan.priority.value, words)
            yield Static(classes="missing")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Take these", id="yes", variant="primary", compact=True)

    def _field(self, name: str, value: str, words: str) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Static(name, classes="name", markup=False)
            yield Field(value, id=name, compact=True)
            yield Static(words, classes="words", markup=False)

    def on_mount(self) -> None:
        """Begin with the rate."""
        self.query_one("#rate").focus()

    def on_input_submitted(self) -> None:
        """Take what stands in the fields: nothing is moved by it."""
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        if event.button.id == "yes":
            self._take()
        else:
            self.dismiss(None)

    def _take(self) -> None:
        try:
            plan = self._read()
            check_options(plan.rate, plan.canary, plan.breaker, self._count)
        except InvalidInput as error:
            words = [line(Piece(one, Tone.WARN)) for one in sentence_lines(str(error), ROOM, 2)]
            self.query_one(".missing", Static).update(render_lines(words, self.app.theme, ROOM))
            return
        self.dismiss(plan)

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _read(self) -> Plan:
        text = self._text("rate")
        rate = None if text.lower() == NO_LIMIT else _number("rate", text)
        plan = replace(self._plan, rate=rate)
        if self._only_rate:
            return plan
        return replace(
            plan,
            canary=int(_number("canary", self._text("canary"))),
            canary_hold=_yes("hold", self._text("hold")),
            breaker=_number("breaker", self._text("breaker").removesuffix("%")) / 100,
            priority=_priority(self._text("priority")),
        )

    def action_leave(self) -> None:
        """Leave it as it is."""
        self.dismiss(None)


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(field, f"{text!r} is no number", "give one, as 10 or 0.5") from None


def _yes(field: str, text: str) -> bool:
    if text.lower() in ("yes", "y"):
        return True
    if text.lower() in ("no", "n", ""):
        return False
    raise InvalidInput(field, f"{text!r} is neither", "say yes or no")


def _priority(text: str) -> Priority:
    try:
        return Priority(text.lower())
    except ValueError:
        words = ", ".join(one.value for one in Priority)
        raise InvalidInput("priority", f"{text!r} is unknown", f"use {words}") from None
