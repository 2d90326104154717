"""Command targets: a shell command in a session of its own, drained, limited and killed as a group.

The command sees few of the worker's variables, so that no secret of the worker leaks into it: the
harmless ones below, those of the target, and the run's own `DYNSCHED_` ones.
"""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from dynsched.domain.instants import Clock
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target import CommandTarget
from dynsched.targets.context import AnyContext
from dynsched.targets.result import MESSAGE_LENGTH_MAX, Result, Succeeded, Tail, error_name, stopped
from dynsched.targets.stop import Stop, StopReason

TEMPORARY_FAILURE = 75
"""The exit code (EX_TEMPFAIL) that asks for another try whatever the job's rules say."""
KILL_GRACE = timedelta(seconds=10)
"""From the polite signal to the deadly one, where no hard time limit says otherwise."""
LEASE_LOST_GRACE = timedelta(seconds=2)
"""The same after a lost lease; shorter than the lease margin, since another worker may start."""

_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CHUNK_BYTES = 64 * 1024
_LAST_READS_MAX = 32
_UNKNOWN = (
    "the command ended, but its exit status was taken by the system or by other code of the"
    " worker (start the worker with SIGCHLD at its default, not ignored)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """Another user than the worker's, whom a command is to run as."""

    name: str
    uid: int
    gid: int
    home: str


def refusal_of_user(target: CommandTarget) -> str:
    """Return why this process cannot run commands of the target's user; empty if it can."""
    if target.user is None or target.user == _own_name():
        return ""
    try:
        pwd.getpwnam(target.user)
    except KeyError:
        return f"the command is for the user {target.user!r}, whom this machine does not know"
    if os.geteuid() != 0:
        return (
            f"the command is for the user {target.user!r}, but this worker runs as"
            f" {_own_name()!r}; start a worker as that user or as root"
        )
    return ""


class Groups:
    """The process groups of the commands that run now. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: set[int] = set()
        self._closed = False

    def enter(self, leader: int) -> None:
        """Enter a group; it is killed at once if all were killed before."""
        with self._lock:
            self._leaders.add(leader)
            if self._closed:
                kill_group(leader)

    def leave(self, leader: int) -> None:
        """Take a group out; to be called before its leader is reaped and its number free."""
        with self._lock:
            self._leaders.discard(leader)

    def kill(self) -> None:
        """Kill all that run, and each that is entered from now on."""
        with self._lock:
            self._closed = True
            for leader in self._leaders:
                kill_group(leader)


def kill_group(leader: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a process group a signal, unless it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def run_command(
    target: CommandTarget,
    context: AnyContext,
    *,
    clock: Clock,
    kill_grace: timedelta = KILL_GRACE,
    lease_lost_grace: timedelta = LEASE_LOST_GRACE,
    groups: Groups | None = None,
) -> Result:
    """Run the command and judge its exit code.

    0 is success, 75 asks for another try, anything else and a signal is a failure. The ends of its
    output and error output are kept. Once the context's stop signal is set, the whole process group
    is sent SIGTERM, and SIGKILL at the hard limit or after the grace.

    Args:
        target: what to run; `refusal_of_user` must have let it pass.
        context: the attempt's; its payload is the standard input unless the target has one.
        clock: measures the grace.
        kill_grace: from SIGTERM to SIGKILL where there is no hard limit.
        lease_lost_grace: the same after a lost lease, if that is shorter.
        groups: where the command is entered while it runs, for whoever has to kill it.
    """
    groups = groups or Groups()
    try:
        process = _spawn(target, context)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        return Failed(
            error_type="CommandNotStarted",
            message=f"{target.describe()}: {error_name(error)}: {error}"[:MESSAGE_LENGTH_MAX],
        )
    with process:
        groups.enter(process.pid)
        try:
            child = _Child(process, context, clock, kill_grace, lease_lost_grace)
            child.follow()
        except BaseException:
            # Leaving the block waits for the process, so it must not be left running unwatched.
            kill_group(process.pid)
            raise
        finally:
            groups.leave(process.pid)
    stdout, stderr = child.stdout.text(), child.stderr.text()
    if child.was_stopped:
        return stopped(context, output=dict(_tails(stdout, stderr)) or None)
    if child.status_unknown:
        return Failed(
            error_type="ExitUnknown", message=_UNKNOWN, output=dict(_tails(stdout, stderr)) or None
        )
    return _judge(process.returncode, stdout, stderr)


def _spawn(target: CommandTarget, context: AnyContext) -> subprocess.Popen[bytes]:
    account = _account(target)
    environment = _environment(target, context, account)
    home = account.home if account else None
    shell = target.shell or environment["SHELL"]
    # A file and no pipe: nobody has to feed it, and a command that does not read it is no fault.
    with tempfile.TemporaryFile() as stdin:
        text = check_payload(context.payload) if target.stdin is None else target.stdin
        stdin.write(text.encode())
        stdin.seek(0)
        return subprocess.Popen(  # noqa: S603  # running the user's command is what this is for
            [shell, "-c", target.command],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=target.cwd or target.environment.get("HOME") or home,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=os.getgrouplist(account.name, account.gid) if account else None,
        )


def _environment(
    target: CommandTarget, context: AnyContext, account: _Account | None
) -> dict[str, str]:
    own = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    if account is not None:
        own |= {"USER": account.name, "LOGNAME": account.name, "HOME": account.home}
    run = {f"DYNSCHED_{name.upper()}": str(value) for name, value in context.fields().items()}
    shell = {"SHELL": target.shell or "/bin/sh"}
    return {"PATH": _PATH, **own, **shell, **target.environment, **run}


def _account(target: CommandTarget) -> _Account | None:
    if target.user is None or target.user == _own_name():
        return None
    found = pwd.getpwnam(target.user)
    return _Account(name=found.pw_name, uid=found.pw_uid, gid=found.pw_gid, home=found.pw_dir)


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number without a name
        return str(os.geteuid())


class _Child:
    """Follows one process: drains both pipes in one thread and passes the stop signal on.

    Concurrency: a second thread waits for the exit and wakes the first through a socket pair, as
    does whoever sets the stop signal.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        context: AnyContext,
        clock: Clock,
        kill_grace: timedelta,
        lease_lost_grace: timedelta,
    ) -> None:
        self.stdout, self.stderr = Tail(), Tail()
        self.was_stopped = False
        self.status_unknown = False
        self._process = process
        self._stop: Stop = context.stop
        self._has_hard_limit = context.limits.hard is not None
        self._clock = clock
        self._kill_grace = kill_grace
        self._lease_lost_grace = min(kill_grace, lease_lost_grace)
        self._asked_at = 0.0
        self._killed = False
        self._ended = threading.Event()
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()

    def follow(self) -> None:
        """Return when the process has ended, its last output read and, if stopped, its group."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        pipes: dict[IO[bytes], Tail] = {
            self._process.stdout: self.stdout,
            self._process.stderr: self.stderr,
        }
        for pipe, kept in pipes.items():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, kept)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        waiter = threading.Thread(target=self._await_exit, name="dynsched-child", daemon=True)
        waiter.start()
        try:
            with self._stop.heard_by(lambda _: self._wake()):
                self._watch()
            waiter.join()
            for pipe, kept in pipes.items():
                _drain(pipe, kept)
        finally:
            self._selector.close()
            self._waker.close()
            self._woken.close()

    def _watch(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(self._seconds_left()):
                if key.data is None:
                    with suppress(BlockingIOError):
                        self._woken.recv(64)
                elif not _read(key.fd, key.data):
                    self._selector.unregister(key.fileobj)
            if self._stop.is_set() and not self._ended.is_set():
                self._press()
        if self.was_stopped:
            # What is left of the group ignored the polite signal, or was never told.
            self._signal(signal.SIGKILL)

    def _press(self) -> None:
        """Ask the group to end, and kill it when its time is over."""
        if not self.was_stopped:
            self.was_stopped = True
            self._asked_at = self._clock.monotonic()
            self._signal(signal.SIGTERM)
        left = self._seconds_left()
        if left is not None and left <= 0:
            self._killed = True
            self._signal(signal.SIGKILL)

    def _seconds_left(self) -> float | None:
        """Return the seconds until the group is killed; None if nothing but a signal can say."""
        if not self.was_stopped or self._killed:
            return None
        if self._stop.has(StopReason.HARD_LIMIT):
            return 0
        if self._stop.reason is StopReason.SOFT_LIMIT and self._has_hard_limit:
            return None
        lost = self._stop.has(StopReason.LEASE_LOST)
        grace = self._lease_lost_grace if lost else self._kill_grace
        return max(self._asked_at + grace.total_seconds() - self._clock.monotonic(), 0)

    def _signal(self, number: signal.Signals) -> None:
        # The leader is not reaped before `follow` has returned, so its number is still ours.
        kill_group(self._process.pid, number)

    def _await_exit(self) -> None:
        """Wait for the exit without reaping, so that the group's number stays taken."""
        try:
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            else:  # macOS has no such call; there the number might in theory be taken again
                self._process.wait()
        except OSError:
            # Nobody's child any more: with SIGCHLD ignored the system reaps it when it ends, and
            # `Popen` would call that exit code 0.
            self.status_unknown = True
        finally:
            self._ended.set()
            self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b"!", socket.MSG_DONTWAIT)


