"""What schedules do where a zone's wall clock jumps, by rule and by kind of job."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise

import pytest

from dynsched.domain.recurrence import Cron
from dynsched.domain.zone_changes import zone_clock, zone_names
from dynsched.errors import InvalidInput

SPRING = datetime(2025, 3, 9, 6, tzinfo=UTC)
"""An hour before New York goes from 02:00 to 03:00."""
AUTUMN = datetime(2025, 11, 2, 4, tzinfo=UTC)
"""Two hours before New York goes back from 02:00 to 01:00."""


def runs(
    expr: str, t: datetime, hours: int = 4, zone: str = "America/New_York", **options: object
) -> list[str]:
    """Return the times of day, UTC, at which an expression runs in the hours from `t`."""
    cron = Cron.parse(expr, zone=zone, **options)  # type: ignore[arg-type]  # options of parse
    return [f"{at:%H:%M}" for at in cron.instants(t, t + timedelta(hours=hours), 99)]


def test_a_fixed_time_job_in_a_gap_runs_once_after_it() -> None:
    """Trap 2 and rule vixie: 02:30 did not exist, so it runs at 03:00."""
    assert runs("30 2 * * *", SPRING) == ["07:00"]


def test_several_wall_times_of_a_gap_make_one_run() -> None:
    """They fall on one instant, and a run is identified by its instant; so does 03:00 itself."""
    assert runs("15,45 2 * * *", SPRING) == ["07:00"]
    assert runs("30 2,3 * * *", SPRING) == ["07:00", "07:30"]
    assert runs("0,30 2,3 * * *", SPRING) == ["07:00", "07:30"]
    assert (
        Cron.parse("0,30 2,3 * * *", zone="America/New_York").count(SPRING, AUTUMN) == 2 + 4 * 237
    )


@pytest.mark.parametrize("expr", ["*/15 2 * * *", "* 2 * * *", "30 */2 * * *"])
def test_a_wildcard_job_gets_no_run_for_a_gap(expr: str) -> None:
    """Trap 2: a job that follows the wall clock does not run for times that it never showed."""
    assert "07:00" not in runs(expr, SPRING)


def test_a_stepped_hour_runs_only_at_hours_that_it_names() -> None:
    """Trap 2: 0 */2 does not run at 03:00."""
    assert runs("0 */2 * * *", SPRING) == ["08:00"]


def test_a_fixed_time_job_in_an_overlap_runs_once_at_the_first() -> None:
    """Trap 1: not at 06:30Z again."""
    assert runs("30 1 * * *", AUTUMN) == ["05:30"]
    assert runs("0 2 * * *", AUTUMN) == ["07:00"]


def test_a_wildcard_job_in_an_overlap_follows_the_wall_clock() -> None:
    """It runs through both passes."""
    assert runs("*/30 1 * * *", AUTUMN) == ["05:00", "05:30", "06:00", "06:30"]
    assert runs("0 * * * *", AUTUMN) == ["04:00", "05:00", "06:00", "07:00"]


def test_starting_within_the_second_pass_finds_the_next_day() -> None:
    """A restart there neither repeats the first pass nor steps back."""
    cron = Cron.parse("30 1 * * *", zone="America/New_York")
    inside = datetime(2025, 11, 2, 6, 10, tzinfo=UTC)
    assert cron.next_after(inside) == datetime(2025, 11, 3, 6, 30, tzinfo=UTC)
    assert cron.last_before(inside) == datetime(2025, 11, 2, 5, 30, tzinfo=UTC)


def test_the_rule_skip_never_moves_a_run() -> None:
    """A time in a gap does not run; of two that are equal, the first does."""
    assert runs("30 2 * * *", SPRING, dst="skip") == []
    assert runs("30 1 * * *", AUTUMN, dst="skip") == ["05:30"]
    assert runs("*/30 1 * * *", AUTUMN, dst="skip") == runs("*/30 1 * * *", AUTUMN)


def test_the_rule_both_runs_after_a_gap_and_twice_in_an_overlap() -> None:
    """No wall time is lost, and each that is shown twice counts twice."""
    assert runs("30 2 * * *", SPRING, dst="both") == ["07:00"]
    assert runs("30 1 * * *", AUTUMN, dst="both") == ["05:30", "06:30"]
    assert runs("*/15 2 * * *", SPRING, dst="both") == []


def test_seconds_follow_the_same_rules() -> None:
    """Trap 16: six fields behave as five do; every second of a fixed minute is a wildcard."""
    assert runs("0 30 2 * * *", SPRING, seconds=True) == ["07:00"]
    assert runs("0 30 1 * * *", AUTUMN, seconds=True) == ["05:30"]
    assert runs("0,30 59 2 * * *", SPRING, seconds=True) == ["07:00"]
    assert runs("*/30 30 1 * * *", AUTUMN, seconds=True) == ["05:30", "05:30", "06:30", "06:30"]


def test_lord_howe_moves_by_half_an_hour() -> None:
    """A gap of 30 minutes at 02:00, an overlap of 30 minutes before 02:00."""
    howe = {"zone": "Australia/Lord_Howe"}
    spring, autumn = datetime(2024, 10, 5, 15, tzinfo=UTC), datetime(2024, 4, 6, 14, tzinfo=UTC)
    assert runs("15 2 * * *", spring, **howe) == ["15:30"]  # type: ignore[arg-type]
    assert runs("45 1 * * *", autumn, **howe) == ["14:45"]  # type: ignore[arg-type]


def test_troll_moves_by_two_hours() -> None:
    """Both hours of the gap fall on its end; both of the overlap run once."""
    gap, overlap = datetime(2024, 3, 31, tzinfo=UTC), datetime(2024, 10, 26, 22, tzinfo=UTC)
    assert runs("30 1,2 * * *", gap, zone="Antarctica/Troll") == ["01:00"]
    assert runs("30 1,2 * * *", overlap, zone="Antarctica/Troll") == ["23:30", "00:30"]


def test_a_permanent_change_counts_as_an_overlap() -> None:
    """Trap 1: Moscow went back by an hour for good in 2014; 01:30 still runs once."""
    before = datetime(2014, 10, 25, 20, tzinfo=UTC)
    assert runs("30 1 * * *", before, 6, zone="Europe/Moscow") == ["21:30"]


def test_casablanca_changes_twice_around_ramadan() -> None:
    """The clock goes back in March and forward in April; each night has one run."""
    cron = Cron.parse("30 2 * * *", zone="Africa/Casablanca")
    spring = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)
    assert cron.count(*spring) == 61
    assert cron.names(datetime(2024, 4, 14, 2, 0, tzinfo=UTC))


def test_a_day_that_a_zone_left_out_has_no_run() -> None:
    """Trap 15: Apia had no 30 December 2011, so its noon is not made up for."""
    cron = Cron.parse("0 12 * * *", zone="Pacific/Apia")
    around = cron.instants(datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC), 9)
    assert [f"{at:%d %H:%M}" for at in around] == ["29 22:00", "30 22:00", "31 22:00"]


def test_a_jump_of_three_hours_is_a_change_of_date() -> None:
    """Casey went from 04:00 to 07:00 in 2018: cronie's limit lies just below."""
    before = datetime(2018, 10, 6, 18, tzinfo=UTC)
    assert runs("30 5 * * *", before, zone="Antarctica/Casey") == []
    assert runs("30 5 * * *", before, zone="Antarctica/Casey", dst="both") == []


