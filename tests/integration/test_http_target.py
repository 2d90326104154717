"""HTTP targets against a real server on the loopback: what is sent, and what answers mean."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dynsched.clock import SystemClock
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target import HttpTarget
from dynsched.targets.context import Context
from dynsched.targets.result import Result, Succeeded, WasCancelled
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import Limits, Stop, StopReason

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


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


class Server(ThreadingHTTPServer):
    """Answers as the test says and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.arrived, self.released = threading.Event(), threading.Event()
        self.answer: Callable[[Handler], None] = lambda handler: handler.reply(200)

    def handle_error(self, *_: object) -> None:
        """Keep quiet about clients that hang up: that is what is tested."""


class Handler(BaseHTTPRequestHandler):
    """One connection of the server."""

    protocol_version = "HTTP/1.1"
    server: Server

    def serve(self) -> None:
        """Keep the request and answer it."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.command, self.path, headers, body))
        self.server.arrived.set()
        self.server.answer(self)

    do_GET = do_POST = do_PUT = do_DELETE = serve  # noqa: N815  # the base class's names

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server on a free port."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def runner() -> Iterator[TargetRunner]:
    """Give a runner and end its threads afterwards."""
    runner = TargetRunner(None, allow_commands=False, clock=FixedDay())
    yield runner
    runner.close()


def context(**more: Any) -> Context[Any]:
    """Return the context of an ordinary attempt."""
    plain: dict[str, Any] = {"payload": {"id": "é"}, "idempotency_key": "key-1", "job_id": "j"}
    plain |= {"job_name": "nightly", "run_id": "j/r", "tenant": "t", "scheduled_for": NOW}
    return Context(attempt=2, fence=5, **(plain | more))


def answering(server: Server, status: int, body: bytes = b"", **headers: str) -> None:
    """Make the server answer so from now on."""
    server.answer = lambda handler: handler.reply(status, body, **headers)


def failure(result: Result) -> Failed:
    """Return the result as a failure."""
    assert isinstance(result, Failed)
    return result


def test_the_payload_is_sent_as_json_with_the_identity_of_the_run(
    server: Server, runner: TargetRunner
) -> None:
    """A receiver can tell repeats, attempts and stale holders."""
    answering(server, 201, b"made")
    result = runner.run(HttpTarget(server.url + "/hook?a=1"), context())
    assert result == Succeeded(output={"status": 201, "body": "made"})
    method, path, headers, body = server.requests[0]
    assert (method, path, body) == ("POST", "/hook?a=1", '{"id":"é"}'.encode())
    sent = {name: headers[name] for name in headers if name.startswith(("x-", "idem", "content-t"))}
    assert sent == {
        "content-type": "application/json",
        "idempotency-key": "key-1",
        "x-dynsched-run": "j/r",
        "x-dynsched-attempt": "2",
        "x-dynsched-fence": "5",
        "x-dynsched-scheduled-for": "2026-03-01T09:00:00.000Z",
    }


def test_a_template_and_headers_shape_the_request(server: Server, runner: TargetRunner) -> None:
    """Receivers have their own formats."""
    target = HttpTarget(
        server.url,
        method="PUT",
        headers={"Content-Type": "text/plain", "X-Mine": "a"},
        body="id={payload.id} try={attempt}",
    )
    runner.run(target, context())
    method, _, headers, body = server.requests[0]
    assert (method, body) == ("PUT", 'id="é" try=2'.encode())
    assert (headers["content-type"], headers["x-mine"]) == ("text/plain", "a")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_methods_without_a_body_send_none(
    server: Server, runner: TargetRunner, method: str
) -> None:
    """A body there is refused by many servers."""
    assert isinstance(runner.run(HttpTarget(server.url, method=method), context()), Succeeded)
    assert server.requests[0][3] == b""
    assert "content-type" not in server.requests[0][2]


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (400, Hint.PERMANENT),
        (404, Hint.PERMANENT),
        (410, Hint.DEFAULT),
        (408, Hint.DEFAULT),
        (425, Hint.DEFAULT),
        (429, Hint.DEFAULT),
        (500, Hint.DEFAULT),
        (501, Hint.PERMANENT),
        (503, Hint.DEFAULT),
        (304, Hint.PERMANENT),
    ],
)
def test_a_status_says_whether_to_try_again(
    server: Server, runner: TargetRunner, status: int, hint: Hint
) -> None:
    """By the usual meaning of statuses, unless the target has its own rule (410, 501)."""
    answering(server, status)
    target = HttpTarget(server.url, retry_statuses=(410,), permanent_statuses=(501,))
    failed = failure(runner.run(target, context()))
    assert (failed.error_type, failed.hint) == (f"Http{status}", hint)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("999999999999999999", 3600),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(days=1)), 0),
        (format_datetime(NOW + timedelta(days=9)), 3600),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Sun, 99 Foo 99999999999 00:00:00 GMT", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed_within_a_bound(
    server: Server, runner: TargetRunner, status: int, value: str, seconds: int | None
) -> None:
    """Seconds or a date, never before now, never longer than an hour; nonsense is no advice."""
    answering(server, status, Retry_After=value)
    failed = failure(runner.run(HttpTarget(server.url), context()))
    assert failed.after == (None if seconds is None else timedelta(seconds=seconds))
    assert failed.hint is (Hint.DEFAULT if seconds is None else Hint.AFTER)


def test_the_end_of_a_failing_answer_is_kept(server: Server, runner: TargetRunner) -> None:
    """It mostly says why."""
    answering(server, 500, b"x" * 9000 + b"\xffno space left")
    failed = failure(runner.run(HttpTarget(server.url + "/a?key=secret"), context()))
    assert failed.trace_tail.endswith("no space left")
    assert len(failed.trace_tail.encode()) <= 4096
    assert failed.message == f"POST {server.url}/a answered 500"


def test_an_endless_answer_is_cut(server: Server, runner: TargetRunner) -> None:
    """A receiver cannot hold a slot by talking."""

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not server.released.is_set():
            handler.wfile.write(b"z" * 65536)

    server.answer = endless
    assert runner.run(HttpTarget(server.url), context()) == Succeeded(
        output={"status": 200, "body": "z" * 4096}
    )


def test_a_redirect_to_another_host_is_not_followed(server: Server, runner: TargetRunner) -> None:
    """The headers may hold secrets meant for the first."""
    answering(server, 307, Location="http://localhost:1/steal")
    failed = failure(runner.run(HttpTarget(server.url), context()))
    assert "leading to 'http://localhost:1/steal'" in failed.message
    assert failed.hint is Hint.PERMANENT


@pytest.mark.parametrize(
    ("method", "status", "follows"),
    [("POST", 307, True), ("POST", 302, False), ("GET", 302, True), ("GET", 308, True)],
)
def test_a_redirect_on_the_same_host_is_followed_where_it_repeats_the_request(
    server: Server, runner: TargetRunner, method: str, status: int, follows: bool
) -> None:
    """A POST is never turned into a GET behind the user's back."""

    def answer(handler: Handler) -> None:
        if handler.path == "/old":
            handler.reply(status, Location="/new")
        else:
            handler.reply(200)

    server.answer = answer
    result = runner.run(HttpTarget(server.url + "/old", method=method), context())
    assert isinstance(result, Succeeded) is follows
    assert [request[1] for request in server.requests] == ["/old", "/new"][: 1 + follows]


