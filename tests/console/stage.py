"""A stage for the console: a store in memory, a clock that is set, somebody at the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random

from textual.pilot import Pilot
from textual.worker import Worker

from dynsched.bootstrap import open_base
from dynsched.domain.access import Access
from dynsched.domain.payload import Json
from dynsched.settings import Settings
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler, SettableClock
from dynsched_console.app import Console, Options
from dynsched_console.source import Source

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
WIDE, SMALL = (140, 40), (80, 24)


class BadAddress(Exception):
    """What the staged handler fails with."""


class Stage:
    """A store with a few jobs of three tenants.

    Args:
        access: who sits at the console.
    """

    def __init__(self, access: Access | None = None) -> None:
        app = App()

        @app.job("mail", max_attempts=1)
        def mail(ctx: object) -> Json:
            payload = getattr(ctx, "payload", None)
            if payload != "good":
                raise BadAddress(f"the address {payload!r} bounced")
            return {"sent": True}

        self.clock = SettableClock(NOW)
        self.engine = SqliteEngine(None)
        self.scheduler = ManualScheduler(app, clock=self.clock, engine=self.engine)
        self.base = open_base(
            environment={}, engine=self.engine, clock=self.clock, rng=Random(7), settings=Settings()
        )
        self.access = access or Access(actor="ada@desk", via="tui")
        self.source = Source(self.base, self.access, url="sqlite:///demo.db")

    def close(self) -> None:
        """Drop the store."""
        self.scheduler.close()

    def run(self, payload: Json = "good", *, tenant: str = "acme") -> str:
        """Make a run and let it end; return its id."""
        run_id = self.scheduler.enqueue("mail", payload, tenant=tenant).run_id
        self.scheduler.run_due()
        self.clock.step(seconds=1)
        return run_id

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
        """Wait until what was asked of the store has come back and is drawn."""
        for _ in range(3):
            await self.pilot.pause()
            reads: list[Worker[object]] = [
                worker for worker in self.console.workers if worker.group == "read"
            ]
            if reads:
                await self.console.workers.wait_for_complete(reads)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other, and wait for what they do."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        await self.pilot.press(*(NAMES.get(letter, letter) for letter in text))
        await self.settle()

    def lines(self) -> list[str]:
        """Return what is on the screen."""
        return [strip.text for strip in self.console.screen._compositor.render_strips()]

    def text(self) -> str:
        """Return what is on the screen as one text."""
        return "\n".join(self.lines())


NAMES = {" ": "space", ":": "colon", "/": "slash", "-": "minus", ">": "greater_than_sign"}


def play(
    stage: Stage, act: Play, *, size: tuple[int, int] = SMALL, options: Options | None = None
) -> None:
    """Run a console on a stage and let somebody act; nothing refreshes by itself."""

    async def whole() -> None:
        console = Console(stage.source, options or Options(refresh=None))
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