def _read(descriptor: int, kept: Tail) -> bool:
    """Read what is there; tell whether there may be more to come."""
    try:
        chunk = os.read(descriptor, _CHUNK_BYTES)
    except BlockingIOError:
        return True
    kept.feed(chunk)
    return bool(chunk)


def _drain(pipe: IO[bytes], kept: Tail) -> None:
    """Read what the ended process left in a pipe.

    Bounded: something that it started may live on, hold the pipe open and write for ever.
    """
    for _ in range(_LAST_READS_MAX):
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            return
        kept.feed(chunk)


def _tails(stdout: str, stderr: str) -> dict[str, str]:
    return {name: text for name, text in (("stdout", stdout), ("stderr", stderr)) if text}


def _judge(code: int, stdout: str, stderr: str) -> Result:
    tails = _tails(stdout, stderr)
    if code == 0:
        return Succeeded(output=dict(tails) or None)
    output: dict[str, Json] = {"exit_code": code, **tails}
    said = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    if code < 0:
        error_type, problem = _signal_name(-code), f"killed by signal {-code}"
    else:
        error_type, problem = f"Exit{code}", f"exit code {code}"
    return Failed(
        error_type=error_type,
        message=(f"{problem}: {said.strip()}" if said else problem)[:MESSAGE_LENGTH_MAX],
        trace_tail=stderr or stdout,
        hint=Hint.RETRY if code == TEMPORARY_FAILURE else Hint.DEFAULT,
        output=output,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
