"""The filter line: a mistake is pointed at, Escape keeps the old, Up brings the last one back."""

from __future__ import annotations

from pathlib import Path

from textual.events import Key

from dynsched_console.app import Options
from dynsched_console.config import Config, History
from dynsched_console.screens.runs import RunsScreen
from dynsched_console.sheet import Link
from tests.console.stage import Player, play, staged

RUNS = Options(refresh=None, place="runs")


def runs_screen(player: Player) -> RunsScreen:
    """Return the list of runs, which must be in front."""
    screen = player.console.screen
    assert isinstance(screen, RunsScreen)
    return screen


def test_a_filter_shows_what_fits_and_how_much_was_examined() -> None:
    """The operator sees what the answer rests on."""
    with staged() as stage:
        stage.run()
        dead = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("slash")
            await player.type("state:dead")
            await player.press("enter")
            assert list(runs_screen(player).table.items()) == [dead]
            assert "matched 1, examined 1" in player.text()

        play(stage, act, options=RUNS)


def test_a_mistake_keeps_the_old_rows_and_points_at_its_column() -> None:
    """An empty list instead of an error would say that all is well."""
    with staged() as stage:
        stage.run()

        async def act(player: Player) -> None:
            await player.press("slash")
            await player.type("state:dead tennant:acme")
            await player.press("enter")
            lines = player.lines()
            number = next(n for n, text in enumerate(lines) if text.strip() == "^")
            assert lines[number].index("^") == lines[number - 1].index("tennant")
            assert "did you mean tenant:?" in lines[number + 1]
            assert runs_screen(player).table.row_count == 1
            assert runs_screen(player).filter == ""

        play(stage, act, options=RUNS)


def test_escape_keeps_the_filter_that_was_there() -> None:
    """A slip of the hand costs nothing."""
    with staged() as stage:
        options = Options(refresh=None, place="runs", filter="state:done")

        async def act(player: Player) -> None:
            await player.press("slash", "x", "y", "escape")
            assert runs_screen(player).filter == "state:done"
            assert runs_screen(player).line.text == "state:done"
            await player.press("slash")
            assert "state:done" in player.text()

        play(stage, act, options=options)


def test_up_brings_back_filters_of_an_earlier_session(tmp_path: Path) -> None:
    """What was looked for last night is looked for again this morning."""
    path = tmp_path / "filters.json"
    History(path).add("runs", "state:dead")
    with staged() as stage:
        options = Options(refresh=None, place="runs", history=History(path))

        async def act(player: Player) -> None:
            await player.press("slash", "up", "enter")
            assert runs_screen(player).filter == "state:dead"

        play(stage, act, options=options)
    assert History(path).of("runs") == ["state:dead"]


def test_tab_completes_a_qualifier_and_then_its_value() -> None:
    """Nobody remembers all names."""
    with staged() as stage:

        async def act(player: Player) -> None:
            await player.press("slash")
            await player.type("ten")
            await player.press("tab")
            await player.type("acme state:le")
            await player.press("tab", "enter")
            assert runs_screen(player).filter == "tenant:acme state:leased"

        play(stage, act, options=RUNS)


def test_the_line_of_names_goes_to_a_screen_with_a_filter() -> None:
    """Typed `:runs state:dead` is one step from anywhere."""
    with staged() as stage:
        dead = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("colon")
            await player.type("runs state:dead")
            await player.press("enter")
            assert list(runs_screen(player).table.items()) == [dead]

        play(stage, act)


def test_the_brackets_go_back_and_forward_through_views_with_their_filters() -> None:
    """Having looked elsewhere, one comes back to what one saw."""
    with staged() as stage:

        async def act(player: Player) -> None:
            for text in ("state:done", "state:dead"):
                player.console.visit(Link(place="runs", filter=text))
                await player.settle()
            await player.press("left_square_bracket")
            assert runs_screen(player).filter == "state:done"
            await player.press("right_square_bracket")
            assert runs_screen(player).filter == "state:dead"
            await player.press("minus")
            assert runs_screen(player).filter == "state:done"

        play(stage, act)


def test_a_new_filter_unmarks_what_it_may_hide() -> None:
    """Nothing that is not seen is acted on."""
    with staged() as stage:
        stage.run()

        async def act(player: Player) -> None:
            await player.press("space")
            assert len(runs_screen(player).table.marks) == 1
            runs_screen(player).apply_filter("state:dead")
            assert runs_screen(player).table.marks == set()

        play(stage, act, options=RUNS)


def test_what_is_typed_in_one_breath_is_the_filter_and_no_command() -> None:
    """Over a slow line a whole word arrives at once; it must neither sort nor switch themes."""
    with staged() as stage:
        stage.run("bad")

        async def act(player: Player) -> None:
            theme = player.console.theme
            for letter in "/state:dead":
                player.console.post_message(Key(NAMES.get(letter, letter), letter))
            await player.settle()
            await player.press("enter")
            screen = player.console.screen
            assert isinstance(screen, RunsScreen)
            assert screen.filter == "state:dead"
            assert player.console.theme == theme
            await player.press("slash", "slash")
            assert screen.line.editing
            assert "/ state:dead/" in player.text()

        play(stage, act, options=Options(refresh=None, place="runs"))


NAMES = {"/": "slash", ":": "colon"}


def test_a_saved_filter_is_offered_and_leads_to_its_screen() -> None:
    """Whoever is called each week does not want to type it each week."""
    saved = {"bad mails": "dlq err:bounced", 'it\'s "odd"': "runs state:done"}
    with staged() as stage:
        stage.run("bad")
        stage.run("good")

        async def act(player: Player) -> None:
            console = player.console
            offered = {title: action for title, _, action, _ in console.commands()}
            for name, (place, shown) in zip(
                saved, (("dlq", "err:bounced"), ("runs", "state:done")), strict=True
            ):
                await console.run_action(offered[f"saved filter: {name}"], console)
                await player.settle()
                assert console.current_mode == place
                assert shown in player.text()

        play(stage, act, options=Options(refresh=None, config=Config(filters=saved)))
