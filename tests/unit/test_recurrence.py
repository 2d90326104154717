"""Schedules as values: limits, intervals, single instants, bodies and descriptions."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from dynsched.domain.cron_walk import cron_walk
from dynsched.domain.instants import from_text
from dynsched.domain.recurrence import (
    Cron,
    DstRule,
    Interval,
    Once,
    Schedule,
    schedule_from_body,
)
from dynsched.errors import InvalidInput

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

SCHEDULES: list[Schedule] = [
    Cron.parse("*/5 * * * *"),
    Cron.parse("H H(2-4) * * mon", zone="Europe/Riga", dst="skip", key="job-1"),
    Cron.parse("*/10 * * * * *", seconds=True, dst="both", start=NEW_YEAR),
    Cron.parse("@daily", zone="Asia/Tokyo", start=NEW_YEAR, end=NEW_YEAR + timedelta(days=9)),
    Interval(every=timedelta(seconds=90), anchor=NEW_YEAR),
    Interval(every=timedelta(days=1, milliseconds=1), anchor=NEW_YEAR, end=NEW_YEAR + MINUTE),
    Once(at=NEW_YEAR),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.describe())
def test_a_schedule_survives_storage(schedule: Schedule) -> None:
    """Body, JSON and back give an equal schedule; so do copy and pickle."""
    body = schedule.to_body()
    assert schedule_from_body(json.loads(json.dumps(body))) == schedule
    assert copy.deepcopy(schedule) == pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301
    assert hash(copy.copy(schedule)) == hash(schedule)


def test_a_body_holds_nothing_that_is_at_its_default() -> None:
    """Job rows are billed by their size."""
    assert SCHEDULES[0].to_body() == {"kind": "cron", "cron": "*/5 * * * *"}
    assert SCHEDULES[1].to_body() == {
        "kind": "cron",
        "cron": "H H(2-4) * * mon",
        "tz": "Europe/Riga",
        "dst": "skip",
        "key": "job-1",
    }
    assert SCHEDULES[4].to_body()["every_ms"] == 90_000


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "lunar"},
        {"kind": "cron"},
        {"kind": "cron", "cron": None},
        {"kind": "cron", "cron": ["* * * * *"]},
        {"kind": "cron", "cron": "61 * * * *"},
        {"kind": "cron", "cron": "* * * * *", "tz": "Mars/Base"},
        {"kind": "cron", "cron": "* * * * *", "dst": "never"},
        {"kind": "cron", "cron": "* * * * *", "start": "soon"},
        {"kind": "interval", "every_ms": "x", "anchor": "2026-01-01T00:00Z"},
        {"kind": "interval", "every_ms": 10**30, "anchor": "2026-01-01T00:00Z"},
        {"kind": "once", "at": 5},
    ],
)
def test_a_damaged_body_is_refused_as_input(body: dict[str, object]) -> None:
    """So that the dispatcher can park the job; no other error gets out."""
    with pytest.raises(InvalidInput):
        schedule_from_body(body)


def test_decoding_does_not_compile_again() -> None:
    """Jobs are decoded at every tick; equal bodies share one compiled walk."""
    body = Cron.parse("7 7 * * *", zone="Europe/Riga").to_body()
    before = cron_walk.cache_info()
    assert schedule_from_body(body) == schedule_from_body(body)
    after = cron_walk.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 2)


def test_start_and_end_are_both_included() -> None:
    """Limits that lie on instants keep them; those between keep what is inside."""
    at = [NEW_YEAR + n * MINUTE for n in range(6)]
    cron = Cron.parse("* * * * *", start=at[1], end=at[3])
    assert list(cron.instants(at[0], at[5], 99)) == at[1:4]
    assert (cron.next_after(at[0]), cron.next_after(at[3])) == (at[1], None)
    assert (cron.last_before(at[5]), cron.last_before(at[1])) == (at[3], None)
    assert cron.count(at[0], at[5]) == 3
    assert [cron.names(each) for each in at] == [False, True, True, True, False, False]


def test_limits_between_instants_keep_what_is_inside() -> None:
    """A start or end of any millisecond rounds inwards, never outwards."""
    part = timedelta(milliseconds=1)
    cron = Cron.parse("* * * * *", start=NEW_YEAR + part, end=NEW_YEAR + 2 * MINUTE - part)
    assert list(cron.instants(NEW_YEAR, NEW_YEAR + 9 * MINUTE, 99)) == [NEW_YEAR + MINUTE]


def test_limits_may_be_given_in_any_zone_but_not_without_one() -> None:
    """They are stored in UTC; a naive one or an empty span is refused by name."""
    riga = timezone(timedelta(hours=2))
    cron = Cron.parse("* * * * *", start=datetime(2026, 1, 1, 2, tzinfo=riga))
    assert cron.start == NEW_YEAR
    with pytest.raises(InvalidInput, match=r"^start: the datetime has no zone"):
        Cron.parse("* * * * *", start=NEW_YEAR.replace(tzinfo=None))
    with pytest.raises(InvalidInput, match=r"^end: the end lies before the start"):
        Cron.parse("* * * * *", start=NEW_YEAR, end=NEW_YEAR - MINUTE)


def test_a_naive_instant_is_never_taken_for_utc() -> None:
    """Trap 12: a program that asks without a zone fails at once."""
    cron, naive = Cron.parse("* * * * *"), NEW_YEAR.replace(tzinfo=None)
    for question in (cron.next_after, cron.last_before, cron.names):
        with pytest.raises(TypeError):
            question(naive)


def test_an_unknown_rule_for_clock_changes_is_refused() -> None:
    """The message lists the rules."""
    with pytest.raises(InvalidInput, match=r"dst: 'never'.*vixie, skip or both"):
        Cron.parse("* * * * *", dst="never")
    assert Cron.parse("* * * * *", dst="skip").dst is DstRule.SKIP


def test_fractions_of_a_second_neither_lose_nor_repeat_an_instant() -> None:
    """Next is strictly later and last strictly earlier, to the microsecond."""
    cron, tiny = Cron.parse("* * * * *"), timedelta(microseconds=1)
    assert cron.next_after(NEW_YEAR - tiny) == NEW_YEAR
    assert cron.next_after(NEW_YEAR) == NEW_YEAR + MINUTE
    assert cron.last_before(NEW_YEAR + tiny) == NEW_YEAR
    assert not cron.names(NEW_YEAR + tiny)
    assert cron.count(NEW_YEAR + tiny, NEW_YEAR + MINUTE + tiny) == 1


def test_the_search_ends_where_the_years_end() -> None:
    """Trap 7: no error and no endless loop in the far future, past the last year, or long ago."""
    leap = Cron.parse("0 0 29 2 */7", zone="America/New_York")
    assert leap.next_after(datetime(2195, 1, 1, tzinfo=UTC)) is None
    assert leap.next_after(datetime(9999, 12, 31, tzinfo=UTC)) is None
    assert leap.last_before(datetime(1800, 1, 2, tzinfo=UTC)) is None
    yearly = Cron.parse("@yearly")
    assert yearly.next_after(datetime(2098, 6, 1, tzinfo=UTC)) == datetime(2099, 1, 1, tzinfo=UTC)
    assert yearly.count(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)) == 400


def test_day_fields_are_ored_unless_one_begins_with_a_star() -> None:
    """Trap 3: */2 with Monday is both; 1 with Monday is either."""
    days = {
        expr: Cron.parse(f"0 0 {expr}").count(NEW_YEAR, datetime(2026, 2, 1, tzinfo=UTC))
        for expr in ("1 * mon", "*/2 * mon", "1-7 * */7", "*/100,1-7 * mon", "1 * */2", "1,* * 1")
    }
    assert list(days.values()) == [5, 2, 1, 1, 1, 31]


def test_counting_ten_years_of_minutes_agrees_with_arithmetic() -> None:
    """Ten years in a zone whose changes cancel out, without stepping through five million."""
    minutely = Cron.parse("* * * * *", zone="America/New_York")
    assert minutely.count(NEW_YEAR, datetime(2036, 1, 1, tzinfo=UTC)) == 3652 * 1440


def test_an_interval_counts_elapsed_time_from_its_anchor() -> None:
    """The anchor is a phase: instants lie before it too, unless a start says otherwise."""
    every = Interval(every=timedelta(hours=7), anchor=NEW_YEAR)
    assert every.next_after(NEW_YEAR) == NEW_YEAR + timedelta(hours=7)
    assert every.last_before(NEW_YEAR) == NEW_YEAR - timedelta(hours=7)
    begun = Interval(every=timedelta(hours=7), anchor=NEW_YEAR, start=NEW_YEAR)
    assert begun.last_before(NEW_YEAR) is None


@pytest.mark.parametrize(
    "every",
    [timedelta(0), timedelta(seconds=-5), timedelta(milliseconds=999), timedelta(days=9999)],
)
def test_an_interval_out_of_range_is_refused(every: timedelta) -> None:
    """The shortest is one second, the longest ten years."""
    with pytest.raises(InvalidInput, match=r"^every: .*1 second to 3660 days"):
        Interval(every=every, anchor=NEW_YEAR)


def test_an_interval_is_checked_whole() -> None:
    """Fractions of a millisecond and naive anchors are refused."""
    with pytest.raises(InvalidInput, match=r"^every: .*milliseconds"):
        Interval(every=timedelta(seconds=1, microseconds=5), anchor=NEW_YEAR)
    with pytest.raises(InvalidInput, match=r"^anchor:"):
        Interval(every=MINUTE, anchor=NEW_YEAR.replace(tzinfo=None))


def test_once_is_one_instant() -> None:
    """Before it there is a next, from it on there is none."""
    once = Once(at=NEW_YEAR)
    assert once.next_after(NEW_YEAR - MINUTE) == NEW_YEAR
    assert once.next_after(NEW_YEAR) is None
    assert (once.last_before(NEW_YEAR), once.last_before(NEW_YEAR + MINUTE)) == (None, NEW_YEAR)
    assert once.count(NEW_YEAR, NEW_YEAR + MINUTE) == 1
    assert once.names(NEW_YEAR)
    with pytest.raises(InvalidInput, match=r"^at: the year 2200"):
        Once(at=datetime(2200, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "216 times a day"),
        ("5 * * * *", "at minute 5 of every hour"),
        ("0 9-17 * * 1-5", "at minute 0 of every hour from 09:00 to 17:59, Mon to Fri"),
        ("30 2 * * *", "at 02:30 every day"),
        ("0 6,18 * 3-5 *", "at 06:00 and 18:00, in Mar, Apr and May"),
        ("0 0 1-7 * */7", "at 00:00, on day 1-7 if it is a Sun"),
        ("0 0 1,15 * mon,tue", "at 00:00, on day 1, 15 or on Mon and Tue"),
        ("0 0 1-31 * mon", "at 00:00 every day"),
        ("0 */5 * * sat", "5 times a day, Sat"),
    ],
)
def test_a_description_is_short_and_true(expr: str, words: str) -> None:
    """What cannot be said shortly is counted."""
    assert Cron.parse(expr).describe() == f"{words}, UTC"


def test_a_description_tells_seconds_zone_and_limits() -> None:
    """Everything that changes when the job runs is in it."""
    assert Cron.parse("* * * * * *", seconds=True).describe() == "every second, UTC"
    assert Cron.parse("5 0 3 * * *", seconds=True).describe() == "at 03:00:05 every day, UTC"
    assert Cron.parse("0,30 * * * * *", seconds=True).describe() == "2,880 times a day, UTC"
    limited = Cron.parse("@daily", zone="Asia/Tokyo", start=from_text("2026-01-01T00:00Z"))
    assert limited.describe() == "at 00:00 every day, Asia/Tokyo, from 2026-01-01T00:00:00.000Z"
    odd = Interval(every=timedelta(days=1, seconds=1, milliseconds=5), anchor=NEW_YEAR)
    assert odd.describe().startswith("every 1 d 1 s 5 ms, counted from 2026-01-01")


def test_the_examples_of_the_page_for_users_are_true() -> None:
    """The page is run as a doctest."""
    page = Path(__file__).parents[2] / "docs" / "cron.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
