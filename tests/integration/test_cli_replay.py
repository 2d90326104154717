"""Replay batches on the command line."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.program import ROOT, Program

TERMINAL_S = 20.0


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def die(program: Program, count: int = 1, name: str = "j", tenant: str = "default") -> list[str]:
    """Make dead runs of a job; return their ids."""
    known = {run["run_id"] for run in program.json("dlq", "list", "--limit", "1000")}
    where = ("--tenant", tenant)
    program(
        "job", "add", name, "--manual", "--handler", "boom", "--max-attempts", "1", *where,
        "--overlap", "allow", "--payload", '"no disk"',
    )  # fmt: skip
    for _ in range(count):
        program("job", "run-now", name, *where)
    program.run_all()
    dead = program.json("dlq", "list", "--limit", "1000")
    return [run["run_id"] for run in dead if run["run_id"] not in known]


def preview(program: Program, *words: str) -> str:
    """Preview a batch; return its id."""
    return str(program.json("replay", "preview", "--rate", "none", *words)["batch_id"])


def test_a_batch_goes_from_preview_to_its_end(program: Program) -> None:
    """The reaper moves it; each command tells what the next one needs."""
    dead = die(program, 3)
    out = program("replay", "preview", "job:j", "--rate", "none").out
    assert "3, died" in out
    assert "jobs       j 3" in out
    (line,) = (line for line in out.splitlines() if line.startswith("nothing is moved yet"))
    batch_id = line.split()[-3]
    assert line.endswith(f"dynsched replay confirm {batch_id} --reason WHY")
    assert "reason" in program.error("replay", "confirm", batch_id)
    started = program("replay", "confirm", batch_id, "--reason", "the disk has room").out
    assert started.startswith(f"started {batch_id}: 3 dead runs; ")
    assert started.endswith(f"dynsched replay status {batch_id} --watch\n")
    assert program("reaper", "--once").out.endswith(
        "replay batches: 3 dead runs moved, 0 skipped\n"
    )
    found = program.json("replay", "status", batch_id)
    assert (found["state"], found["moved"], found["left"]) == ("finished", 3, 0)
    assert (found["confirmed_by"] is not None, found["reason"]) == (True, "the disk has room")
    runs = [program.json("run", "show", run_id) for run_id in dead]
    assert {(run["state"], run["priority"], run["batch"]) for run in runs} == {
        ("ready", "bulk", batch_id)
    }
    assert "replayed by" in program("run", "show", dead[0]).out
    assert program.json("run", "list", f"batch:{batch_id}", "--limit", "9")[0]["batch"] == batch_id
    assert batch_id in program("replay", "list").out
    entries = program.json("audit", "--of", f"batch:{batch_id}")
    assert [(one["action"], one["outcome"]) for one in entries] == [
        ("batch.finish", "done"),
        ("batch.confirm", "done"),
        ("batch.confirm", "failed"),  # it had no reason
        ("batch.preview", "done"),
    ]


def test_a_second_confirm_is_a_conflict_that_names_the_first(program: Program) -> None:
    """Exit code 4, and who it was."""
    die(program)
    batch_id = preview(program)
    program("--actor", "ada", "replay", "confirm", batch_id)
    answer = program("--actor", "bob", "replay", "confirm", batch_id, code=4)
    assert "was confirmed by ada at" in answer.err


def test_many_tenants_need_the_count_without_a_terminal(program: Program) -> None:
    """The line to be copied has it."""
    die(program, 1, "a")
    die(program, 1, "b", "acme")
    out = program("replay", "preview").out
    assert out.rstrip().endswith("--reason WHY --count 2")
    batch_id = out.split()[-5]
    assert program.error("replay", "confirm", batch_id, "--reason", "r").startswith("--count: ")
    error = program.error("replay", "confirm", batch_id, "--reason", "r", "--count", "3")
    assert error == "--count: 3 is not the number of runs (the batch has 2)"
    program("replay", "confirm", batch_id, "--reason", "r", "--count", "2")


def test_a_wrong_filter_shows_its_place(program: Program) -> None:
    """As in every list."""
    die(program)
    assert "tenant" in program("replay", "preview", "tenent:acme", code=2).err
    assert "no dead run" in program("replay", "preview", "tenant:nobody", code=2).err


def test_a_batch_is_paused_paced_resumed_and_aborted(program: Program) -> None:
    """Each answers with where the batch stands; the rest becomes a draft of its own."""
    dead = die(program, 4)
    batch_id = program.json("replay", "preview", "--rate", "0.01")["batch_id"]
    program("replay", "confirm", batch_id, "--reason", "r")
    assert "2 dead" not in program("reaper", "--once").out
    paused = program("replay", "pause", batch_id, "--reason", "errors").out
    assert paused.startswith(f"{batch_id} is paused: ")
    assert program.json("replay", "pace", batch_id, "5")["rate"] == 5
    assert program.json("replay", "pace", batch_id, "none")["rate"] is None
    assert "no number" in program("replay", "pace", batch_id, "fast", code=2).err
    assert program.json("replay", "resume", batch_id)["state"] == "running"
    program("replay", "pause", batch_id)
    aborted = program.json("replay", "abort", batch_id, "--pull-back", "--reason", "wrong")
    assert (aborted["state"], aborted["pull_back"]) == ("aborted", True)
    program("reaper", "--once")
    assert {program.json("run", "show", run_id)["state"] for run_id in dead} == {"dead"}
    rest = program.json("replay", "rest", batch_id)
    assert (rest["planned"], rest["parent"], rest["state"]) == (4, batch_id, "draft")


def test_entries_are_shown_by_outcome(program: Program) -> None:
    """With why one was skipped, and the run as it is now."""
    first, second = die(program, 2)
    batch_id = preview(program)
    program("dlq", "discard", first)
    program("replay", "confirm", batch_id, "--reason", "r")
    program("reaper", "--once")
    (skipped,) = program.json("replay", "entries", batch_id, "--outcome", "skipped")
    assert (skipped["run_id"], skipped["why"]) == (first, "discarded")
    assert skipped["run"]["state"] == "dead"
    assert second in program("replay", "entries", batch_id, "--outcome", "moved").out
    assert len(program.json("replay", "entries", batch_id)) == 2


def test_waiting_shows_progress_and_ends_with_a_code(program: Program) -> None:
    """0 when everything was moved or skipped, 1 when it was paused or aborted."""
    die(program, 2)
    batch_id = preview(program)
    program("replay", "confirm", batch_id, "--reason", "r")
    program("reaper", "--once")
    out = program("replay", "status", batch_id, "--watch").out
    assert out == f"finished [{'#' * 24}] 2 of 2 moved\n"
    die(program, 1, "other")
    second = preview(program, "job:other")
    program("replay", "confirm", second, "--reason", "r")
    program("replay", "pause", second)
    answer = program("replay", "confirm", second, code=4)
    assert "it is paused now" in answer.err
    watched = program("replay", "status", second, "--watch", code=1).out
    assert watched.splitlines()[0] == f"paused [{'.' * 24}] 0 of 1 moved, 1 left"
    assert json.loads(program("replay", "status", "--watch", "--json", code=1).out)["left"] == 1


def test_a_run_is_replayed_as_new_or_edited(program: Program) -> None:
    """The louder ones need a reason; `run show` has both sides of each."""
    first, second = die(program, 2)
    assert "reason" in program.error("replay", "as-new", first)
    new = program.json("replay", "as-new", first, "--reason", "the receipt was lost")
    assert new["origin"] == first
    shown = program("run", "show", first).out
    assert f"replaced by {new['run_id']}" in shown
    assert first in program("run", "show", new["run_id"]).out
    edited = program.json("replay", "edit", second, "--payload", '"room"', "--reason", "typo")
    assert (edited["run_id"], edited["state"], edited["replays"]) == (second, "ready", 1)
    shown = program("run", "show", second).out
    assert '-"no disk"' in shown
    assert '+"room"' in shown


def test_a_batch_that_does_not_exist_is_not_found(program: Program) -> None:
    """Exit code 3, with the command that lists them."""
    for command in ("status", "pause", "entries", "confirm", "rest"):
        answer = program("replay", command, "nothing", code=3)
        assert answer.err == ("error: no batch 'nothing' (`dynsched replay list` shows them)\n")
    assert "no replay batches" in program("replay", "list").out
    assert "replay preview" in program("replay", "status", code=3).err


def at_a_terminal(program: Program, typed: str, *arguments: str) -> tuple[str, int]:
    """Call the program at a terminal and type; return what it shows, and its exit code."""
    ours, theirs = pty.openpty()
    environment = os.environ | {
        "DYNSCHED_STORE": program.url,
        "PYTHONPATH": str(ROOT / "src"),
        "NO_COLOR": "1",
        "TERM": "xterm",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dynsched", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while select.select([ours], [], [], TERMINAL_S)[0]:
        try:
            part = os.read(ours, 4_096)
        except OSError:  # how Linux says that nobody is at the other end any more
            break
        shown += part
    os.close(ours)
    return shown.decode(), process.wait(TERMINAL_S)


def test_a_terminal_is_asked_the_more_the_batch_touches(program: Program) -> None:
    """A few runs are a yes; two tenants are a reason and the number, typed."""
    die(program, 1, "a")
    one = preview(program)
    shown, code = at_a_terminal(program, "n\n", "replay", "confirm", one)
    assert "replay 1 dead runs now? [y/N]" in shown
    assert code == 130
    die(program, 1, "b", "acme")
    two = preview(program)
    shown, code = at_a_terminal(program, "bug 71\n2\n", "replay", "confirm", two)
    assert "type the number of 2 tenants' runs to replay them" in shown
    assert (f"started {two}: 2 dead runs" in shown, code) == (True, 0)
    assert program.json("replay", "status", two)["reason"] == "bug 71"
    assert program.json("replay", "status", one)["state"] == "draft"


def test_the_batch_under_way_is_meant_and_not_a_later_draft(program: Program) -> None:
    """Whoever has confirmed one and asks for the status is shown that one."""
    die(program, 2)
    first = preview(program, "job:j")
    program("replay", "confirm", first, "--reason", "again")
    second = preview(program, "job:j")
    assert program.json("replay", "status")["batch_id"] == first
    program("replay", "abort", first)
    assert program.json("replay", "status")["batch_id"] == second


def test_jobs_of_one_name_are_told_apart_by_their_tenants(program: Program) -> None:
    """A batch over two tenants names whose job each is, and how long it takes."""
    die(program, 2, tenant="acme")
    die(program, 1, tenant="globex")
    out = program("replay", "preview", "job:j", "--rate", "1").out
    assert "j (acme) 2, j (globex) 1" in out
    assert "takes      about 3s" in out


def test_a_filter_in_place_of_ids_is_answered_with_the_way_to_replay_it(program: Program) -> None:
    """`dlq replay` takes ids; what fits a filter goes through a preview."""
    assert "dynsched replay preview FILTER" in program.error("dlq", "replay", "group:0123456789ab")
    assert "dynsched dlq list FILTER" in program.error("dlq", "discard", "@dead-again")
    (run_id,) = die(program)
    program("dlq", "discard", run_id)


def test_a_batch_without_a_rest_says_where_the_newly_dead_are_found(program: Program) -> None:
    """What somebody else replayed and what died again is a new preview's."""
    (run_id,) = die(program)
    batch_id = preview(program, "job:j")
    program("dlq", "replay", run_id)
    program.run_all()
    program("replay", "confirm", batch_id)
    program("reaper", "--once")
    assert "`dynsched replay preview` finds" in program.error("replay", "rest", batch_id)
