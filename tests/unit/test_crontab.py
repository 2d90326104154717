"""Crontabs: what becomes an entry, what is refused and what is warned of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsched.domain.crontab import CrontabEntry, CrontabFile, parse_crontab, split_percent
from dynsched.domain.crontab_names import suggest_name
from dynsched.domain.recurrence import Cron

SAMPLES = Path(__file__).parents[1] / "data" / "crontabs"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def read(text: str, *, system: bool = False) -> CrontabFile:
    """Parse a crontab that ends as it should."""
    return parse_crontab(text + "\n", system=system, filename="test")


def sample(name: str) -> CrontabFile:
    """Parse a sample; its name says whether it is a system crontab."""
    text = (SAMPLES / name).read_bytes().decode()
    return parse_crontab(text, system=name.startswith("sys"), filename=name)


def entry(text: str, *, system: bool = False) -> CrontabEntry:
    """Return the only entry of a crontab without problems."""
    file = read(text, system=system)
    assert file.problems == ()
    (only,) = file.entries
    return only


def problem(text: str, *, system: bool = False) -> str:
    """Return the only problem of a crontab without entries, as text."""
    file = read(text, system=system)
    assert file.entries == ()
    (only,) = file.problems
    return f"{only.line} {only.field}: {only.reason}"


def warnings(text: str, *, system: bool = False) -> list[str]:
    """Return the reasons of all warnings."""
    return [note.reason for note in read(text, system=system).warnings]


def test_a_system_crontab_has_users_and_settings() -> None:
    """Mixed blanks, settings above and a header that is no comment of the first entry."""
    file = sample("sys01_base.cron")
    assert [each.line for each in file.entries] == [6, 7, 8, 9]
    assert {each.user for each in file.entries} == {"root"}
    assert [each.name for each in file.entries] == [
        f"run-parts-{period}" for period in ("hourly", "daily", "weekly", "monthly")
    ]
    assert file.entries[0].environment["SHELL"] == "/bin/sh"
    assert file.entries[0].comment == ""
    assert (file.problems, file.warnings) == ((), ())


def test_a_comment_goes_with_the_entry_right_below() -> None:
    """Not past an entry, a setting or a blank line; not if it switches an entry off."""
    comments = [each.comment for each in sample("sys03_sysstat.cron").entries]
    assert comments == ["", "extra run just before midnight to turn the file over"]
    assert entry("# one\n## two\n0 0 * * * x").comment == "one two"
    for above in ("# one\n\n", "# one\nA=b\n", "#0 5 * * * /old\n", "# @daily /old\n", "#\n"):
        assert entry(above + "0 0 * * * x").comment == ""


def test_cron_tz_holds_from_its_line_until_it_is_reset() -> None:
    """It is the zone of the schedule, and no setting of the command."""
    file = sample("sys17_crontz.cron")
    assert [each.zone for each in file.entries] == ["America/New_York", "Asia/Tokyo", None]
    assert "CRON_TZ" not in file.entries[0].environment


def test_an_unknown_zone_refuses_the_entries_below_it() -> None:
    """They would run at the wrong time; a good zone ends that."""
    text = "CRON_TZ=Europe/Rega\n0 0 * * * a\nCRON_TZ=Europe/Riga\n0 0 * * * b"
    file = read(text)
    assert [(note.line, note.field) for note in file.problems] == [(1, "CRON_TZ"), (2, "CRON_TZ")]
    assert "did you mean Europe/Riga?" in file.problems[0].reason
    assert [(each.line, each.zone) for each in file.entries] == [(4, "Europe/Riga")]


def test_tz_reaches_the_command_only() -> None:
    """As cron does it; the warning says so."""
    assert entry("TZ=Asia/Tokyo\n0 0 * * * x").environment == {"TZ": "Asia/Tokyo"}
    assert entry("TZ=Asia/Tokyo\n0 0 * * * x").zone is None
    assert "CRON_TZ sets the zone" in warnings("TZ=Asia/Tokyo")[0]


def test_macros_and_names_are_read() -> None:
    """Every expression of the samples builds a schedule."""
    for name in ("sys19_macros.cron", "usr04_names.cron"):
        file = sample(name)
        assert file.problems == ()
        assert all(Cron.parse(each.expr).expr == each.expr for each in file.entries)
    assert len(sample("sys19_macros.cron").entries) == 7


def test_every_bad_line_has_its_number_its_field_and_a_reason() -> None:
    """And the good line after them is still read."""
    file = sample("usr09_bad_lines.cron")
    assert [(note.line, note.field) for note in file.problems] == [
        (1, "minute"),
        (2, "hour"),
        (3, "day of month"),
        (4, "month"),
        (5, "day of week"),
        (6, "minute"),
        (7, "minute"),
        (8, "day of week"),
        (9, "month"),
        (10, "schedule"),
        (11, "command"),
    ]
    assert "'60' is out of range (give 0 to 59)" in file.problems[0].reason
    assert [each.name for each in file.entries] == ["good"]


def test_a_last_line_without_a_break_is_read_with_a_warning() -> None:
    """Cron refuses or ignores it, so its job may never have run."""
    file = sample("usr10_nonewline.cron")
    assert [each.command for each in file.entries] == ["/opt/bin/last"]
    assert [note.line for note in file.warnings] == [1]


def test_percent_begins_the_standard_input() -> None:
    """Further ones are line breaks; a backslash protects one and is dropped."""
    commands = [(each.command, each.stdin) for each in sample("usr15_percent.cron").entries]
    assert commands == [
        ("cat > /opt/out", "line one\nline two% still two\n"),
        ("date +%Y-%m-%d", None),
        ("printf '", "s\\n' x\n"),
        ("echo 100%", None),
    ]


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("cat%", "cat", ""),
        ("cat%%", "cat", "\n"),
        (r"a\nb", r"a\nb", None),
        (r"a\\%b", r"a\\", "b\n"),
        (r"a\\\%b", r"a\\%b", None),
        (r"a%\\%b", "a", "\\%b\n"),
        ("a\\", "a\\", None),
        ("a%b\\", "a", "b\\\n"),
    ],
)
def test_backslashes_protect_percent_signs_only(text: str, command: str, stdin: str | None) -> None:
    """In the command a protected backslash protects nothing, as in the daemon."""
    assert split_percent(text) == (command, stdin)


def test_lines_of_another_system_are_read() -> None:
    """Carriage returns, a byte order mark and tabs are no part of anything; a warning says so."""
    file = parse_crontab("\ufeffA=b\r\n\t0 5\t* * *\t/opt/x\r\n", system=False, filename="dos")
    assert [(each.command, each.environment["A"]) for each in file.entries] == [("/opt/x", "b")]
    assert [note.line for note in file.warnings] == [1]


def test_a_nul_byte_refuses_its_line() -> None:
    """A command that holds one would be cut short by the shell."""
    assert problem("0 0 * * * echo a\0b") == "1 line: the line has a NUL byte"


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("A=b", "A", "b"),
        ("A = b c  ", "A", "b c"),
        ('A="b c "', "A", "b c "),
        ("A='b \"c\"' ", "A", 'b "c"'),
        ("'A B' = c", "A B", "c"),
        ("A=", "A", ""),
        ("A=b=c # d", "A", "b=c # d"),
        ("PATH=$HOME/bin:%", "PATH", "$HOME/bin:%"),
    ],
)
def test_settings_are_unquoted_and_nothing_in_them_is_expanded(
    line: str, name: str, value: str
) -> None:
    """As cron reads them: no comments, no variables."""
    assert entry(f"{line}\n0 0 * * * x").environment == {name: value}


def test_a_setting_holds_for_the_lines_below_it_only() -> None:
    """Each entry keeps the environment of its own line."""
    file = read("0 0 * * * a\nA=1\n0 0 * * * b\nA=2\nB=3\n0 0 * * * c")
    environments = [dict(each.environment) for each in file.entries]
    assert environments == [{}, {"A": "1"}, {"A": "2", "B": "3"}]


@pytest.mark.parametrize("line", ['A="b', "A='b\" c", 'A="b" c', "=b"])
def test_a_malformed_setting_is_refused(line: str) -> None:
    """Cron would take it for a schedule or drop it."""
    assert problem(line)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("@reboot /opt/x", "1 schedule: @reboot: there is no boot here"),
        ("@every 5m /opt/x", "use an interval schedule"),
        ("@Daily /opt/x", "write @daily"),
        ("@daily", "1 command: the line has no command"),
        ("0 5 * * *", "1 command: the line has no command"),
        ("0 5 * * * \t", "1 command: the line has no command"),
        ("0 5 * *", "1 schedule: the line is neither NAME=value nor five time fields"),
        ("hello", "1 schedule: the line is neither"),
        ("* * * * * * /opt/x", "1 command: the command begins with *: there are six time fields"),
        ("H 5 * * * /opt/x", "1 minute: minute 'H': H is not crontab notation"),
        ("0 0 31 2 * /opt/x", "1 day of month: day of month '31' never falls in month '2'"),
        ("0 0\u00a0* * * * /opt/x", "1 schedule: the expression has the character U+00A0"),
    ],
)
def test_a_line_that_cannot_run_is_refused_with_the_reason(line: str, told: str) -> None:
    """The field and the reason are those that a person needs to mend it."""
    assert told in problem(line)


@pytest.mark.parametrize(
    ("expr", "reading"),
    [
        ("0 0 * * 5#2", "silently reads '5' only"),
        ("*-5 * * * *", "silently reads '*' only"),
        ("*5 * * * *", "silently reads '*' only"),
        ("5* * * * *", "silently reads '5' only"),
        ("1.5 * * * *", "silently reads '1' only"),
        ("1-5-9 * * * *", "silently reads '1-5' only"),
        ("1;2 * * * *", "silently reads '1' only"),
        ("0~30 * * * *", "silently reads '0' only"),
        ("* 22-2 * * *", "accepts it and never runs the job"),
    ],
)
def test_what_debian_cron_misreads_is_refused_with_its_reading(expr: str, reading: str) -> None:
    """The job did run there, at other times than its author thinks."""
    assert f"Debian cron {reading}" in problem(f"{expr} /opt/x")


@pytest.mark.parametrize("term", ["5/15", "?", "L", "5L", "60", "1,,2", "*/0", "a", "5-"])
def test_what_debian_cron_refuses_too_is_not_said_to_be_misread(term: str) -> None:
    """Only measured readings are told."""
    assert "Debian" not in problem(f"{term} * * * * /opt/x")


def test_a_missing_user_column_is_told() -> None:
    """In a system crontab the word before the command is a user."""
    assert "1 user: '/opt/x' is no user name" in problem("0 5 * * * /opt/x", system=True)
    assert "no user and no command" in problem("0 5 * * *", system=True)
    assert "no command" in problem("0 5 * * * root", system=True)
    assert entry("0 5 * * *\troot\techo\ta", system=True).command == "echo\ta"
    assert "is it a system crontab?" in warnings("0 5 * * * root /opt/x")[0]


def test_day_fields_that_both_restrict_are_warned_of() -> None:
    """Most authors expect the other reading."""
    assert warnings("0 0 1 * mon x") == [
        "day of month '1' and day of week 'mon': either day field is enough"
    ]
    assert "both day fields must match" in warnings("0 0 */2 * mon x")[0]
    assert warnings("0 0 1 * * x") == warnings("0 0 * * mon x") == []


def test_a_step_past_the_end_of_its_field_is_warned_of() -> None:
    """*/90 is not every 90 minutes."""
    assert "means 0 only" in warnings("*/90 * * * * x")[0]
    assert warnings("*/59 */23 * * * x") == []


def test_settings_and_signs_without_effect_are_warned_of() -> None:
    """Nothing that cron did is dropped in silence."""
    assert "no mail is sent" in warnings("MAILTO=ops@example.org")[0]
    assert "at random" in warnings("RANDOM_DELAY=5")[0]
    assert "do not log" in warnings("-0 5 * * * root x", system=True)[0]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/opt/bin/backup.sh", "backup.sh"),
        ("cd /srv/app && ./manage.py clearsessions >/dev/null 2>&1", "manage.py-clearsessions"),
        ("[ -x /opt/a ] && /opt/a --all || true", "a"),
        ("nice -n 10 ionice -c 3 /opt/bin/index /srv/data", "index-data"),
        ("TOKEN=s3cret sudo -u www curl -u me:s3cret https://s3cret@example.org/", "www-curl"),
        ("mysqldump -ps3cret shop | gzip > /srv/shop.gz", "mysqldump"),
        ("test -x /opt/x", "test-x"),
        ("", "job"),
        ("&& ;", "job"),
        ("/", "job"),
    ],
)
def test_a_name_tells_the_program_and_no_secret(command: str, name: str) -> None:
    """Trivial parts, wrappers, options and their values stay out."""
    assert suggest_name(command) == name


def test_equal_names_get_suffixes_that_survive_a_new_import() -> None:
    """The suffix depends on the line itself, not on its place."""
    lines = ["0 1 * * * /opt/a x:1", "0 2 * * * /opt/a x:2", "0 2 * * * /opt/a x:2"]
    names = [each.name for each in read("\n".join(lines)).entries]
    moved = [each.name for each in read("# new\n" + "\n".join(lines)).entries]
    assert names == moved
    assert names[0] == "a"
    assert re.fullmatch(r"a-[0-9a-f]{6}", names[1])
    assert names[2] == f"{names[1]}-2"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.text(" \t*/,-%\\#='\"@0159aHL\r\0\u00a0", max_size=30), max_size=6), st.booleans()
)
def test_any_text_is_read_line_by_line_without_a_crash(lines: list[str], system: bool) -> None:
    """Every line is accounted for at most once, and what is accepted can be scheduled."""
    file = parse_crontab("\n".join(lines), system=system, filename="noise")
    told = [each.line for each in file.entries] + [note.line for note in file.problems]
    assert len(set(told)) == len(told)
    for each in file.entries:
        assert Cron.parse(each.expr).expr == each.expr
        assert NAME.fullmatch(each.name)
