"""The window of rows: pages meet, none is there twice, and it never grows beyond its bound."""

from __future__ import annotations

from dynsched.services.search import Found
from dynsched_console.table import Column, fit
from dynsched_console.text import Piece
from dynsched_console.window import HELD_MAX, PAGE, Window


def page(first: int, count: int = PAGE, *, more: bool = True) -> Found[int]:
    """Return a page of numbers that go down from `first`."""
    items = tuple(range(first, first - count, -1))
    cursor = str(items[-1]) if more else None
    return Found(items=items, matched=count, examined=count, cursor=cursor)


def window_of(*pages: Found[int]) -> Window[int]:
    """Return a window that holds pages."""
    window = Window[int](key=str)
    window.replace(0, pages[:1])
    for one in pages[1:]:
        window.append(one)
    return window


def test_a_fresh_first_page_that_ends_where_the_old_one_did_keeps_those_behind() -> None:
    """Nothing moved, so nothing jumps."""
    window = window_of(page(1000), page(800))
    window.replace(0, [page(1000)])
    assert list(window.rows()) == list(range(1000, 600, -1))


def test_pages_that_no_longer_meet_are_dropped_to_be_read_again() -> None:
    """Three new rows pushed three others behind the page: a gap would hide them."""
    window = window_of(page(1000), page(800))
    window.replace(0, [page(1003)])
    assert list(window.rows()) == list(range(1003, 803, -1))
    assert window.next == "804"


def test_a_row_that_moved_to_an_earlier_page_is_there_once() -> None:
    """It was read twice; the later reading holds."""
    window = window_of(page(1000), page(800))
    moved = Found(items=(650, *range(1000, 801, -1)), matched=200, examined=200, cursor="801")
    window.replace(0, [moved])
    rows = list(window.rows())
    assert len(rows) == len(set(rows))


def test_only_the_pages_that_are_seen_are_read_again() -> None:
    """A refresh costs what the screen shows."""
    window = window_of(page(1000), page(800), page(600))
    assert window.pages_of(0, 20) == (0, [None])
    assert window.pages_of(190, 210) == (0, [None, "801"])
    assert window.pages_of(210, 230) == (1, ["801"])
    assert window.pages_of(590, 640) == (2, ["601"])


def test_a_window_says_when_it_is_full() -> None:
    """More than 2,000 rows are not looked through by eye; a filter is for that."""
    window = window_of(*(page(10_000 - number * PAGE) for number in range(HELD_MAX // PAGE)))
    assert window.full
    assert window.more


def column(name: str, columns: int, rank: int, *, stretch: bool = False) -> Column[int]:
    """Return a column of a table."""
    return Column(
        name=name, letter=name[0], title=name, columns=columns, rank=rank, stretch=stretch,
        cell=lambda row: Piece(str(row)),
    )  # fmt: skip


def test_columns_leave_by_rank_and_the_rest_is_given_to_the_one_that_stretches() -> None:
    """Eighty columns show what matters, not what comes first."""
    columns = [column("state", 10, 0), column("queue", 20, 3), column("why", 10, 1, stretch=True)]
    assert [one.name for one, _ in fit(columns, 60)] == ["state", "queue", "why"]
    shown = fit(columns, 40)
    assert [one.name for one, _ in shown] == ["state", "why"]
    assert sum(size + 2 for _, size in shown) + 3 == 40
