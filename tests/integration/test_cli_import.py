"""`dynsched import crontab`: the samples, all or nothing, and a second import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dynsched.cli.crontab_import import machine_zone
from tests.integration.program import Program

SAMPLES = Path(__file__).parents[1] / "data" / "crontabs"
BAD = SAMPLES / "usr09_bad_lines.cron"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def write(tmp_path: Path, text: str | bytes, name: str = "mine") -> str:
    """Write a crontab; return its path."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def show(program: Program, name: str) -> Any:
    """Return a job's document."""
    return program.json("job", "show", name)


@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.cron")), ids=lambda file: file.stem)
def test_each_sample_becomes_jobs_that_match_its_lines(program: Program, file: Path) -> None:
    """As many jobs as lines, with the schedule, command, user, input and environment of each."""
    system = ("--system",) if file.name.startswith("sys") else ()
    found = program.json("import", "crontab", str(file), *system, "--skip-bad")
    assert found["imported"] is True
    assert found["jobs"]
    for line in found["jobs"]:
        job = show(program, line["name"])
        assert job["schedule"]["cron"] == line["cron"]
        assert job["target"]["command"] == line["command"]
        assert job["target"].get("user") == line["user"]
    assert len(program.json("job", "list")) == len(found["jobs"])


def test_zones_environment_users_and_input_reach_the_job(program: Program) -> None:
    """CRON_TZ sets the zone, settings the environment, a percent sign the input."""
    program("import", "crontab", str(SAMPLES / "sys17_crontz.cron"), "--system", "--tz", "UTC")
    zones = [job["schedule"].get("tz", "UTC") for job in program.json("job", "list")]
    assert sorted(zones) == ["America/New_York", "Asia/Tokyo", "UTC"]
    morning = show(program, "morning")["target"]
    assert (morning["env"], morning["user"]) == ({"SHELL": "/bin/bash"}, "report")
    program("import", "crontab", str(SAMPLES / "usr15_percent.cron"))
    assert "\n" in show(program, "cat")["target"]["stdin"]


def test_an_imported_command_is_treated_as_cron_would(program: Program, tmp_path: Path) -> None:
    """No time limit, no second try, empty input; where it came from is a tag."""
    program("import", "crontab", write(tmp_path, "# nightly copy\n0 1 * * * /opt/bin/copy\n"))
    job = show(program, "copy")
    assert (job["policies"]["timeout_s"], job["policies"]["retry"]["max_attempts"]) == (None, 1)
    assert job["target"]["stdin"] == ""
    assert job["tags"] == {"crontab": "mine", "comment": "nightly copy"}


def test_options_say_how_all_lines_are_treated(program: Program, tmp_path: Path) -> None:
    """Tenant, queue, zone and policies."""
    file = write(tmp_path, "0 1 * * * /opt/bin/copy\n")
    program(
        "import", "crontab", file, "--tenant", "ops", "--queue", "slow", "--tz", "Asia/Tokyo",
        "--max-attempts", "3", "--timeout", "2h", "--overlap", "allow", "--catch-up", "skip",
    )  # fmt: skip
    job = program.json("job", "show", "copy", "--tenant", "ops")
    assert (job["queue"], job["schedule"]["tz"]) == ("slow", "Asia/Tokyo")
    policies = job["policies"]
    assert (policies["timeout_s"], policies["overlap"]) == (7200, "allow")
    assert (policies["catch_up"], policies["retry"]["max_attempts"]) == ("skip", 3)


def test_an_imported_command_runs(program: Program, tmp_path: Path) -> None:
    """From a crontab's line to a finished run with its output."""
    program("import", "crontab", write(tmp_path, "WHO=world\n0 1 * * * echo hello $WHO\n"))
    (job,) = program.json("job", "list")
    run = program.json("job", "run-now", job["name"])
    program("worker", "--once", "--allow-commands")
    shown = program.json("run", "show", run["run_id"])
    assert shown["state"] == "done"
    assert "hello world" in shown["attempts"][0]["detail"]


