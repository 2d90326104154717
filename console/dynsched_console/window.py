"""The window: the rows of a listing that a screen holds, page by page, never more than a bound.

A listing is read by cursors, so the window remembers where each of its pages began. A refresh
reads again only the pages that are seen: what lies above stays, what lies below is dropped as soon
as the pages no longer meet, and comes back when the operator gets there. No row is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dynsched.services.search import Found

T = TypeVar("T")

PAGE = 200  # rows of one read
HELD_MAX = 2_000  # rows of all pages


@dataclass(slots=True)
class _Page(Generic[T]):
    """One read: where it began, what it brought, where the next one begins."""

    start: str | None
    found: Found[T]
    rows: dict[str, T] = field(default_factory=dict)


class Window(Generic[T]):
    """Rows by key in the order of their pages.

    Args:
        key: the text that names a row for good.

    >>> window = Window[str](key=str)
    >>> window.replace(0, [Found(items=("a", "b"), matched=2, examined=2, cursor="2")])
    >>> window.append(Found(items=("b", "c"), matched=2, examined=9))
    >>> list(window.rows()), window.more, window.examined
    (['a', 'b', 'c'], False, 11)
    """

    def __init__(self, *, key: Callable[[T], str]) -> None:
        self._key = key
        self._pages: list[_Page[T]] = []

    def __len__(self) -> int:
        return sum(len(page.rows) for page in self._pages)

    def rows(self) -> Iterator[T]:
        """Yield the rows in order."""
        for page in self._pages:
            yield from page.rows.values()

    def get(self, key: str) -> T | None:
        """Return a row by its key; None if it is not held."""
        for page in self._pages:
            if key in page.rows:
                return page.rows[key]
        return None

    @property
    def next(self) -> str | None:
        """Return where the page behind the last one begins; None at the end."""
        return self._pages[-1].found.cursor if self._pages else None

    @property
    def more(self) -> bool:
        """Return whether there is a page behind the last one."""
        return self.next is not None

    @property
    def examined(self) -> int:
        """Return how many rows were looked at for the pages that are held."""
        return sum(page.found.examined for page in self._pages)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was not looked at, each sentence once."""
        return tuple(dict.fromkeys(note for page in self._pages for note in page.found.notes))

    @property
    def tested(self) -> tuple[str, ...]:
        """Return the qualifiers that were tested row by row."""
        return self._pages[0].found.tested if self._pages else ()

    @property
    def full(self) -> bool:
        """Return whether no further page may be held."""
        return len(self) >= HELD_MAX

    def clear(self) -> None:
        """Hold nothing."""
        self._pages = []

    def pages_of(self, first: int, last: int) -> tuple[int, list[str | None]]:
        """Return which page holds row `first`, and where it and those up to row `last` begin."""
        starts: list[str | None] = []
        number, seen = 0, 0
        for index, page in enumerate(self._pages):
            begin, seen = seen, seen + len(page.rows)
            if seen <= first and index + 1 < len(self._pages):
                continue
            if begin > last and starts:
                break
            number = number if starts else index
            starts.append(page.start)
        return number, starts or [None]

    def replace(self, number: int, founds: Sequence[Found[T]]) -> None:
        """Put freshly read pages in the place of those from `number` on.

        Pages behind them stay only where they still begin at the end of the last fresh one.
        """
        behind = self._pages[number + len(founds) :]
        start = self._pages[number].start if number < len(self._pages) else None
        self._pages = self._pages[:number]
        for found in founds:
            self._add(start, found)
            start = found.cursor
        if behind and behind[0].start == start and start is not None:
            held = {key for page in self._pages for key in page.rows}
            for page in behind:
                page.rows = {key: row for key, row in page.rows.items() if key not in held}
            self._pages += behind

    def append(self, found: Found[T]) -> None:
        """Add the page behind the last one."""
        self._add(self.next, found)

    def _add(self, start: str | None, found: Found[T]) -> None:
        fresh = {self._key(row): row for row in found.items}
        for page in self._pages:
            for key in fresh.keys() & page.rows.keys():
                del page.rows[key]
        self._pages.append(_Page(start, found, fresh))
