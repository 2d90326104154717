"""Read-only: no key of any screen changes anything, and the core refuses what a screen lets by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from textual.widgets import Button, Input

from dynsched.domain.access import Access, Role
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.storage.engine import Key, Row, Table
from dynsched_console.app import Options
from dynsched_console.ask import AskLine
from dynsched_console.choices import ChoiceDialog, PlanDialog
from dynsched_console.dialogs import ConfirmDialog
from dynsched_console.editing import DiffPage
from dynsched_console.keys import own_bindings
from dynsched_console.places import PLACES, SUBJECTS
from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.sheet import Link
from tests.console.stage import Player, Stage, play, staged

READ_ONLY = Access(actor="eve@desk", role=Role.ADMIN, read_only=True, via="tui")
SCREENS: dict[str, type[ConsoleScreen]] = {place.name: place.screen for place in PLACES}
SCREENS |= SUBJECTS
CASES = [(name, action) for name, screen in SCREENS.items() for action in screen.CHANGES]
DIALOGS_MAX = 6
NEVER = {("dead", "cancel_run")}
"""Keys that find nothing to change there: what is dead cannot be cancelled."""


def test_the_screens_that_change_something_are_those_that_are_tried() -> None:
    """A screen without changes has no key whose binding belongs to another's changes."""
    changes = {action for _, action in CASES}
    for name, screen in SCREENS.items():
        owners = [one for one in screen.__mro__ if issubclass(one, ConsoleScreen)]
        for _, binding in own_bindings(owners):
            assert binding.action not in changes or binding.action in screen.CHANGES, name


def rows(stage: Stage) -> dict[Key, Row]:
    """Return all that the store holds."""
    found: dict[Key, Row] = {}
    for table in Table:
        cursor: str | None = None
        while True:
            page = stage.engine.scan(table, 500, cursor)
            found |= {row.key: row for row in page.rows}
            cursor = page.cursor
            if cursor is None:
                break
    return found


def _dead(stage: Stage) -> str:
    return stage.run("bad@")


def _batch(stage: Stage, *steps: str) -> str:
    stage.run("bad@")
    stage.run("bad@")
    operations = stage.scheduler.operations
    batch_id = operations.preview_replay("", reason="mended").batch_id
    if "confirm" in steps:
        operations.confirm_replay(batch_id, reason="mended", count=2)
    if "abort" in steps:
        operations.abort_replay(batch_id, reason="no")
    return batch_id


def _job(stage: Stage, *, paused: bool = False) -> str:
    operations = stage.scheduler.operations
    job = operations.create(JobSpec(name="report", tenant="acme", target=HandlerTarget("mail")))
    if paused:
        operations.pause(job.job_id, reason="why not")
    return job.job_id


def _discarded(stage: Stage) -> str:
    run_id = stage.run("bad@")
    stage.scheduler.operations.discard(run_id, reason="old")
    return "is:discarded"


STEPS = {"pause_batch": ("confirm",), "abort_batch": ("confirm",), "rest": ("confirm", "abort")}


def prepared(stage: Stage, place: str, action: str) -> Link:
    """Put what the key is about onto the stage; return where its screen shows it."""
    waiting = action == "cancel_run"
    if place in ("runs", "run"):
        run_id = stage.wait() if waiting else _dead(stage)
        return Link(place="runs", filter=f"id:{run_id}") if place == "runs" else Link(
            place="run", subject=run_id)  # fmt: skip
    if place in ("jobs", "job"):
        job_id = _job(stage, paused=action == "resume_job")
        return Link(place="jobs", filter=f"id:{job_id}") if place == "jobs" else Link(
            place="job", subject=job_id)  # fmt: skip
    if place == "batch":
        return Link(place="batch", subject=_batch(stage, *STEPS.get(action, ())))
    if place == "dead":
        return Link(place="dead", subject=_discarded(stage) if action == "restore" else "")
    return Link(place=place)


def key_of(screen: ConsoleScreen, action: str) -> str:
    """Return the key that is bound to an action on a screen."""
    owners: Iterable[type] = [one for one in type(screen).__mro__ if issubclass(one, ConsoleScreen)]
    return next(one.key for _, one in own_bindings(owners) if one.action == action)


async def agree(player: Player) -> None:
    """Say yes to whatever is asked."""
    for _ in range(DIALOGS_MAX):
        await player.settle()
        dialog = player.console.screen
        if isinstance(dialog, ConfirmDialog):
            for field, text in (("#count", str(dialog.change.count)), ("#reason", "I must")):
                for one in dialog.query(field).results(Input):
                    one.value = text
            dialog.query_one("#yes", Button).press()
        elif isinstance(dialog, AskLine):
            dialog.query_one(Input).value = "5"
            await player.press("enter")
        elif isinstance(dialog, PlanDialog):
            dialog.query_one("#rate", Input).value = "7"
            await player.press("enter")
        elif isinstance(dialog, ChoiceDialog | DiffPage):
            await player.press("enter")
        else:
            return


@pytest.mark.parametrize(("place", "action"), CASES, ids=[f"{p}-{a}" for p, a in CASES])
def test_a_key_that_changes_something_is_grey_and_behind_it_the_core_refuses(
    place: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The console's own check is for people; what guards the store is the gate behind it."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sh -c 'printf 7 > \"$0\"'")
    with staged(READ_ONLY) as stage:
        if place in ("dlq", "dead", "tenants"):
            _dead(stage)
        link = prepared(stage, place, action)
        before = rows(stage)

        async def act(player: Player) -> None:
            player.console.visit(link)
            await player.settle()
            screen = player.console.front
            assert screen is not None
            assert isinstance(screen, SCREENS[place])
            await player.press(key_of(screen, action))
            assert player.console.screen is screen, "a grey key asks nothing"
            told: Callable[[], None] = getattr(screen, f"action_{action}")
            told()
            await agree(player)
            said = [one.message for one in player.console._notifications]
            if (place, action) not in NEVER:
                assert any("this is read-only mode" in one for one in said), said

        play(stage, act, options=Options(refresh=None))
        assert rows(stage) == before


def test_the_driver_of_these_tests_does_change_something_where_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the refusals above would prove nothing."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sh -c 'printf 7 > \"$0\"'")
    one_of_each = {action: place for place, action in CASES if (place, action) not in NEVER}
    for action, place in one_of_each.items():
        with staged() as stage:
            if place in ("dlq", "dead", "tenants"):
                _dead(stage)
            link = prepared(stage, place, action)
            before = rows(stage)

            async def act(player: Player, link: Link = link, action: str = action) -> None:
                player.console.visit(link)
                await player.settle()
                getattr(player.console.front, f"action_{action}")()
                await agree(player)

            play(stage, act, options=Options(refresh=None))
            changed = [key for key, row in rows(stage).items() if before.get(key) != row]
            assert any(key.pk.partition("#")[0] not in ("audit", "snapshot") for key in changed), (
                place,
                action,
            )
