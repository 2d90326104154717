"""The console: one program on one store, a mode for each place, and what holds everywhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from dynsched.bootstrap import Base
from dynsched.domain.access import Access
from dynsched.domain.filters import parse
from dynsched.domain.visible import shown
from dynsched.errors import InvalidInput
from dynsched_console import (
    ask,
    choices,
    clipboard,
    dialogs,
    editing,
    filterline,
    goto,
    sheet,
    table,
)
from dynsched_console.clipboard import CopiedText, Copy, CopyMenu, copy_by_program
from dynsched_console.config import Config, History, config_file, load_config, state_folder
from dynsched_console.goto import Commands, GoToLine, KeyPage
from dynsched_console.keys import own_bindings, shown_key
from dynsched_console.places import PLACES, SUBJECTS, Place
from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.screens.listing import ListScreen
from dynsched_console.sheet import Link
from dynsched_console.source import Source
from dynsched_console.themes import DARK, THEMES

REFRESH = timedelta(seconds=2)
VISITS_MAX = 100
SWITCH_S = 0.001
NOTICE_MAX = 300  # columns of a notice
MOTIONS = frozenset(
    f"{part}.{motion}"
    for part in ("table", "sheet")
    for motion in ("down", "up", "page-down", "page-up", "top", "bottom", "next", "previous")
)
"""Keys that the palette leaves out: whoever reads it has moved already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the console starts.

    Attributes:
        refresh: how often what is shown is read again; None is only when asked.
        place: the first screen.
        filter: its filter.
        theme: dark, light or ansi; empty for the config's, else dark.
        config: the operator's own settings.
        history: filters that were used before.
        web_url: where the web console is, if there is one.
    """

    refresh: timedelta | None = REFRESH
    place: str = "overview"
    filter: str = ""
    theme: str = ""
    config: Config = field(default_factory=Config)
    history: History = field(default_factory=lambda: History(None))
    web_url: str = ""


class Console(App[None]):
    """The console.

    Args:
        source: the store.
        options: how it starts.
    """

    CSS_PATH = "console.tcss"
    TITLE = "dynsched"
    COMMANDS: ClassVar = {Commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(place.key, f"go('{place.name}')", place.title, show=False,
                    id=f"go.{place.name}")
            for place in PLACES
        ),
        Binding("colon", "go_to", "go to", id="go.to"),
        Binding("left_square_bracket", "view_back", "back in the views", show=False, id="go.back"),
        Binding("right_square_bracket", "view_forward", "forward", show=False, id="go.forward"),
        Binding("minus", "view_last", "the view before", show=False, id="go.last"),
        Binding("y", "copy", "copy", id="copy.menu"),
        Binding("p", "pause", "pause", id="refresh.pause"),
        Binding("ctrl+r", "refresh", "refresh now", show=False, id="refresh.now"),
        Binding("ctrl+p", "command_palette", "all commands", show=False, id="commands",
                priority=True),
        Binding("t", "theme", "next theme", show=False, id="theme.next"),
        Binding("o", "web", "link to the web console", show=False, id="web.link"),
        Binding("question_mark", "keys", "keys", show=False, id="keys.show"),
        Binding("escape", "leave", "back", show=False, id="go.up"),
        Binding("q", "quit", "quit", id="quit"),
    ]  # fmt: skip

    def __init__(self, source: Source, options: Options | None = None) -> None:
        super().__init__()
        self.source = source
        self.options = options or Options()
        self.history = self.options.history
        self.paused = self.options.refresh is None
        self.places: tuple[Place, ...] = PLACES
        self._visits: list[Link] = []
        self._visit_number = -1
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = self.options.theme or self.options.config.theme or DARK.name
        for place in self.places:
            self.add_mode(place.name, place.screen)
        self.set_keymap(dict(self.options.config.keys))

    def notify(self, message: str, *, title: str = "", **how: Any) -> None:
        """Show a notice, made harmless whatever it repeats; markup in it is never read."""
        how["markup"] = False
        super().notify(shown(message, NOTICE_MAX), title=shown(title, NOTICE_MAX), **how)

    # what the frame says

    @property
    def badge(self) -> str:
        """Return what this store is for, in capitals."""
        scheme = urlsplit(self.source.url).scheme
        plain = "LOCAL" if scheme == "sqlite" else scheme.upper()
        return self.source.environment.upper() or plain

    @property
    def store_words(self) -> str:
        """Return where the store lies: a file, or tables and their region."""
        parts = urlsplit(self.source.url)
        if parts.scheme != "dynamodb":
            return parts.path.removeprefix("/") or "in memory"
        region = parse_qs(parts.query).get("region", [""])[-1]
        return f"{parts.netloc} · {region}" if region else parts.netloc

    # beginning and refreshing

    def on_mount(self) -> None:
        """Go to the first place and begin to refresh."""
        self.visit(Link(place=self.options.place, filter=self.options.filter))
        if self.options.refresh is not None:
            self.set_interval(self.options.refresh.total_seconds(), self._tick)
        self.set_interval(1, self._second)

    @property
    def front(self) -> ConsoleScreen | None:
        """Return the screen that is seen, unless a dialog lies on it."""
        screen = self.screen
        return screen if isinstance(screen, ConsoleScreen) else None

    def _tick(self) -> None:
        if not self.paused and self.front is not None:
            self.front.refresh_now()

    def _second(self) -> None:
        if self.front is not None:
            self.front.refresh_frame()

    def action_pause(self) -> None:
        """Stop refreshing, or go on."""
        self.paused = not self.paused
        self._second()
        if not self.paused:
            self._tick()

    def action_refresh(self) -> None:
        """Read now."""
        if self.front is not None:
            self.front.refresh_now()

    # going about

    def visit(self, link: Link, *, note: bool = True) -> None:
        """Go where a link leads.

        A place with an empty filter keeps the filter that it has.
        """
        if link.place in SUBJECTS:
            self.push_screen(SUBJECTS[link.place](link.subject))
        else:
            here = self.current_mode == link.place
            self.switch_mode(link.place)
            if here or link.filter:
                self._to_base()
            screen = self.screen
            if link.filter and isinstance(screen, ListScreen):
                screen.apply_filter(link.filter)
        if note:
            self._note(link)

    def _to_base(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def note_visit(self, place: str, text: str) -> None:
        """Remember a filter as a view to come back to."""
        self._note(Link(place=place, filter=text))

    def _note(self, link: Link) -> None:
        if self._visits and self._visits[self._visit_number] == link:
            return
        self._visits = [*self._visits[: self._visit_number + 1], link][-VISITS_MAX:]
        self._visit_number = len(self._visits) - 1

    def _visit_at(self, number: int) -> None:
        if 0 <= number < len(self._visits):
            self._visit_number = number
            link = self._visits[number]
            self._to_base()
            self.visit(link, note=False)

    def action_go(self, name: str) -> None:
        """Go to a place."""
        self.visit(Link(place=name))

    def action_view_back(self) -> None:
        """Go back in the views."""
        self._visit_at(self._visit_number - 1)

    def action_view_forward(self) -> None:
        """Go forward in the views."""
        self._visit_at(self._visit_number + 1)

    def action_view_last(self) -> None:
        """Go to the view before this one, and with the same key back again."""
        if self._visit_number > 0:
            link = self._visits[self._visit_number - 1]
            self._to_base()
            self.visit(link)

    def action_leave(self) -> None:
        """Close what lies on top."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_go_to(self) -> None:
        """Ask where to go.

        The next key is handled only when the line is there: one that is typed at once must not
        mean something to the screen below.
        """
        names = [place.name for place in self.places]
        await self.push_screen(GoToLine(names), self._go_where)

    def _go_where(self, text: str | None) -> None:
        if text:
            self.go_to_text(text)

    def go_to_text(self, text: str) -> None:
        """Go to `name filter`; a beginning of a name is enough."""
        name, _, filter_ = text.strip().partition(" ")
        found = [place for place in self.places if place.name.startswith(name.lower())]
        if not name or not found:
            names = ", ".join(place.name for place in self.places)
            self.notify(f"there is no {name!r}; go to {names}", severity="warning", markup=False)
            return
        place, text = found[0], filter_.strip()
        self.visit(Link(place=place.name))
        screen = self.screen
        if not text or not isinstance(screen, ListScreen):
            return
        try:
            parse(text, screen.vocabulary)
        except InvalidInput as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self._to_base()
        screen.apply_filter(text)
        self.note_visit(place.name, text)

    # commands, keys, copies

    def commands(self) -> list[tuple[str, str, str, DOMNode]]:
        """Return what can be done here: title, key, action and the node that does it.

        The operator's saved filters come last; their words say where they lead.
        """
        found: dict[str, tuple[str, str, str, DOMNode]] = {}
        under = self.screen_stack[-2] if len(self.screen_stack) > 1 else self.screen
        screen = self.front or under
        for node, binding, enabled, _ in screen.active_bindings.values():
            if binding.id in MOTIONS or not (binding.id and binding.description):
                continue
            if enabled:
                title = binding.description
                found.setdefault(binding.id, (title, shown_key(binding), binding.action, node))
        saved = self.options.config.filters
        kept = [
            (f"saved filter: {name}", text, f"saved({name!r})", self)
            for name, text in saved.items()
        ]
        return [*found.values(), *kept]

    def action_saved(self, name: str) -> None:
        """Go where a saved filter leads."""
        self.go_to_text(self.options.config.filters[name])

    def action_keys(self) -> None:
        """Show the keys of this screen."""
        groups: dict[str, dict[str, tuple[str, str, bool]]] = {}
        for node, binding, enabled, _ in self.screen.active_bindings.values():
            if not binding.id or not binding.description:
                continue
            title = "Everywhere" if node is self else "Here"
            entry = groups.setdefault(title, {})
            key, words = shown_key(binding), binding.description
            before = entry.get(binding.id)
            entry[binding.id] = (f"{before[0]} {key}" if before else key, words, enabled)
        self.push_screen(KeyPage([(title, [*keys.values()]) for title, keys in groups.items()]))

    @work
    async def action_copy(self) -> None:
        """Choose what to copy, copy it every way there is, and show it."""
        copies = self.front.copies() if self.front is not None else []
        if not copies:
            self.notify("there is nothing to copy here", markup=False)
            return
        copy = await self.push_screen_wait(CopyMenu(copies))
        if copy is not None:
            await self.copy(copy)

    async def copy(self, copy: Copy) -> None:
        """Copy a text every way there is, and show it."""
        self.copy_to_clipboard(copy.portable)
        await self.source.ask(lambda: copy_by_program(copy.true))
        await self.push_screen(CopiedText(copy))

    def action_theme(self) -> None:
        """Take the next theme."""
        names = list(THEMES)
        number = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(number + 1) % len(names)]

    @work
    async def action_web(self) -> None:
        """Offer the web console's address."""
        if not self.options.web_url:
            self.notify("no web console is known (DYNSCHED_WEB_URL names one)", markup=False)
            return
        await self.copy(Copy("web console", self.options.web_url))


