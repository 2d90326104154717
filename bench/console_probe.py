"""The console without a terminal, in a process of its own; prints what it measured as JSON.

`python -m bench.console_probe URL`: the store is full of dead runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from textual.events import Key
from textual.widget import Widget

from bench.report import percentile
from dynsched.bootstrap import open_base
from dynsched.domain.access import Access
from dynsched_console.app import Console, Options
from dynsched_console.screens.listing import ListScreen
from dynsched_console.sheet import Link
from dynsched_console.source import Source

SIZE = (140, 40)
MOVES = 100
PATIENCE_S = 30.0
POLL_S = 0.002
KB = 1024


def rss_mb(pid: int | str = "self") -> float:
    """Return how much memory of a process is resident, and not only its peak."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return next(
        int(line.split()[1]) / KB for line in status.splitlines() if line.startswith("VmRSS:")
    )


def _list(console: Console) -> ListScreen[object]:
    screen = console.screen
    assert isinstance(screen, ListScreen)
    return screen


async def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "the console did not get there"
        await asyncio.sleep(POLL_S)


async def _drawn(widget: Widget) -> None:
    """Wait until what has changed is on the screen."""
    event = asyncio.Event()
    widget.call_after_refresh(event.set)
    await event.wait()


async def first_rows(console: Console, link: Link) -> float:
    """Return how long it takes from a key to the first rows, milliseconds."""
    began = time.perf_counter()
    console.visit(link)
    await _until(
        lambda: (
            isinstance(console.screen, ListScreen)
            and console.screen.usable
            and console.screen.table.row_count > 0
        )
    )
    await _drawn(console.screen)
    return (time.perf_counter() - began) * 1_000


async def moves(console: Console) -> list[float]:
    """Return how long each of many moves of the cursor takes to be drawn, milliseconds."""
    table, took = _list(console).table, []
    for number in range(MOVES):
        down = number % MOVES < MOVES // 2
        before, key = table.cursor_row, "j" if down else "k"
        began = time.perf_counter()
        console.post_message(Key(key, key))
        while table.cursor_row == before:
            await asyncio.sleep(0)
        await _drawn(table)
        took.append((time.perf_counter() - began) * 1_000)
        await asyncio.sleep(POLL_S)
    return took


async def while_refreshing(
    console: Console, act: Callable[[Console], Awaitable[list[float]]]
) -> list[float]:
    """Do something while one refresh follows the other."""

    async def refresh() -> None:
        while True:
            _list(console).refresh_now()
            await asyncio.sleep(POLL_S)

    task = asyncio.create_task(refresh())
    try:
        return await act(console)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def measured(url: str) -> dict[str, float]:
    """Return the figures by name."""
    source = Source(
        open_base(url, environment={}), Access(actor="bench", read_only=True, via="tui"), url=url
    )
    console = Console(source, Options(refresh=None))
    found: dict[str, float] = {}
    async with console.run_test(size=SIZE):
        await _until(lambda: console.front is not None and console.front.loaded_at is not None)
        for name, link in (
            ("groups", Link(place="dlq")),
            ("entries", Link(place="dead")),
            ("runs", Link(place="runs", filter="state:dead")),
            ("jobs", Link(place="jobs")),
        ):
            found[f"first {name}"] = await first_rows(console, link)
            if name in ("entries", "jobs"):
                began = time.process_time()
                still = await moves(console)
                found[f"cpu {name}"] = (time.process_time() - began) / MOVES * 1_000
                found[f"move {name}"] = percentile(still, 0.95)
                busy = await while_refreshing(console, moves)
                found[f"move {name}, refreshing"] = percentile(busy, 0.95)
        found["rss"] = rss_mb()
    return found


def main() -> None:
    """Measure on the store that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench.console_probe", description=__doc__)
    parser.add_argument("url")
    print(json.dumps(asyncio.run(measured(parser.parse_args().url))))


if __name__ == "__main__":
    main()
