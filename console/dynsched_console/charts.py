"""Small charts in plain characters; each is one line of text, and none needs a colour."""

from __future__ import annotations

from collections.abc import Sequence

SPARKS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
NOTHING = "·"


def sparkline(values: Sequence[float | None], columns: int, *, top: float | None = None) -> str:
    """Return a line of bars, one column for each bucket of values, the newest at the right.

    Zero shows as a dot, so that little is told from nothing; None shows as a blank.

    Args:
        values: oldest first.
        columns: how wide; values are put together by their maximum to fit.
        top: the value of a full bar; None is the largest.

    >>> sparkline([0, 1, 4, 8, None], 5)
    '·▁▄█ '
    """
    found = buckets(values, columns)
    known = [value for value in found if value is not None]
    highest = max(known, default=0.0) if top is None else top
    return "".join(_spark(value, highest) for value in found)


def _spark(value: float | None, highest: float) -> str:
    if value is None:
        return " "
    if value <= 0 or highest <= 0:
        return NOTHING
    level = min(int(value / highest * len(SPARKS)), len(SPARKS))
    return SPARKS[max(level - 1, 0)]


def buckets(values: Sequence[float | None], columns: int) -> list[float | None]:
    """Return at most so many values, neighbours put together by their maximum.

    >>> buckets([1, 5, None, None, 2, 3], 3)
    [5, None, 3]
    """
    if len(values) <= columns or columns < 1:
        return list(values)
    found: list[float | None] = []
    for column in range(columns):
        part = values[len(values) * column // columns : len(values) * (column + 1) // columns]
        found.append(max((value for value in part if value is not None), default=None))
    return found


def bar(value: float, top: float, columns: int) -> str:
    """Return a bar of at most so many columns, in eighths of a column; padded with blanks.

    >>> bar(5, 10, 4), bar(0, 10, 4), bar(1, 1000, 4)
    ('██  ', '    ', '▏   ')
    """
    if value <= 0 or top <= 0:
        return " " * columns
    eighths = max(1, round(min(value / top, 1.0) * columns * 8))
    whole, rest = divmod(eighths, 8)
    return (FULL * whole + (EIGHTHS[rest] if rest else "")).ljust(columns)


def histogram(counts: Sequence[int], columns: int) -> str:
    """Return a strip of counts by class, the smallest class at the left.

    >>> histogram([0, 2, 8], 3)
    '·▂█'
    """
    return sparkline(list(counts), columns)


def strip(outcomes: Sequence[str], columns: int) -> str:
    """Return one letter for each of the newest outcomes, the newest at the right.

    >>> strip(["D", "D", "F", "X"], 3)
    'DFX'
    """
    return "".join(outcomes[-columns:])
