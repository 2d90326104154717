"""A stage for the console: a store in memory, a clock that is set, somebody at the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from textual.events import Key
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input
from textual.worker import Worker

from dynsched.bootstrap import Base, build_stepper, open_base
from dynsched.domain.access import Access
from dynsched.domain.payload import Json
from dynsched.settings import Settings
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.testing import Fault, FaultyEngine, ManualScheduler, SettableClock
from dynsched.testing.faults import Call
from dynsched_console.app import Console, Options
from dynsched_console.source import Source

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] \u202egnp.exe \u200b\r\n" + "A" * 100_000
"""A text that would clear the screen, set a title, turn the line round and hide in it."""
QUIET_ROUNDS = 4  # of Textual's queues without a reading, after which a screen is drawn
REMOVED_S = 2.0
T = TypeVar("T")
WIDE, SMALL = (140, 40), (80, 24)


class BadAddress(Exception):
    """What the staged handler fails with."""


class WatchedSource(Source):
    """A source that knows which of its calls are away."""

    def __init__(self, base: Base, access: Access, *, url: str) -> None:
        super().__init__(base, access, url=url)
        self.away: set[asyncio.Future[Any]] = set()

    async def ask(self, call: Callable[[], T]) -> T:
        """Make a call in a thread, and remember that it is away."""
        task = asyncio.ensure_future(super().ask(call))
        self.away.add(task)
        try:
            return await task
        finally:
            self.away.discard(task)


class Stage:
    """A store with a few jobs of three tenants.

    Args:
        access: who sits at the console.
    """

    def __init__(self, access: Access | None = None) -> None:
        app = App()
        self.mended = False

        @app.job("mail", max_attempts=1)
        def mail(ctx: object) -> Json:
            payload = getattr(ctx, "payload", None)
            if payload != "good" and not self.mended:
                raise BadAddress(f"the address {payload!r} bounced")
            return {"sent": True}

        self.clock = SettableClock(NOW)
        self.engine = SqliteEngine(None)
        # The names of host and process are on the screen; a picture of it must not depend on them.
        with patch("socket.gethostname", lambda: "host"), patch("os.getpid", lambda: 4711):
            self.scheduler = ManualScheduler(app, clock=self.clock, engine=self.engine)
        self.down = False
        faulty = FaultyEngine(self.engine, self._fault)
        self.base = open_base(
            environment={}, engine=faulty, clock=self.clock, rng=Random(7), settings=Settings()
        )
        with patch("socket.gethostname", lambda: "host"), patch("os.getpid", lambda: 4711):
            self.stepper = build_stepper(self.base)
        self.access = access or Access(actor="ada@desk", via="tui")
        self.source = WatchedSource(self.base, self.access, url="sqlite:///demo.db")

    def _fault(self, _: Call) -> Fault:
        return Fault.UNAVAILABLE if self.down else Fault.NONE

    def close(self) -> None:
        """Drop the store."""
        self.scheduler.close()

    def run(self, payload: Json = "good", *, tenant: str = "acme") -> str:
        """Make a run and let it end; return its id."""
        run_id = self.scheduler.enqueue("mail", payload, tenant=tenant).run_id
        self.scheduler.run_due()
        self.clock.step(seconds=1)
        return run_id

    def step(self, seconds: float = 1) -> None:
        """Let time pass, let the stepper move what it may, and run what is due."""
        self.clock.step(seconds=seconds)
        self.stepper.step()
        self.scheduler.run_due()

    def wait(self, *, tenant: str = "acme") -> str:
        """Make a run that waits for a day; return its id."""
        delay = timedelta(days=1)
        return self.scheduler.enqueue("mail", "good", tenant=tenant, delay=delay).run_id


Play = Callable[["Player"], Awaitable[None]]


class Player:
    """A console under test with somebody at its keys."""

    def __init__(self, console: Console, pilot: Pilot[None]) -> None:
        self.console = console
        self.pilot = pilot

    async def settle(self) -> None:
        """Wait until what was asked of the store has come back and is drawn.

        Textual's own wait looks whether the process is idle, which takes far longer.
        """
        quiet = 0
        while quiet < QUIET_ROUNDS:
            for field in self.console.screen.query(Input):
                field.cursor_blink = False  # it blinks by the wall's clock
            await self._drain()
            await self.pilot.pause(0)
            reads: list[Worker[object]] = [
                worker for worker in self.console.workers if worker.group == "read"
            ]
            source = self.console.source
            away = source.away if isinstance(source, WatchedSource) else set()
            quiet = 0 if reads or away else quiet + 1
            if away:
                await asyncio.wait(away)
            if reads:
                await self.console.workers.wait_for_complete(reads)

    async def _drain(self) -> None:
        """Wait until the app and each widget in front have handled what lay in their queues."""
        handled: list[asyncio.Future[bool]] = []
        for node in (self.console, *self.console.screen.walk_children(with_self=True)):
            event = asyncio.Event()
            if node.call_later(event.set):
                handled.append(asyncio.ensure_future(event.wait()))
        if handled:
            # A widget that is removed meanwhile never answers.
            _, silent = await asyncio.wait(handled, timeout=REMOVED_S)
            for one in silent:
                one.cancel()

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other, and wait for what each does."""
        for key in keys:
            letter = key if len(key) == 1 else LETTERS.get(key)
            self.console.post_message(Key(key, letter))
            await self.settle()

    async def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        names = {letter: name for name, letter in LETTERS.items()}
        await self.press(*(names.get(letter, letter) for letter in text))

    def lines(self) -> list[str]:
        """Return what is on the screen."""
        return [strip.text for strip in self.strips()]

    def strips(self) -> list[Strip]:
        """Return what is on the screen, with its styles."""
        return self.console.screen._compositor.render_strips()

    def text(self) -> str:
        """Return what is on the screen as one text."""
        return "\n".join(self.lines())


LETTERS = {
    "asterisk": "*",
    "at": "@",
    "colon": ":",
    "greater_than_sign": ">",
    "minus": "-",
    "question_mark": "?",
    "slash": "/",
    "space": " ",
}


def play(
    stage: Stage, act: Play, *, size: tuple[int, int] = SMALL, options: Options | None = None
) -> None:
    """Run a console on a stage and let somebody act; nothing refreshes by itself."""
    play_on(stage.source, act, size=size, options=options)


def play_on(
    source: Source, act: Play, *, size: tuple[int, int] = SMALL, options: Options | None = None
) -> None:
    """Run a console on a store and let somebody act."""

    async def whole() -> None:
        console = Console(source, options or Options(refresh=None))
        async with console.run_test(size=size, notifications=True) as pilot:
            player = Player(console, pilot)
            await player.settle()
            await act(player)

    asyncio.run(whole())


@contextmanager
def staged(access: Access | None = None) -> Iterator[Stage]:
    """Set a stage, and strike it."""
    stage = Stage(access)
    try:
        yield stage
    finally:
        stage.close()
