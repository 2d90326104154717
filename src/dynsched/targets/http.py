"""HTTP targets: one request, with the run's identity in its headers, and what its answer means.

A redirect is followed only within the same scheme, host and port, and only where that repeats the
same request: a hook must not be led elsewhere together with its secrets.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)
from urllib3.response import BaseHTTPResponse
from urllib3.response import HTTPResponse as Response

from dynsched.domain.instants import Clock
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.retry import Failed, Hint
from dynsched.domain.target import BODILESS_METHODS, HttpTarget
from dynsched.domain.template import fill
from dynsched.errors import InvalidInput
from dynsched.targets.context import AnyContext
from dynsched.targets.result import Result, Succeeded, Tail, error_name, message_of, stopped
from dynsched.targets.stop import StopReason

if TYPE_CHECKING:
    from urllib3._base_connection import BaseHTTPConnection

CONNECT_SECONDS_MAX = 10.0
"""How long a connection may take to be made."""
READ_SECONDS_MAX = 300.0
"""How long the answer may take where the run has no time limit."""
RESPONSE_BYTES_MAX = 256 * 1024
"""How much of an answer is read; a longer one is cut and its connection closed."""
RETRY_AFTER_MAX = timedelta(hours=1)
"""The longest delay that a `Retry-After` header can ask for."""
REDIRECTS_MAX = 3
POOLS_MAX = 50
"""Hosts to which connections are kept open."""
CONNECTIONS_PER_HOST = 10

_CHUNK_BYTES = 16 * 1024
_RETRY_STATUSES = (408, 425, 429)
_RETRY_AFTER_STATUSES = (429, 503)
_REDIRECTS = (301, 302, 303, 307, 308)
_REPEATING_REDIRECTS = (307, 308)


class _Call(threading.local):
    """The request that this thread has under way, if any: how to hang up on it."""

    hang_up: _HangUp | None = None


class _HangUp:
    """Shuts the socket of a request as soon as its attempt is to end, wherever it waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._stopped = False

    def watch(self, connected: socket.socket | None) -> None:
        """Remember the socket that the request waits on."""
        with self._lock:
            self._socket = connected
            if self._stopped:
                self._shut()

    def __call__(self, _: StopReason) -> None:
        with self._lock:
            self._stopped = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Not the TLS socket's own method: that one drops its state under a reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


_call: Final = _Call()


class _Connection(HTTPConnection):
    def getresponse(self) -> Response:  # type: ignore[override]  # as urllib3's own
        """Wait for the answer, which the thread's stop signal can end."""
        if _call.hang_up is not None:
            _call.hang_up.watch(self.sock)
        return super().getresponse()


class _TlsConnection(HTTPSConnection):
    def getresponse(self) -> Response:  # type: ignore[override]  # as urllib3's own
        """Wait for the answer, which the thread's stop signal can end."""
        if _call.hang_up is not None:
            _call.hang_up.watch(self.sock)
        return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection

    def _put_conn(self, conn: BaseHTTPConnection | None) -> None:
        """Let go of the socket before another thread can get it from the pool."""
        _let_go()
        super()._put_conn(conn)


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection

    def _put_conn(self, conn: BaseHTTPConnection | None) -> None:
        """Let go of the socket before another thread can get it from the pool."""
        _let_go()
        super()._put_conn(conn)


def _let_go() -> None:
    if _call.hang_up is not None:
        _call.hang_up.watch(None)


def new_pool() -> urllib3.PoolManager:
    """Return a pool of connections whose requests can be hung up on by a stop signal."""
    pool = urllib3.PoolManager(num_pools=POOLS_MAX, maxsize=CONNECTIONS_PER_HOST, retries=False)
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return pool


def run_http(
    target: HttpTarget, context: AnyContext, *, pool: urllib3.PoolManager, clock: Clock
) -> Result:
    """Send the request and judge its answer.

    2xx is success. 408, 425, 429, 5xx, the target's own retry statuses and every fault of the
    connection may be tried again; 429 and 503 name the delay by `Retry-After`. Everything else is
    permanent.
    """
    try:
        body = _body(target, context)
    except InvalidInput as error:
        return Failed(error_type="InvalidInput", message=str(error), hint=Hint.PERMANENT)
    try:
        with _hung_up_by(context):
            return _judge(target, _send(target, context, body, pool, clock), clock.now())
    except (HTTPError, OSError, UnicodeError) as error:
        if context.stop.is_set():
            return stopped(context)
        return Failed(error_type=error_name(error), message=_fault_words(error, target.url))