def all_bindings() -> Iterator[tuple[type, Binding]]:
    """Yield every binding of the console with the class that declares it."""
    screens = [*(place.screen for place in PLACES), *SUBJECTS.values()]
    owners: list[type] = [Console, table.RowTable, sheet.Sheet, filterline.FilterInput]
    owners += [dialogs.ConfirmDialog, dialogs.ColumnsDialog, goto.GoToLine, goto.KeyPage]
    owners += [clipboard.CopyMenu, clipboard.CopiedText]
    owners += [choices.ChoiceDialog, choices.PlanDialog, editing.DiffPage, ask.AskLine]
    for screen in screens:
        owners += [one for one in screen.__mro__ if issubclass(one, ConsoleScreen)]
    yield from own_bindings(dict.fromkeys(owners))


def main(
    base: Base,
    access: Access,
    *,
    url: str,
    refresh: timedelta | None = REFRESH,
    screen: str = "overview",
    filter: str = "",
    theme: str = "",
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run the console on a store until the operator leaves it; return an exit code.

    Args:
        base: the store.
        access: who acts.
        url: the store's URL, to be shown.
        refresh: how often what is shown is read again; None is only when asked.
        screen: the first screen.
        filter: its filter.
        theme: dark, light or ansi; empty for the config's, else dark.
        environment: where folders and names come from; None is the process's.

    Raises:
        InvalidInput: the config file, the screen or the theme is wrong.
        NotInitialised: the store has no tables.
    """
    environment = os.environ if environment is None else environment
    names = [place.name for place in PLACES]
    if screen not in names:
        raise InvalidInput("--screen", f"{screen!r} is unknown", f"use {', '.join(names)}")
    if theme and theme not in THEMES:
        raise InvalidInput("--theme", f"{theme!r} is unknown", f"use {', '.join(THEMES)}")
    config = load_config(
        config_file(environment), frozenset(one.id or "" for _, one in all_bindings())
    )
    base.store.refresh()
    badge = environment.get("DYNSCHED_ENVIRONMENT", "")
    options = Options(
        refresh=refresh or None,
        place=screen,
        filter=filter,
        theme=theme,
        config=config,
        history=History(state_folder(environment) / "console-filters.json"),
        web_url=environment.get("DYNSCHED_WEB_URL", ""),
    )
    # A thread that reads must not keep the screen waiting for the interpreter.
    sys.setswitchinterval(SWITCH_S)
    console = Console(Source(base, access, url=url, environment=badge), options)
    console.run()
    return console.return_code or 0
