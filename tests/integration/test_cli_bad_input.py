"""Bad input: one clear line, exit code 2, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.program import APP, Program

NOW = ("--now", "--command", "true")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--at", "2190-01-01T00:00:00"), "--at: the datetime has no zone (give an offset"),
        (("--at", "2190-02-30T00:00:00Z"), "--at: '2190-02-30T00:00:00Z' is not an ISO instant"),
        (("--at", "tomorrow"), "--at: 'tomorrow' is not an ISO instant (for example"),
        (("--at", "0001-01-01T00:00:00+14:00"), "--at: '0001-01-01T00:00:00+14:00' is out of"),
        (("--at", "2020-01-01T00:00:00Z"), "--at: 2020-01-01T00:00:00+00:00 is over (give"),
        (("--cron", "0 9 * * *", "--tz", "Mars/Base"), "--tz: 'Mars/Base' is not a zone"),
        (("--cron", "61 * * * *"), "--cron: minute '61' is out of range (give 0 to 59)"),
        (("--cron", "0 0 31 2 *"), "--cron: day of month '31' never falls in month '2'"),
        (("--cron", "* * * *"), "--cron: the expression has 4 fields, not 5"),
        (("--cron", "1," * 128 + "1 * * * *"), "--cron: "),
        (("--cron", "* * * * *\n* * * * *"), "--cron: the expression has a line break"),
        (("--cron", "0 9 * * *", "--dst", "maybe"), "--dst: 'maybe' is no rule"),
        (("--cron", "0 9 * * *", "--end", "2020-01-01T00:00Z"), "schedule: it names no instant"),
        (("--every", "-5m"), "--every: '-5m' is negative (give 0s or more)"),
        (("--every", "5"), "--every: '5' is no duration (for example 30s, 5m"),
        (("--every", "10ms"), "--every: shorter than a second (give 1s or more)"),
        (("--every", "9999999w"), "--every: '9999999w' is longer than ten years"),
        (("--in", "-1s"), "--in: '-1s' is negative"),
        (("--in", "5m", "--tz", "UTC"), "--tz: it goes with --cron"),
        (("--in", "5m", "--start", "2190-01-01T00:00Z"), "--start: it goes with --cron or --every"),
        (("--now", "--every", "5m"), "schedule: --every and --now exclude each other"),
        ((), "schedule: there is none (give one of --cron, --every, --at, --in, --now"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_bad_schedule_is_refused_by_its_option(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """The message begins with what was typed, and says what to give instead."""
    assert program.error("job", "add", "j", "--command", "true", *options).startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--payload", '{"a": NaN}'), "--payload.a: nan is not JSON"),
        (("--payload", '{"a": 1e999}'), "--payload.a: the number 1e999… cannot be kept"),
        (("--payload", r'["\ud800"]'), "--payload[0]: the text has a lone surrogate"),
        (("--payload", "{"), "--payload: not JSON at line 1 column 2"),
        (("--payload", '{"a":1,"a":2}'), "--payload: the key 'a' occurs twice"),
        (("--payload", "@missing.json"), "--payload: 'missing.json' cannot be read: No such file"),
        (("--queue", "a b"), "--queue: 'a b' is not a name"),
        (("--tenant", "#1"), "--tenant: '#1' is not a name"),
        (("--tag", "novalue"), "--tag: 'novalue' has another form (key=value)"),
        (("--tag", "a=1", "--tag", "a=2"), "--tag: 'a' is given twice"),
        (("--tag", "a=\x1b"), "--tag: the value of 'a' is not 128 printable"),
        (("--max-attempts", "0"), "--max-attempts: 0 is out of range (give 1 to 1000)"),
        (("--max-attempts", "many"), "Invalid value for '--max-attempts'"),
        (("--retry-factor", "0.5"), "--retry-factor: 0.5 is out of range"),
        (("--retry-base", "2h"), "--retry-cap: it is shorter than the base delay"),
        (("--timeout", "0.4ms"), "--timeout: must be at least a millisecond"),
        (("--timeout", "400d"), "--timeout: longer than 366 days (give at most 8784h)"),
        (("--timeout", "1m", "--soft-timeout", "2m"), "--soft-timeout: longer than the timeout"),
        (("--retention", "1d"), "--retention: shorter than two days (give 2d or more)"),
        (("--catch-up-max", "0"), "--catch-up-max: must be 1 to 1000"),
        (("--overlap", "maybe"), "Invalid value for '--overlap': 'maybe' is not one of 'skip'"),
        (("--env", "A"), "--env: 'A' has another form (NAME=value)"),
        (("--header", "A: 1"), "--header: it goes with --http"),
        (("--http", "https://x.org"), "target: --http and --command exclude each other"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_bad_option_is_refused_by_its_name(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """Whatever layer refuses it, the message begins with the option."""
    assert program.error("job", "add", "j", *NOW, *options).startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--http", "ftp://x.org"), "--http: 'ftp://x.org' is not http or https"),
        (("--http", "https://u:p@x.org"), "--http: it holds a user or password"),
        (("--http", "https://x.org", "--header", "A"), "--header: 'A' has another form"),
        (("--http", "https://x.org", "--header", "Idempotency-Key: 1"), "--header: Idempotency"),
        (("--http", "https://x.org", "--method", "FETCH"), "--method: 'FETCH' is unknown"),
        (("--http", "https://x.org", "--retry-status", "200"), "--retry-status: 200 is not"),
        (("--handler", "1x"), "--handler: '1x' is not a handler name"),
        (("--handler", "ech", "--app", APP), "--handler: the app has no handler 'ech' (did you"),
        (("--handler", "x", "--app", "nowhere:app"), "--app: there is no module 'nowhere'"),
        (("--handler", "x", "--app", "nowhere"), "--app: 'nowhere' is not module:attribute"),
        ((), "target: there is nothing to do (give one of --handler, --http, --command, --"),
        (("--command", " "), "--command: it is empty"),
        (("--command", "true", "--cwd", "here"), "--cwd: 'here' is not absolute"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)
def test_a_bad_target_is_refused_by_its_option(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """A handler that the given app does not have is refused with what was probably meant."""
    assert program.error("job", "add", "j", "--now", *options).startswith(told)


@pytest.mark.parametrize("name", ["", "a b", "-x", "a" * 65, "a\n", "ä", "\udc80"])
def test_a_bad_name_is_refused(program: Program, name: str) -> None:
    """Names keep index keys in order, so their form matters."""
    assert program.error("job", "add", *NOW, "--", name).startswith("NAME: ")


def test_a_name_that_is_taken_is_refused_and_not_even_its_queue_is_noted(program: Program) -> None:
    """Exit code 2, as for all bad input; the store is the same to the byte."""
    program("job", "add", "j", *NOW)
    fault = program.error("job", "add", "j", *NOW, "--queue", "other")
    assert fault.startswith("name: tenant 'default' has a job 'j' already (choose another name")


def test_a_payload_over_its_limit_is_refused_wherever_it_lies(
    program: Program, tmp_path: Path
) -> None:
    """256 KB of canonical text; and a file that is far longer is not even parsed."""
    file = tmp_path / "big.json"
    file.write_text(json.dumps("x" * 262_143))
    assert "the limit is 262,144" in program.error("job", "add", "j", *NOW, "--payload", f"@{file}")
    file.write_text(" " * 2_000_000)
    assert program.error("job", "add", "j", *NOW, "--payload", f"@{file}").startswith("--payload:")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://x", "--store: 'mysql://x' is no store URL (use sqlite:///path.db or"),
        ("jobs.db", "--store: 'jobs.db' is no store URL"),
        ("sqlite://jobs.db", "--store: 'sqlite://jobs.db' names a host (use three slashes"),
        ("sqlite:///x.db?wal=1", "--store: unknown option 'wal'"),
        ("sqlite:///x.db?durability=none", "--store: durability='none' is unknown"),
        ("dynamodb://", "--store prefix: '' is not a name"),
        ("dynamodb://a?zone=1", "--store: unknown option 'zone' (known: region, endpoint_url)"),
    ],
)
def test_a_store_url_that_cannot_be_one_is_refused(program: Program, url: str, told: str) -> None:
    """Before anything is opened."""
    assert program.error("job", "list", "--store", url).startswith(told)


@pytest.mark.parametrize("command", [("job", "list"), ("init",), ("up", "--for", "1s")])
def test_a_store_that_cannot_be_opened_is_refused(
    program: Program, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A folder, another program's database, a folder that is missing."""
    other = tmp_path / "other.db"
    other.write_bytes(b"not a database at all, but long enough to look like one" * 20)
    for path in (tmp_path, other):
        fault = program.error(*command, "--store", f"sqlite:///{path}")
        assert fault.startswith("--store: ")
        assert str(path) in fault


