"""The app: registering handlers, and finding the app that the command line names."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dynsched.domain.retry import RetryPolicy
from dynsched.errors import InvalidInput
from dynsched.targets.app import App, load_app
from dynsched.targets.context import Context


def test_a_function_stays_a_function() -> None:
    """Handlers are called directly in their own unit tests."""
    app = App()

    @app.job("double", queue="math", timeout=timedelta(seconds=5), cron="0 5 * * *")
    def double() -> int:
        return 4

    assert double() == 4
    assert app.get("double").function is double
    assert app.get("double").defaults["queue"] == "math"


def test_the_view_of_handlers_cannot_be_changed() -> None:
    """Only the decorator registers."""
    with pytest.raises(TypeError):
        App().handlers["a"] = None  # type: ignore[index]  # that it cannot is the point


def test_a_name_can_be_taken_once() -> None:
    """Two functions under one name would hide a mistake."""
    app = App()
    app.job("a")(lambda: 1)
    with pytest.raises(InvalidInput, match="registered already"):
        app.job("a")(lambda: 2)
    assert app.get("a").function() == 1


async def wants_context(ctx: Context[dict[str, int]]) -> int:
    """Use the context."""
    return ctx.payload["n"]


def wants_nothing() -> None:
    """Use nothing."""


def wants_optional(ctx: object = None) -> None:
    """Use the context, perhaps."""


@pytest.mark.parametrize(
    ("function", "takes"),
    [(wants_context, True), (wants_nothing, False), (wants_optional, True)],
)
def test_a_handler_takes_the_context_or_nothing(function: Callable[..., Any], takes: bool) -> None:
    """Both forms are recognised by the signature."""
    app = App()
    app.job("a")(function)
    assert app.get("a").takes_context is takes


def two(ctx: object, other: object) -> None:
    """Want too much."""


def many(*args: object) -> None:
    """Want anything."""


def keyword(*, ctx: object) -> None:
    """Want the context by keyword."""


def generator(ctx: object) -> Iterator[object]:
    """Yield."""
    yield ctx


async def async_generator(ctx: object) -> AsyncIterator[object]:
    """Yield."""
    yield ctx


@pytest.mark.parametrize(
    "function",
    [two, many, keyword, generator, async_generator, 7],
    ids=["two", "many", "keyword", "generator", "async generator", "number"],
)
def test_a_function_that_could_not_be_called_rightly_is_refused(function: Any) -> None:
    """The mistake shows at import, not at the first run."""
    with pytest.raises(InvalidInput, match=r"def handler\(ctx\)"):
        App().job("a")(function)


@pytest.mark.parametrize(
    ("default", "told"),
    [
        ({"max_attempt": 3}, "did you mean max_attempts"),
        ({"timeout": 30}, "no timedelta"),
        ({"every": timedelta(0)}, "not positive"),
        ({"start_deadline": timedelta(seconds=-1)}, "not positive"),
        ({"retry": 3}, "no RetryPolicy"),
    ],
)
def test_a_wrong_default_is_refused(default: dict[str, Any], told: str) -> None:
    """A declared option that nobody reads would be worse than none."""
    with pytest.raises(InvalidInput) as caught:
        App().job("a", **default)
    assert told in str(caught.value)


def test_a_retry_policy_can_be_declared() -> None:
    """The whole policy goes with the handler."""
    app = App()
    app.job("a", retry=RetryPolicy(max_attempts=2))(wants_nothing)
    assert app.get("a").defaults["retry"].max_attempts == 2


def test_a_bad_name_is_refused_before_the_function_is_seen() -> None:
    """Names are the same as in targets."""
    with pytest.raises(InvalidInput, match="not a handler name"):
        App().job("a b")


def test_an_unknown_handler_comes_with_the_close_ones() -> None:
    """Most unknown names are typing errors."""
    app = App()
    app.job("report.daily")(wants_nothing)
    with pytest.raises(InvalidInput, match=r"did you mean report\.daily"):
        app.get("report.dayly")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a working directory with a module of tasks, forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "my_tasks.py").write_text(
        "from dynsched.targets.app import App\napp = App()\nother = App()\nnumber = 7\n"
    )
    (tmp_path / "my_broken.py").write_text("import not_installed_anywhere\n")
    (tmp_path / "my_script.py").write_text("raise SystemExit('usage: ...')\n")
    (tmp_path / "my_empty.py").write_text("")
    return tmp_path


@pytest.mark.usefixtures("project")
def test_an_app_is_found_in_the_working_directory() -> None:
    """No PYTHONPATH is needed for the usual project."""
    assert isinstance(load_app("my_tasks:app"), App)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("my_tasks", "not module:attribute"),
        ("my tasks:app", "not module:attribute"),
        ("../my_tasks:app", "not module:attribute"),
        (":app", "not module:attribute"),
        ("my_tasks:", "names no attribute"),
        ("my_taks:app", "did you mean my_tasks?"),
        ("my_tasks.inner:app", "no module 'my_tasks.inner'"),
        ("my_tasks:ap", "it has my_tasks:app, my_tasks:other"),
        ("my_tasks:number", "is a int, not a dynsched App (it has my_tasks:app"),
        ("my_empty:app", "it holds no App at all"),
        ("my_broken:app", "importing my_broken failed: ModuleNotFoundError"),
        ("my_script:app", "importing my_script failed: SystemExit: usage"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_explained(path: str, told: str) -> None:
    """The error says what was looked for and what is there."""
    with pytest.raises(InvalidInput, match=r"^--app: ") as caught:
        load_app(path)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("defaults", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "@daily", "tz": "Mars/Base"}, "tz"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": "3"}, "max_attempts"),
        ({"overlap": "sometimes"}, "overlap"),
        ({"catch_up": "none"}, "catch_up"),
        ({"priority": 1}, "priority"),
        ({"cron": "@daily", "every": timedelta(hours=1)}, "every"),
    ],
)
def test_a_wrong_default_is_refused_where_it_is_declared(
    defaults: dict[str, Any], field: str
) -> None:
    """The error names the handler, as the import of many ends with it."""
    with pytest.raises(InvalidInput, match="handler 'daily'") as refused:
        App().job("daily", **defaults)
    assert refused.value.field == field