def test_a_circle_of_redirects_ends(server: Server, runner: TargetRunner) -> None:
    """It is told as the redirect it is."""
    answering(server, 307, Location="/again")
    failed = failure(runner.run(HttpTarget(server.url), context()))
    assert failed.error_type == "Http307"
    assert len(server.requests) == 4


def test_a_refused_connection_may_be_tried_again(runner: TargetRunner) -> None:
    """A receiver that is being deployed is back soon."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failed = failure(runner.run(HttpTarget(f"http://127.0.0.1:{port}/"), context()))
    assert failed.error_type == "urllib3.exceptions.NewConnectionError"
    assert failed.message == f"connection to 127.0.0.1:{port} refused"
    assert failed.hint is Hint.DEFAULT


def test_a_connection_that_breaks_may_be_tried_again(server: Server, runner: TargetRunner) -> None:
    """Nobody knows whether the receiver acted: that is what the idempotency key is for."""
    server.answer = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    failed = failure(runner.run(HttpTarget(server.url), context()))
    assert (failed.error_type, failed.hint) == ("urllib3.exceptions.ProtocolError", Hint.DEFAULT)


def hang_before_answer(handler: Handler) -> None:
    """Never answer."""
    handler.server.released.wait(30)


def hang_in_body(handler: Handler) -> None:
    """Begin an answer and never end it."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(b"begin")
    handler.server.released.wait(30)