def _fault_words(error: Exception, url: str) -> str:
    """Return what is wrong with a connection in one line, without the library's own words."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    peer = f"{parts.hostname}:{port}"
    cause = error.__cause__ or error.__context__
    if isinstance(error, NewConnectionError) and isinstance(cause, ConnectionRefusedError):
        return f"connection to {peer} refused"
    words: tuple[tuple[type[Exception], str], ...] = (
        (NameResolutionError, f"the name {parts.hostname} cannot be resolved{_told(cause)}"),
        (NewConnectionError, f"connection to {peer} failed{_told(cause)}"),
        (ConnectTimeoutError, f"connection to {peer} timed out"),
        (ReadTimeoutError, f"{peer} did not answer in time"),
        (ProtocolError, f"connection to {peer} broke off{_told(cause)}"),
    )
    for kind, text in words:
        if isinstance(error, kind):
            return text
    return f"request to {peer} failed: {message_of(error)}"


def _told(cause: BaseException | None) -> str:
    """Return a cause's own words after a colon, if there is one."""
    if cause is None:
        return ""
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else message_of(cause)
    return f": {text}" if text else ""


class _Answer:
    """Status, headers and the end of the body of an answer."""

    def __init__(self, response: BaseHTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = _read(response)

    def to_json(self) -> dict[str, Json]:
        """Return what is kept of it."""
        return {"status": self.status, **({"body": self.body} if self.body else {})}


@contextmanager
def _hung_up_by(context: AnyContext) -> Iterator[None]:
    hang_up = _HangUp()
    _call.hang_up = hang_up
    try:
        with context.stop.heard_by(hang_up):
            yield
    finally:
        _call.hang_up = None


def _body(target: HttpTarget, context: AnyContext) -> bytes | None:
    if target.method in BODILESS_METHODS:
        return None
    if target.body is None:
        return check_payload(context.payload).encode()
    return fill(target.body, context.payload, context.fields()).encode()


def _send(
    target: HttpTarget,
    context: AnyContext,
    body: bytes | None,
    pool: urllib3.PoolManager,
    clock: Clock,
) -> _Answer:
    headers = {"User-Agent": "dynsched", **context.headers(), **target.headers}
    if body is not None and not any(name.lower() == "content-type" for name in target.headers):
        headers["Content-Type"] = target.content_type
    ends_at = clock.monotonic() + _seconds_allowed(context)
    url = target.url
    for _ in range(REDIRECTS_MAX + 1):
        seconds = max(ends_at - clock.monotonic(), 0.001)
        timeout = urllib3.Timeout(connect=min(seconds, CONNECT_SECONDS_MAX), read=seconds)
        response = pool.urlopen(
            target.method,
            url,
            body=body,
            headers=headers,
            timeout=timeout,
            redirect=False,
            retries=False,
            preload_content=False,
        )
        answer = _Answer(response)
        onward = _onward(target, url, answer)
        if onward is None:
            break
        url = onward
    return answer


def _seconds_allowed(context: AnyContext) -> float:
    """Return the read time-out: a little after the soft limit, whose stop signal goes first."""
    soft = context.limits.soft
    return READ_SECONDS_MAX if soft is None else soft.total_seconds() + 1


def _onward(target: HttpTarget, url: str, answer: _Answer) -> str | None:
    """Return the address that a redirect leads to, if it may be followed."""
    location = answer.headers.get("Location")
    if answer.status not in _REDIRECTS or not location:
        return None
    if target.method not in ("GET", "HEAD") and answer.status not in _REPEATING_REDIRECTS:
        return None
    there, here = urlsplit(urljoin(url, location)), urlsplit(url)
    return there.geturl() if (there.scheme, there.netloc) == (here.scheme, here.netloc) else None


def _read(response: BaseHTTPResponse) -> str:
    """Read the answer's body up to the bound and return its end; free the connection."""
    kept, size = Tail(), 0
    try:
        while size < RESPONSE_BYTES_MAX and (chunk := response.read(_CHUNK_BYTES)):
            kept.feed(chunk)
            size += len(chunk)
    finally:
        if size >= RESPONSE_BYTES_MAX:
            response.close()
        response.release_conn()
    return kept.text()


def _judge(target: HttpTarget, answer: _Answer, now: datetime) -> Result:
    status = answer.status
    if 200 <= status < 300:
        return Succeeded(output=answer.to_json())
    hint, after = Hint.PERMANENT, None
    if _may_retry(target, status):
        hint = Hint.DEFAULT
        if status in _RETRY_AFTER_STATUSES:
            after = _retry_after(answer.headers.get("Retry-After"), now)
    location = answer.headers.get("Location") if status in _REDIRECTS else None
    led = f", leading to {location[:100]!r}, which is not followed" if location else ""
    return Failed(
        error_type=f"Http{status}",
        message=f"{target.describe()} answered {status}{led}",
        trace_tail=answer.body,
        hint=hint if after is None else Hint.AFTER,
        after=after,
        output=answer.to_json(),
    )


def _may_retry(target: HttpTarget, status: int) -> bool:
    if status in target.permanent_statuses:
        return False
    return status in target.retry_statuses or status in _RETRY_STATUSES or status >= 500


def _retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Return the delay that a `Retry-After` header asks for, bounded; None if it says nothing."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        seconds = min(int(value[:10]), RETRY_AFTER_MAX.total_seconds())
        return timedelta(seconds=seconds)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(at - now, timedelta(0)), RETRY_AFTER_MAX)
