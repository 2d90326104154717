"""Snapshots of screens as text: the characters, then which style each of them has.

A picture in SVG tells a reader of a diff nothing; this does. A changed screen fails with a diff.
`UPDATE_SNAPSHOTS=1 pytest tests/console/test_snapshots.py` writes them anew: look at the diff then.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from rich.style import Style
from textual.strip import Strip

from dynsched.domain.access import Access
from dynsched_console.app import Options
from tests.console.stage import Player, Stage, play, staged

FOLDER = Path(__file__).parent / "snapshots"
SIZES = ((80, 24), (140, 40))
THEMES = ("dark", "light")
LOOKS_MAX = 20
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One screen in one situation.

    Attributes:
        name: of its files.
        sentence: what there is to see, and why it looks so.
        place: the screen that the console starts with.
        filter: its filter.
        keys: pressed before the picture is taken.
        set: puts things onto the stage.
        access: who sits at the console; None is an admin.
        themes: those that it is drawn in.
        environment: variables of the console's process.
    """

    name: str
    sentence: str
    place: str = "overview"
    filter: str = ""
    keys: Sequence[str] = ()
    set: Callable[[Stage], object] = lambda stage: None
    access: Access | None = None
    themes: tuple[str, ...] = THEMES
    environment: Mapping[str, str] = field(default_factory=dict)


def pictures(scene: Scene, size: tuple[int, int]) -> dict[str, str]:
    """Return a scene as text, in each of its themes; the console changes theme under way."""
    taken: dict[str, str] = {}

    async def act(player: Player) -> None:
        await player.press(*scene.keys)
        for theme in scene.themes:
            player.console.theme = theme
            taken[theme] = await _at_rest(player, scene, size, theme)

    with patch.dict(os.environ, scene.environment), staged(scene.access) as stage:
        scene.set(stage)
        options = Options(
            refresh=None, place=scene.place, filter=scene.filter, theme=scene.themes[0]
        )
        play(stage, act, size=size, options=options)
    return taken


async def _at_rest(player: Player, scene: Scene, size: tuple[int, int], theme: str) -> str:
    """Return the picture once it stays as it is: scrollbars follow their widgets late."""
    before = ""
    for _ in range(LOOKS_MAX):
        await player.settle()
        text = _text(scene, size, theme, player.strips())
        if text == before:
            return text
        before = text
    raise AssertionError(f"{scene.name} does not come to rest")


def _text(scene: Scene, size: tuple[int, int], theme: str, strips: Iterable[Strip]) -> str:
    # At the right edge is a scroll bar, which is drawn some moments after what it belongs to.
    rows = [strip.crop(0, size[0] - 2) for strip in strips]
    legend: dict[str, str] = {}
    maps = [_runs(strip, legend) for strip in rows]
    head = f"{scene.sentence}\n{size[0]}x{size[1]} {theme}\n"
    lines = "\n".join(strip.text.rstrip() for strip in rows)
    styles = "\n".join(f"{letter} {words}" for words, letter in legend.items())
    return f"{head}\n{lines}\n\n-- styles\n{styles}\n\n-- map\n{_folded(maps)}\n"


def _runs(strip: Strip, legend: dict[str, str]) -> str:
    letters = [
        legend.setdefault(_words(segment.style), LETTERS[len(legend)])
        for segment in strip
        for _ in range(segment.cell_length)
    ]
    return " ".join(f"{letter}{sum(1 for _ in same)}" for letter, same in groupby(letters))


def _words(style: Style | None) -> str:
    if style is None:
        return "plain"
    marks = [
        name
        for name, there in (
            ("bold", style.bold), ("dim", style.dim), ("reverse", style.reverse),
            ("underline", style.underline), ("italic", style.italic), ("strike", style.strike),
        )
        if there
    ]  # fmt: skip
    ink = "default" if style.color is None else style.color.name
    ground = "default" if style.bgcolor is None else style.bgcolor.name
    return " ".join([*marks, f"{ink} on {ground}"])


def _folded(maps: Sequence[str]) -> str:
    """Return the maps of the lines, equal neighbours as one."""
    found, number = [], 1
    for text, same in groupby(maps):
        last = number + sum(1 for _ in same) - 1
        lines = f"{number}" if last == number else f"{number}-{last}"
        found.append(f"{lines:<6} {text}")
        number = last + 1
    return "\n".join(found)


def path_of(scene: Scene, size: tuple[int, int], theme: str) -> Path:
    """Return where a picture lies."""
    return FOLDER / f"{scene.name}-{size[0]}x{size[1]}-{theme}.txt"


def difference(path: Path, text: str) -> str:
    """Return how a picture differs from the one that is kept; empty if it does not."""
    kept = path.read_text("utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        kept.splitlines(), text.splitlines(), "kept", "now", lineterm="", n=1
    )
    return "\n".join(lines)
