"""The dead-letter queue in the console: what a key is about is exactly what it reaches."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dynsched.domain.access import Access, Role
from dynsched.domain.run import RunState
from dynsched.errors import InvalidInput
from dynsched_console.app import Options
from dynsched_console.dialogs import ConfirmDialog, Weight
from dynsched_console.editing import DiffPage, editor_of
from dynsched_console.screens.batch import BatchScreen
from dynsched_console.screens.batch_rows import progress_pieces
from dynsched_console.screens.dlq import DeadScreen
from dynsched_console.screens.run import RunScreen
from tests.console.stage import Player, Stage, play, staged

DLQ = Options(refresh=None, place="dlq")
HIDDEN = "hunter2"


def two_groups(stage: Stage) -> list[str]:
    """Let four runs die: three of one cause, one of another; return their ids."""
    return [*(stage.run("bad@") for _ in range(3)), stage.run({"card": {"no": 7}}, tenant="globex")]


def previewed(player: Player) -> dict[str, int]:
    """Return the tenants of the preview in front, with their counts."""
    screen = player.console.screen
    assert isinstance(screen, BatchScreen)
    assert screen.shown is not None
    return dict(screen.shown.counts["tenant"])


def payload_in_store(stage: Stage, run_id: str) -> object:
    """Return a run's payload as its row has it."""
    text = stage.scheduler.operations.get_run(run_id).payload
    return None if text is None else json.loads(text)