@pytest.mark.parametrize("hang", [hang_before_answer, hang_in_body])
def test_a_request_ends_at_its_time_limit(
    server: Server, runner: TargetRunner, hang: Callable[[Handler], None]
) -> None:
    """A receiver that hangs holds a slot no longer than the job allows."""
    server.answer = hang
    limits = Limits(soft=timedelta(milliseconds=80))
    failed = failure(runner.run(HttpTarget(server.url), context(limits=limits)))
    assert failed.error_type == "TimeLimit"
    assert failed.message == "soft time limit of 0.08 s reached"


@pytest.mark.parametrize("hang", [hang_before_answer, hang_in_body])
def test_a_request_is_hung_up_on_when_its_lease_is_lost(
    server: Server, runner: TargetRunner, hang: Callable[[Handler], None]
) -> None:
    """The slot is free at once; another worker has the run."""
    server.answer, stop = hang, Stop()

    def lose() -> None:
        assert server.arrived.wait(10)
        stop.set(StopReason.LEASE_LOST)

    thread = threading.Thread(target=lose)
    thread.start()
    result = runner.run(HttpTarget(server.url), context(stop=stop))
    thread.join()
    assert result == WasCancelled(reason=StopReason.LEASE_LOST)


def test_a_stop_after_the_answer_spares_the_connection(server: Server) -> None:
    """It is back in the pool by then and may carry another run's request."""
    stop, ports = Stop(), list[int]()

    class StopsLate(FixedDay):
        def now(self) -> datetime:
            """Be asked once the answer is there."""
            stop.set(StopReason.CANCELLED)
            return super().now()

    def answer(handler: Handler) -> None:
        ports.append(handler.client_address[1])
        handler.reply(200)

    server.answer = answer
    runner = TargetRunner(None, allow_commands=False, clock=StopsLate())
    for more in ({"stop": stop}, {}):
        assert isinstance(runner.run(HttpTarget(server.url), context(**more)), Succeeded)
    runner.close()
    assert ports[0] == ports[1]


def test_a_payload_that_the_template_does_not_fit_is_permanent(
    server: Server, runner: TargetRunner
) -> None:
    """No try can mend it, and nothing is sent."""
    target = HttpTarget(server.url, body="[{payload.order}]")
    failed = failure(runner.run(target, context()))
    assert (failed.error_type, failed.hint) == ("InvalidInput", Hint.PERMANENT)
    assert "payload.order" in failed.message
    assert not server.requests


def test_a_big_payload_arrives_whole(server: Server, runner: TargetRunner) -> None:
    """The largest payload is more than a socket's buffer."""
    payload = ["x" * 1000] * 250
    assert isinstance(runner.run(HttpTarget(server.url), context(payload=payload)), Succeeded)
    assert json.loads(server.requests[0][3]) == payload
