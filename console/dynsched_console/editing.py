"""Editing a text in the operator's own editor, and a page that shows what differs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput
from dynsched_console.text import Line, Piece, line, render_lines, sentence_lines, visible_lines
from dynsched_console.themes import Tone

EDITORS = ("nano", "vi")
SIGNS = {"+": Tone.GOOD, "-": Tone.BAD, "@": Tone.MUTED}


def editor_of(environment: Mapping[str, str]) -> list[str]:
    """Return the command of the operator's editor.

    Raises:
        InvalidInput: there is none.
    """
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(environment.get(name, ""))
        if words:
            return words
    for name in EDITORS:
        if shutil.which(name):
            return [name]
    raise InvalidInput("EDITOR", "it is not set", "name your editor in it, as EDITOR=nano")


def edited(app: App[Any], text: str, environment: Mapping[str, str] | None = None) -> str:
    """Let the operator edit a text while the console steps aside; return what it is then.

    The file is the operator's alone and is gone afterwards.

    Raises:
        InvalidInput: there is no editor, it failed, or what it left cannot be read.
    """
    command = editor_of(os.environ if environment is None else environment)
    handle, name = tempfile.mkstemp(prefix="payload-", suffix=".json")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        _run(app, [*command, name])
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("payload", "it is not UTF-8", "save it as UTF-8") from error
    finally:
        path.unlink(missing_ok=True)


def _run(app: App[Any], command: Sequence[str]) -> None:
    try:
        with app.suspend():
            code = subprocess.call(command)  # noqa: S603 - the operator's own editor
    except SuspendNotSupported:
        # There is no terminal to hand over; an editor with a window of its own needs none.
        code = _call(command)
    except OSError as error:
        raise _failed(command, str(error.strerror)) from error
    if code:
        raise _failed(command, f"it ended with code {code}")


def _call(command: Sequence[str]) -> int:
    try:
        return subprocess.call(  # noqa: S603 - the operator's own editor
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise _failed(command, str(error.strerror)) from error


def _failed(command: Sequence[str], why: str) -> InvalidInput:
    return InvalidInput("EDITOR", f"{command[0]}: {why}", "nothing is changed; name another one")


def laid_out(text: str) -> str:
    """Return JSON text on lines of its own, as an editor wants it."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def parsed(text: str) -> Json:
    """Return the value of an edited text.

    Raises:
        InvalidInput: it is no JSON.
    """
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InvalidInput("payload", f"it is no JSON ({where})", "edit it again") from error
    except RecursionError as error:
        raise InvalidInput("payload", "it is nested too deeply", "edit it again") from error
    return value


class DiffPage(ModalScreen[str]):
    """Shows what differs; answers `go`, `again` or nothing.

    Args:
        title: a sentence.
        text: a unified diff.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "answer('go')", "go on", id="diff.go"),
        Binding("E", "answer('again')", "edit again", id="diff.again"),
        Binding("escape,q", "answer('')", "give up", id="diff.leave"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield title, difference and keys."""
        columns = max(min(self.app.size.width, 110) - 8, 20)
        theme = self.app.theme
        with Vertical(classes="page"):
            head = [line(Piece(one, Tone.STRONG)) for one in sentence_lines(self._title, columns)]
            yield Static(render_lines(head, theme, columns))
            with VerticalScroll():
                yield Static(render_lines(self._lines(), theme, columns))
            keys = "Enter goes on (nothing is changed yet) · E edits again · Esc gives up"
            yield Static(render_lines([line(Piece(keys, Tone.MUTED))], theme, columns))

    def _lines(self) -> list[Line]:
        return [
            line(Piece(one, SIGNS.get(one[:1], Tone.PLAIN)))
            for one in visible_lines(self._text)
            if not one.startswith(("--- ", "+++ "))
        ]

    def action_answer(self, answer: str) -> None:
        """Answer."""
        self.dismiss(answer)
