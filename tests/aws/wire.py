"""The wire between the deployment and ministack: it notes every call, and can break or bend each.

Each caller has a door of its own, by which it is known. Behind the doors a call goes to ministack,
or first through microburst if it is to be broken. What ministack applied is noted in the history of
its store, in the store's order, whatever the caller is told: so the invariants can be checked
although the writers are other processes.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from dynsched.storage.engine import Key, Row, Table
from dynsched.storage.item import from_item
from dynsched.testing.history import History
from tests.aws.calls import Call, read_call

TIMEOUT_S: Final = 120.0
STARTED: Final = "/_wire/started/"
UNKNOWN_WRITES: Final = frozenset(
    {"UpdateItem", "BatchWriteItem", "ExecuteStatement", "BatchExecuteStatement"}
)
_HOP: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})

Entry: TypeAlias = dict[str, Any]
"""One message of a SendMessageBatch."""
Bend: TypeAlias = Callable[[str, Sequence[Entry]], Sequence[Entry]]
"""Takes a queue's URL and what was to be sent there; returns what is sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request as it came, with the names of its headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """A guarded write: the row as it is afterwards, and the version that it was made over."""

    key: Key
    after: Row | None
    seen: int | None


@dataclass(slots=True)
class Wire:
    """All that goes between callers and ministack.

    Attributes:
        upstream: where ministack listens.
        calls: every call, in order.
        breaker: where microburst listens, whose upstream is `back`; set before a call is broken.
        breaks: says of a call whether it goes through `breaker`.
        bend: changes what is sent to a queue; None sends what came.
        held: callers whose sends are never carried out: each waits for `release`, unanswered.
        holding: set while such a send waits.
        back: the door behind microburst.
        trouble: what went wrong in the wire itself.
    """

    upstream: str
    calls: list[Call] = field(default_factory=list)
    breaker: str = ""
    breaks: Callable[[Call], bool] | None = None
    bend: Bend | None = None
    held: set[str] = field(default_factory=set)
    holding: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    back: str = ""
    trouble: list[str] = field(default_factory=list)
    _histories: dict[str, History] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _servers: list[ThreadingHTTPServer] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.back = self._listen(self._carry)

    def door(self, caller: str) -> str:
        """Open a door for a caller; return its URL."""
        return self._listen(lambda request: self._take(caller, request))

    def watch(self, prefix: str) -> History:
        """Begin the history of a store without rows; starts are told at `told_at`."""
        self._histories[prefix] = History()
        return self._histories[prefix]

    def told_at(self, prefix: str) -> str:
        """Return the URL at which handlers tell of their start."""
        return f"{self.back}{STARTED}{prefix}"

    def count(self, caller: str) -> int:
        """Return how many calls a caller has made."""
        return self._counts.get(caller, 0)

    def mend(self) -> None:
        """Break, bend and hold nothing any more, and forget the calls so far."""
        self.calls.clear()
        self.breaks = self.bend = None
        self.release.set()
        self.held, self.holding, self.release = set(), threading.Event(), threading.Event()

    def close(self) -> None:
        """Close all doors."""
        self.release.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _listen(self, serve: Callable[[Request], Answer]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(serve, self.trouble))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self._servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    def _take(self, caller: str, request: Request) -> Answer:
        with self._lock:
            number = self._counts[caller] = self.count(caller) + 1
            call = read_call(caller, number, request.path, request.headers, request.body)
            self.calls.append(call)
        if caller in self.held and call.operation.startswith("SendMessage"):
            self.holding.set()
            self.release.wait(TIMEOUT_S)
            raise ConnectionAbortedError(f"{call} was held until its caller was gone")
        if self.bend is not None and call.operation in ("SendMessage", "SendMessageBatch"):
            assert call.operation == "SendMessageBatch", "messages are sent by batches"
            return self._bent(self.bend, call, request)
        if self.breaks is not None and self.breaks(call):
            return forward(self.breaker, request)
        return self._carry(request)

    def _bent(self, bend: Bend, call: Call, request: Request) -> Answer:
        """Send on what is left of a batch, and acknowledge all of it."""
        entries = call.request["Entries"]
        sent = [
            entry | {"Id": f"m{n}"}
            for n, entry in enumerate(bend(call.request["QueueUrl"], entries))
        ]
        if sent:
            body = json.dumps(dict(call.request) | {"Entries": sent}).encode()
            answer = self._carry(Request(request.method, request.path, request.headers, body))
            assert answer.status == 200, answer.body
        done = [
            {"Id": entry["Id"], "MessageId": f"bent-{entry['Id']}", "MD5OfMessageBody": ""}
            for entry in entries
        ]
        body = json.dumps({"Successful": done, "Failed": []}).encode()
        return Answer(200, [("Content-Type", "application/x-amz-json-1.0")], body)

    def _carry(self, request: Request) -> Answer:
        """Send a call to ministack and note what it did."""
        if request.path.startswith(STARTED):
            self._started(request)
            return Answer(200, [], b"{}")
        target = request.headers.get("x-amz-target", "")
        if not target.startswith("DynamoDB_"):
            return forward(self.upstream, request)
        operation, asked = target.partition(".")[2], json.loads(request.body)
        history = self._histories.get(_prefix_of(asked))
        if history is None or operation in ("Query", "Scan"):
            return forward(self.upstream, request)
        with history.lock:
            answer = forward(self.upstream, request)
            if answer.status == 200:
                _note(history, operation, asked, json.loads(answer.body))
        return answer

    def _started(self, request: Request) -> None:
        history = self._histories[request.path.removeprefix(STARTED)]
        history.started(_Attempted(**json.loads(request.body)))


