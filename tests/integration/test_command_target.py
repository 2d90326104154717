"""Command targets with real processes: what they see, what is kept, and how they are ended."""

from __future__ import annotations

import os
import pwd
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dynsched
from dynsched.clock import SystemClock
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target import CommandTarget
from dynsched.targets.context import Context
from dynsched.targets.result import Result, Succeeded, WasCancelled
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import Limits, Stop, StopReason

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
SHORT, LONG = timedelta(milliseconds=150), timedelta(hours=1)


class FixedDay(SystemClock):
    """A clock whose day stands still and whose seconds run."""

    def now(self) -> datetime:
        """Return the same instant."""
        return NOW

    def monotonic(self) -> float:
        """Return running seconds."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Do not wait."""


@pytest.fixture
def runner() -> Iterator[TargetRunner]:
    """Give a runner that may run commands, with a short grace."""
    runner = TargetRunner(None, allow_commands=True, clock=FixedDay(), kill_grace=SHORT)
    yield runner
    runner.close()


def context(**more: Any) -> Context[Any]:
    """Return the context of an ordinary attempt."""
    plain: dict[str, Any] = {"payload": {"id": "é"}, "idempotency_key": "key-1", "job_id": "j"}
    plain |= {"job_name": "nightly", "run_id": "j/r", "tenant": "t", "scheduled_for": NOW}
    return Context(attempt=2, fence=5, **(plain | more))


def stdout(result: Result) -> str:
    """Return what a successful command wrote."""
    assert isinstance(result, Succeeded), result
    assert isinstance(result.output, dict)
    return str(result.output["stdout"])


def failure(result: Result) -> Failed:
    """Return the result as a failure."""
    assert isinstance(result, Failed)
    return result


def ends(pid: int) -> bool:
    """Tell whether a process has ended, or does within ten seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    ended = bool(poll.poll(10_000))
    os.close(watched)
    return ended


def test_a_quiet_command_succeeds_without_output(runner: TargetRunner) -> None:
    """Exit code 0 is success."""
    assert runner.run(CommandTarget("true"), context()) == Succeeded()


def test_both_outputs_are_kept(runner: TargetRunner) -> None:
    """Warnings of a successful command matter as well."""
    result = runner.run(CommandTarget("echo out; echo err >&2"), context())
    assert result == Succeeded(output={"stdout": "out\n", "stderr": "err\n"})


def test_the_payload_is_the_standard_input(runner: TargetRunner) -> None:
    """As JSON, whole, even if it is longer than any pipe's buffer."""
    payload = ["x" * 1000] * 250
    result = runner.run(CommandTarget("wc -c"), context(payload=payload))
    assert int(stdout(result)) == 250 * 1003 + 1
    assert stdout(runner.run(CommandTarget("cat"), context())) == '{"id":"é"}'


def test_a_crontab_s_own_input_replaces_the_payload(runner: TargetRunner) -> None:
    """What stands after a percent sign."""
    target = CommandTarget("cat", stdin="line one\nline two")
    assert stdout(runner.run(target, context())) == "line one\nline two"


def test_input_that_nobody_reads_is_no_fault(runner: TargetRunner) -> None:
    """Most commands of a crontab read nothing."""
    assert runner.run(CommandTarget("true", stdin="x" * 60_000), context()) == Succeeded()


def test_the_environment_names_the_run(runner: TargetRunner) -> None:
    """A script can be idempotent and fenced like a handler."""
    text = stdout(runner.run(CommandTarget("env | grep ^DYNSCHED_ | sort"), context()))
    assert text.splitlines() == [
        "DYNSCHED_ATTEMPT=2",
        "DYNSCHED_FENCE=5",
        "DYNSCHED_IDEMPOTENCY_KEY=key-1",
        "DYNSCHED_JOB_ID=j",
        "DYNSCHED_JOB_NAME=nightly",
        "DYNSCHED_RUN_ID=j/r",
        "DYNSCHED_SCHEDULED_FOR=2026-03-01T09:00:00.000Z",
        "DYNSCHED_TENANT=t",
    ]