def test_bad_lines_are_named_and_nothing_is_imported(program: Program) -> None:
    """Each with its number, the field and the reason; exit code 2."""
    before = program.dump()
    answer = program("import", "crontab", str(BAD), code=2)
    assert program.dump() == before
    assert answer.out == ""
    told = answer.err.splitlines()
    assert told[0] == "bad line 1, minute: minute '60' is out of range (give 0 to 59)"
    assert [line.split(",")[0] for line in told[:11]] == [f"bad line {n}" for n in range(1, 12)]
    assert told[-1].startswith(f"error: {BAD}: 11 lines cannot be imported, so nothing was")


def test_the_good_lines_are_imported_when_bad_ones_are_skipped(program: Program) -> None:
    """The bad ones are still named, and the call succeeds."""
    answer = program("import", "crontab", str(BAD), "--skip-bad")
    assert answer.err.count("bad line") == 11
    assert [job["name"] for job in program.json("job", "list")] == ["good"]


def test_the_document_tells_problems_too(program: Program) -> None:
    """With --json a refused import is a document as well, and still fails."""
    found = program.json("import", "crontab", str(BAD), code=2)
    assert (found["imported"], len(found["problems"])) == (False, 11)
    assert found["problems"][1] == {
        "line": 2,
        "field": "hour",
        "reason": "hour '24' is out of range (give 0 to 23)",
    }


def test_reboot_is_refused_by_name(program: Program, tmp_path: Path) -> None:
    """There is no boot to wait for."""
    answer = program("import", "crontab", write(tmp_path, "@reboot /opt/bin/x\n"), code=2)
    assert "bad line 1, schedule: @reboot: there is no boot here" in answer.err


def test_what_cron_misreads_silently_is_warned_of(program: Program, tmp_path: Path) -> None:
    """Day fields that are ORed, a last line without its break, carriage returns."""
    text = "0 0 1 * 1 /opt/bin/x\r\n*/90 * * * * /opt/bin/y"
    answer = program("import", "crontab", write(tmp_path, text))
    assert answer.err.count("warning: line") == 4
    assert "warning: line 2, line: the last line has no line break" in answer.err
    assert len(program.json("job", "list")) == 2


def test_a_dry_run_shows_the_next_times_and_writes_nothing(
    program: Program, tmp_path: Path
) -> None:
    """With a store or without one."""
    file = write(tmp_path, "0 1 * * * /opt/bin/copy\n")
    before = program.dump()
    found = program.json("import", "crontab", file, "--dry-run")
    assert program.dump() == before
    (line,) = found["jobs"]
    assert (found["dry_run"], found["imported"], line["job_id"]) == (True, False, None)
    assert line["next_at"].endswith("T01:00:00.000Z")
    bare = Program(tmp_path / "bare", made=False)
    assert "/opt/bin/copy" in bare("import", "crontab", file, "--dry-run").out
    assert not bare.file.exists()


def test_an_import_needs_a_store(tmp_path: Path) -> None:
    """It is not made on the side."""
    program = Program(tmp_path, made=False)
    file = write(tmp_path, "0 1 * * * /opt/bin/copy\n")
    assert "run `dynsched init`" in program.error("import", "crontab", file)


def test_a_second_import_makes_no_doubles(program: Program, tmp_path: Path) -> None:
    """What is the same is unchanged, wherever in the file it stands."""
    file = write(tmp_path, "0 1 * * * /opt/bin/a x\n0 2 * * * /opt/bin/a x\n")
    program("import", "crontab", file)
    before = program.dump()
    write(tmp_path, "\n# moved\n0 1 * * * /opt/bin/a x\n0 2 * * * /opt/bin/a x\n")
    found = program.json("import", "crontab", file)
    assert [line["fate"] for line in found["jobs"]] == ["unchanged", "unchanged"]
    assert program.dump() == before


def test_an_edited_line_is_left_alone_unless_it_is_to_be_replaced(
    program: Program, tmp_path: Path
) -> None:
    """The job keeps its id and gets the line's schedule and command."""
    file = write(tmp_path, "0 1 * * * /opt/bin/a\n")
    program("import", "crontab", file)
    before = show(program, "a")
    write(tmp_path, "0 2 * * * FAST=1 /opt/bin/a\n")
    left = program("import", "crontab", file)
    assert "job a has another schedule and command and was left alone" in left.err
    assert show(program, "a")["schedule"]["cron"] == "0 1 * * *"
    assert "replaced" in program("import", "crontab", file, "--replace").out
    after = show(program, "a")
    assert after["job_id"] == before["job_id"]
    assert after["schedule"]["cron"] == "0 2 * * *"
    assert after["target"]["command"] == "FAST=1 /opt/bin/a"


