"""Changes: none without a yes, the yes grows with the reach, the core has the last word."""

from __future__ import annotations

import pytest
from textual.widgets import Button, Input

from dynsched.domain.access import Access, Role
from dynsched.domain.audit import AuditOutcome
from dynsched.domain.run import RunState
from dynsched.errors import Forbidden
from dynsched_console.app import Options
from dynsched_console.dialogs import ConfirmDialog, Weight, weigh
from dynsched_console.places import PLACES
from dynsched_console.screens.run import RunScreen
from dynsched_console.sheet import Link
from tests.console.stage import Player, Stage, play, staged

DEAD = Options(refresh=None, place="runs", filter="state:dead")
READ_ONLY = Access(actor="eve", role=Role.ADMIN, read_only=True, via="tui")


def dialog(player: Player) -> ConfirmDialog:
    """Return the dialog, which must be in front."""
    screen = player.console.screen
    assert isinstance(screen, ConfirmDialog)
    return screen


def state_of(stage: Stage, run_id: str) -> RunState:
    """Return a run's state in the store."""
    return stage.scheduler.operations.get_run(run_id).state


def test_enter_on_a_fresh_dialog_changes_nothing() -> None:
    """Its default is Cancel."""
    with staged() as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("r")
            assert dialog(player).focused is dialog(player).query_one("#no", Button)
            await player.press("enter")
            assert player.console.front is not None
            assert state_of(stage, run_id) is RunState.DEAD

        play(stage, act, options=DEAD)


def test_a_yes_replays_the_run_and_the_audit_says_who() -> None:
    """The whole way by keyboard, as an operator goes it."""
    with staged() as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("r", "right", "enter")
            assert state_of(stage, run_id) is RunState.READY

        play(stage, act, options=DEAD)
        entry = stage.source.views.audit_of(f"run:{run_id}")[0]
        assert (entry.actor, entry.via, entry.outcome) == ("ada@desk", "tui", AuditOutcome.DONE)


def test_several_runs_need_a_reason_and_keep_it() -> None:
    """From two on, the audit must say why."""
    with staged() as stage:
        ids = [stage.run("bad"), stage.run("bad")]

        async def act(player: Player) -> None:
            await player.press("asterisk", "r")
            dialog(player).query_one("#yes", Button).press()
            await player.settle()
            assert "give a reason" in player.text()
            await player.type("mail is up")
            dialog(player).query_one("#yes", Button).press()
            await player.settle()
            assert {state_of(stage, one) for one in ids} == {RunState.READY}

        play(stage, act, options=DEAD)
        assert stage.source.views.audit_of(f"run:{ids[0]}")[0].reason == "mail is up"


def test_runs_of_two_tenants_need_the_count_typed() -> None:
    """A second tenant is easily overlooked in a list."""
    with staged() as stage:
        ids = [stage.run("bad"), stage.run("bad", tenant="globex")]

        async def act(player: Player) -> None:
            await player.press("asterisk", "r")
            assert dialog(player).change.weight is Weight.TYPED
            dialog(player).query_one("#reason", Input).value = "all mended"
            dialog(player).query_one("#count", Input).value = "3"
            dialog(player).query_one("#yes", Button).press()
            await player.settle()
            assert "type the number 2" in player.text()
            dialog(player).query_one("#count", Input).value = "2"
            dialog(player).query_one("#yes", Button).press()
            await player.settle()
            assert {state_of(stage, one) for one in ids} == {RunState.READY}

        play(stage, act, options=DEAD)


@pytest.mark.parametrize(
    ("count", "tenants", "weight"),
    [(1, 1, Weight.ENTER), (2, 1, Weight.REASON), (99, 1, Weight.REASON),
     (100, 1, Weight.TYPED), (2, 2, Weight.TYPED)],
)  # fmt: skip
def test_a_dialog_asks_more_the_more_it_reaches(count: int, tenants: int, weight: Weight) -> None:
    """One slip reaches one run at most."""
    assert weigh(count, tenants) is weight


def test_the_dialog_shows_the_same_as_a_command_line_with_the_reason() -> None:
    """What is done by hand once is done by a script the next time."""
    with staged() as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("r")
            dialog(player).query_one("#reason", Input).value = "it's up"
            await player.settle()
            words = f"dynsched dlq replay {run_id} --reason 'it'\"'\"'s up'"
            assert dialog(player).command == words
            await player.press("ctrl+y")
            assert player.console.clipboard == words

        play(stage, act, options=DEAD)


def test_a_change_that_the_core_refuses_says_why_and_the_list_is_read_again() -> None:
    """Somebody else was faster: the list shows what is the case now."""
    with staged() as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            await player.press("r")
            stage.scheduler.operations.replay(run_id)
            await player.press("right", "enter")
            assert "not dead" in player.text() or "ready" in player.text()
            assert player.console.screen.query_one("#table").row_count == 0  # type: ignore[attr-defined]

        play(stage, act, options=DEAD)


@pytest.mark.parametrize("place", [place.name for place in PLACES])
def test_keys_that_change_something_are_grey_in_read_only_mode(place: str) -> None:
    """Hidden rules surprise; a grey key tells."""
    with staged(READ_ONLY) as stage:

        async def act(player: Player) -> None:
            screen = player.console.front
            assert screen is not None
            refused = [name for name in screen.CHANGES if screen.check_action(name, ()) is None]
            assert refused == list(screen.CHANGES)

        play(stage, act, options=Options(refresh=None, place=place))


def test_the_screen_of_a_run_greys_its_changes_for_a_viewer() -> None:
    """A screen that is opened on top of others asks the same gate."""
    with staged(Access(actor="eve", role=Role.VIEWER, via="tui")) as stage:
        run_id = stage.run("bad")

        async def act(player: Player) -> None:
            player.console.visit(Link(place="run", subject=run_id))
            await player.settle()
            screen = player.console.front
            assert isinstance(screen, RunScreen)
            assert {screen.check_action(name, ()) for name in screen.CHANGES} == {None}

        play(stage, act)


def test_the_core_refuses_in_read_only_mode_whatever_the_console_forgot() -> None:
    """One view that forgets to check must not be a hole."""
    with staged(READ_ONLY) as stage:
        run_id = stage.run("bad")
        for verb in (stage.source.replay, stage.source.cancel, stage.source.discard):
            with pytest.raises(Forbidden, match="read-only"):
                verb(run_id, reason="why not")

        async def act(player: Player) -> None:
            await player.press("r", "x", "D")
            assert player.console.front is not None
            assert "READ-ONLY" in player.text()

        play(stage, act, options=DEAD)
        assert state_of(stage, run_id) is RunState.DEAD
