"""A night's triage by keyboard, from the first look to the last entry in the audit."""

from __future__ import annotations

from dynsched.domain.audit import AuditOutcome
from dynsched.domain.batch import Batch, BatchState
from dynsched.domain.batch_entry import Outcome
from dynsched.domain.run import RunState
from dynsched_console.app import Options
from dynsched_console.screens.batch import BatchScreen
from dynsched_console.screens.replays import EntriesScreen
from dynsched_console.screens.run import RunScreen
from tests.console.stage import Player, Stage, play, staged

DEAD = 25


def fill(stage: Stage) -> list[str]:
    """Let runs of two tenants die of one cause; return their ids in the order of their deaths."""
    return [stage.run("bad@", tenant="initech" if n % 3 else "acme") for n in range(DEAD)]


def states(stage: Stage, ids: list[str]) -> list[RunState]:
    """Return the runs' states in the store."""
    return [stage.scheduler.operations.get_run(one).state for one in ids]


def newest(stage: Stage) -> Batch:
    """Return the newest batch as the store has it."""
    return stage.source.views.batches(limit=1).items[0]


async def yes(player: Player, reason: str = "", count: int | None = None) -> None:
    """Fill in the dialog and press its button, by keys alone."""
    if count is not None:
        await player.type(str(count))
        await player.press("enter")
        await player.type(reason)
        await player.press("enter")
    await player.press("right", "enter")


async def stepped(player: Player, stage: Stage, times: int = 1) -> str:
    """Let the services go on for a second each time; return what the console shows then."""
    for _ in range(times):
        stage.step()
    await player.press("ctrl+r")
    return player.text()


async def start(player: Player) -> None:
    """Go from the first screen to a running batch of the whole group."""
    assert "died in the last hour" in player.text()
    await player.press("3")
    assert "BadAddress: the address 'bad@'" in player.text()
    await player.press("enter", "enter")
    assert "address 'bad@' bounced" in player.text()
    await player.press("escape", "escape", "r")
    text = player.text()
    assert "Preview of a replay" in text
    assert "asks for the typed count and a reason" in text
    await player.press("C")
    await yes(player, "mail is back", DEAD)


def test_a_night_s_triage_ends_with_every_run_done_and_all_of_it_in_the_audit() -> None:
    """Look, open, read, preview, confirm, watch, pause, resume, finish; then the store agrees."""
    with staged() as stage:
        ids = fill(stage)

        async def act(player: Player) -> None:
            await start(player)
            assert "R running" in player.text()
            stage.mended = True
            assert "11  of 25" in await stepped(player, stage)
            await player.press("P")
            await yes(player)
            assert "paused by ada@desk" in player.text()
            before = newest(stage).left
            await stepped(player, stage, 3)
            assert newest(stage).left == before
            await player.press("P")
            await yes(player)
            text = await stepped(player, stage, 4)
            assert "F finished" in text
            assert "100%" in text

        play(stage, act, options=Options(refresh=None))
        assert set(states(stage, ids)) == {RunState.DONE}
        batch = newest(stage)
        assert (batch.state, batch.moved, batch.reason) == (
            BatchState.FINISHED, DEAD, "mail is back",
        )  # fmt: skip
        entries = stage.source.views.audit_of(f"batch:{batch.batch_id}", 10)
        assert [one.action.value for one in reversed(entries)] == [
            "batch.preview", "batch.confirm", "batch.pause", "batch.resume", "batch.finish",
        ]  # fmt: skip
        assert {one.outcome for one in entries} == {AuditOutcome.DONE}
        by_hand = [one for one in entries if one.via != "stepper"]
        assert {(one.actor, one.via) for one in by_hand} == {("ada@desk", "tui")}


def test_an_aborted_replay_leaves_the_rest_dead_and_its_rest_can_be_replayed() -> None:
    """What is not moved is untouched, and is one key away."""
    with staged() as stage:
        ids = fill(stage)

        async def act(player: Player) -> None:
            await start(player)
            stage.mended = True
            await stepped(player, stage)
            await player.press("A", "down", "enter")
            await yes(player)
            assert "A aborted" in await stepped(player, stage, 2)
            left = newest(stage).left
            assert states(stage, ids).count(RunState.DEAD) == left > 0
            await player.press("R")
            assert f"dead runs{left:>14}" in player.text()
            await player.press("C")
            await yes(player, "the rest", left)
            assert "F finished" in await stepped(player, stage, 4)

        play(stage, act, options=Options(refresh=None))
        assert set(states(stage, ids)) == {RunState.DONE}


