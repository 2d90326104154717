"""The frame: refreshing, failing, pausing, copying, keys of one's own, hostile data."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from dynsched.errors import InvalidInput
from dynsched_console.app import Options, all_bindings
from dynsched_console.clipboard import CopiedText
from dynsched_console.config import Config, History, load_config
from dynsched_console.keys import written
from dynsched_console.screens.runs import RunsScreen
from tests.console.stage import HOSTILE, Player, play, staged

DOCS = Path(__file__).resolve().parents[2] / "docs" / "console.md"
RUNS = Options(refresh=None, place="runs")
BEGIN, END = "<!-- keys -->", "<!-- end of keys -->"
IDS = frozenset(binding.id or "" for _, binding in all_bindings())


def test_a_failing_store_shows_its_sentence_and_the_rows_stay() -> None:
    """An operator must not be left with an empty screen in an outage."""
    with staged() as stage:
        stage.run()

        async def act(player: Player) -> None:
            screen = player.console.screen
            assert isinstance(screen, RunsScreen)
            stage.down = True
            await player.press("ctrl+r")
            assert "! " in player.text()
            assert "what is shown is" in player.text()
            assert "FAILING" in player.text()
            assert screen.table.row_count == 1
            stage.down = False
            await player.press("ctrl+r")
            assert "FAILING" not in player.text()

        play(stage, act, options=RUNS)


def test_p_stops_the_refresh_and_says_so() -> None:
    """Live but still: one key holds everything where it is."""
    with staged() as stage:
        options = Options(refresh=timedelta(hours=1), place="runs")

        async def act(player: Player) -> None:
            assert "PAUSED" not in player.text()
            await player.press("p")
            assert "PAUSED" in player.text()
            stage.run()
            player.console._tick()
            await player.settle()
            assert player.console.screen.query_one("#table").row_count == 0  # type: ignore[attr-defined]
            await player.press("p")
            assert player.console.screen.query_one("#table").row_count == 1  # type: ignore[attr-defined]

        play(stage, act, options=options)


def test_a_refresh_is_skipped_while_the_last_one_is_away() -> None:
    """A slow store is not asked twice at once."""
    with staged() as stage:

        async def act(player: Player) -> None:
            screen = player.console.front
            assert screen is not None
            calls: list[int] = []
            reader = screen.reader
            screen.reader = lambda: calls.append(1) or reader()  # type: ignore[func-returns-value, method-assign]
            screen.refresh_now()
            screen.refresh_now()
            await player.settle()
            assert len(calls) == 1

        play(stage, act, options=RUNS)


def test_what_is_copied_is_shown_where_it_can_be_selected() -> None:
    """A clipboard may be out of reach, the screen is not."""
    with staged() as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("y", "enter")
            screen = player.console.screen
            assert isinstance(screen, CopiedText)
            assert screen.query_one(TextArea).text == run_id
            assert player.console.clipboard == run_id

        play(stage, act, options=RUNS)


def test_hostile_texts_reach_no_terminal_as_they_are() -> None:
    """A payload that clears screens, sets titles and turns lines round is only shown."""
    with staged() as stage:
        run_id = stage.run(HOSTILE)

        async def act(player: Player) -> None:
            for keys in (("i",), ("enter",), ("l",)):
                await player.press(*keys)
                text = player.text()
                assert not re.search("[\\x00-\\x09\\x0b-\\x1f\\x7f\\u200b\\u202e]", text)
            assert "\\x1b[2J" in text
            front = player.console.front
            assert front is not None
            copies = {one.name: one.safe for one in front.copies()}
            assert copies["id"] == run_id
            assert "\x1b" not in "".join(copies.values())

        play(stage, act, options=RUNS)


def test_a_key_of_ones_own_does_what_the_old_one_did() -> None:
    """Hands differ; a keymap in a file gives any action another key."""
    with staged() as stage:
        config = Config(keys={"refresh.pause": "f9"})
        options = Options(refresh=timedelta(hours=1), config=config)

        async def act(player: Player) -> None:
            await player.press("p")
            assert not player.console.paused
            await player.press("f9")
            assert player.console.paused

        play(stage, act, options=options)


def test_a_config_that_names_no_key_binding_says_which_was_meant(tmp_path: Path) -> None:
    """A silent keymap is found out at three in the morning."""
    path = tmp_path / "console.toml"
    path.write_text('[keys]\n"refresh.paus" = "f9"\n', "utf-8")
    with pytest.raises(InvalidInput, match=r"did you mean refresh\.pause"):
        load_config(path, IDS)


def test_a_config_is_read_and_a_missing_one_is_the_usual(tmp_path: Path) -> None:
    """No file is needed."""
    path = tmp_path / "console.toml"
    assert load_config(path, IDS) == Config()
    path.write_text('theme = "light"\n[keys]\n"refresh.pause" = "f9,p"\n', "utf-8")
    assert load_config(path, IDS) == Config(theme="light", keys={"refresh.pause": "f9,p"})


def test_a_history_that_cannot_be_read_bothers_nobody(tmp_path: Path) -> None:
    """It is a convenience."""
    path = tmp_path / "filters.json"
    path.write_text("{not json", "utf-8")
    history = History(path)
    assert history.of("runs") == []
    history.add("runs", "state:dead")
    assert History(path).of("runs") == ["state:dead"]


def test_every_binding_has_an_id_and_is_documented() -> None:
    """`docs/console.md` holds the whole table; UPDATE_SNAPSHOTS=1 writes it anew."""
    text = DOCS.read_text("utf-8")
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    wanted = f"{before}{mark}\n{key_table()}{end}{after}"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        DOCS.write_text(wanted, "utf-8")
        text = wanted
    assert text == wanted


def key_table() -> str:
    """Return the table of all bindings, as Markdown."""
    rows = ["| id | keys | does | where |", "|---|---|---|---|"]
    for owner, binding in all_bindings():
        assert binding.id, f"{owner.__name__}: {binding.key} has no id"
        keys = " ".join(f"`{one}`" for one in written(binding.key).split(" "))
        words = binding.tooltip or binding.description
        rows.append(f"| `{binding.id}` | {keys} | {words} | {WHERE[owner.__name__]} |")
    return "\n".join(rows) + "\n"


WHERE = {
    "BatchScreen": "a replay batch",
    "ChoiceDialog": "a choice",
    "ColumnsDialog": "choosing columns",
    "ConfirmDialog": "a confirmation",
    "Console": "everywhere",
    "CopiedText": "what was copied",
    "CopyMenu": "the copy menu",
    "DeadScreen": "dead runs",
    "DiffPage": "an edited payload",
    "FilterInput": "the filter line",
    "GoToLine": "the `:` line",
    "GroupsScreen": "DLQ",
    "KeyPage": "the page of keys",
    "ListScreen": "lists",
    "LoudReplays": "dead runs, a run",
    "PlanDialog": "the pace of a replay",
    "RowTable": "lists",
    "RunActions": "runs, dead runs, a run",
    "RunScreen": "a run",
    "Sheet": "overview, a run, a batch",
}
WHERE |= {
    "AskLine": "a question for one value",
    "JobActions": "jobs, a job",
    "TenantsScreen": "tenants",
}


def test_a_reading_from_before_a_change_is_followed_by_one_from_after_it() -> None:
    """A screen that was being read while its change was made must not show what was before."""
    with staged() as stage:
        run_id = stage.run("bad")
        options = Options(refresh=None, place="runs", filter="state:dead")
        back = threading.Event()

        async def act(player: Player) -> None:
            screen = player.console.screen
            assert isinstance(screen, RunsScreen)
            reader = screen.reader
            before = reader()()

            def late() -> Any:
                assert back.wait(10)
                return before

            slow = [late]

            def read() -> Callable[[], Any]:
                return slow.pop() if slow else reader()

            screen.reader = read  # type: ignore[method-assign]
            screen.refresh_now()
            await screen.change(lambda: stage.source.replay(run_id, reason=""))
            back.set()
            await player.settle()
            assert screen.table.row_count == 0

        play(stage, act, options=options)
