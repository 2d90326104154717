"""Each screen looks as it did when somebody last looked at it."""

from __future__ import annotations

import os

import pytest

from tests.console.scenes import SCENES
from tests.console.snapshots import FOLDER, SIZES, Scene, difference, path_of, pictures

CASES = [
    pytest.param(scene, size, id=f"{scene.name}-{size[0]}x{size[1]}")
    for scene in SCENES
    for size in SIZES
]


@pytest.mark.parametrize(("scene", "size"), CASES)
def test_a_screen_looks_as_it_did(scene: Scene, size: tuple[int, int]) -> None:
    """What an operator sees does not change unseen; UPDATE_SNAPSHOTS=1 accepts a change."""
    found = {path_of(scene, size, theme): text for theme, text in pictures(scene, size).items()}
    if os.environ.get("UPDATE_SNAPSHOTS"):
        for path, text in found.items():
            path.write_text(text, "utf-8")
    assert "\n".join(filter(None, (difference(*one) for one in found.items()))) == ""


def test_no_snapshot_is_kept_of_a_scene_that_is_gone() -> None:
    """A file that no test reads proves nothing."""
    kept = {path.name for path in FOLDER.glob("*.txt")}
    wanted = {
        path_of(scene, size, theme).name
        for scene in SCENES
        for size in SIZES
        for theme in scene.themes
    }
    assert kept == wanted
