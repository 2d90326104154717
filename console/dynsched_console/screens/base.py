"""What all screens of the console share: reading in threads, refreshing, failing, confirming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual import work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from dynsched.domain.access import Action
from dynsched.errors import DynschedError
from dynsched_console.chrome import Banner, HeaderBar, KeyHints, TabBar
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import Change, ConfirmDialog, Confirmed
from dynsched_console.keys import shown_key
from dynsched_console.sheet import Sheet, SheetRow
from dynsched_console.source import Source
from dynsched_console.text import Piece, ago
from dynsched_console.themes import Tone

if TYPE_CHECKING:
    from dynsched_console.app import Console

T = TypeVar("T")
U = TypeVar("U")


class ConsoleScreen(Screen[None]):
    """A screen that reads a store: at once, every few seconds, and when asked.

    A screen keeps what it showed when a reading fails: the banner says why, and the next refresh
    tries again.
    """

    name_of_place: ClassVar[str] = ""
    CHANGES: ClassVar[Mapping[str, Action]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.composed = False
        self.loading_now = False
        self.stale = False
        self.loaded_at: datetime | None = None
        self.failure = ""

    @property
    def desk(self) -> Console:
        """Return the console."""
        return cast("Console", self.app)

    @property
    def source(self) -> Source:
        """Return the store."""
        return self.desk.source

    def compose(self) -> ComposeResult:
        """Yield the frame and what is in it."""
        yield HeaderBar()
        yield TabBar()
        yield Banner(markup=False)
        yield from self.body()
        yield KeyHints()

    def body(self) -> Iterator[Widget]:
        """Yield what is in the frame."""
        yield from ()

    def on_mount(self) -> None:
        """Hide the banner, and read for the first time."""
        self.composed = True
        self.query_one(Banner).display = False
        self.refresh_now()

    def on_screen_resume(self) -> None:
        """Read again: it may have been away for long."""
        if self.loaded_at is not None:
            self.refresh_now()

    @property
    def usable(self) -> bool:
        """Return whether there are widgets to show something in."""
        return self.composed and bool(self.query(HeaderBar))

    # reading

    def reader(self) -> Callable[[], Any]:
        """Return a blocking call that reads what the screen shows; it is made in a thread."""
        raise NotImplementedError

    def answered(self, answer: Any) -> None:
        """Show what was read."""
        raise NotImplementedError

    def instant_of(self, answer: Any) -> datetime:
        """Return when an answer was true: now, unless it says that it is older."""
        del answer
        return self.source.now()

    def refresh_now(self) -> None:
        """Read again, unless the last reading has not come back yet."""
        if self.loading_now or not self.usable:
            return
        self.loading_now = True
        self.stale = False
        self._read()

    def refresh_after_change(self) -> None:
        """Read what holds after a change: a reading that is away may have been before it."""
        self.stale = self.loading_now
        self.refresh_now()

    @work(group="read", exit_on_error=False)
    async def _read(self) -> None:
        call = self.reader()
        try:
            answer = await self.source.ask(call)
            if self.usable:
                self.answered(answer)
                self.loaded_at = self.instant_of(answer)
                self.fail("")
        except Exception as error:  # noqa: BLE001 - one damaged row must not end the console
            self.fail(sentence(error))
        finally:
            self.loading_now = False
            self.refresh_frame()
            if self.stale:
                self.refresh_now()

    def fail(self, words: str) -> None:
        """Show a failure in the banner, or that there is none any more."""
        self.failure = words
        if not self.usable:
            return
        shown = "nothing could be read yet"
        if self.loaded_at is not None:
            shown = f"what is shown is {self._age()} old"
        again = "ctrl-r tries again" if self.desk.paused else "trying again"
        self.query_one(Banner).say(words, f"{shown}; {again}")

    def refresh_frame(self) -> None:
        """Draw the frame again: ages and modes."""
        if self.usable:
            self.query_one(HeaderBar).refresh()

    def _age(self) -> str:
        assert self.loaded_at is not None
        return ago(self.loaded_at, self.source.now())

    def age_piece(self) -> Piece:
        """Return how old what is shown is."""
        if self.failure:
            return Piece("FAILING", Tone.BAD)
        if self.loaded_at is None:
            return Piece("reading…", Tone.MUTED)
        seconds = (self.source.now() - self.loaded_at).total_seconds()
        return Piece("now" if seconds < 1 else f"{self._age()} ago", Tone.MUTED)

    # changing

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return None for a change that this operator may not make: its key is grey."""
        del parameters
        needed = self.CHANGES.get(action)
        if needed is not None and self.source.why_not(needed):
            return None
        return True

    async def confirm(self, change: Change) -> Confirmed | None:
        """Ask; only in a `@work` method. None is no."""
        return await self.app.push_screen_wait(ConfirmDialog(change))

    async def change(self, call: Callable[[], T], done: str = "") -> T | None:
        """Make a change in a thread, say so, and read again; None if it was refused."""
        try:
            answer = await self.source.ask(call)
        except Exception as error:  # noqa: BLE001 - the sentence is what helps the operator
            self.notify(sentence(error), severity="error", title="Refused", markup=False)
            answer = None
        else:
            if done:
                self.notify(done, markup=False)
        self.refresh_after_change()
        return answer

    async def change_each(
        self, items: Sequence[U], change: Change, done: str, verb: Callable[[U, str], object]
    ) -> None:
        """Ask, then do it to one thing after the other; a refused one stops no other."""
        yes = await self.confirm(change)
        if yes is None:
            return

        def all_of_them() -> list[str]:
            refused: list[str] = []
            for item in items:
                try:
                    verb(item, yes.reason)
                except DynschedError as error:
                    refused.append(str(error))
            return refused

        refused = await self.change(all_of_them)
        if refused is None:
            return
        count = len(items) - len(refused)
        if count:
            self.notify(f"{done} {count:,}", markup=False)
        if refused:
            words = refused[0] if len(refused) == 1 else f"{len(refused):,}, first: {refused[0]}"
            self.notify(words, title="Refused", severity="error", markup=False)

    # keys

    def hints(self) -> list[tuple[str, str, bool]]:
        """Return keys, words and whether they may be used now, in the order of the bindings."""
        found: dict[str, tuple[str, str, bool]] = {}
        for _, binding, enabled, _ in self.active_bindings.values():
            if binding.show and binding.description and binding.action not in found:
                found[binding.action] = (shown_key(binding), binding.description, enabled)
        return list(found.values())

    def copies(self) -> list[Copy]:
        """Return what `y` offers."""
        return []


class SheetScreen(ConsoleScreen):
    """A screen that is one sheet of lines."""

    def body(self) -> Iterator[Widget]:
        """Yield the sheet."""
        yield Sheet(id="sheet")

    def on_mount(self) -> None:
        """Put the cursor onto the sheet."""
        super().on_mount()
        self.query_one(Sheet).focus()

    def rows(self, answer: Any) -> list[SheetRow]:
        """Return the lines of what was read."""
        raise NotImplementedError

    def answered(self, answer: Any) -> None:
        """Show the lines."""
        self.answer = answer
        self.query_one(Sheet).show(self.rows(answer))

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        answer = getattr(self, "answer", None)
        if answer is not None:
            self.query_one(Sheet).show(self.rows(answer))

    def on_sheet_followed(self, event: Sheet.Followed) -> None:
        """Go where a line leads."""
        event.stop()
        self.desk.visit(event.link)


class SubjectScreen(SheetScreen):
    """A sheet about one thing; Esc goes back to where it was opened.

    Args:
        subject: the thing's id.
    """

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject


def sentence(error: BaseException) -> str:
    """Return an error as a sentence for people."""
    if isinstance(error, DynschedError):
        return str(error)
    return f"{type(error).__name__}: {error}"