@pytest.mark.parametrize(
    "command",
    [
        ("job", "add", "j", *NOW),
        ("job", "list"),
        ("job", "show", "j"),
        ("run", "list"),
        ("dlq", "list"),
        ("stats",),
        ("tenant", "list"),
        ("dispatcher", "--once"),
        ("worker", "--once"),
        ("reaper", "--once"),
        ("worker",),
    ],
    ids=" ".join,
)
def test_a_store_that_was_not_made_says_how_to_make_it(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Every command but `init` and `up` names both, and makes no file."""
    program = Program(tmp_path, made=False)
    fault = program.error(*command)
    assert f"there is no store at {program.file}; run `dynsched init`" in fault
    assert "`dynsched up`" in fault
    assert not program.file.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "show", "x"), "RUN_ID: 'x' is not a run id (`dynsched run list` shows them)"),
        (("run", "cancel", "x"), "RUN_ID: 'x' is not a run id"),
        (("run", "list", "--since", "-1h"), "--since: '-1h' is negative"),
        (("run", "list", "--since", "2026-01-01T00:00"), "--since: the datetime has no zone"),
        (("run", "list", "--limit", "0"), "--limit: 0 is out of range (give 1 to 10000)"),
        (("run", "list", "--state", "lost"), "Invalid value for '--state'"),
        (("job", "list", "--limit", "999999"), "--limit: 999999 is out of range"),
        (("job", "pause", "j"), "Missing option '--reason'"),
        (("tenant", "set", "a b", "--max-running", "1"), "NAME: 'a b' is not a name"),
        (("tenant", "set", "a", "--max-running", "0"), "--max-running: out of range"),
        (("tenant", "set", "a", "--max-running", "x"), "--max-running: 'x' is no number"),
        (("worker", "--once", "--slots", "0"), "--slots: 0 is out of range"),
        (("worker", "--once", "--queue", "a b"), "--queue: 'a b' is not a name"),
        (("init", "--lanes", "0"), "--lanes: 0 is out of range"),
        (("init", "--look-ahead", "1h"), "--look-ahead: 1h is out of range"),
        (("nonsense",), "No such command 'nonsense' (see `dynsched --help`)"),
        (("job", "add"), "Missing argument 'NAME' (see `dynsched job add --help`)"),
        (("handoff", "set", "q"), "Missing argument '{high|default|bulk}'. Choose from: high,"),
        (("job", "list", "--colour"), "No such option '--colour'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_other_bad_arguments_are_named_as_they_were_typed(
    program: Program, arguments: tuple[str, ...], told: str
) -> None:
    """Usage errors have the same form and code as refused values."""
    assert program.error(*arguments).startswith(told)


def test_an_edit_of_nothing_is_refused(program: Program) -> None:
    """It says where the options are."""
    program("job", "add", "j", "--every", "1m", "--command", "true")
    assert program.error("job", "edit", "j").startswith("edit: nothing to change was named")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tz", "Europe/Riga"), "--tz: it goes with --cron"),
        (("--header", "A: 1"), "--header: it goes with --http"),
        (("--catch-up-max", "0"), "--catch-up-max: must be 1 to 1000"),
        (("--handler", "eko", "--app", APP), "--handler: the app has no handler 'eko'"),
        (("--payload", "{"), "--payload: not JSON"),
    ],
)
def test_a_bad_edit_is_refused_and_changes_nothing(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """The job is the same to the byte."""
    program("job", "add", "j", "--every", "1m", "--command", "true")
    assert program.error("job", "edit", "j", *options).startswith(told)
