"""Runs, the dead-letter queue, tenants and statistics on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dynsched.bootstrap import open_base
from dynsched.domain.instants import EPOCH
from dynsched.storage.runs import ProgressNote
from tests.integration.program import Program

REQUIRED = {
    "run_id", "job_id", "tenant", "scheduled_for", "state", "attempt", "fence", "reason",
}  # fmt: skip
INSTANTS = ("scheduled_for", "available_at", "created_at", "started_at", "ended_at", "expires_at")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def add(program: Program, handler: str, *options: str, name: str = "j") -> None:
    """Add a job that runs now."""
    program("job", "add", name, "--now", "--handler", handler, *options)


def die(program: Program, *options: str, name: str = "j") -> str:
    """Make a dead run; return its id."""
    add(program, "boom", "--payload", '"no disk 7"', "--max-attempts", "1", *options, name=name)
    program.run_all()
    dead: list[dict[str, str]] = program.json("dlq", "list")
    return next(run["run_id"] for run in dead if run["job_name"] == name)


def test_a_run_object_has_what_scripts_rely_on(program: Program) -> None:
    """The fixed names are there, and every instant is UTC with Z."""
    add(program, "echo")
    program.run_all()
    (run,) = program.json("run", "list", "--job", "j")
    assert set(run) >= REQUIRED
    assert (run["state"], run["attempt"], run["fence"], run["reason"]) == ("done", 1, 1, "")
    assert all(run[name] is None or run[name].endswith("Z") for name in INSTANTS)
    assert (run["job_name"], run["kind"]) == ("j", "scheduled")


def test_every_state_is_found_without_naming_a_job(program: Program) -> None:
    """Each lies in another index partition; the plain list reads them all."""
    add(program, "echo", name="done")
    add(program, "boom", "--payload", '"x"', "--max-attempts", "1", name="dead")
    add(program, "boom", "--payload", '"x"', "--retry-base", "10m", name="failed")
    add(program, "echo", "--queue", "other", name="ready")
    add(program, "echo", "--queue", "other", name="cancelled")
    program.run_all()
    ready = program.json("run", "list", "--job", "cancelled")[0]["run_id"]
    program("run", "cancel", ready, "--reason", "not wanted")
    states = {run["job_name"]: run["state"] for run in program.json("run", "list")}
    assert states["failed"] in ("failed", "ready")  # full jitter may make it due at once
    del states["failed"]
    assert states == {name: name for name in states}
    assert set(states) == {"done", "dead", "ready", "cancelled"}


@pytest.mark.parametrize("state", ["done", "dead", "ready"])
def test_runs_are_listed_by_state(program: Program, state: str) -> None:
    """Only runs in that state, whatever else there is."""
    add(program, "echo", name="done")
    add(program, "never", name="dead")
    add(program, "echo", "--queue", "other", name="ready")
    program.run_all()
    found = program.json("run", "list", "--state", state)
    assert [run["job_name"] for run in found] == [state]


def test_runs_are_listed_by_tenant_and_since(program: Program) -> None:
    """A tenant's runs only; what ended before `since` is left out."""
    add(program, "echo", "--tenant", "acme")
    add(program, "echo")
    program.run_all()
    assert [run["tenant"] for run in program.json("run", "list", "--tenant", "acme")] == ["acme"]
    assert len(program.json("run", "list", "--since", "5m")) == 2
    assert program.json("run", "list", "--since", "2190-01-01T00:00:00Z") == []


def test_people_see_runs_in_a_table_with_their_errors(program: Program) -> None:
    """State in words, the reason and the error; no colour in a pipe."""
    die(program)
    answer = program("run", "list")
    heading, row = answer.out.splitlines()
    assert heading.split()[:3] == ["STATE", "TENANT", "JOB"]
    assert row.startswith("dead")
    assert "attempts spent - ValueError: no disk 7" in row
    assert "\x1b" not in answer.out


def test_a_run_is_shown_with_each_attempt(program: Program) -> None:
    """The errors of all tries, oldest first, with their tracebacks."""
    add(program, "boom", "--payload", '"no disk"', "--max-attempts", "2", "--retry-base", "0s")
    program.run_all()
    (dead,) = program.json("dlq", "list")
    shown = program.json("run", "show", dead["run_id"])
    assert [each["outcome"] for each in shown["attempts"]] == ["failed", "failed"]
    assert [each["attempt"] for each in shown["attempts"]] == [1, 2]
    text = program("run", "show", dead["run_id"]).out
    assert text.count("Traceback") == 2
    assert "2 of 2 failures" in text


def test_progress_of_a_run_is_shown(program: Program) -> None:
    """What the handler reported last, in its own units."""
    add(program, "long")
    (run,) = program.json("run", "list", "--job", "j")
    note = ProgressNote(
        run_id=run["run_id"], attempt=2, done=1, total=3, note="half \x1b way", at=EPOCH
    )
    base = open_base(program.url)
    base.store.runs.note_progress(note, 2**31)
    assert program.json("run", "show", run["run_id"])["progress"]["note"] == "half \x1b way"
    text = program("run", "show", run["run_id"]).out
    assert "1 of 3 on attempt 2" in text
    assert "half \\x1b way" in text


def test_a_waiting_run_is_cancelled_at_once_and_an_ended_one_not_at_all(program: Program) -> None:
    """The reason is kept; a second cancel is a conflict."""
    add(program, "echo")
    (run,) = program.json("run", "list", "--job", "j")
    cancelled = program.json("run", "cancel", run["run_id"], "--reason", "wrong order")
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "wrong order")
    assert "has ended" in program.error("run", "cancel", run["run_id"], code=4)