def an_editor(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Make a program the editor: its lines change `text`, which is then saved."""
    script = folder / "editor.py"
    source = ["import sys, pathlib", "path = pathlib.Path(sys.argv[1])", "text = path.read_text()"]
    script.write_text("\n".join([*source, *lines, "path.write_text(text)"]), "utf-8")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")


def test_a_group_opens_onto_its_runs_within_the_filter_of_the_list() -> None:
    """What was filtered out in the list does not come back behind Enter."""
    with staged() as stage:
        two_groups(stage)
        stage.run("bad@", tenant="globex")
        options = Options(refresh=None, place="dlq", filter="tenant:acme")

        async def act(player: Player) -> None:
            await player.press("enter")
            screen = player.console.screen
            assert isinstance(screen, DeadScreen)
            assert {row.run.tenant for row in screen.table.items().values()} == {"acme"}
            assert screen.table.row_count == 3

        play(stage, act, options=options)


def test_r_previews_the_marked_else_the_current_and_capital_r_all_that_match() -> None:
    """Three keys, three reaches, each told before anything moves."""
    with staged() as stage:
        two_groups(stage)

        async def act(player: Player) -> None:
            await player.press("r")
            assert previewed(player) == {"acme": 3}
            await player.press("escape", "asterisk", "r")
            assert previewed(player) == {"acme": 3, "globex": 1}
            await player.press("escape", "u", "R")
            assert previewed(player) == {"acme": 3, "globex": 1}
            await player.press("escape", "enter", "space", "space", "r")
            assert previewed(player) == {"acme": 2}
            await player.press("escape", "u", "r")
            assert previewed(player) == {"acme": 1}

        play(stage, act, options=DLQ)
        assert stage.source.find_dead("", limit=10).matched == 4


def test_a_discard_asks_for_the_typed_count_and_a_restore_brings_it_back() -> None:
    """What is taken away is taken twice, once by the eye and once by the hand."""
    with staged() as stage:
        first = two_groups(stage)[0]

        async def act(player: Player) -> None:
            await player.press("enter", "G", "D")
            dialog = player.console.screen
            assert isinstance(dialog, ConfirmDialog)
            assert dialog.change.weight is Weight.TYPED
            await player.press("1", "enter", "x", "enter", "right", "enter")
            assert stage.scheduler.operations.get_run(first).hidden
            await player.press("h")
            screen = player.console.screen
            assert isinstance(screen, DeadScreen)
            assert [*screen.table.items()] == [first]
            await player.press("U", "right", "enter")
            assert not stage.scheduler.operations.get_run(first).hidden
            await player.press("h")
            assert screen.table.row_count == 3

        play(stage, act, options=DLQ)


def test_an_edited_payload_shows_what_differs_and_keeps_what_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator mends an address without seeing, or losing, the password beside it."""
    an_editor(tmp_path, monkeypatch, f"assert {HIDDEN!r} not in text",
              "text = text.replace('bad@', 'ada@example.org')")  # fmt: skip
    with staged() as stage:
        run_id = stage.run({"to": "bad@", "password": HIDDEN})

        async def act(player: Player) -> None:
            await player.press("enter", "E")
            assert isinstance(player.console.screen, DiffPage)
            assert '-  "to": "bad@"' in player.text()
            assert '+  "to": "ada@example.org"' in player.text()
            assert HIDDEN not in player.text()
            await player.press("enter")
            await player.type("typo")
            await player.press("enter", "right", "enter")

        play(stage, act, options=DLQ)
        run = stage.scheduler.operations.get_run(run_id)
        assert run.state is RunState.READY
        assert payload_in_store(stage, run_id) == {"to": "ada@example.org", "password": HIDDEN}
        assert stage.source.views.audit_of(f"run:{run_id}", 1)[0].reason == "typo"
    assert [path.name for path in tmp_path.iterdir()] == ["editor.py"]


def test_an_edit_that_is_no_json_is_told_and_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in the editor costs no work and changes nothing."""
    an_editor(tmp_path, monkeypatch, "text = text + '}'")
    with staged() as stage:
        run_id = stage.run("bad@")

        async def act(player: Player) -> None:
            await player.press("enter", "E")
            assert "it is no JSON (line 2, column 1" in " ".join(player.text().split())
            await player.press("down", "enter")
            assert isinstance(player.console.screen, DeadScreen)

        play(stage, act, options=DLQ)
        assert payload_in_store(stage, run_id) == "bad@"


def test_an_editor_that_is_not_there_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says which variable to set."""
    monkeypatch.setenv("VISUAL", "no-such-editor -w")
    with staged() as stage:
        stage.run("bad@")

        async def act(player: Player) -> None:
            await player.press("enter", "E")
            assert "EDITOR: no-such-editor: No such file" in " ".join(player.text().split())

        play(stage, act, options=DLQ)


def test_no_editor_at_all_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container has none, often."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match="EDITOR=nano"):
        editor_of({})
    assert editor_of({"EDITOR": "code --wait"}) == ["code", "--wait"]


def test_a_replay_as_new_is_louder_and_goes_to_the_new_run() -> None:
    """What the dead run did may be done twice, so the dialog says so and wants it typed."""
    with staged() as stage:
        old = stage.run("bad@")

        async def act(player: Player) -> None:
            await player.press("enter", "N")
            dialog = player.console.screen
            assert isinstance(dialog, ConfirmDialog)
            assert "may be done a second time" in dialog.change.sentence
            assert dialog.command == f"dynsched replay as-new {old}"
            await player.press("1", "enter", "x", "enter", "right", "enter")
            screen = player.console.screen
            assert isinstance(screen, RunScreen)
            new = stage.scheduler.operations.get_run(screen.subject)
            assert (new.origin, new.state) == (old, RunState.READY)

        play(stage, act, options=DLQ)
        assert stage.scheduler.operations.get_run(old).hidden


def test_an_operator_sees_in_the_preview_that_the_limit_forbids_the_confirm() -> None:
    """The limit is told before anybody types a count."""
    access = Access(actor="oda", role=Role.OPERATOR, via="tui", replay_limit=2)
    with staged(access) as stage:
        two_groups(stage)

        async def act(player: Player) -> None:
            await player.press("r")
            text = " ".join(player.text().split())
            assert "you cannot confirm it: 3 runs are more than the limit of 2 for oda" in text

        play(stage, act, options=DLQ)


@pytest.mark.parametrize("keys", ["r", "R"])
def test_a_viewer_previews_nothing(keys: str) -> None:
    """A preview is written down, so that it needs a right too."""
    with staged(Access(actor="eve", role=Role.VIEWER, via="tui")) as stage:
        two_groups(stage)

        async def act(player: Player) -> None:
            assert f"{keys}× " in player.lines()[-1]
            await player.press(keys)
            assert not isinstance(player.console.screen, BatchScreen)

        play(stage, act, options=DLQ)
        assert stage.source.batches(limit=1).items == ()


def test_a_progress_bar_shows_each_outcome_that_there_is() -> None:
    """One failed run of ten thousand is a column, not a rounding error."""
    with staged() as stage:
        two_groups(stage)
        batch = stage.source.operations.preview_replay("")
        many = replace(batch, planned=10_000, moved=9_000, skipped={"gone": 3}, failed=1)
        drawn = "".join(piece.text for piece in progress_pieces(many, 40))
        assert len(drawn) == 40
        assert set(drawn) == set("█▒x·")
        assert "".join(piece.text for piece in progress_pieces(batch, 40)) == "·" * 40
