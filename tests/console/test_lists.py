"""Lists in the console: cursor, marks and scroll stay on their rows whatever comes and goes."""

from __future__ import annotations

from dynsched_console.app import Options
from dynsched_console.screens.runs import RunsScreen
from tests.console.stage import WIDE, Player, play, staged


def runs_screen(player: Player) -> RunsScreen:
    """Return the list of runs, which must be in front."""
    screen = player.console.screen
    assert isinstance(screen, RunsScreen)
    return screen


RUNS = Options(refresh=None, place="runs")
NAMES = ("globex", "acme", "initech")


def test_the_cursor_stays_on_its_row_when_newer_rows_come() -> None:
    """The operator is about to press a key on that row."""
    with staged() as stage:
        ids = [stage.run() for _ in range(5)]

        async def act(player: Player) -> None:
            await player.press("j", "j")
            table = runs_screen(player).table
            assert table.current is not None
            assert table.current.run.run_id == ids[2]
            for _ in range(3):
                stage.run()
            await player.press("ctrl+r")
            assert table.row_count == 8
            assert table.current.run.run_id == ids[2]

        play(stage, act, options=RUNS)


def test_marks_stay_on_their_rows_when_newer_rows_come() -> None:
    """What was marked is what is acted on."""
    with staged() as stage:
        ids = [stage.run() for _ in range(4)]

        async def act(player: Player) -> None:
            await player.press("j", "space", "space")
            stage.run()
            await player.press("ctrl+r")
            assert runs_screen(player).table.marks == {ids[2], ids[1]}
            marked = [line for line in player.lines() if "●" in line]
            assert len(marked) == 2

        play(stage, act, options=RUNS)


def test_a_column_s_letter_sorts_by_it_and_again_turns_the_order_round() -> None:
    """The letter is the column's, whatever that key does elsewhere; Esc leaves all as it is."""
    with staged() as stage:
        for tenant in NAMES:
            stage.run(tenant=tenant)

        async def act(player: Player) -> None:
            table = runs_screen(player).table

            def tenants() -> list[str]:
                rows = (table.get_row_at(row) for row in range(3))
                return [
                    str(cell).strip() for row in rows for cell in row if str(cell).strip() in NAMES
                ]

            found = tenants()
            await player.press("s", "t")
            assert tenants() == ["acme", "globex", "initech"]
            await player.press("s", "t")
            assert tenants() == ["initech", "globex", "acme"]
            await player.press("s", "escape")
            assert tenants() == ["initech", "globex", "acme"]
            assert not table.choosing_sort
            await player.press("s", "9")
            assert tenants() == found

        play(stage, act, options=RUNS, size=WIDE)


def test_a_refresh_writes_only_the_cells_that_changed() -> None:
    """A list of 200 rows costs what changes in it."""
    with staged() as stage:
        for _ in range(5):
            stage.run()

        async def act(player: Player) -> None:
            table = runs_screen(player).table
            written: list[str] = []
            original = table.update_cell

            def update(row: object, column: object, value: object, **extra: object) -> None:
                written.append(str(column))
                original(row, column, value, **extra)  # type: ignore[arg-type]

            table.update_cell = update  # type: ignore[method-assign, assignment]
            await player.press("ctrl+r")
            assert written == []
            stage.clock.step(minutes=5)
            await player.press("ctrl+r")
            assert set(written) == {"when"}

        play(stage, act, options=RUNS)


def test_the_cursors_row_stays_on_its_line_of_the_screen() -> None:
    """What the operator looks at does not move under the eye."""
    with staged() as stage:
        ids = [stage.run() for _ in range(40)]

        async def act(player: Player) -> None:
            await player.press("j", "space")
            table = runs_screen(player).table
            assert table.current is not None
            assert table.current.run.run_id == ids[37]
            line = next(n for n, text in enumerate(player.lines()) if "●" in text)
            for _ in range(13):
                stage.run()
            await player.press("ctrl+r")
            assert table.current.run.run_id == ids[37]
            assert table.scroll_offset.y == 13
            assert "●" in player.lines()[line]

        play(stage, act, options=RUNS)


def test_a_refresh_leaves_the_scroll_of_a_wheel_alone() -> None:
    """Who reads further down than the cursor is not torn back to it."""
    with staged() as stage:
        for _ in range(60):
            stage.run()

        async def act(player: Player) -> None:
            table = runs_screen(player).table
            table.scroll_to(y=30, animate=False, immediate=True)
            await player.settle()
            stage.run()
            await player.press("ctrl+r")
            assert table.scroll_offset.y == 31
            assert table.cursor_row == 1

        play(stage, act, options=RUNS)


def test_a_change_of_height_in_the_same_breath_does_not_lose_the_place() -> None:
    """Notes or details that open below must not throw the list back to its top."""
    with staged() as stage:
        ids = [stage.run() for _ in range(60)]

        async def act(player: Player) -> None:
            table = runs_screen(player).table
            await player.press("j", "j")
            for _ in range(13):
                stage.run()
            await player.press("ctrl+r", "i")
            stage.run()
            await player.press("ctrl+r", "i")
            assert table.current is not None
            assert table.current.run.run_id == ids[57]
            assert table.scroll_offset.y == 14

        play(stage, act, options=RUNS)
