"""What a million runs and an idle month cost, as figures, and as the tables of `docs/capacity.md`.

python -m bench prices            # the figures, among the other benchmarks
python -m bench.prices            # the tables
python -m bench.prices --write    # write them into the page
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench import ways
from bench.options import Options
from bench.price_list import MILLION, PRICES, REGION
from bench.report import Figure
from bench.sizing import LOADS, drained_s

SECONDS_A_MONTH: Final = ways.HOURS_A_MONTH * 3600
PAGE: Final = Path(__file__).parent.parent / "docs" / "capacity.md"
MARK: Final = re.compile(
    r"(<!-- begin ([a-z-]+), by `python -m bench.prices --write` -->\n)(.*?)(<!-- end -->)",
    re.DOTALL,
)
GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tables": ("write", "read"),
        "schedule, workflow": ("schedule", "transition", "express", "express_s"),
        "SQS": ("sqs", "fair"),
        "Lambda": ("invoke", "arm"),
        "logs": ("logs",),
    }
)
"""The columns of the comparison, each the sum of some prices."""


def usd(amount: float) -> str:
    """Return US dollars with the digits that mean something.

    >>> usd(0.0312), usd(1.875), usd(76.25), usd(2100.4), usd(0)
    ('0.03', '1.88', '76.2', '2,100', '-')
    """
    if amount == 0:
        return "-"
    digits = 0 if amount >= 100 else 1 if amount >= 10 else 2
    return f"{amount:,.{digits}f}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def runs_table() -> str:
    """Return a million runs, by each way."""
    rows = []
    for way in ways.WAYS:
        million = [MILLION * way.usd(*keys) for keys in GROUPS.values()]
        rows.append((way.name, *map(usd, million), f"**{usd(sum(million))}**", way.note))
    return _table(("a million runs, USD", *GROUPS, "together", "what it is"), rows)


def idle_table() -> str:
    """Return what a month costs in which nothing is due."""
    rows = [(way.name, usd(way.usd()), usd(way.usd_beyond_free())) for way in ways.IDLE]
    listed, beyond = (
        sum(f(way) for way in ways.IDLE) for f in (ways.Way.usd, ways.Way.usd_beyond_free)
    )
    rows.append(("**together**", f"**{usd(listed)}**", f"**{usd(beyond)}**"))
    return _table(("nothing is due, USD a month", "list price", "beyond what is free"), rows)


def even_table() -> str:
    """Return from when on a worker that pulls is cheaper than functions."""
    even = ways.even_runs_a_month()
    row = (
        ways.TASK.name,
        usd(ways.TASK.usd()),
        f"{even / MILLION:.1f} million",
        f"{even / SECONDS_A_MONTH:.1f}",
    )
    heads = ("beside functions", "USD a month", "cheaper from, runs a month", "runs a second")
    return _table(heads, [row])


def sizes_table() -> str:
    """Return the worked examples of the formula."""
    rows = [
        (
            load.name,
            f"{load.starts_a_second:,.0f}",
            f"{load.due_at_once:,}",
            str(load.lanes),
            f"{load.shards}, {load.shards_of_functions}",
            str(load.sessions),
            f"{load.run_units:,}",
            f"{load.job_units:,}",
            load.warm,
        )
        for load in LOADS
    ]
    heads = (
        "load",
        "S",
        "D",
        "lanes",
        "shards: pull, functions",
        "sessions",
        "runs table, units/s",
        "jobs table, units/s",
        "warm throughput",
    )
    return _table(heads, rows)


def price_table() -> str:
    """Return every price that was used."""
    rows = [
        (
            price.what,
            f"{_rate(price.usd)} for {price.per:,}" if price.per > 1 else _rate(price.usd),
            price.unit,
            f"{price.free:,}" if price.free else "-",
            price.known,
            f"[page]({price.url})",
        )
        for price in PRICES.values()
    ]
    return _table(("what", f"USD, {REGION}", "of", "free a month", "known", "check"), rows)


def _rate(rate: float) -> str:
    """Return a price with all its digits, at least two behind the point.

    >>> _rate(0.4), _rate(25), _rate(0.0000133334)
    ('0.40', '25.00', '0.0000133334')
    """
    whole, _, digits = f"{rate:.10f}".rstrip("0").partition(".")
    return f"{whole}.{digits:0<2}"


TABLES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "runs": runs_table,
        "idle": idle_table,
        "even": even_table,
        "sizes": sizes_table,
        "prices": price_table,
    }
)


def filled(page: str) -> str:
    """Return the page with its tables as they are now."""
    return MARK.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], page)


def measure(_: Options) -> list[Figure]:
    """Return the sums as figures; nothing is measured."""
    figures = [
        Figure(way.name.replace("*", ""), MILLION * way.usd(), "USD", note="a million runs")
        for way in ways.WAYS
    ]
    figures += [
        Figure(f"idle: {way.name}", way.usd(), "USD", note="a month, list price")
        for way in ways.IDLE
    ]
    figures.append(
        Figure(
            "100,000 runs waiting at one queue of functions",
            drained_s(100_000, ways.HANDLER_S + ways.OVERHEAD_S),
            "s",
            note="until the last has started",
        )
    )
    return figures


def main() -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description="The priced tables of docs/capacity.md.")
    parser.add_argument("--write", action="store_true", help="write them into the page")
    if parser.parse_args().write:
        PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
        return 0
    sys.stdout.write("\n".join(f"{name}\n\n{make()}" for name, make in TABLES.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