def test_the_worker_s_secrets_do_not_leak(
    runner: TargetRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes a command does not thereby get the worker's keys."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    text = stdout(runner.run(CommandTarget("env"), context()))
    assert "LANG=C.UTF-8" in text
    assert "s3cret" not in text


def test_a_crontab_s_variables_count(runner: TargetRunner, tmp_path: Path) -> None:
    """PATH, SHELL, HOME and MAILTO do what they do under cron."""
    (tmp_path / "greet").write_text("#!/bin/sh\necho hello $MAILTO from $0\n")
    (tmp_path / "greet").chmod(0o755)
    lines = {"PATH": str(tmp_path), "HOME": str(tmp_path), "MAILTO": "ops", "SHELL": "/bin/bash"}
    target = CommandTarget("greet; echo $PWD ${BASH_VERSION:0:1}x", environment=lines)
    text = stdout(runner.run(target, context()))
    assert text.splitlines()[0] == f"hello ops from {tmp_path}/greet"
    assert text.splitlines()[1].startswith(f"{tmp_path} ")
    assert text.splitlines()[1] != f"{tmp_path} x"


def test_a_directory_of_its_own_goes_before_home(runner: TargetRunner, tmp_path: Path) -> None:
    """The working directory can be named."""
    target = CommandTarget("pwd", cwd=str(tmp_path), environment={"HOME": "/"})
    assert stdout(runner.run(target, context())) == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("command", "error_type", "message", "hint"),
    [
        ("echo disk full >&2; exit 3", "Exit3", "exit code 3: disk full", Hint.DEFAULT),
        ("exit 75", "Exit75", "exit code 75", Hint.RETRY),
        ("kill -9 $$", "SIGKILL", "killed by signal 9", Hint.DEFAULT),
    ],
)
def test_an_exit_code_says_how_it_ended(
    runner: TargetRunner, command: str, error_type: str, message: str, hint: Hint
) -> None:
    """75 asks for another try; the last line of the error output mostly says why."""
    failed = failure(runner.run(CommandTarget(command), context()))
    assert (failed.error_type, failed.message, failed.hint) == (error_type, message, hint)


def test_floods_on_both_outputs_do_not_block_and_leave_their_ends(runner: TargetRunner) -> None:
    """Both pipes are drained together, in bounded memory."""
    flood = "head -c 3000000 /dev/zero | tr '\\0' {}; printf end{}"
    target = CommandTarget(f"({flood.format('a', 1)}) & ({flood.format('b', 2)}) >&2; wait; exit 1")
    failed = failure(runner.run(target, context()))
    assert failed.output == {
        "exit_code": 1,
        "stdout": "a" * 4092 + "end1",
        "stderr": "b" * 4092 + "end2",
    }
    assert failed.trace_tail == "b" * 4092 + "end2"


def test_output_that_is_no_text_is_made_valid(runner: TargetRunner) -> None:
    """It is stored as UTF-8."""
    text = stdout(runner.run(CommandTarget("printf 'a\\377b'"), context()))
    assert text == "a\N{REPLACEMENT CHARACTER}b"


def test_what_a_command_leaves_behind_is_not_waited_for(
    runner: TargetRunner,
) -> None:
    """A daemon that keeps the pipe open is its own business, as under cron."""
    target = CommandTarget("sleep 30 & echo $!")
    pid = int(stdout(runner.run(target, context())))
    os.kill(pid, signal.SIGKILL)
    assert ends(pid)


def test_a_command_that_closes_its_outputs_is_still_followed(runner: TargetRunner) -> None:
    """The exit counts, not the end of the pipes."""
    target = CommandTarget("exec >&- 2>&-; read line; exit 4", stdin="x\n")
    assert failure(runner.run(target, context())).error_type == "Exit4"


