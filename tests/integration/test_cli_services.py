"""The long-running commands: one pass, a bounded run, signals, a crash, the demo."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dynsched.cli.demo import jobs as demo_jobs
from tests.integration.program import APP, Program, read_until

LINE = re.compile(r"\d\d:\d\d:\d\d (debug|info|warning|error) +\w+ +\S.*")
WAIT_S = 60


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    """Return what ends the processes of a test, however that ends."""
    with ExitStack() as stack:
        yield stack


def start(
    processes: ExitStack, program: Program, *arguments: str, **settings: str
) -> subprocess.Popen[str]:
    """Start a process that is killed with the test."""
    process = processes.enter_context(program.start(*arguments, **settings))
    processes.callback(process.kill)
    return process


def state_of(program: Program, job: str) -> str:
    """Return the state of a job's newest run."""
    state: str = program.json("run", "list", "--job", job)[0]["state"]
    return state


def test_one_tick_makes_the_runs_that_are_due(program: Program) -> None:
    """`dispatcher --once` says what it did and ends."""
    program("job", "add", "j", "--every", "1s", "--start", "2020-01-01T00:00:00Z", "--command", "x")
    out = program("dispatcher", "--once").out
    assert re.fullmatch(r"one tick: \d+ jobs served, \d+ runs made, \d+ skipped, 0 .*\n", out)


def test_one_sweep_says_what_it_returned(program: Program) -> None:
    """`reaper --once` finds nothing to return in a quiet store."""
    out = program("reaper", "--once").out
    assert out.startswith("one sweep: 0 sessions closed, 0 runs returned")


def test_a_worker_that_runs_once_runs_all_that_can_be_claimed(program: Program) -> None:
    """More runs than slots, retries that are due at once, and other queues left alone."""
    for number in range(5):
        program("job", "add", f"j{number}", "--now", "--handler", "echo")
    program("job", "add", "bad", "--now", "--handler", "boom", "--payload", "1", "--max-attempts",
            "3", "--retry-base", "0s")  # fmt: skip
    program("job", "add", "other", "--now", "--handler", "echo", "--queue", "other")
    assert program.run_all("--slots", "2") == "8 runs claimed, 8 started, 8 ended\n"
    states = {run["job_name"]: run["state"] for run in program.json("run", "list")}
    assert states == {**{f"j{n}": "done" for n in range(5)}, "bad": "dead", "other": "ready"}
    assert program.run_all("--queue", "other").startswith("1 runs claimed")


def test_a_worker_without_the_handler_leaves_the_run_and_ends(program: Program) -> None:
    """It is passed over: no attempt is counted, another worker may know it."""
    program("job", "add", "j", "--now", "--handler", "unknown")
    program.run_all()
    (run,) = program.json("run", "list", "--job", "j")
    assert (run["state"], run["attempt"]) == ("ready", 0)


def test_commands_run_only_where_they_are_allowed(program: Program) -> None:
    """A worker without --allow-commands leaves them alone."""
    program("job", "add", "j", "--now", "--command", "echo out; echo err >&2")
    program.run_all()
    assert state_of(program, "j") == "ready"
    program.run_all("--allow-commands")
    (run,) = program.json("run", "list", "--job", "j")
    assert "err" in program.json("run", "show", run["run_id"])["attempts"][0]["detail"]


def test_up_makes_its_store_and_says_where_and_what_to_try(tmp_path: Path) -> None:
    """Three commands that can be copied; the store is named where it is not the default."""
    program = Program(tmp_path, made=False)
    out = program("up", "--for", "10ms").out
    assert f"store    {program.url}, made just now" in out
    tries = [line.split() for line in out.splitlines() if line.startswith("         dynsched ")]
    assert len(tries) == 3
    assert all(words[-2:] == ["--store", program.url] for words in tries)
    assert "was there already" in program("init").out


def test_the_demo_shows_life_in_seconds_and_is_made_once(program: Program) -> None:
    """Cron, interval, delayed, failing, slow and queueing jobs, of several tenants."""
    program("up", "--demo", "--for", "10ms")
    before = program.json("job", "list")
    program("up", "--demo", "--for", "10ms")
    assert [job["job_id"] for job in program.json("job", "list")] == [
        job["job_id"] for job in before
    ]
    assert {job["name"] for job in before} == {spec.name for spec in demo_jobs()}
    assert len({job["tenant"] for job in before}) == 4
    kinds = {job["schedule"]["kind"] for job in before}
    assert kinds == {"cron", "interval", "once"}


def test_jobs_of_an_earlier_demo_still_find_their_handlers(
    program: Program, processes: ExitStack
) -> None:
    """`up` without --demo runs them, so that they do not wait for ever."""
    program("up", "--demo", "--for", "10ms")
    process = start(processes, program, "up")
    log = read_until(process, "demo-fails")
    assert "BadAddress" in log


