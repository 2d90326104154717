"""Figures: what a benchmark measured, beside its budget, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        name: what was measured.
        value: the number.
        unit: its unit.
        most: the budget, if the number must not be above it.
        least: the budget, if the number must not be below it.
        note: how it was measured, in a few words.
    """

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def over(self) -> bool:
        """Return whether the budget is missed."""
        if self.most is not None and self.value > self.most:
            return True
        return self.least is not None and self.value < self.least

    @property
    def budget(self) -> str:
        """Return the budget for people, empty without one.

        >>> Figure("delay", 2, "s", most=3).budget
        '≤ 3'
        """
        if self.most is not None:
            return f"≤ {number(self.most)}"
        return "" if self.least is None else f"≥ {number(self.least)}"

    @property
    def verdict(self) -> str:
        """Return `ok` or `OVER`, empty without a budget."""
        if self.most is None and self.least is None:
            return ""
        return "OVER" if self.over else "ok"

    def to_json(self) -> dict[str, object]:
        """Return the figure as a JSON object."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "budget": self.budget,
            "ok": not self.over,
            "note": self.note,
        }


def number(value: float) -> str:
    """Return a number with three significant digits, or whole with thousands.

    >>> number(12345.6), number(0.01234), number(3), number(12.0)
    ('12,346', '0.0123', '3', '12')
    """
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(title: str, figures: Sequence[Figure]) -> str:
    """Return the figures as a table with a title."""
    rows = [
        (one.name, number(one.value), one.unit, one.budget, one.verdict, one.note)
        for one in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [f"\n{title}", "-" * len(title)]
    for name, value, unit, budget, verdict, note in rows:
        cells = (
            name.ljust(widths[0]),
            value.rjust(widths[1]),
            unit.ljust(widths[2]),
            budget.rjust(widths[3]),
            verdict.ljust(widths[4]),
            note,
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of the values lies.

    >>> percentile([1, 2, 3, 4], 0.5)
    3
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