def test_a_command_is_ended_at_the_soft_limit(runner: TargetRunner) -> None:
    """The whole group is asked to end."""
    limits = Limits(soft=SHORT)
    failed = failure(runner.run(CommandTarget("sleep 30; true"), context(limits=limits)))
    assert (failed.error_type, failed.message) == (
        "TimeLimit",
        "soft time limit of 0.15 s reached",
    )


def test_a_command_that_ignores_the_soft_limit_is_killed_at_the_hard_one(
    runner: TargetRunner, tmp_path: Path
) -> None:
    """With everything it started, and what it said before is not lost on the way."""
    pids = tmp_path / "pids"
    target = CommandTarget(f"trap '' TERM; sleep 30 & echo $! > {pids}; wait; sleep 30; sleep 30")
    limits = Limits(soft=SHORT, hard=2 * SHORT)
    failed = failure(runner.run(target, context(limits=limits)))
    assert failed.message == "hard time limit of 0.3 s reached"
    assert ends(int(pids.read_text()))


def test_a_command_may_clean_up_after_the_soft_limit(runner: TargetRunner, tmp_path: Path) -> None:
    """It is out of time all the same, even if its trap exits with 0."""
    note = tmp_path / "note"
    target = CommandTarget(f"trap 'echo cleaned > {note}; exit 0' TERM; sleep 30 & wait")
    limits = Limits(soft=SHORT, hard=timedelta(seconds=30))
    failed = failure(runner.run(target, context(limits=limits)))
    assert failed.error_type == "TimeLimit"
    assert note.read_text() == "cleaned\n"


@pytest.mark.parametrize(
    ("reason", "usual", "lost"),
    [(StopReason.CANCELLED, SHORT, LONG), (StopReason.LEASE_LOST, LONG, SHORT)],
    ids=str,
)
def test_a_stopped_command_is_killed_after_its_grace(
    tmp_path: Path, reason: StopReason, usual: timedelta, lost: timedelta
) -> None:
    """A cancel or a lost lease ends the group within its own bound, whatever it traps."""
    runner = TargetRunner(
        None, allow_commands=True, clock=FixedDay(), kill_grace=usual, lease_lost_grace=lost
    )
    fifo, stop = tmp_path / "started", Stop()
    os.mkfifo(fifo)

    def end() -> None:
        fifo.read_text()
        stop.set(reason)

    thread = threading.Thread(target=end)
    thread.start()
    target = CommandTarget(f"trap '' TERM; echo on > {fifo}; while :; do sleep 30; done")
    result = runner.run(target, context(stop=stop))
    thread.join()
    assert result == WasCancelled(reason=reason)


def test_what_ignores_the_polite_signal_goes_with_its_group(
    runner: TargetRunner, tmp_path: Path
) -> None:
    """The shell obeys and ends, its child does not: nothing of a stopped run lives on."""
    pids = tmp_path / "pids"
    target = CommandTarget(f"sh -c \"trap '' TERM; sleep 30; true\" & echo $! > {pids}; wait")
    assert failure(runner.run(target, context(limits=Limits(soft=SHORT)))).error_type == "TimeLimit"
    assert ends(int(pids.read_text()))


def test_an_attempt_stopped_before_it_began_ends_at_once(runner: TargetRunner) -> None:
    """The signal is heard however early it came."""
    stop = Stop()
    stop.set(StopReason.DRAIN)
    result = runner.run(CommandTarget("sleep 30"), context(stop=stop))
    assert result == WasCancelled(reason=StopReason.DRAIN)


def test_a_command_has_a_session_of_its_own(runner: TargetRunner) -> None:
    """A terminal's Ctrl-C goes to the worker only, which then drains."""
    text = stdout(runner.run(CommandTarget("cut -d ' ' -f 6 /proc/$$/stat; echo $$"), context()))
    session, pid = map(int, text.split())
    assert session == pid != os.getsid(0)


