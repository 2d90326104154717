"""What cron expressions are accepted, what they mean, and what the refusals say."""

from __future__ import annotations

from typing import Any

import pytest

from dynsched.domain.cron_fields import FIELDS, MACROS, CronFields, Field, parse_fields
from dynsched.domain.recurrence import Cron
from dynsched.errors import InvalidInput


def fields(expr: str, *, seconds: bool = False, key: str = "") -> CronFields:
    """Parse an expression into its value masks."""
    return parse_fields(expr, seconds, key)


def listed(mask: int) -> list[int]:
    """Return the values of a mask."""
    return [value for value in range(mask.bit_length()) if mask >> value & 1]


def refusal(expr: Any, **options: Any) -> str:
    """Return the message with which an expression is refused."""
    with pytest.raises(InvalidInput) as refused:
        Cron.parse(expr, **options)
    assert refused.value.field == "cron"
    return str(refused.value)


def test_a_range_of_equal_ends_is_one_value_not_the_whole_cycle() -> None:
    """Trap 4: 5-5 is minute 5, jan-jan is January, 0-0 is Sunday."""
    assert fields("5-5 1-1 2-2 jan-jan 0-0") == fields("5 1 2 1 0")
    assert fields("5-5/9 1-1/2 * * 7-7") == fields("5 1 * * sun")


@pytest.mark.parametrize(
    "expr", ["* 22-2 * * *", "0 0 1 nov-feb *", "0 0 * * 5-1", "50-10 * * * *"]
)
def test_a_range_that_wraps_is_refused_with_the_way_to_write_it(expr: str) -> None:
    """Trap 5: engines disagree between wrapping and never, so neither is guessed."""
    assert "runs backwards" in refusal(expr)
    assert "write 22-23,0-2" in refusal("* 22-2 * * *")


def test_a_weekday_range_may_end_on_sunday() -> None:
    """Sunday is 0 and 7, so fri-sun and 6-0 do not wrap."""
    assert listed(fields("0 0 * * fri-SUN").weekdays) == [0, 5, 6]
    assert listed(fields("0 0 * * 6-0").weekdays) == [0, 6]


def test_a_seconds_field_leads_and_must_be_declared() -> None:
    """Trap 6: six fields are never taken for five and something else."""
    assert "a leading seconds field must be declared" in refusal("*/15 * * * * *")
    assert listed(fields("*/15 0 * * * *", seconds=True).seconds) == [0, 15, 30, 45]
    assert "5 fields, not 6" in refusal("* * * * *", seconds=True)


@pytest.mark.parametrize(
    "expr", ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2"]
)
def test_a_date_that_never_comes_is_refused(expr: str) -> None:
    """Trap 7: such a job would look healthy and never run."""
    assert "never falls in month" in refusal(expr)


def test_a_date_that_never_comes_is_accepted_beside_a_weekday() -> None:
    """Either day field is enough, so the weekday keeps the job alive."""
    assert fields("0 0 31 2 mon").weekdays == 0b10


@pytest.mark.parametrize("term", ["1#1", "mon#2", "5L", "L", "L-3", "LW", "15W", "?"])
def test_quartz_forms_are_refused_by_name(term: str) -> None:
    """Trap 8: they would be combined with the other day field in surprising ways."""
    assert "Quartz" in refusal(f"0 0 * * {term}")


def test_values_drawn_at_each_parse_are_refused() -> None:
    """Trap 9: two dispatchers would disagree."""
    assert "drawn at random by each process (use H)" in refusal("R * * * *")
    assert "drawn at random" in refusal("0~30 * * * *")


def test_the_last_value_with_a_step_is_refused() -> None:
    """Trap 14: 59/1 was every minute in one release and minute 59 in the next."""
    assert "step after a single value" in refusal("59/1 * * * *")


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\n\n"])
def test_a_line_break_is_no_blank(break_: str) -> None:
    """Trap 10: two lines are not one expression with more fields."""
    assert "has a line break" in refusal(f"0 0 * * *{break_}0")


@pytest.mark.parametrize("char", ["\u00a0", "\u2003", "\x0b", "\x00", "\uff15", "\u0661"])
def test_only_plain_characters_are_accepted(char: str) -> None:
    """Trap 10: a no-break space or a foreign digit is named, not guessed at."""
    assert f"U+{ord(char):04X}" in refusal(f"0 0 *{char}* * *")


