"""The page about handlers names what a declaration may say and what the package gives."""

from __future__ import annotations

import re
from pathlib import Path

import dynsched
from dynsched.targets.app import JobDefaults

PAGE = (Path(__file__).resolve().parents[2] / "docs/handlers.md").read_text("utf-8")


def test_every_option_of_a_declaration_is_on_the_page() -> None:
    """Nobody should have to read the source to find the time limit."""
    section = PAGE.partition("## What a declaration may say")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert set(re.findall(r"`([a-z_]+)`", " ".join(rows))) == set(JobDefaults.__annotations__)


def test_every_import_of_the_page_is_one_that_works() -> None:
    """The examples begin with lines that can be copied."""
    for names in re.findall(r"^from dynsched import (.+)$", PAGE, re.MULTILINE):
        assert set(names.split(", ")) <= set(dynsched.__all__)


def test_the_examples_of_the_page_run() -> None:
    """The first one declares the handler that it shows."""
    code = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0]
    names: dict[str, object] = {}
    exec(compile(code, "docs/handlers.md", "exec"), names)  # noqa: S102  # our own page
    app = names["app"]
    assert isinstance(app, dynsched.App)
    assert app.get("import_feed").defaults["tenant"] == "acme"