@pytest.mark.parametrize(
    "fields", [{"shell": "/no/such/shell"}, {"cwd": "/no/such/place"}], ids=lambda f: next(iter(f))
)
def test_a_command_that_cannot_start_is_a_failure(
    runner: TargetRunner, fields: dict[str, str]
) -> None:
    """The missing thing is named."""
    failed = failure(runner.run(CommandTarget("true", **fields), context()))  # type: ignore[arg-type]
    assert failed.error_type == "CommandNotStarted"
    assert next(iter(fields.values())) in failed.message


def test_the_worker_s_own_user_is_no_other_user(runner: TargetRunner) -> None:
    """A system crontab's line for the worker's user runs like any other."""
    name = pwd.getpwuid(os.geteuid()).pw_name
    assert stdout(runner.run(CommandTarget("id -un", user=name), context())) == f"{name}\n"


def test_an_unknown_user_is_refused(runner: TargetRunner) -> None:
    """By name, before anything runs."""
    target = CommandTarget("true", user="nobody-of-that-name")
    assert "whom this machine does not know" in runner.refusal(target)
    assert failure(runner.run(target, context())).error_type == "TargetRefused"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as other users")
def test_root_runs_commands_as_their_users(runner: TargetRunner) -> None:
    """With the user's ids, groups, home and names, and without root's."""
    account = pwd.getpwnam("daemon")
    target = CommandTarget("id -u; id -g; id -G; echo $USER $LOGNAME $HOME", user="daemon")
    lines = stdout(runner.run(target, context())).splitlines()
    groups = {str(group) for group in os.getgrouplist("daemon", account.pw_gid)}
    assert lines[:2] == [str(account.pw_uid), str(account.pw_gid)]
    assert set(lines[2].split()) == groups
    assert lines[3] == f"daemon daemon {account.pw_dir}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user to try it")
def test_another_user_s_command_is_refused_unless_root() -> None:
    """A worker that is not root says whom it would need to be."""
    code = (
        "from dynsched.domain.target import CommandTarget\n"
        "from dynsched.targets.command import refusal_of_user\n"
        "import os; os.seteuid(1)\n"
        "print(refusal_of_user(CommandTarget('true', user='root')))\n"
    )
    path = {"PYTHONPATH": str(Path(dynsched.__file__).parents[1])}
    said = subprocess.run(  # our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path
    )
    assert "start a worker as that user or as root" in said.stdout


SIGCHLD_IGNORED = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from tests.integration.test_command_target import FixedDay, context
from dynsched.domain.target import CommandTarget
from dynsched.targets.runner import TargetRunner
runner = TargetRunner(None, allow_commands=True, clock=FixedDay())
print(runner.run(CommandTarget("echo done"), context()))
"""


def test_a_command_ends_where_sigchld_is_ignored() -> None:
    """Its exit code is lost, which is a failure that says what to change, and no wait for ever."""
    answer = subprocess.run(
        [sys.executable, "-c", SIGCHLD_IGNORED],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(dynsched.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert "ExitUnknown" in answer.stdout, answer.stderr
    assert "SIGCHLD" in answer.stdout
    assert "done" in answer.stdout


def test_closing_the_runner_kills_a_command_that_ignores_sigterm(tmp_path: Path) -> None:
    """A drained worker leaves no command behind, however long its grace."""
    runner = TargetRunner(None, allow_commands=True, clock=FixedDay(), kill_grace=LONG)
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    results: list[Result] = []
    target = CommandTarget(f"trap '' TERM; echo $$ > {ready}; while :; do sleep 60; done")
    thread = threading.Thread(target=lambda: results.append(runner.run(target, context())))
    thread.start()
    pid = int(ready.read_text())
    runner.close()
    thread.join(20)
    assert not thread.is_alive()
    assert failure(results[0]).error_type == "SIGKILL"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