def test_a_day_that_a_zone_repeated_runs_again() -> None:
    """Kwajalein had 30 September 1969 twice; only `skip` runs once on it."""
    before = datetime(1969, 9, 29, 20, tzinfo=UTC)
    zone = "Pacific/Kwajalein"
    assert runs("0 12 * * *", before, 48, zone=zone) == ["01:00", "00:00"]
    assert runs("0 12 * * *", before, 48, zone=zone, dst="skip") == ["01:00"]


def test_an_offset_of_odd_seconds_keeps_the_wall_clock() -> None:
    """Monrovia was 44 minutes 30 seconds behind until 1972."""
    cron = Cron.parse("0 12 * * *", zone="Africa/Monrovia")
    first = cron.next_after(datetime(1971, 6, 1, tzinfo=UTC))
    assert first == datetime(1971, 6, 1, 12, 44, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Europe/Rega", "Europe/Riga"),
        ("europe/riga", "Europe/Riga"),
        ("riga", "Europe/Riga"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
        ("", "for example"),
        ("America", "America/"),
        ("../../etc/passwd", "for example"),
        ("right/UTC", "UTC"),
        ("\x00", "for example"),
        (None, "for example"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_close_name(name: object, advice: str) -> None:
    """The field is `tz`; files of the machine are not zones."""
    with pytest.raises(InvalidInput) as refused:
        Cron.parse("* * * * *", zone=name)  # type: ignore[arg-type]  # what a caller may send
    assert refused.value.field == "tz"
    assert advice in refused.value.mend


def recorded_changes(name: str) -> list[tuple[int, int]]:
    """Return the changes of offset in the zone's file: (second since 1970, offset)."""
    data = files("tzdata.zoneinfo").joinpath(name).read_bytes()
    for width in (4, 8):  # the file has an old 32-bit part before the 64-bit one
        utc, std, leaps, count, kinds, chars = struct.unpack(">6l", data[20:44])
        size = 44 + count * (width + 1) + kinds * 6 + chars + leaps * (width + 4) + std + utc
        body, data = data[44:size], data[size:]
    seconds = struct.unpack(f">{count}q", body[: 8 * count])
    offsets = [struct.unpack(">l", body[9 * count + 6 * n :][:4])[0] for n in range(kinds)]
    changes, last = [], offsets[0]
    for second, kind in zip(seconds, body[8 * count : 9 * count], strict=True):
        if offsets[kind] != last:
            last = offsets[kind]
            changes.append((second, last))
    return changes


@pytest.mark.parametrize("name", sorted(zone_names())[::37])
def test_every_recorded_change_of_offset_is_found(name: str) -> None:
    """Probing finds what the zone's file says, from 1930 to the last change on record."""
    first = -1_262_304_000
    expected = [change for change in recorded_changes(name) if change[0] >= first]
    clock, found, second = zone_clock(name), [], first
    while expected and second <= expected[-1][0]:
        stretch = clock.at(second)
        if stretch.jump:
            found.append((stretch.start, stretch.offset))
        second = stretch.end
    assert found == expected


def test_no_two_changes_of_a_zone_lie_within_four_days() -> None:
    """What probing every three days, and passing over two, rests on."""
    gaps = []
    for name in sorted(zone_names())[::5]:
        seconds = [second for second, _ in recorded_changes(name)]
        gaps += [after - before for before, after in pairwise(seconds)]
    assert min(gaps) > 3 * 86_400
