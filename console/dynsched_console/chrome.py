"""What frames every screen: header, names of the screens, banner of a failure, hints of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Static

from dynsched.domain.visible import width
from dynsched_console.text import Piece, line, render, render_lines, sentence_lines
from dynsched_console.themes import Tone

if TYPE_CHECKING:
    from dynsched_console.app import Console
    from dynsched_console.screens.base import ConsoleScreen

GAP = "  "


class _Framed(Widget):
    """A part of the frame; it draws what the console and its screen know."""

    @property
    def desk(self) -> Console:
        """Return the console."""
        return cast("Console", self.app)

    @property
    def owner(self) -> ConsoleScreen:
        """Return the screen that it frames."""
        return cast("ConsoleScreen", self.screen)


class HeaderBar(_Framed):
    """Where one is, as whom, and how old what is shown is."""

    def render(self) -> Text:
        """Return the header in one line; what matters less goes first where there is no room."""
        source = self.desk.source
        access = source.access
        badge = Piece(f" {self.desk.badge} ", Tone.STRONG)
        right: list[Piece] = []
        if access.read_only:
            right.append(Piece("READ-ONLY", Tone.WARN))
        if self.desk.paused:
            right.append(Piece("PAUSED", Tone.WARN))
        right.append(self.owner.age_piece())
        middle = [
            Piece(self.desk.store_words),
            Piece(f"{access.actor} · {access.role.value}", Tone.MUTED),
        ]
        return self._laid_out(badge, middle, right)

    def _laid_out(self, badge: Piece, middle: list[Piece], right: Sequence[Piece]) -> Text:
        columns, theme = self.size.width, self.app.theme
        tail = [part for one in right for part in (Piece(GAP), one)] + [Piece(" ")]
        room = columns - sum(width(part.text) for part in tail)
        while middle:
            head = [badge] + [part for one in middle for part in (Piece(GAP), one)]
            if sum(width(part.text) for part in head) <= room or len(middle) == 1:
                break
            middle.pop()
        found = render(head, theme, max(room, 1))
        found.append(" " * max(room - found.cell_len, 0))
        found.append_text(render(tail, theme))
        return found


class TabBar(_Framed):
    """The screens with the keys that lead to them."""

    def render(self) -> Text:
        """Return the names in one line, the present one emphasised."""
        found = Text(no_wrap=True, end="")
        for place in self.desk.places:
            here = place.name == self.desk.current_mode
            words = f"{place.key} {place.title}"
            label = Piece(f"[{words}]", Tone.STRONG) if here else Piece(f" {words} ", Tone.MUTED)
            found.append_text(render([label], self.app.theme))
        found.truncate(self.size.width)
        return found


class Banner(Static):
    """What went wrong, as one sentence; gone when it works again."""

    def say(self, sentence: str, more: str = "") -> None:
        """Show a failure; an empty sentence hides the banner."""
        self.display = bool(sentence)
        if sentence:
            columns = max(self.app.size.width - 4, 20)
            lines = [
                line(Piece("! " if number == 0 else "  ", Tone.BAD), Piece(one, Tone.BAD))
                for number, one in enumerate(sentence_lines(sentence, columns, 2))
            ]
            self.update(render_lines([*lines, line(Piece(f"  {more}", Tone.MUTED))],
                                     self.app.theme, columns + 2))  # fmt: skip


class KeyHints(_Framed):
    """The keys that matter here, as many as fit; `?` shows all."""

    def on_mount(self) -> None:
        """Draw them again whenever others hold: another focus, another state."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _: object) -> None:
        self.refresh()

    def render(self) -> Text:
        """Return the hints in one line."""
        columns, theme = self.size.width, self.app.theme
        last = [Piece("? ", Tone.STRONG), Piece("all keys ", Tone.MUTED)]
        room = columns - sum(width(part.text) for part in last)
        found = Text(" ", no_wrap=True, end="")
        for key, words, enabled in self.owner.hints():
            tone = Tone.STRONG if enabled else Tone.MUTED
            state = "" if enabled else "×"
            hint = [Piece(f"{key}{state} ", tone), Piece(words + GAP, Tone.MUTED)]
            size = sum(width(part.text) for part in hint)
            if found.cell_len + size > room:
                break
            found.append_text(render(hint, theme))
        found.append(" " * max(room - found.cell_len, 0))
        found.append_text(render(last, theme))
        return found
