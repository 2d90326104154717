"""The priced tables of docs/capacity.md are what the arithmetic gives."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bench.price_list import PRICES
from bench.prices import MARK, PAGE, TABLES, filled
from bench.sizing import COLD_UNITS, KEY_PLAN, LOADS, MAPPING_MOST, drained_s
from bench.ways import IDLE, METRICS_BUSY, METRICS_IDLE, WAYS, Way
from dynsched.domain.job import Priority
from dynsched.lambdas.metrics import METRICS, PRIORITY


def test_the_tables_of_the_page_are_as_the_arithmetic_makes_them() -> None:
    """Nobody types a price twice: `python -m bench.prices --write` makes them anew."""
    page = PAGE.read_text("utf-8")
    assert {found[2] for found in MARK.finditer(page)} == set(TABLES)
    assert filled(page) == page


def counted(functions: Iterable[str]) -> int:
    """Return how many metrics CloudWatch counts of some functions: each name by its dimensions."""
    return sum(
        len(Priority) if PRIORITY in dimensions else 1
        for function in functions
        for metric in METRICS[function].values()
        for dimensions in metric.dimensions
    )


def test_the_metrics_that_are_priced_are_those_that_the_functions_write() -> None:
    """A metric more is 0.30 USD a month for every deployment."""
    assert counted(["dispatcher", "reaper"]) == METRICS_IDLE
    assert counted(["worker"]) == METRICS_BUSY


def test_every_price_says_when_it_was_known_and_where_to_check_it() -> None:
    """A price without a month is a rumour."""
    for price in PRICES.values():
        assert price.usd > 0
        assert price.url.startswith("https://aws.amazon.com/")
        year, month = map(int, price.known.split("-"))
        assert 2024 <= year <= 2100
        assert 1 <= month <= 12


def test_free_amounts_are_taken_off_once_and_never_pay_anything_out() -> None:
    """Beyond what is free nothing costs less than nothing."""
    assert Way(name="", amounts={"alarm": 9}).usd_beyond_free() == 0
    assert Way(name="", amounts={"alarm": 11}).usd_beyond_free() == pytest.approx(0.10)


def test_the_cheapest_is_a_plain_fire_and_the_dearest_a_workflow() -> None:
    """The page says so in words; it would have to be written anew."""
    by_usd = sorted(WAYS, key=Way.usd)
    assert by_usd[0].name == "EventBridge Scheduler → Lambda"
    assert "Standard" in by_usd[-1].name
    assert 6 < by_usd[-1].usd() / by_usd[-2].usd() < 10


def test_the_sum_without_cloudwatch_is_the_one_that_the_page_tells() -> None:
    """The claim of at most 5 USD a month hangs on it."""
    first = sum(way.usd() for way in IDLE[:3])
    assert first <= 5
    assert f"(the first three lines: {first:.2f})" in PAGE.read_text("utf-8")


def test_sizes_keep_every_key_and_a_warm_table_within_what_it_takes() -> None:
    """The formula's examples, judged by the rule that it comes from."""
    for load in LOADS:
        assert load.starts_a_second / load.lanes <= KEY_PLAN
        assert 2 * load.starts_a_second / load.shards_of_functions <= KEY_PLAN
        assert ("none" in load.warm) == (load.run_units <= COLD_UNITS)


def test_a_mapping_that_has_grown_full_goes_on_at_its_most() -> None:
    """Behind the growth, twice the runs take so much longer as the most can take."""
    many, more = drained_s(1_000_000, 1.0), drained_s(1_100_000, 1.0)
    assert more - many == pytest.approx(100_000 / MAPPING_MOST)
