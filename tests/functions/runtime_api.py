"""The side of the Lambda runtime API that AWS plays: hands out events, takes answers.

A function runs in the real runtime loop, as a process of its own, and talks to this one over
loopback.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dynsched.clock import SystemClock

ROOT = Path(__file__).resolve().parent.parent.parent
CLOCK = SystemClock()
WAIT_S = 60
ARN = "arn:aws:lambda:eu-west-1:000000000000:function:under-test"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function posted.

    Attributes:
        kind: `response`, `error`, or `init/error`.
        body: the document.
    """

    kind: str
    body: Any


class _Server(ThreadingHTTPServer):
    """Holds the events that wait and the answers that came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.events: queue.Queue[tuple[str, bytes, float]] = queue.Queue()
        self.answers: queue.Queue[Answer] = queue.Queue()


class _Talk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Hand out the next event, when there is one."""
        request_id, body, timeout_s = self.server.events.get()
        now_s = CLOCK.now().timestamp()
        self.send_response(200)
        for name, value in {
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((now_s + timeout_s) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": ARN,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Take an answer."""
        body = json.loads(self._body() or b"null")
        path = self.path.partition("/runtime/")[2]
        kind = path if path == "init/error" else path.rpartition("/")[2]
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.answers.put(Answer(kind, body))

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if length is not None:
            return self.rfile.read(int(length))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:  # its name there
        """Say nothing."""


class Runtime:
    """A function in its loop.

    Attributes:
        lines: what it has written so far.
    """

    def __init__(self, server: _Server, process: subprocess.Popen[str]) -> None:
        self._server, self._process = server, process
        self._made = 0
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(iter(self._process.stdout.readline, ""))

    def invoke(self, event: object, *, timeout_s: float = 60) -> Answer:
        """Hand an event out and return what the function answers."""
        self._made += 1
        request_id = f"00000000-0000-0000-0000-{self._made:012}"
        self._server.events.put((request_id, json.dumps(event).encode(), timeout_s))
        return self.answer()

    def answer(self) -> Answer:
        """Return what the function posts next."""
        return self._server.answers.get(timeout=WAIT_S)

    def end(self) -> list[str]:
        """End the process; return all that it has written."""
        self._process.terminate()
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return self.lines

    def documents(self) -> list[dict[str, Any]]:
        """End the process; return the lines that are JSON objects."""
        return [json.loads(line) for line in self.end() if line.startswith("{")]


@contextmanager
def running(
    handler: str,
    environment: Mapping[str, str],
    *,
    folder: Path,
    path: str | None = None,
    python: str = sys.executable,
) -> Iterator[Runtime]:
    """Run a function in awslambdaric's loop while the block runs.

    Args:
        handler: `module.function`.
        environment: what it is told besides what AWS tells each function.
        folder: where it runs.
        path: where its modules lie; None is the project's sources and the folder.
        python: its interpreter.
    """
    server = _Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": path or os.pathsep.join([str(ROOT / "src"), str(folder)]),
        "PYTHONUNBUFFERED": "1",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_address[1]}",
        "AWS_LAMBDA_FUNCTION_NAME": "under-test",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "AWS_LAMBDA_LOG_LEVEL": "INFO",
        "LAMBDA_TASK_ROOT": str(folder),
    }
    process = subprocess.Popen(
        [python, "-m", "awslambdaric", handler],
        cwd=folder,
        env=told | dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Runtime(server, process)
    finally:
        process.kill()
        process.wait(WAIT_S)
        server.shutdown()
        server.server_close()