def test_a_dead_run_comes_back_with_its_attempts_and_its_key(program: Program) -> None:
    """Same row, same idempotency key; the old tries stay beside the new ones."""
    run_id = die(program)
    before = program.json("dlq", "show", run_id)
    (after,) = program.json("dlq", "replay", run_id)
    assert (after["state"], after["replays"], after["attempt"]) == ("ready", 1, 1)
    assert after["idempotency_key"] == before["idempotency_key"]
    assert program.json("dlq", "list") == []
    program.run_all()
    shown = program.json("dlq", "show", run_id)
    told = [(each["attempt"], each["outcome"]) for each in shown["attempts"]]
    assert told == [(1, "failed"), (1, "replayed"), (2, "failed")]


def test_several_runs_are_replayed_and_one_fault_stops_no_other(program: Program) -> None:
    """The good ones come back, the bad one is named, and the call fails with its code."""
    first, second = die(program, name="a"), die(program, name="b")
    answer = program("dlq", "replay", first, "nonsense", second, code=2)
    assert answer.out == f"replayed {first}\nreplayed {second}\n"
    assert answer.err.startswith("error: RUN_ID...: 'nonsense' is not a run id")
    assert "it is ready" in program("dlq", "replay", first, code=4).err


def test_a_discarded_run_is_hidden_until_it_is_restored(program: Program) -> None:
    """It leaves the queue, is listed apart, and comes back unharmed."""
    run_id = die(program)
    program("dlq", "discard", run_id)
    assert program.json("dlq", "list") == []
    (hidden,) = program.json("dlq", "list", "--discarded")
    assert (hidden["run_id"], hidden["discarded"]) == (run_id, True)
    program("dlq", "restore", run_id)
    assert [run["run_id"] for run in program.json("dlq", "list")] == [run_id]


def test_the_dead_are_listed_by_job_tenant_and_group_of_errors(program: Program) -> None:
    """Errors that differ in their particulars only are one group."""
    die(program, name="a")
    other = die(program, "--tenant", "acme", name="b")
    groups = {run["signature"] for run in program.json("dlq", "list")}
    (group,) = groups
    assert len(program.json("dlq", "list", "--group", group)) == 2
    assert program.json("dlq", "list", "--signature", "0" * 12) == []
    (run,) = program.json("dlq", "list", "--tenant", "acme", "--job", "b")
    assert run["run_id"] == other
    assert group in program("dlq", "list").out


def test_only_dead_runs_are_shown_as_dead(program: Program) -> None:
    """`dlq show` sends one to `run show` for the others."""
    add(program, "echo")
    (run,) = program.json("run", "list", "--job", "j")
    assert "it is ready" in program.error("dlq", "show", run["run_id"], code=4)


def test_a_run_that_never_was_is_not_found(program: Program) -> None:
    """Exit code 3 with what may be the cause."""
    fault = program.error("run", "show", "abc@2026-01-01T00:00:00.000Z-c", code=3)
    assert "it never was, or its retention is over" in fault


def test_a_tenants_cap_is_set_listed_and_lifted(program: Program) -> None:
    """It is seen by people and programs."""
    assert program.json("tenant", "set", "acme", "--max-running", "5")["max_running"] == 5
    assert program.json("tenant", "list") == [{"tenant": "acme", "max_running": 5}]
    assert "no cap" in program("tenant", "set", "acme", "--max-running", "none").out
    assert "none" in program("tenant", "list").out


def test_statistics_tell_levels_the_oldest_due_run_and_who_works(program: Program) -> None:
    """Counts by state, a queue without workers, and cursors."""
    die(program, name="dead")
    add(program, "echo", "--queue", "lonely", name="waits")
    stats: dict[str, Any] = program.json("stats")
    assert stats["runs"]["dead"] == {"count": 1, "at_least": False}
    lonely = next(queue for queue in stats["queues"] if queue["queue"] == "lonely")
    assert (lonely["ready"]["count"], lonely["sessions"]) == (1, 0)
    assert lonely["oldest_due_s"] >= 0
    assert set(stats["cursor_lag_s"]) == {"due", "retry", "leased"}
    text = program("stats").out
    assert "none: nobody serves it" in text
    assert "keeps up; every minute is closed up to: due" in text


NASTY = "\x1b]0;owned\x07 \x1b[2J\u202egnp.exe\u200b\r\nline"
ATTEMPT = ("--max-attempts", "1")


def test_no_error_text_reaches_the_terminal_raw(program: Program) -> None:
    """Escape sequences, bidi and zero-width characters are shown as escapes, in every view."""
    add(program, "boom", "--payload", json.dumps(NASTY), *ATTEMPT)
    program.run_all()
    (run,) = program.json("dlq", "list")
    for call in (("run", "list"), ("dlq", "list"), ("run", "show", run["run_id"])):
        out = program(*call).out
        assert not set("\x1b\x07\u202e\u200b\r") & set(out)
        assert "\\x1b]0;owned\\x07" in out
        assert "\\u202egnp.exe" in out


def test_documents_are_plain_ascii(program: Program) -> None:
    """A JSON document cannot fool a terminal either, and parses back to the same text."""
    add(program, "echo", "--tag", "note=žluťoučký", name="a")
    assert program("job", "list", "--json").out.isascii()
    assert program.json("job", "list")[0]["tags"] == {"note": "žluťoučký"}


def test_a_store_is_resized_from_a_coming_minute_on(program: Program) -> None:
    """The answer says from when; a call that changes nothing is refused."""
    document = program.json("resize", "--lanes", "4")
    assert (document["lanes"], document["shards"]) == (4, 1)
    assert document["holds_from"] > "2026"
    assert "nothing is to change" in program.error("resize")
