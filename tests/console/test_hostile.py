"""Hostile data: whatever a store holds, no screen hands it to the terminal as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.widgets import Button, Input, OptionList, TextArea

from dynsched.errors import DynschedError
from dynsched_console.app import Options
from dynsched_console.clipboard import CopiedText, Copy
from dynsched_console.dialogs import Change
from dynsched_console.places import PLACES, SUBJECTS
from dynsched_console.screens.base import SheetScreen
from dynsched_console.screens.listing import ListScreen
from dynsched_console.sheet import Link
from tests.console.hostile import ATTACKS, Besieged, assert_harmless, besiege
from tests.console.stage import SMALL, WIDE, Player, Stage, play, staged

SIZES = pytest.mark.parametrize("size", [SMALL, WIDE], ids=["80x24", "140x40"])
SCREENS = [*(place.name for place in PLACES), *SUBJECTS]
PAUSED = Options(refresh=None)
SAMPLE = ("emoji", "lines", "long", "marks")


@pytest.fixture(scope="module")
def siege() -> Iterator[tuple[Stage, Besieged]]:
    """Return a store with every attack in it; nothing here changes it."""
    with staged() as stage:
        yield stage, besiege(stage)


def links(place: str, found: Besieged) -> list[Link]:
    """Return where a screen is shown with hostile data."""
    if place not in SUBJECTS:
        return [Link(place=place)]
    subjects = {
        "run": [found.runs[name].run_id for name in SAMPLE],
        "job": [found.jobs[name].job_id for name in SAMPLE],
        "why": [f"{found.jobs[name].job_id} 2026-03-05T07:30:00Z" for name in SAMPLE],
        "batch": [found.batch],
        "entries": [found.batch],
        "dead": [""],
    }
    return [Link(place=place, subject=one) for one in subjects[place]]


@SIZES
@pytest.mark.parametrize("place", SCREENS)
def test_no_screen_shows_what_a_terminal_would_obey(
    siege: tuple[Stage, Besieged], place: str, size: tuple[int, int]
) -> None:
    """Each line is as wide as the terminal, and holds no character that moves or hides another."""
    stage, found = siege

    async def act(player: Player) -> None:
        for link in links(place, found):
            player.console.visit(link)
            await player.settle()
            screen = player.console.front
            assert screen is not None
            assert screen.failure == ""
            await assert_harmless(player, size)
            if isinstance(screen, ListScreen):
                assert screen.table.row_count > 0
                for key in ("i", "G", "w", "w", "s", "s", "V", "u", "i"):
                    await player.press(key)
                    await assert_harmless(player, size)
            elif isinstance(screen, SheetScreen):
                for key in ("l", "ctrl+d", "G", "g"):
                    await player.press(key)
                    await assert_harmless(player, size)

    play(stage, act, size=size, options=PAUSED)


@SIZES
def test_no_hostile_text_moves_a_column(
    siege: tuple[Stage, Besieged], size: tuple[int, int]
) -> None:
    """Between two cells there is a blank in every row, at the same column."""
    stage, _ = siege

    async def act(player: Player) -> None:
        for place in PLACES[1:]:
            player.console.visit(Link(place=place.name))
            await player.settle()
            screen = player.console.front
            assert isinstance(screen, ListScreen)
            edges = [3]
            for _, columns in screen.table._shown:
                edges += [edges[-1] + columns + 2]
            top = screen.table.region.y
            rows = player.strips()[top : top + min(screen.table.row_count, 10) + 1]
            for strip in rows:
                for edge in edges[:-1]:
                    assert strip.crop(edge - 1, edge + 1).text == "  "

    play(stage, act, size=size, options=PAUSED)


@SIZES
def test_the_copy_menu_copies_the_true_text_and_shows_it_harmlessly(
    siege: tuple[Stage, Besieged], size: tuple[int, int]
) -> None:
    """What is pasted into a ticket is what the program said; the terminal sees escapes."""
    stage, found = siege

    async def act(player: Player) -> None:
        for name in ("clear", "clipboard", "turned", "lines"):
            player.console.visit(Link(place="run", subject=found.runs[name].run_id))
            await player.settle()
            await player.press("y")
            await assert_harmless(player, size)
            menu = player.console.screen
            names = [copy.name for copy in menu._copies]  # type: ignore[attr-defined]
            menu.query_one(OptionList).highlighted = names.index("error")
            await player.press("enter")
            for _ in range(100):  # a program is looked for in a thread before the text is shown
                if isinstance(player.console.screen, CopiedText):
                    break
                await player.settle()
            assert isinstance(player.console.screen, CopiedText)
            await player.settle()
            await assert_harmless(player, size)
            assert ATTACKS[name] in player.console.clipboard
            assert "\x1b" not in player.console.screen.query_one(TextArea).text
            await player.press("escape")

    play(stage, act, size=size, options=PAUSED)


def test_what_is_copied_is_bounded_for_a_terminal_and_can_be_encoded() -> None:
    """A megabyte by OSC 52 freezes some terminals; half a surrogate is no UTF-8."""
    long = Copy("error", ATTACKS["long"])
    assert (len(long.portable), len(long.true)) == (70_000, 1_000_000)
    assert "may take 70,000 characters" in long.words
    assert Copy("error", ATTACKS["halves"]).true == "\\ud800 half \\udfff"
    assert Copy("id", "j1").words == "id"


@SIZES
def test_dialogs_banners_notices_and_fields_show_it_harmlessly(size: tuple[int, int]) -> None:
    """What was typed, what failed and what is asked may hold it too."""
    with staged() as stage:
        stage.run("bad")

        async def act(player: Player) -> None:
            console, screen = player.console, player.console.front
            assert screen is not None
            for text in ATTACKS.values():
                screen.fail(text)
                screen.notify(text, title=text)
                console.go_to_text(text)
                await player.settle()
                await assert_harmless(player, size)
                console.clear_notifications()
                screen.fail("")
                await player.press("slash")
                screen.query_one("FilterInput", Input).value = f'"{text[:2_000]}" x:y'
                await player.press("enter")
                await assert_harmless(player, size)
                await player.press("escape", "r")
                console.screen.query_one("#reason", Input).value = text
                await player.settle()
                await assert_harmless(player, size)
                console.screen.query_one("#no", Button).press()
                await player.settle()

        play(stage, act, size=size, options=Options(refresh=None, place="runs"))


def test_a_refusal_that_repeats_a_hostile_text_is_harmless() -> None:
    """The core's sentence names what was given."""
    with staged() as stage:
        stage.run("bad")

        async def act(player: Player) -> None:
            screen = player.console.front
            assert screen is not None

            def refuse() -> None:
                raise DynschedError(ATTACKS["clear"] + ATTACKS["turned"] + ATTACKS["lines"])

            await screen.change(refuse)
            await player.settle()
            await assert_harmless(player, SMALL)

        play(stage, act, options=Options(refresh=None, place="runs"))


def test_a_question_about_a_hostile_name_is_harmless() -> None:
    """The dialog repeats the name, and the command line quotes it."""
    with staged() as stage:

        async def act(player: Player) -> None:
            screen = player.console.front
            assert screen is not None
            text = "".join(ATTACKS[name] for name in ("title", "turned", "markup"))
            change = Change(verb="Pause", sentence=f"Pause {text}?", count=1,
                            command=("job", "pause", text))  # fmt: skip
            player.console.run_worker(screen.confirm(change))
            await player.settle()
            assert "Pause \\x1b]0;owned" in player.text()
            await assert_harmless(player, SMALL)

        play(stage, act, options=PAUSED)
