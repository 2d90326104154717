"""Laws that every schedule obeys, checked on random schedules; and two independent models."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from croniter import croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynsched.domain.instants import EPOCH
from dynsched.domain.recurrence import Cron, DstRule, Interval, Schedule
from dynsched.domain.zone_changes import zone_clock
from dynsched.errors import InvalidInput

CHANGES = {
    "America/New_York": "2025-03-09T07:00Z 2025-11-02T06:00Z",
    "Europe/Berlin": "2024-03-31T01:00Z 2024-10-27T01:00Z",
    "Australia/Lord_Howe": "2024-10-05T15:30Z 2024-04-06T15:00Z",
    "Antarctica/Troll": "2024-03-31T01:00Z 2024-10-27T01:00Z",
    "Antarctica/Casey": "2018-10-06T20:00Z 2019-03-16T16:00Z",
    "Pacific/Apia": "2011-12-30T10:00Z",
    "Pacific/Kwajalein": "1993-08-21T12:00Z 1969-09-30T13:00Z",
    "America/Sao_Paulo": "2018-11-04T03:00Z 2018-02-18T02:00Z",
    "Africa/Casablanca": "2024-03-10T02:00Z 2024-04-14T02:00Z",
    "Europe/Moscow": "2014-10-25T22:00Z 2011-03-26T23:00Z",
    "America/Caracas": "2016-05-01T07:00Z 2007-12-09T07:00Z",
    "Pacific/Chatham": "2024-09-28T14:00Z 2024-04-06T14:00Z",
    "Africa/Monrovia": "1972-01-07T00:44Z",
    "UTC": "2024-02-29T00:00Z 2038-01-19T03:14Z",
}
"""Zones, each with instants around which something happens to its wall clock."""


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """Draw one field: stars, steps, numbers, ranges and lists of them."""
    number = st.integers(low, high)
    span = st.tuples(number, number).map(sorted)
    return st.one_of(
        st.just("*"),
        st.integers(1, high).map("*/{}".format),
        st.lists(number, min_size=1, max_size=3).map(lambda values: ",".join(map(str, values))),
        span.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(span, st.integers(1, 9)).map(lambda both: "{0[0]}-{0[1]}/{1}".format(*both)),
    )


LINES = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)).map(" ".join)
FREQUENT = st.tuples(field(0, 59), field(0, 23)).map(lambda both: " ".join((*both, "* * *")))
SECONDS = st.tuples(field(0, 59), FREQUENT).map(" ".join)
NEAR = st.sampled_from(
    [(zone, datetime.fromisoformat(at)) for zone, all_ in CHANGES.items() for at in all_.split()]
)


@st.composite
def crons(draw: st.DrawFn) -> tuple[Cron, datetime]:
    """Draw a cron schedule and an instant near a change of its zone."""
    seconds = draw(st.booleans())
    expr = draw(SECONDS if seconds else LINES | FREQUENT)
    zone, change = draw(NEAR)
    rule = draw(st.sampled_from(DstRule))
    near = change + timedelta(seconds=draw(st.integers(-200_000, 100_000)))
    try:
        return Cron.parse(expr, zone=zone, dst=rule, seconds=seconds), near
    except InvalidInput:
        assume(False)
        raise


@st.composite
def intervals(draw: st.DrawFn) -> tuple[Interval, datetime]:
    """Draw an interval schedule and an instant."""
    anchor = EPOCH + timedelta(milliseconds=draw(st.integers(-(10**9), 10**9)))
    every = timedelta(milliseconds=draw(st.integers(1000, 10**8)))
    start = draw(st.none() | st.just(anchor + timedelta(seconds=7)))
    near = anchor + timedelta(microseconds=draw(st.integers(-(10**12), 10**12)))
    return Interval(every=every, anchor=anchor, start=start), near


SCHEDULES = crons() | intervals()
CHECKED = settings(max_examples=80, deadline=None, derandomize=True)


def steps(schedule: Schedule, t: datetime, most: int = 30) -> list[datetime]:
    """Return the instants after `t`, found one by one."""
    found: list[datetime] = []
    while len(found) < most and (following := schedule.next_after(found[-1] if found else t)):
        found.append(following)
    return found


@CHECKED
@given(SCHEDULES)
def test_steps_rise_strictly_and_name_themselves(drawn: tuple[Schedule, datetime]) -> None:
    """Each next instant is later than the one before, and belongs to the schedule."""
    schedule, t = drawn
    found = [t, *steps(schedule, t)]
    assert all(before < after for before, after in pairwise(found))
    assert all(schedule.names(instant) for instant in found[1:])
    assert all(instant.tzinfo is UTC for instant in found[1:])


@CHECKED
@given(SCHEDULES, st.floats(0, 1))
def test_the_next_instant_does_not_depend_on_where_one_starts(
    drawn: tuple[Schedule, datetime], share: float
) -> None:
    """From any instant between, the next is the first later one of a long enumeration."""
    schedule, t = drawn
    found = steps(schedule, t)
    assume(found)
    between = t + (found[-1] - t) * share
    later = [instant for instant in found if instant > between]
    assert schedule.next_after(between) == (later[0] if later else schedule.next_after(found[-1]))


@CHECKED
@given(SCHEDULES)
def test_walking_back_meets_the_same_instants(drawn: tuple[Schedule, datetime]) -> None:
    """The last instant before each instant is the one that was found before it."""
    schedule, t = drawn
    found = steps(schedule, t)
    assert all(schedule.last_before(after) == before for before, after in pairwise(found))


@CHECKED
@given(SCHEDULES, st.integers(0, 29), st.integers(0, 29))
def test_counting_agrees_with_stepping(
    drawn: tuple[Schedule, datetime], one: int, other: int
) -> None:
    """The count of a span that begins and ends on instants is the number of steps between."""
    schedule, t = drawn
    found = steps(schedule, t)
    assume(max(one, other) < len(found))
    first, before = sorted((one, other))
    assert schedule.count(found[first], found[before]) == before - first
    assert schedule.count(t + timedelta(microseconds=1), found[before]) == before
    assert list(schedule.instants(found[first], found[before], 99)) == found[first:before]


@CHECKED
@given(SCHEDULES, st.integers(1, 10**11))
def test_counts_add_up(drawn: tuple[Schedule, datetime], width: int) -> None:
    """The count of a span is the sum of the counts of its parts, wherever it is cut."""
    schedule, t = drawn
    middle, end = t + timedelta(milliseconds=width), t + timedelta(milliseconds=2 * width)
    parts = schedule.count(t, middle) + schedule.count(middle, end)
    assert schedule.count(t, end) == parts


def cronie_minutes(expr: str, zone: str, first: datetime, minutes: int) -> list[datetime]:
    """Run a cron daemon's clock minute by minute and return when it would start the job.

    The daemon compares the wall clock with a clock of its own that never jumps. Ahead by up to
    three hours: wildcard jobs run for this minute, fixed-time jobs for each minute that was
    missed. Behind by up to three hours: wildcard jobs only, until it has caught up. Otherwise its
    own clock is set and everything runs.
    """
    clock, fields = zone_clock(zone), expr.split()
    fixed = fields[0][0] != "*" and fields[1][0] != "*"
    wanted = [values(text, *ends) for text, ends in zip(fields, ENDS, strict=True)]
    star = fields[2][0] == "*" or fields[4][0] == "*"
    start = (first - EPOCH) // timedelta(minutes=1)

    def due(wall: int) -> bool:
        day = date(1970, 1, 1) + timedelta(days=wall // 1440)
        by_date, by_week = day.day in wanted[2], day.isoweekday() % 7 in wanted[4]
        return (
            wall % 60 in wanted[0]
            and wall // 60 % 24 in wanted[1]
            and day.month in wanted[3]
            and ((by_date and by_week) if star else (by_date or by_week))
        )

    own = start - 1 + clock.at((start - 1) * 60).offset // 60
    found = []
    for minute in range(start, start + minutes):
        wall = minute + clock.at(minute * 60).offset // 60
        ahead = wall - own
        if ahead == 1 or abs(ahead) > 180:
            runs, own = due(wall), wall
        elif ahead > 0:
            missed = range(own + 1, wall + 1)
            runs, own = any(map(due, missed)) if fixed else due(wall), wall
        else:
            runs = not fixed and due(wall)
        if runs:
            found.append(EPOCH + timedelta(minutes=minute))
    return found


ENDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def values(text: str, low: int, high: int) -> set[int]:
    """Return the values of a field in numbers."""
    found: set[int] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.replace("*", f"{low}-{high}").partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found | ({0} if high == 7 and 7 in found else set())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(LINES | FREQUENT, NEAR)
def test_vixie_is_what_a_cron_daemon_does_minute_by_minute(
    expr: str, near: tuple[str, datetime]
) -> None:
    """A model of the daemon's clock, run over two days with a zone change, starts the same runs."""
    zone, change = near
    assume(zone != "Africa/Monrovia")  # its old offset was not whole minutes
    try:
        cron = Cron.parse(expr, zone=zone)
    except InvalidInput:
        assume(False)
    first = change - timedelta(days=1)
    expected = cronie_minutes(expr, zone, first, 2880)
    assert list(cron.instants(first, first + timedelta(days=2), 3000)) == expected


@settings(max_examples=80, deadline=None, derandomize=True)
@given(FREQUENT, field(1, 12), st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001
def test_croniter_agrees_where_it_is_known_to_be_right(
    expr: str, months: str, naive: datetime
) -> None:
    """In UTC, with one day field and no range of equal ends, both give the same instants."""
    expr = expr.replace("* * *", f"* {months} *")
    assume(not any(equal_ends(term) for text in expr.split() for term in text.split(",")))
    t = naive.replace(tzinfo=UTC, microsecond=0)
    oracle = croniter(expr, t, ret_type=datetime)
    assert steps(Cron.parse(expr), t, 5) == [oracle.get_next() for _ in range(5)]


def equal_ends(term: str) -> bool:
    """Tell whether a term is a range like 5-5, which croniter reads as the whole cycle."""
    low, dash, high = term.partition("/")[0].partition("-")
    return bool(dash) and int(low) == int(high)
