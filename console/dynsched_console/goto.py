"""Ways about by words: the `:` line, the command palette, and the page of keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from dynsched_console.fields import Field
from dynsched_console.text import Line, Piece, line, pad, render_lines
from dynsched_console.themes import Tone

if TYPE_CHECKING:
    from dynsched_console.app import Console


class GoToLine(ModalScreen[str | None]):
    """Asks for `name filter`.

    Args:
        names: where one can go.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "stay here", show=False, id="goto.leave"),
        Binding("tab", "accept", "complete", show=False, id="goto.accept", priority=True),
    ]

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def compose(self) -> ComposeResult:
        """Yield the line."""
        with Horizontal(classes="goto"):
            yield Static(":", markup=False)
            yield Field(
                placeholder="name filter, as in: runs state:dead tenant:acme",
                suggester=SuggestFromList(self._names, case_sensitive=False),
                compact=True,
            )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the text."""
        self.dismiss(event.value.strip() or None)

    def action_accept(self) -> None:
        """Take the completion."""
        self.query_one(Input).action_cursor_right()

    def action_leave(self) -> None:
        """Stay."""
        self.dismiss(None)


class Commands(Provider):
    """All that can be done here, for the command palette: keys of the screen, then places."""

    def _entries(self) -> list[tuple[str, str, str, DOMNode]]:
        console = cast("Console", self.app)
        return console.commands()

    async def search(self, query: str) -> Hits:
        """Yield what fits; a text that begins with a colon goes to a place with a filter."""
        console = cast("Console", self.app)
        if query.startswith(":"):
            text = query[1:].strip()
            yield Hit(1.0, Text(f"go to {text}"), lambda: console.go_to_text(text), text=query)
            return
        matcher = self.matcher(query)
        for title, words, action, node in self._entries():
            score = matcher.match(title)
            if score > 0:
                run = _runner(console, action, node)
                yield Hit(score, matcher.highlight(title), run, text=title, help=words)

    async def discover(self) -> Hits:
        """Yield all."""
        console = cast("Console", self.app)
        for title, words, action, node in self._entries():
            yield DiscoveryHit(Text(title), _runner(console, action, node), text=title, help=words)


def _runner(console: Console, action: str, node: DOMNode) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await console.run_action(action, node)

    return run


class KeyPage(ModalScreen[None]):
    """The keys of a screen.

    Args:
        groups: a title with keys and words, for each group.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "leave", "close", id="keys.leave"),
        Binding("j,down", "down", "down", show=False, id="keys.down"),
        Binding("k,up", "up", "up", show=False, id="keys.up"),
    ]

    def __init__(self, groups: Sequence[tuple[str, Sequence[tuple[str, str, bool]]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        """Yield the table."""
        with Vertical(classes="dialog"), VerticalScroll():
            yield Static(render_lines(self._lines(), self.app.theme, 68))

    def _lines(self) -> list[Line]:
        found: list[Line] = []
        for title, keys in self._groups:
            found += [(), line(Piece(title, Tone.STRONG))]
            for key, words, enabled in keys:
                refused = "" if enabled else "  (not allowed now)"
                found.append(line(pad(key, 18), Piece(words), Piece(refused, Tone.MUTED)))
        return found[1:]

    def action_down(self) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_down(animate=False)

    def action_up(self) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_up(animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
