"""Jobs on the command line: add, list, show, edit, pause, resume, run now, delete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.program import DECLARING, Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def add(program: Program, *options: str, name: str = "j") -> Any:
    """Add a job and return its document."""
    target = () if {"--handler", "--http", "--command"} & set(options) else ("--command", "true")
    return program.json("job", "add", name, *target, *options)


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        (("--cron", "*/5 * * * *"), {"kind": "cron", "cron": "*/5 * * * *"}),
        (
            ("--cron", "0 0 9 * * *", "--seconds", "--tz", "Europe/Riga", "--dst", "both"),
            {"kind": "cron", "seconds": True, "tz": "Europe/Riga", "dst": "both"},
        ),
        (("--every", "1h30m"), {"kind": "interval", "every_ms": 5_400_000}),
        (
            ("--every", "2h", "--start", "2190-01-01T00:00Z", "--end", "2190-02-01T00:00+01:00"),
            {"anchor": "2190-01-01T00:00:00.000Z", "end": "2190-01-31T23:00:00.000Z"},
        ),
        (("--at", "2190-01-01T00:00:00Z"), {"kind": "once", "at": "2190-01-01T00:00:00.000Z"}),
        (("--in", "2d"), {"kind": "once"}),
        (("--now",), {"kind": "once"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_way_to_say_when_makes_its_schedule(
    program: Program, options: tuple[str, ...], schedule: dict[str, object]
) -> None:
    """The document has the schedule as it is stored."""
    found = add(program, *options)["schedule"]
    assert {name: found[name] for name in schedule} == schedule


def test_a_job_by_hand_has_no_schedule(program: Program) -> None:
    """--manual makes a job that only `run-now` starts."""
    assert add(program, "--manual")["schedule"] is None
    assert "by hand" in program("job", "list").out


def test_an_http_job_keeps_its_request(program: Program) -> None:
    """Method, headers, body template and statuses reach the target."""
    target = add(
        program, "--now", "--http", "https://example.org/x", "--method", "put", "--header",
        "X-Team: ops", "--header", "Accept: a:b", "--body", "[1]", "--retry-status", "404",
        "--permanent-status", "422",
    )["target"]  # fmt: skip
    assert (target["url"], target["method"], target["body"]) == (
        "https://example.org/x",
        "PUT",
        "[1]",
    )
    assert target["headers"] == {"X-Team": "ops", "Accept": "a:b"}
    assert (target["retry"], target["permanent"]) == ([404], [422])


def test_a_command_job_keeps_its_surroundings(program: Program) -> None:
    """Environment, input, shell, user and directory reach the target."""
    target = add(
        program, "--now", "--command", "cat", "--env", "A=1", "--env", "B=x=y", "--stdin", "in",
        "--shell", "/bin/bash", "--user", "backup", "--cwd", "/srv",
    )["target"]  # fmt: skip
    assert target["env"] == {"A": "1", "B": "x=y"}
    assert [target[name] for name in ("stdin", "shell", "user", "cwd")] == [
        "in",
        "/bin/bash",
        "backup",
        "/srv",
    ]


def test_every_policy_can_be_chosen(program: Program) -> None:
    """Each option arrives in the field of its name; `none` lifts a limit."""
    policies = add(
        program, "--every", "1m", "--max-attempts", "3", "--retry-base", "2s", "--retry-factor",
        "3", "--retry-cap", "1m", "--timeout", "none", "--soft-timeout", "5m", "--catch-up", "all",
        "--catch-up-max", "7", "--catch-up-window", "2h", "--overlap", "queue_one",
        "--start-deadline", "90s", "--flex", "10s", "--retention", "3d", "--share-by-job",
    )["policies"]  # fmt: skip
    retry = {name: policies["retry"][name] for name in ("max_attempts", "base_s", "factor")}
    assert retry == {"max_attempts": 3, "base_s": 2, "factor": 3.0}
    assert (policies["timeout_s"], policies["soft_timeout_s"]) == (None, 300)
    assert (policies["catch_up"], policies["catch_up_max"]) == ("all", 7)
    assert (policies["overlap"], policies["start_deadline_s"]) == ("queue_one", 90)
    assert (policies["flex_s"], policies["retention_s"]) == (10, 259_200)
    assert policies["share_by_job"] is True


def test_only_recurring_jobs_forbid_overlap_by_themselves(program: Program) -> None:
    """The default depends on the schedule, as for every other door."""
    assert add(program, "--every", "1m", name="a")["policies"]["overlap"] == "skip"
    assert add(program, "--now", name="b")["policies"]["overlap"] == "allow"


@pytest.mark.parametrize("given", ["inline", "file", "stdin"])
def test_a_payload_comes_inline_from_a_file_or_from_standard_input(
    program: Program, given: str, tmp_path: Path
) -> None:
    """All three ways store the same value, wherever it lies."""
    value = {"order": [1, 2, "x" * 400]}
    text = json.dumps(value)
    (tmp_path / "payload.json").write_text(text)
    argument = {"inline": text, "file": f"@{tmp_path}/payload.json", "stdin": "@-"}[given]
    program("job", "add", "j", "--manual", "--command", "true", "--payload", argument, stdin=text)
    assert program.json("job", "show", "j")["payload"] == value


def test_a_handlers_declaration_holds_where_no_option_says_otherwise(program: Program) -> None:
    """With --app queue, attempts, schedule and tags come from the decorator."""
    plain = add(program, "--handler", "declared", "--app", DECLARING, name="a")
    assert (plain["queue"], plain["policies"]["retry"]["max_attempts"]) == ("reports", 7)
    assert (plain["schedule"]["every_ms"], plain["tags"]) == (300_000, {"a": "b"})
    other = add(
        program, "--handler", "declared", "--app", DECLARING, "--queue", "main",
        "--cron", "* * * * *", "--max-attempts", "2", name="9b",
    )  # fmt: skip
    assert (other["queue"], other["policies"]["retry"]["max_attempts"]) == ("main", 2)
    assert other["schedule"]["kind"] == "cron"


def test_jobs_are_listed_by_tenant_tag_and_state(program: Program) -> None:
    """Filters narrow the list; without one it holds the jobs of all tenants."""
    add(program, "--every", "1m", "--tag", "team=ops", name="a")
    add(program, "--every", "1m", "--tenant", "acme", name="b")
    program("job", "pause", "b", "--tenant", "acme", "--reason", "later")

    def names(*options: str) -> list[str]:
        return [job["name"] for job in program.json("job", "list", *options)]

    assert sorted(names()) == ["a", "b"]
    assert names("--tenant", "acme") == ["b"]
    assert names("--tag", "team=ops") == ["a"]
    assert names("--state", "paused") == ["b"]
    assert names("--tag", "team=dev") == []


def test_a_list_that_is_cut_says_so_beside_it(program: Program) -> None:
    """The document stays clean; on standard error is what goes on with the list."""
    for name in ("a", "b"):
        add(program, "--every", "1m", name=name)
    answer = program("job", "list", "--limit", "1", "--json")
    assert [job["name"] for job in json.loads(answer.out)] == ["a"]
    status, cursor = answer.err.split("; more with --cursor ")
    assert status == "matched 1, examined 1"
    rest = program("job", "list", "--limit", "1", "--json", "--cursor", cursor.strip())
    assert [job["name"] for job in json.loads(rest.out)] == ["b"]
    assert rest.err == "matched 1, examined 1\n"


def test_a_job_is_shown_with_what_comes_and_what_ran(program: Program) -> None:
    """Name or id, for people and as a document."""
    made = add(program, "--every", "10s", "--tag", "team=ops")
    shown = program.json("job", "show", made["job_id"])
    assert len(shown["coming"]) == 5
    assert [run["state"] for run in shown["runs"]] == ["ready"] * len(shown["runs"])
    text = program("job", "show", "j").out
    assert all(word in text for word in ("every 10 s", "$ true", "team=ops", "(in "))


def test_an_edit_changes_what_it_names_and_nothing_else(program: Program) -> None:
    """Policies, target parts, tags and queue change; the rest stays."""
    add(program, "--every", "1m", "--http", "https://x.org", "--header", "A: 1", "--tag", "k=v",
        "--max-attempts", "4")  # fmt: skip
    edited = program.json(
        "job", "edit", "j", "--method", "PUT", "--timeout", "none", "--tag", "n=1", "--tag", "k=",
        "--queue", "slow", "--priority", "bulk",
    )  # fmt: skip
    assert (edited["target"]["method"], edited["target"]["headers"]) == ("PUT", {"A": "1"})
    assert (edited["tags"], edited["queue"], edited["priority"]) == ({"n": "1"}, "slow", "bulk")
    policies = edited["policies"]
    assert (policies["timeout_s"], policies["retry"]["max_attempts"]) == (None, 4)
    assert (edited["schedule"]["every_ms"], edited["effective_from"]) == (60_000, None)


def test_an_edit_of_a_cron_schedule_keeps_its_other_parts(program: Program) -> None:
    """A new expression keeps the zone; a new zone keeps the expression."""
    add(program, "--cron", "0 9 * * *", "--tz", "Europe/Riga")
    first = program.json("job", "edit", "j", "--cron", "0 10 * * *")
    assert (first["schedule"]["cron"], first["schedule"]["tz"]) == ("0 10 * * *", "Europe/Riga")
    assert first["effective_from"].endswith("Z")
    second = program.json("job", "edit", "j", "--tz", "Asia/Tokyo")
    assert (second["schedule"]["cron"], second["schedule"]["tz"]) == ("0 10 * * *", "Asia/Tokyo")


def test_an_edit_may_turn_one_kind_of_schedule_into_another(program: Program) -> None:
    """Interval to cron, to none at all."""
    add(program, "--every", "1m")
    assert program.json("job", "edit", "j", "--cron", "@daily")["schedule"]["kind"] == "cron"
    assert program.json("job", "edit", "j", "--manual")["schedule"] is None


def test_an_interval_keeps_its_phase_when_only_its_end_is_edited(program: Program) -> None:
    """The anchor stays, so no occurrence moves."""
    before = add(program, "--every", "1h")["schedule"]["anchor"]
    after = program.json("job", "edit", "j", "--end", "2190-01-01T00:00Z")["schedule"]
    assert (after["anchor"], after["end"]) == (before, "2190-01-01T00:00:00.000Z")


def test_an_edit_with_one_fault_changes_nothing(program: Program) -> None:
    """A good policy beside a bad schedule is not written either."""
    add(program, "--every", "1m")
    fault = program.error("job", "edit", "j", "--timeout", "5m", "--cron", "61 * * * *")
    assert fault.startswith("--cron: ")


def test_a_paused_job_tells_why_and_from_when(program: Program) -> None:
    """The reason is kept; resume clears it."""
    add(program, "--every", "1m")
    paused = program.json("job", "pause", "j", "--reason", "disk is full", "--hold")
    assert (paused["state"], paused["reason"]) == ("paused", "disk is full")
    assert paused["policies"]["hold"] is True
    assert paused["next_at"] is None
    assert "in force from" in program("job", "resume", "j").out
    assert program.json("job", "show", "j")["state"] == "active"


def test_pausing_twice_is_a_conflict(program: Program) -> None:
    """Exit code 4, and the reason of the first pause stays."""
    add(program, "--every", "1m")
    program("job", "pause", "j", "--reason", "one")
    assert "only an active one pauses" in program.error(
        "job", "pause", "j", "--reason", "two", code=4
    )


def test_a_manual_run_carries_its_own_payload(program: Program) -> None:
    """`run-now` answers with the run; a worker returns the payload as its output."""
    add(program, "--manual", "--handler", "echo")
    run = program.json("job", "run-now", "j", "--payload", "[7]", "--force")
    assert (run["state"], run["kind"], run["forced"]) == ("ready", "manual", True)
    program.run_all()
    shown = program.json("run", "show", run["run_id"])
    assert (shown["state"], shown["payload"]) == ("done", [7])
    assert shown["attempts"][0]["detail"] == "[7]"


def test_a_deleted_job_frees_its_name_and_is_not_listed(program: Program) -> None:
    """The next job of that name is another one."""
    first = add(program, "--every", "1m")
    assert "nothing starts from" in program("job", "delete", "j").out
    assert program.json("job", "list") == []
    assert program.error("job", "show", "j", code=3).startswith("no job 'j'")
    assert add(program, "--every", "1m")["job_id"] != first["job_id"]


def test_a_job_for_workers_that_are_not_there_is_warned_of(program: Program) -> None:
    """Commands need a worker that allows them; a handler one that has it, once workers live."""
    added = program("job", "add", "c", "--manual", "--command", "true")
    assert "note: commands only run on workers started with --allow-commands" in added.err
    assert program("job", "add", "h", "--manual", "--handler", "nosuch").err == ""


def test_six_fields_without_the_option_name_it(program: Program) -> None:
    """The domain's advice is not one that can be typed."""
    told = program.error("job", "add", "j", "--cron", "0 * * * * *", "--command", "x")
    assert "--seconds" in told