@dataclass(frozen=True, slots=True)
class _Attempted:
    """What a handler tells of its start."""

    run_id: str
    fence: int
    attempt: int


def forward(url: str, request: Request) -> Answer:
    """Make a request at another place; a connection that is closed raises an OSError.

    A connection for each request: one that is kept may turn out closed, which says nothing about
    whether the request was carried out.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    with closing(connection):
        connection.request(request.method, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        body = answer.read()
        headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in _HOP]
        return Answer(answer.status, headers, body)


def _handler(
    serve: Callable[[Request], Answer], trouble: list[str]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet an answer; two of them wait for each other's acknowledgement.
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {k.lower(): v for k, v in self.headers.items() if k.lower() not in _HOP}
            request = Request(self.command, self.path, kept, body)
            try:
                answer = serve(request)
            except (OSError, http.client.HTTPException):
                # The caller learns as much as we do: nothing.
                self.close_connection = True
                return
            except Exception as error:
                trouble.append(repr(error))
                raise
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 - the names are the server's

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, *args: object) -> None:
            """Say nothing: the calls are noted."""

    return Handler


def _note(
    history: History, operation: str, asked: Mapping[str, Any], told: Mapping[str, Any]
) -> None:
    """Note in a history what a call read or wrote; the caller holds its lock."""
    for wrote in writes_of(operation, asked):
        known = history.rows.get(wrote.key)
        if wrote.seen != (None if known is None else known.version):
            history.misread.append(f"4: {wrote.key} was written over another version than it saw")
        history.changed(wrote.key, wrote.after)
    if operation == "GetItem":
        key, item = _key(asked["TableName"], asked["Key"]), told.get("Item")
        history.read(key, None if item is None else from_item(key.table, item))
    elif operation == "BatchGetItem" and not told.get("UnprocessedKeys"):
        _note_batch(history, asked, told)


def _note_batch(history: History, asked: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    for name, wanted in asked["RequestItems"].items():
        table = _table(name)
        rows = [from_item(table, item) for item in told["Responses"].get(name, [])]
        found = {row.key: row for row in rows}
        for key in wanted["Keys"]:
            history.read(_key(name, key), found.get(_key(name, key)))


def writes_of(operation: str, asked: Mapping[str, Any]) -> list[Wrote]:
    """Return the guarded writes that a request makes."""
    if operation == "TransactWriteItems":
        return [
            _wrote(verb, inside) for item in asked["TransactItems"] for verb, inside in item.items()
        ]
    if operation in ("PutItem", "DeleteItem"):
        return [_wrote(operation.removesuffix("Item"), asked)]
    assert operation not in UNKNOWN_WRITES, f"{operation} writes what no history is made of"
    return []


def _wrote(verb: str, inside: Mapping[str, Any]) -> Wrote:
    if verb == "Put":
        row = from_item(_table(inside["TableName"]), inside["Item"])
        return Wrote(key=row.key, after=row, seen=row.version - 1 or None)
    assert verb == "Delete", verb
    seen = int(inside["ExpressionAttributeValues"][":seen"]["N"])
    return Wrote(key=_key(inside["TableName"], inside["Key"]), after=None, seen=seen)


def _table(name: str) -> Table:
    return Table(name.rpartition("-")[2])


def _key(name: str, key: Mapping[str, Any]) -> Key:
    return Key(_table(name), key["pk"]["S"], key["sk"]["S"])


def _prefix_of(asked: Mapping[str, Any]) -> str:
    """Return the prefix of the first table that a request names."""
    if "TransactItems" in asked:
        inside: Mapping[str, Any] = next(iter(asked["TransactItems"][0].values()))
        name: str = inside["TableName"]
    elif "RequestItems" in asked:
        name = next(iter(asked["RequestItems"]))
    else:
        name = asked.get("TableName", "")
    return name.rpartition("-")[0]
