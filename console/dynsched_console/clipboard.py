"""The clipboard: OSC 52 for terminals that know it, a program where there is one, and the text.

No way is sure: a terminal may ignore OSC 52, a remote host has no clipboard. So the text is always
shown too, where it can be selected. What is copied is the true text, which never passes through the
terminal as it is (OSC 52 carries it encoded); what is shown is harmless.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from dynsched_console.text import Piece, render, visible_lines
from dynsched_console.themes import Tone

PROGRAMS = (("wl-copy",), ("xclip", "-selection", "clipboard"), ("pbcopy",))
PROGRAM_PATIENCE_S = 2.0
TERMINAL_MAX = 70_000  # characters; as base64 that is what terminals commonly allow


@dataclass(frozen=True, slots=True)
class Copy:
    """One thing that can be copied.

    Attributes:
        name: what it is: `id`, `error`.
        text: the thing.
    """

    name: str
    text: str

    @property
    def safe(self) -> str:
        """Return the text with nothing in it that moves a cursor; so it is shown."""
        return "\n".join(visible_lines(self.text))

    @property
    def true(self) -> str:
        """Return the text as it is copied: whole, and such that UTF-8 can carry it."""
        return self.text.encode("utf-8", "backslashreplace").decode()

    @property
    def portable(self) -> str:
        """Return what of it a terminal may be asked to copy; most refuse more."""
        return self.true[:TERMINAL_MAX]

    @property
    def words(self) -> str:
        """Return what to say of it: its name, and how it differs from what is seen."""
        if len(self.true) > TERMINAL_MAX:
            return f"{self.name}, of which a terminal may take {TERMINAL_MAX:,} characters"
        told = "" if self.safe == self.text else ", as it is stored; shown with what hides in it"
        return self.name + told


def copy_by_program(text: str) -> str:
    """Hand a text to the desktop's clipboard; return the program's name, empty if there is none."""
    for command in PROGRAMS:
        path = shutil.which(command[0])
        if path is None:
            continue
        try:
            subprocess.run(  # noqa: S603 - a fixed program, and the text is its input
                [path, *command[1:]],
                input=text.encode(),
                check=True,
                timeout=PROGRAM_PATIENCE_S,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command[0]
    return ""


class CopyMenu(ModalScreen[Copy | None]):
    """Offers what can be copied.

    Args:
        copies: the things; empty ones are left out.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,y", "leave", "nothing", id="copy.leave")
    ]

    def __init__(self, copies: Sequence[Copy]) -> None:
        super().__init__()
        self._copies = [one for one in copies if one.text]

    def compose(self) -> ComposeResult:
        """Yield the list."""
        theme, size = self.app.theme, max((len(one.name) for one in self._copies), default=0)
        with Vertical(classes="dialog"):
            yield Static("Copy", markup=False)
            yield OptionList(
                *(
                    Option(render([Piece(f"{one.name:<{size}}  "), Piece(one.text, Tone.MUTED)],
                                  theme, 64), id=str(number))
                    for number, one in enumerate(self._copies)
                )
            )  # fmt: skip

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with the thing."""
        self.dismiss(self._copies[event.option_index])

    def action_leave(self) -> None:
        """Copy nothing."""
        self.dismiss(None)


class CopiedText(ModalScreen[None]):
    """Shows what was copied, to be selected where the clipboard cannot be reached.

    Args:
        copy: the thing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", "close", id="copied.leave", priority=True)
    ]

    def __init__(self, copy: Copy) -> None:
        super().__init__()
        self._copy = copy

    def compose(self) -> ComposeResult:
        """Yield the text."""
        with Vertical(classes="dialog"):
            yield Static(f"Copied: {self._copy.words}", markup=False)
            yield TextArea(self._copy.safe, read_only=True, soft_wrap=True)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