@pytest.mark.parametrize("expr", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_not_text_is_refused_as_input(expr: object) -> None:
    """Trap 11: no attribute error reaches the caller."""
    assert "is not text" in refusal(expr)


def test_a_very_long_expression_is_refused() -> None:
    """Trap 11: parsing is capped, however many items or digits are given."""
    assert "at most 256" in refusal(",".join("1" for _ in range(60_000)) + " * * * *")
    assert refusal("*/" + "4" * 10_000 + " * * * *")
    assert listed(fields("*/" + "4" * 200 + " * * * *").minutes) == [0]


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        ("60 * * * *", "minute '60' is out of range (give 0 to 59)"),
        ("* 24 * * *", "hour '24' is out of range (give 0 to 23)"),
        ("* * 0 * *", "day of month '0' is out of range (give 1 to 31)"),
        ("* * * 13 *", "month '13' is out of range (give 1 to 12, or JAN to DEC)"),
        ("* * * * 8", "day of week '8' is out of range (give 0 to 7, or SUN to SAT)"),
        ("* * * january *", "month 'january' is neither a number nor a name"),
        ("* mon * * *", "hour 'mon' is not a number"),
        ("*/0 * * * *", "minute '*/0' has a step of zero"),
        ("1-9/0 * * * *", "minute '1-9/0' has a step of zero"),
        ("5/15 * * * *", "minute '5/15' has a step after a single value (write a-b/n or */n)"),
        ("1,,2 * * * *", "minute has an empty item"),
        ("1, * * * *", "minute has an empty item"),
        ("-5 * * * *", "minute '-5' is negative"),
        ("1-5-9 * * * *", "minute '1-5-9' is malformed"),
        ("", "the expression is empty"),
        (" \t ", "the expression is empty"),
        ("* * * *", "4 fields, not 5"),
        ("@reboot", "'@reboot' is not a macro (there is no boot here"),
        ("@every 5m", "'@every 5m' is not a macro (use an interval schedule)"),
        ("@Daily", "'@Daily' is not a macro (write @daily)"),
        ("@fortnightly", "one of @hourly, @daily"),
    ],
)
def test_a_refusal_names_the_field_and_the_reason(expr: str, message: str) -> None:
    """The message says what is wrong where, and what to write."""
    assert message in refusal(expr)


@pytest.mark.parametrize(("macro", "meaning"), MACROS.items())
def test_a_macro_means_its_five_fields(macro: str, meaning: str) -> None:
    """With or without a seconds field declared."""
    assert fields(macro) == fields(macro, seconds=True) == fields(meaning)


def test_blanks_are_normalised_and_case_is_kept() -> None:
    """Schedules that differ in blanks only are equal."""
    assert Cron.parse(" 0\t9  * * Mon ") == Cron.parse("0 9 * * Mon")


@pytest.mark.parametrize("each", FIELDS, ids=lambda each: each.name)
def test_each_range_with_each_step_means_what_it_says(each: Field) -> None:
    """The expansion, which croniter does, equals arithmetic on all small and all long ranges."""
    span = range(each.low, each.high + 1)
    ends = [(a, b) for a in span for b in span if a <= b and (b - a < 3 or b >= each.high - 1)]
    place = FIELDS.index(each)
    for low, high in ends:
        for step in (1, 2, 5, 7, 60):
            line = ["*"] * 5
            line[place] = f"{low}-{high}/{step}"
            found = fields(" ".join([*line[:3], "jan,mar" if place == 2 else line[3], line[4]]))
            masks = (found.minutes, found.hours, found.days, found.months, found.weekdays)
            wanted = {value % 7 if place == 4 else value for value in range(low, high + 1, step)}
            assert listed(masks[place]) == sorted(wanted)


def test_lists_may_mix_stars_ranges_and_names() -> None:
    """A star in a list names everything; only a leading one makes the field a wildcard."""
    mixed, leading = fields("1,* 1-3,8-20/6,22 1,* mar-may,DEC *"), fields("0 0 *,1 * 1")
    assert listed(mixed.minutes) == list(range(60))
    assert listed(mixed.hours) == [1, 2, 3, 8, 14, 20, 22]
    assert listed(mixed.months) == [3, 4, 5, 12]
    assert not mixed.wildcard
    assert leading.both_days
    assert not fields("0 0 1,* * 1").both_days


def test_a_hashed_value_is_drawn_from_the_key_for_ever() -> None:
    """Fixed numbers: another process, platform or release must draw the same."""
    drawn = fields("H H H H H", key="01890a5d-job")
    values = (drawn.minutes, drawn.hours, drawn.days, drawn.months, drawn.weekdays)
    assert [listed(mask) for mask in values] == [[26], [17], [24], [6], [3]]


def test_hashed_values_spread_and_stay_in_their_range() -> None:
    """Many keys reach every minute of H(0-29), none outside; days stop at 28."""
    minutes = [listed(fields("H(0-29) * H * *", key=f"job-{n}").minutes)[0] for n in range(400)]
    days = [listed(fields("H(0-29) * H * *", key=f"job-{n}").days)[0] for n in range(400)]
    assert set(minutes) == set(range(30))
    assert set(days) == set(range(1, 29))


def test_a_hashed_step_shifts_the_star_with_that_step() -> None:
    """H/15 fires four times an hour, and follows the wall clock as */15 does."""
    drawn = fields("H/15 3 * * *", key="job")
    minutes = listed(drawn.minutes)
    assert minutes == [minutes[0] + 15 * n for n in range(4)]
    assert drawn.wildcard
    assert not fields("H H(1-3) * * *", key="job").wildcard
    assert len(listed(fields("H(10-20)/5 * * * *", key="job").minutes)) in (2, 3)


def test_a_hash_without_a_key_is_refused() -> None:
    """All such jobs would run at the same time."""
    assert "H needs the job's identity" in refusal("H * * * *")
    assert refusal("h * * * *", key="job")
    assert "runs backwards" in refusal("H(9-5) * * * *", key="job")
    assert "out of range" in refusal("H(0-60) * * * *", key="job")
    assert "step of zero" in refusal("H/0 * * * *", key="job")


def test_a_key_matters_only_to_expressions_with_a_hash() -> None:
    """Else two jobs with the same schedule would not share one compiled form."""
    assert Cron.parse("0 0 1 mar thu", key="a") == Cron.parse("0 0 1 mar thu", key="b")
    assert Cron.parse("H 0 * * *", key="a") != Cron.parse("H 0 * * *", key="b")
