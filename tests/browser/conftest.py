"""A real browser in front of a real port; where there is no browser, a loud skip."""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from dynsched_web.config import WebConfig
from dynsched_web.serve import Server, Typed
from tests.web.stage import HOSTILE, Stage

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage")
PATIENCE_MS = 10_000
# A page looks by itself every five seconds: what one look misses, the next one brings.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's own browser, launched once."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        said = f"no browser ({', '.join(NAMES)}) is installed: nothing of tests/browser is proved"
        if os.environ.get("DYNSCHED_REQUIRE_ALL"):
            pytest.fail(said)
        warnings.warn(said, stacklevel=1)
        pytest.skip(said)
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


class Site:
    """A console at a port, on a stage whose clock the test sets."""

    def __init__(self, stage: Stage, config: WebConfig) -> None:
        self.stage = stage
        self._server = Server(stage.base, config, Typed(port=0))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where it is, without the last slash."""
        return self._server.url.rstrip("/")

    def close(self) -> None:
        """Close the port."""
        self._server.stop()
        self._thread.join(10)


@contextmanager
def served(**config: object) -> Iterator[Site]:
    """Serve a console on a new stage."""
    stage = Stage(**config)
    site = Site(stage, stage.app.extensions["dynsched"].config)
    try:
        yield site
    finally:
        site.close()
        stage.close()


@pytest.fixture
def site() -> Iterator[Site]:
    """A console on a store with a group of dead runs, for one test."""
    with served() as made:
        for _ in range(5):
            made.stage.run("bad@")
        yield made


@pytest.fixture(scope="module")
def shown() -> Iterator[Site]:
    """A console on a store with something of everything; tests only look at it."""
    with served() as made:
        stage = made.stage
        stage.job()
        stage.scheduler.advance(hours=3)
        for number in range(60):
            stage.run("bad@" if number % 2 else "good", tenant="globex" if number % 3 else "acme")
        stage.run(HOSTILE)
        stage.wait()
        stage.operations.confirm_replay(stage.draft("tenant:globex"), reason="mended")
        stage.step()
        stage.draft("tenant:acme")
        yield made


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Opens pages in browsers of their own; a fault on the console of any fails the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_page(url: str, **options: object) -> Page:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: faults.append(str(one)))
        page.on("dialog", lambda one: faults.append(f"a dialog: {one.message}"))
        page.goto(url)
        return page

    open_page.faults = faults  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