def test_what_died_after_the_preview_is_not_replayed_and_is_told() -> None:
    """The set that is confirmed is the set that was seen."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await player.press("3", "r")
            stage.clock.step(seconds=1)
            late = stage.run("bad@")
            await player.press("ctrl+r")
            assert "died since this preview" in player.text()
            await player.press("C")
            await yes(player, "mail is back", DEAD)
            await stepped(player, stage, 5)
            assert states(stage, [late]) == [RunState.DEAD]
            assert stage.scheduler.operations.get_run(late).batch == ""

        play(stage, act, options=Options(refresh=None))


def test_a_breaker_pauses_and_the_screen_says_why_and_asks_for_a_reason() -> None:
    """A replay that only kills them again stops by itself, and goes on only with a word."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await player.press("3", "r", "e", "2", "enter", "C")
            await yes(player, "mail is back", DEAD)
            text = await stepped(player, stage, 7)
            assert "P paused" in text
            assert "by its breaker: " in text
            assert "are dead again, more than 50%" in text
            await player.press("P", "enter", "right", "enter")
            assert "give a reason" in player.text()
            assert newest(stage).state is BatchState.PAUSED

        play(stage, act, options=Options(refresh=None))


def test_a_new_pace_of_a_draft_is_a_new_preview() -> None:
    """What is shown is what is confirmed."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await player.press("3", "r")
            first = newest(stage).batch_id
            stage.clock.step(seconds=1)
            await player.press("e", "home", "2", "tab", "5", "enter")
            second = newest(stage)
            assert (second.rate, second.canary) == (210.0, 5)
            assert second.batch_id != first
            screen = player.console.screen
            assert isinstance(screen, BatchScreen)
            assert screen.subject == second.batch_id
            assert "--rate 210 --canary 5" in player.text()

        play(stage, act, options=Options(refresh=None), size=(140, 40))


def test_a_running_replay_can_be_paced_anew_and_a_wrong_rate_is_told_in_the_dialog() -> None:
    """Too fast is mended without an abort."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await start(player)
            running = newest(stage).batch_id
            await player.press("e")
            await player.type("fast")
            await player.press("enter")
            assert "'fast' is no number" in player.text()
            for _ in "fast":
                await player.press("backspace")
            await player.press("1", "enter")
            assert (newest(stage).batch_id, newest(stage).rate) == (running, 1.0)
            assert "1 run a second" in player.text()

        play(stage, act, options=Options(refresh=None))


def test_two_operators_start_a_replay_once_and_the_second_is_told_who_was_first() -> None:
    """Both looked at the same draft, and both said yes."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await player.press("3", "r", "C")
            stage.scheduler.operations.confirm_replay(
                newest(stage).batch_id, reason="me first", count=DEAD
            )
            await yes(player, "mail is back", DEAD)
            await player.press("ctrl+r")
            assert newest(stage).reason == "me first"
            assert "was confirmed by" in " ".join(player.text().split())
            assert "R running" in player.text()

        play(stage, act, options=Options(refresh=None), size=(140, 40))


def test_an_abort_with_pull_back_makes_dead_again_what_nobody_has_tried() -> None:
    """The nearest thing to an undo."""
    with staged() as stage:
        ids = fill(stage)

        async def act(player: Player) -> None:
            await start(player)
            stage.clock.step(seconds=1)
            stage.stepper.step()
            assert RunState.READY in states(stage, ids)
            await player.press("A", "down", "enter")
            await yes(player)
            for _ in range(3):
                stage.stepper.step()
            await player.press("ctrl+r")
            assert "pulled back" in player.text()

        play(stage, act, options=Options(refresh=None))
        assert set(states(stage, ids)) == {RunState.DEAD}


def test_the_outcomes_of_a_replay_lead_to_their_entries_and_those_to_the_runs() -> None:
    """From a number to the runs behind it, by Enter alone."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await start(player)
            stage.mended = True
            await stepped(player, stage)
            await player.press("tab", "enter")
            screen = player.console.screen
            assert isinstance(screen, EntriesScreen)
            assert {row.entry.outcome for row in screen.table.items().values()} in (
                {Outcome.MOVED}, {Outcome.LEFT},
            )  # fmt: skip
            await player.press("enter")
            assert isinstance(player.console.screen, RunScreen)

        play(stage, act, options=Options(refresh=None))


def test_a_key_that_does_nothing_in_this_state_is_not_offered() -> None:
    """A draft has nothing to pause, a running batch nothing to confirm."""
    with staged() as stage:
        fill(stage)

        async def act(player: Player) -> None:
            await player.press("3", "r")
            hints = player.lines()[-1]
            assert "C confirm" in hints
            assert "P pause" not in hints
            await player.press("C")
            await yes(player, "mail is back", DEAD)
            hints = player.lines()[-1]
            assert "P pause" in hints
            assert "C confirm" not in hints

        play(stage, act, options=Options(refresh=None))