def test_a_run_is_told_in_one_line(program: Program, processes: ExitStack) -> None:
    """Every line has the time, the level, the component and the message."""
    program("job", "add", "j", "--now", "--handler", "boom", "--payload", r'"a\u001b[1mb"',
            "--max-attempts", "1")  # fmt: skip
    process = start(processes, program, "up", "--app", APP)
    log = read_until(process, "is dead")
    assert all(LINE.fullmatch(line) for line in log.splitlines())
    assert "dead (attempts spent) - ValueError: a\\x1b[1mb" in log


def test_logs_can_be_json(program: Program, processes: ExitStack) -> None:
    """One object on each line; a run's line names the run."""
    program("job", "add", "j", "--now", "--handler", "echo")
    process = start(processes, program, "up", "--app", APP, "--log-json")
    records = [json.loads(line) for line in read_until(process, "done after").splitlines()]
    assert records[-1]["job_name"] == "j"
    assert set(records[-1]) >= {"at", "level", "component", "message", "run_id"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_what_is_cut_short_is_handed_back(
    program: Program, processes: ExitStack, number: signal.Signals
) -> None:
    """The handler is stopped after the grace; its run is ready again, at no cost."""
    program("job", "add", "j", "--now", "--handler", "long")
    process = start(processes, program, "up", "--app", APP, DYNSCHED_DRAIN_GRACE_S="0.1")
    read_until(process, "has begun")
    process.send_signal(number)
    out, log = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert f"{number.name}: draining" in log
    assert out.endswith("stopped; everything is kept\n")
    (run,) = program.json("run", "list", "--job", "j")
    assert (run["state"], run["spent"], run["losses"]) == ("ready", 0, 0)


def test_a_second_interrupt_ends_at_once(program: Program, processes: ExitStack) -> None:
    """Exit code 130; the run stays leased, and the next `up` takes it back at once."""
    program("job", "add", "j", "--now", "--handler", "long")
    process = start(processes, program, "worker", "--app", APP)
    read_until(process, "has begun")
    process.send_signal(signal.SIGINT)
    read_until(process, "draining: 1")
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_S) == 130
    assert state_of(program, "j") == "leased"


def test_what_a_killed_up_left_is_taken_back_by_the_next_one(
    program: Program, processes: ExitStack
) -> None:
    """A kill -9 in the middle of a run: the next `up` on this machine starts it again at once."""
    program("job", "add", "j", "--now", "--handler", "long")
    killed = start(processes, program, "up", "--app", APP)
    read_until(killed, "has begun")
    killed.kill()
    killed.wait(WAIT_S)
    assert state_of(program, "j") == "leased"
    log = read_until(start(processes, program, "up", "--app", APP), "has begun")
    assert "is over" in log
    (run,) = program.json("run", "list", "--job", "j")
    assert (run["state"], run["attempt"], run["losses"]) == ("leased", 1, 1)


def test_two_ups_share_one_store(program: Program, processes: ExitStack) -> None:
    """Both work; each run is done once."""
    for number in range(20):
        program("job", "add", f"j{number}", "--in", "1s", "--handler", "echo")
    ups = [start(processes, program, "up", "--app", APP, "--for", "4s") for _ in range(2)]
    logs = [process.communicate(timeout=WAIT_S)[1] for process in ups]
    assert sum(log.count("done after") for log in logs) == 20
    runs = program.json("run", "list", "--state", "done")
    assert [run["attempt"] for run in runs] == [1] * 20


@pytest.mark.parametrize("call", [("run", "list", "--json"), ("stats",)], ids=" ".join)
def test_a_reader_that_leaves_early_makes_no_noise(
    program: Program, processes: ExitStack, call: tuple[str, ...]
) -> None:
    """`dynsched run list | head -1`: nothing on standard error, for much to write or little."""
    for number in range(30):
        program("job", "add", f"j{number}", "--now", "--handler", "echo")
    process = start(processes, program, *call)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(WAIT_S) == 1


@pytest.mark.parametrize(
    ("options", "script", "error"),
    [
        ((), "echo out; echo err >&2; exit 3", "Exit3"),
        (("--timeout", "1s", "--soft-timeout", "300ms"), "echo out; echo err >&2; sleep 9",
         "TimeLimit"),
    ],
)  # fmt: skip
def test_both_outputs_of_a_failed_command_are_kept(
    program: Program, options: tuple[str, ...], script: str, error: str
) -> None:
    """Also of one that ran into its time limit."""
    program("job", "add", "j", "--now", "--command", script, "--max-attempts", "1", *options)
    program.run_all("--allow-commands")
    (run,) = program.json("run", "list", "--job", "j")
    (attempt,) = program.json("run", "show", run["run_id"])["attempts"]
    assert attempt["error_type"] == error
    assert (attempt["output"]["stdout"], attempt["output"]["stderr"]) == ("out\n", "err\n")
    shown = program("dlq", "show", run["run_id"]).out
    assert "  stdout:\n    out\n" in shown
    assert "  stderr:\n    err\n" in shown
