"""Values as people type them, and texts as terminals may show them."""

from __future__ import annotations

import logging
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.cli.logs import RUN_LINES_MAX, JsonFormatter, LineFormatter, RunLines
from dynsched.cli.tables import distance, span, stamp
from dynsched.cli.values import parse_instant, since_instant
from dynsched.cli.visible import cut, visible, width
from dynsched.domain.durations import parse_duration
from dynsched.errors import InvalidInput

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("2w", timedelta(weeks=2)),
        ("0s", timedelta(0)),
    ],
)
def test_durations_are_numbers_with_units(text: str, expected: timedelta) -> None:
    """Units may be combined."""
    assert parse_duration(text, "--in") == expected


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 s", "5x", "1h-5m", "1h 5m", "\u0665s", "1e3s", "1h5"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    """A number without its unit is refused, not guessed."""
    with pytest.raises(InvalidInput) as refused:
        parse_duration(text, "--in")
    assert (refused.value.field, refused.value.problem) == ("--in", f"{text!r} is no duration")


@pytest.mark.parametrize("text", ["-5m", "-0s", "-x"])
def test_negative_durations_are_called_so(text: str) -> None:
    """Time does not run backwards."""
    with pytest.raises(InvalidInput, match="is negative"):
        parse_duration(text, "--in")


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    """No overflow and no other crash, whatever is typed."""
    try:
        found = parse_duration(text, "--in")
    except InvalidInput:
        return
    assert timedelta(0) <= found <= timedelta(days=3660)


@given(st.datetimes(timezones=st.timezones()))
def test_any_instant_is_read_back_from_its_text(value: datetime) -> None:
    """With any offset, at the edges of the calendar too, or refused as out of range."""
    try:
        found = parse_instant(value.isoformat(), "--at")
    except InvalidInput:
        assert value.year in (1, 9999) or value.utcoffset() is None or value.year < 1900
    else:
        assert abs(found - value) < timedelta(milliseconds=1)


def test_since_is_a_duration_back_or_an_instant() -> None:
    """6h is six hours ago."""
    assert since_instant("6h", NOW, "--since") == NOW - timedelta(hours=6)
    assert since_instant("2026-02-01T00:00Z", NOW, "--since").month == 2


@given(st.text(alphabet=st.characters(), max_size=40))
def test_what_is_visible_moves_no_cursor_and_hides_nothing(text: str) -> None:
    """No control, format, surrogate, unassigned or line-breaking character is left."""
    shown = visible(text)
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not hidden & {unicodedata.category(letter) for letter in shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("grüße 日本", "grüße 日本"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("pay\u200bpal\ufeff", "pay\\u200bpal\\ufeff"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\udc80\x9b31m", "\\udc80\\x9b31m"),
        ("\U000e0041", "\\U000e0041"),
        ("\u3164", "\\u3164"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + "\\u0301\\u0301"),
    ],
)
def test_characters_that_do_not_show_are_escaped(text: str, shown: str) -> None:
    """Escape sequences, bidirectional marks, zero-width and blank letters, towers of accents."""
    assert visible(text) == shown


@given(st.text(alphabet="ab日é…", max_size=20), st.integers(1, 20))
def test_a_cut_text_fits_its_columns(text: str, columns: int) -> None:
    """Wide letters take two columns."""
    assert width(cut(text, columns)) <= columns or width(text) <= columns


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(milliseconds=20), "0.02s"),
        (timedelta(seconds=9.96), "10s"),
        (timedelta(seconds=59.9), "59s"),
        (timedelta(minutes=61), "1h 1m"),
        (timedelta(hours=24), "1d"),
        (timedelta(days=400, hours=3), "400d 3h"),
    ],
)
def test_durations_are_told_in_two_units(length: timedelta, words: str) -> None:
    """Enough to act upon at a glance."""
    assert span(length) == words


def test_instants_are_told_in_utc_with_their_distance() -> None:
    """Past, present and future."""
    assert stamp(NOW + timedelta(milliseconds=999)) == "2026-03-01 12:00:00Z"
    assert distance(NOW + timedelta(minutes=3), NOW) == "in 3m"
    assert distance(NOW - timedelta(minutes=3), NOW) == "3m ago"
    assert distance(NOW, NOW + timedelta(milliseconds=300)) == "now"


def record(message: str, *, at_s: float = 0.0, level: int = logging.INFO) -> logging.LogRecord:
    """Return a log record of an instant in seconds since 1970."""
    made = logging.LogRecord("dynsched.worker.runs", level, "", 0, message, (), None)
    made.created = at_s
    return made


def test_a_log_line_is_one_line_and_safe() -> None:
    """Time, level, component, message."""
    line = LineFormatter().format(record("a\nb\x1b[1m", at_s=3_723))
    assert line == "01:02:03 info    worker     a\\nb\\x1b[1m"


def test_a_traceback_follows_line_by_line() -> None:
    """Each of its lines is made safe too."""
    made = record("oops")
    made.exc_info = (ValueError, ValueError("\x1b[1m\nand more"), None)
    lines = LineFormatter().format(made).splitlines()
    assert lines[1:] == ["    ValueError: \\x1b[1m", "    and more"]
    assert '"trace": "ValueError' in JsonFormatter().format(made)


def test_lines_about_single_runs_are_limited_in_each_second() -> None:
    """The first line of the next second tells how many were left out; warnings always pass."""
    lines = RunLines()
    passed = [lines.filter(record("x", at_s=7.5)) for _ in range(RUN_LINES_MAX + 20)]
    assert sum(passed) == RUN_LINES_MAX
    assert lines.filter(record("x", at_s=7.9, level=logging.WARNING))
    following = record("x", at_s=8.0)
    assert lines.filter(following)
    assert following.getMessage() == "x (and 20 more before it)"