def test_equal_names_from_two_files_become_two_jobs(program: Program, tmp_path: Path) -> None:
    """The second file's line gets a name that survives edits; none is dropped silently."""
    one = write(tmp_path, "0 1 * * * /opt/one/run.sh\n", "one")
    two = write(tmp_path, "0 1 * * * /opt/two/run.sh\n", "two")
    program("import", "crontab", one)
    (line,) = program.json("import", "crontab", two)["jobs"]
    assert (line["fate"], line["name"][:7]) == ("new", "run.sh-")
    write(tmp_path, "0 2 * * * /opt/two/run.sh\n", "two")
    (edited,) = program.json("import", "crontab", two, "--replace")["jobs"]
    assert (edited["fate"], edited["name"]) == ("replaced", line["name"])
    assert len(program.json("job", "list")) == 2


def test_a_job_of_a_person_is_never_taken_for_a_line(program: Program, tmp_path: Path) -> None:
    """Not even by --replace: it does not come from that file."""
    program("job", "add", "copy", "--every", "1h", "--handler", "copy")
    file = write(tmp_path, "0 1 * * * /opt/bin/copy\n")
    (line,) = program.json("import", "crontab", file, "--replace")["jobs"]
    assert line["fate"] == "new"
    assert show(program, "copy")["target"]["kind"] == "handler"


def test_a_byte_that_is_no_text_refuses_its_line_only(program: Program, tmp_path: Path) -> None:
    """The line is named, the others are read."""
    file = write(tmp_path, b"0 1 * * * /opt/bin/\xff\n0 2 * * * /opt/bin/b\n")
    found = program.json("import", "crontab", file, "--skip-bad")
    assert [note["line"] for note in found["problems"]] == [1]
    assert [line["name"] for line in found["jobs"]] == ["b"]


def test_standard_input_is_read_too(program: Program) -> None:
    """`crontab -l | dynsched import crontab -`."""
    program("import", "crontab", "-", stdin="0 1 * * * /opt/bin/copy\n")
    assert "crontab" not in show(program, "copy")["tags"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("/nowhere/at/all",), "FILE: '/nowhere/at/all' cannot be read: No such file"),
        (("-", "--tenant", "a b"), "--tenant: 'a b' is not a name"),
        (("-", "--queue", "#"), "--queue: '#' is not a name"),
        (("-", "--tz", "Nowhere"), "--tz: 'Nowhere' is not a zone"),
        (("-", "--max-attempts", "0"), "--max-attempts: 0 is out of range"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_bad_option_of_the_import_is_named(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """It is the call's fault and no line's."""
    answer = program("import", "crontab", *options, code=2, stdin="0 1 * * * /opt/bin/copy\n")
    assert answer.err.startswith(f"error: {told}")


def test_the_machines_zone_is_found_where_systems_keep_it(tmp_path: Path) -> None:
    """TZ first, then the link, then the file; what names no zone is passed over."""
    (tmp_path / "etc").mkdir()
    assert machine_zone({}, tmp_path) is None
    (tmp_path / "etc/timezone").write_text("Asia/Tokyo\n")
    assert machine_zone({}, tmp_path) == "Asia/Tokyo"
    os.symlink("/usr/share/zoneinfo/Europe/Riga", tmp_path / "etc/localtime")
    assert machine_zone({}, tmp_path) == "Europe/Riga"
    assert machine_zone({"TZ": ":America/Lima"}, tmp_path) == "America/Lima"
    assert machine_zone({"TZ": "CET-1CEST"}, tmp_path) == "Europe/Riga"


def test_an_import_says_in_the_end_what_became_of_the_lines(
    program: Program, tmp_path: Path
) -> None:
    """And that no worker may run its commands yet."""
    file = write(tmp_path, "0 1 * * * /bin/a\n@reboot /bin/b\n0 2 * * * /bin/c\n")
    answer = program("import", "crontab", file, "--skip-bad")
    assert answer.out.splitlines()[-1] == "2 imported, 1 left out"
    assert "note: commands only run on workers started with --allow-commands" in answer.err
    again = program("import", "crontab", file, "--skip-bad").out
    assert again.splitlines()[-1] == "0 imported, 2 there already, 1 left out"
