"""Charts: small pictures in SVG without style or script, each with its figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

WIDTH, HEIGHT = 360, 132
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 20
GRID = 3
STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line or one set of bars.

    Attributes:
        name: as the legend calls it.
        tone: the class that colours it: `c0` to `c4`.
        values: one for each place; None leaves a gap.
    """

    name: str
    tone: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture and its figures.

    Attributes:
        title: what it shows.
        caption: what it says now, one sentence.
        svg: the picture.
        head: the table's heads.
        rows: the table's rows, newest first.
    """

    title: str
    caption: str
    svg: Markup
    series: Sequence[Series] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default=())


def nice_top(value: float) -> float:
    """Return a round number at or above a value, for the end of an axis.

    >>> nice_top(0), nice_top(3), nice_top(41), nice_top(0.07)
    (1.0, 5.0, 50.0, 0.1)
    """
    if value <= 0:
        return 1.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size >= value and size > 1e-6:
        size /= 10
    return round(next(step * size for step in STEPS if step * size >= value), 9)


def figure_text(value: float) -> str:
    """Return a number for an axis.

    >>> figure_text(0.5), figure_text(2000), figure_text(3.0)
    ('0.5', '2k', '3')
    """
    if value >= 1_000:
        return f"{value / 1_000:g}k"
    return f"{value:.3g}"


def line_chart(title: str, desc: str, series: Sequence[Series], labels: Sequence[str]) -> Markup:
    """Return lines over places with labels; `desc` says in words what is seen."""
    top = _top(series)
    parts = [_grid(top), _labels(labels)]
    for number, one in enumerate(series):
        parts += [
            f'<polyline class="line {escape(one.tone)} d{number}" points="{points}"/>'
            for points in _runs(one.values, top)
        ]
    return _svg(title, desc, parts)


def bar_chart(title: str, desc: str, series: Sequence[Series], labels: Sequence[str]) -> Markup:
    """Return bars over places, several series on top of each other."""
    count = max((len(one.values) for one in series), default=0)
    sums = [sum(one.values[at] or 0 for one in series) for at in range(count)]
    top = nice_top(max(sums, default=0))
    parts = [_grid(top), _labels(labels)]
    width = (WIDTH - LEFT - RIGHT) / max(count, 1)
    for at in range(count):
        foot = float(HEIGHT - BOTTOM)
        for one in series:
            size = (one.values[at] or 0) / top * (HEIGHT - TOP - BOTTOM)
            foot -= size
            if size:
                left = LEFT + at * width + width * 0.1
                parts.append(
                    f'<rect class="bar {escape(one.tone)}" x="{left:.1f}"'
                    f' y="{foot:.1f}" width="{width * 0.8:.1f}" height="{size:.1f}"/>'
                )
    return _svg(title, desc, parts)


def sparkline(values: Sequence[int], words: str) -> Markup:
    """Return a row of tiny bars, for a cell of a table; `words` says what they are."""
    top, width = max([*values, 1]), 4
    bars = "".join(
        f'<rect class="bar c3" x="{at * width}" y="{20 - value / top * 18:.1f}"'
        f' width="{width - 1}" height="{value / top * 18:.1f}"/>'
        for at, value in enumerate(values)
        if value
    )
    wide = len(values) * width
    return Markup(
        f'<svg class="spark" viewBox="0 0 {wide} 20" role="img" aria-label="{escape(words)}">'
        f'<line class="grid" x1="0" y1="19.5" x2="{wide}" y2="19.5"/>{bars}</svg>'
    )


def meter(parts: Sequence[tuple[str, str, int]], total: int, words: str) -> Markup:
    """Return one bar that is filled by parts (name, tone, count) of a total."""
    at, shown = 0.0, []
    for _, tone, count in parts:
        wide = 100 * count / max(total, 1)
        if count:
            shown.append(
                f'<rect class="bar {escape(tone)}" x="{at:.2f}" y="0" width="{wide:.2f}"'
                ' height="6"/>'
            )
        at += wide
    return Markup(
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(words)}"><rect class="empty" width="100" height="6"/>'
        f"{''.join(shown)}</svg>"
    )


def _top(series: Sequence[Series]) -> float:
    known = [value for one in series for value in one.values if value is not None]
    return nice_top(max(known, default=0))


def _x(at: int, count: int) -> float:
    return LEFT + at / max(count - 1, 1) * (WIDTH - LEFT - RIGHT)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def _runs(values: Sequence[float | None], top: float) -> list[str]:
    """Return the points of each stretch without a gap; a lone point becomes a short line."""
    found: list[list[str]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            found.append([])
        else:
            found[-1].append(f"{_x(at, len(values)):.1f},{_y(value, top):.1f}")
    return [
        " ".join(points if len(points) > 1 else [*points, _shifted(points[0])])
        for points in found
        if points
    ]


def _shifted(point: str) -> str:
    x, _, y = point.partition(",")
    return f"{float(x) + 2:.1f},{y}"


def _grid(top: float) -> str:
    lines = []
    for number in range(GRID):
        value = top * number / (GRID - 1)
        y = _y(value, top)
        lines.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end">'
            f"{escape(figure_text(value))}</text>"
        )
    return "".join(lines)


def _labels(labels: Sequence[str]) -> str:
    """Return labels below the axis: the first, the middle and the last place's."""
    if not labels:
        return ""
    places = ((0, "start"), (len(labels) // 2, "middle"), (len(labels) - 1, "end"))
    return "".join(
        f'<text class="tick" x="{_x(at, len(labels)):.1f}" y="{HEIGHT - 5}"'
        f' text-anchor="{anchor}">{escape(labels[at])}</text>'
        for at, anchor in (places if len(labels) > 2 else places[:1])
    )


def _svg(title: str, desc: str, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{escape(title)}: {escape(desc)}">{"".join(parts)}</svg>'
    )
