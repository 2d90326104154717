"""Targets: what a run does. A value that can be stored, with everything checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, TypeAlias
from urllib.parse import SplitResult, urlsplit

from dynsched.domain.body import Body, Reader
from dynsched.domain.payload import Json
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.domain.target_base import TargetKind, check_text, cut
from dynsched.domain.template import check_fits, check_template
from dynsched.errors import InvalidInput

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The HTTP methods that a target may use."""
BODILESS_METHODS = ("GET", "HEAD", "DELETE")
"""Methods sent without a body."""
URL_LENGTH_MAX = 2048
HEADERS_MAX = 50
HEADER_LENGTH_MAX = 8192
VARIABLES_MAX = 200
"""The most environment variables of a command."""

_HANDLER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_USER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}\$?")
_RESERVED_HEADERS = ("content-length", "transfer-encoding", "connection", "idempotency-key")
_RESERVED_PREFIX = "x-dynsched-"


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """A Python function of the worker's app.

    Attributes:
        name: the name it is registered under.

    Raises:
        InvalidInput: it is no handler name.

    >>> HandlerTarget("reports.daily").describe()
    'handler reports.daily'
    """

    kind: ClassVar = TargetKind.HANDLER
    name: str

    def __post_init__(self) -> None:
        if not _HANDLER_NAME.fullmatch(self.name):
            raise InvalidInput(
                "handler",
                f"{cut(self.name, 40)!r} is not a handler name",
                "up to 128 letters, digits, _ . : -, starting with a letter or _",
            )

    def describe(self) -> str:
        """Return one short line that says what is done."""
        return cut(f"handler {self.name}")

    def to_body(self) -> Body:
        """Return it as JSON."""
        return {"kind": self.kind.value, "name": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """One HTTP request.

    Attributes:
        url: absolute, http or https, without user and password.
        method: one of `METHODS`.
        headers: sent beside those that dynsched sets (idempotency key, fence, attempt).
        body: template of the body (see `dynsched.domain.template`); None sends the payload as
            JSON. Methods in `BODILESS_METHODS` send none.
        retry_statuses: statuses to try again beside 408, 425, 429 and 5xx.
        permanent_statuses: statuses that bury the run; they go before the other rule.

    Raises:
        InvalidInput: a field is wrong.

    >>> HttpTarget("https://example.org/hook?key=1").describe()
    'POST https://example.org/hook'
    """

    kind: ClassVar = TargetKind.HTTP
    url: str = field(kw_only=False)
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    retry_statuses: tuple[int, ...] = ()
    permanent_statuses: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_url(self.url)
        if self.method.upper() not in METHODS:
            raise InvalidInput(
                "method", f"{cut(self.method, 20)!r} is unknown", "give " + ", ".join(METHODS)
            )
        object.__setattr__(self, "method", self.method.upper())
        _check_headers(self.headers)
        object.__setattr__(self, "headers", MappingProxyType(dict(self.headers)))
        if self.body is not None:
            self._check_body(self.body)
        _check_statuses("retry_statuses", self.retry_statuses)
        _check_statuses("permanent_statuses", self.permanent_statuses)
        both = sorted(set(self.retry_statuses) & set(self.permanent_statuses))
        if both:
            raise InvalidInput(
                "retry_statuses", f"{both[0]} is permanent as well", "name it in one of them"
            )

    def _check_body(self, body: str) -> None:
        if self.method in BODILESS_METHODS:
            raise InvalidInput("body", f"{self.method} carries none", "use POST, PUT or PATCH")
        check_text("body", body)
        check_template(body, "body", is_json="json" in self.content_type.lower())

    @property
    def content_type(self) -> str:
        """The body's content type: the header's, else JSON."""
        given = (value for name, value in self.headers.items() if name.lower() == "content-type")
        return next(given, "application/json")

    def describe(self) -> str:
        """Return one short line: method and address, without the query, which may hold secrets."""
        parts = urlsplit(self.url)
        return cut(f"{self.method} {parts.scheme}://{parts.netloc}{parts.path}")

    def to_body(self) -> Body:
        """Return it as JSON, without what is default."""
        body: dict[str, Json] = {"kind": self.kind.value, "url": self.url}
        if self.method != "POST":
            body["method"] = self.method
        if self.headers:
            body["headers"] = dict(self.headers)
        if self.body is not None:
            body["body"] = self.body
        if self.retry_statuses:
            body["retry"] = list(self.retry_statuses)
        if self.permanent_statuses:
            body["permanent"] = list(self.permanent_statuses)
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    """A shell command.

    Attributes:
        command: what the shell is given after `-c`.
        environment: variables beside the worker's few harmless ones, such as a crontab's lines.
        stdin: standard input; None sends the payload as JSON.
        shell: program that runs the command; None takes `SHELL` of the environment, else /bin/sh.
        user: whose command it is; None takes the worker's user.
        cwd: directory to run in; None takes `HOME` of the environment, else the worker's own.

    Raises:
        InvalidInput: a field is wrong.

    >>> CommandTarget("backup --all").to_body()
    {'kind': 'command', 'command': 'backup --all'}
    """

    kind: ClassVar = TargetKind.COMMAND
    command: str = field(kw_only=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    shell: str | None = None
    user: str | None = None
    cwd: str | None = None

    def __post_init__(self) -> None:
        check_text("command", self.command)
        if not self.command.strip():
            raise InvalidInput("command", "it is empty", "give what a shell should run")
        _check_environment(self.environment)
        object.__setattr__(self, "environment", MappingProxyType(dict(self.environment)))
        if self.stdin is not None:
            check_text("stdin", self.stdin)
        for name, path in (("shell", self.shell), ("cwd", self.cwd)):
            if path is not None:
                _check_absolute(name, path)
        if self.user is not None and not _USER_NAME.fullmatch(self.user):
            raise InvalidInput("user", f"{cut(self.user, 40)!r} is not a user name", "")

    def describe(self) -> str:
        """Return one short line: the command's beginning."""
        words = " ".join(self.command.split())
        line = "".join(letter if letter.isprintable() else "?" for letter in words)
        return cut(f"$ {line}" + (f" (as {self.user})" if self.user else ""))

    def to_body(self) -> Body:
        """Return it as JSON, without what is default."""
        body: dict[str, Json] = {"kind": self.kind.value, "command": self.command}
        if self.environment:
            body["env"] = dict(self.environment)
        parts = {"stdin": self.stdin, "shell": self.shell, "user": self.user, "cwd": self.cwd}
        body.update({name: value for name, value in parts.items() if value is not None})
        return body


Target: TypeAlias = HandlerTarget | HttpTarget | CommandTarget | LambdaTarget | SqsTarget


def target_from_body(body: Body) -> Target:
    """Return the target that `to_body` wrote.

    Raises:
        InvalidInput: the kind is unknown, or a field is unknown or wrong.

    >>> target_from_body({"kind": "handler", "name": "daily"})
    HandlerTarget(name='daily')
    """
    read = Reader("target", body)
    kind = read.word("kind", TargetKind)
    target: Target
    if kind is TargetKind.HANDLER:
        target = HandlerTarget(read.text("name"))
    elif kind is TargetKind.HTTP:
        target = HttpTarget(
            read.text("url"),
            method=read.text("method", "POST"),
            headers=read.texts("headers"),
            body=read.text_or_none("body"),
            retry_statuses=read.integers("retry"),
            permanent_statuses=read.integers("permanent"),
        )
    elif kind is TargetKind.LAMBDA:
        target = LambdaTarget(
            read.text("function"),
            invocation=read.word("invocation", Invocation, Invocation.SYNC),
            body=read.text_or_none("body"),
        )
    elif kind is TargetKind.SQS:
        target = SqsTarget(
            read.text("url"), group=read.text_or_none("group"), body=read.text_or_none("body")
        )
    else:
        target = CommandTarget(
            read.text("command"),
            environment=read.texts("env"),
            stdin=read.text_or_none("stdin"),
            shell=read.text_or_none("shell"),
            user=read.text_or_none("user"),
            cwd=read.text_or_none("cwd"),
        )
    read.done()
    return target


def check_target_payload(target: Target, payload: Json) -> None:
    """Refuse a payload that lacks what the target's body template names.

    Raises:
        InvalidInput: it lacks something; the field is its place, such as `payload.order.id`.
    """
    if isinstance(target, HttpTarget | LambdaTarget | SqsTarget) and target.body is not None:
        check_fits(target.body, payload)


def _check_url(url: str) -> None:
    if len(url) > URL_LENGTH_MAX:
        raise InvalidInput("url", f"longer than {URL_LENGTH_MAX} characters", "shorten it")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(
            "url", "it has spaces, control or non-ASCII characters", "percent-encode them"
        )
    parts = _split(url)
    if parts.scheme not in ("http", "https"):
        raise InvalidInput(
            "url", f"{cut(url, 60)!r} is not http or https", "for example https://example.org/hook"
        )
    if not parts.hostname:
        raise InvalidInput("url", "it names no host", "for example https://example.org/hook")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url", "it holds a user or password", "send an authorization header")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # reading it is what checks it
    except ValueError as error:
        raise InvalidInput("url", f"it cannot be read: {error}", "check host and port") from None
    return parts


def _check_headers(headers: Mapping[str, str]) -> None:
    if len(headers) > HEADERS_MAX:
        raise InvalidInput("headers", f"more than {HEADERS_MAX}", "drop some")
    seen: set[str] = set()
    for name, value in headers.items():
        lowered = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidInput(
                "headers", f"{cut(name, 40)!r} is not a header name", "letters, digits and -"
            )
        if lowered in _RESERVED_HEADERS or lowered.startswith(_RESERVED_PREFIX):
            raise InvalidInput("headers", f"{name} is set by dynsched itself", "drop it")
        if lowered in seen:
            raise InvalidInput("headers", f"{name} is given twice", "join the values")
        if len(value) > HEADER_LENGTH_MAX or not _HEADER_VALUE.fullmatch(value):
            raise InvalidInput(
                "headers",
                f"the value of {name} has line breaks or non-ASCII characters, or is too long",
                f"give one line of at most {HEADER_LENGTH_MAX} ASCII characters",
            )
        seen.add(lowered)


def _check_statuses(name: str, statuses: tuple[int, ...]) -> None:
    wrong = [status for status in statuses if not 300 <= status <= 599]
    if wrong:
        raise InvalidInput(name, f"{wrong[0]} is not a failing HTTP status", "give 300 to 599")


def _check_environment(environment: Mapping[str, str]) -> None:
    if len(environment) > VARIABLES_MAX:
        raise InvalidInput("environment", f"more than {VARIABLES_MAX} variables", "drop some")
    for name, value in environment.items():
        if not name or "=" in name or not name.isprintable():
            raise InvalidInput("environment", f"{cut(name, 40)!r} is not a variable name", "")
        check_text("environment", name)
        check_text(f"environment.{cut(name, 40)}", value)


def _check_absolute(name: str, path: str) -> None:
    check_text(name, path)
    if not path.startswith("/"):
        raise InvalidInput(name, f"{cut(path, 40)!r} is not absolute", "begin it with /")


def target_needs(target: Target) -> str:
    """Return what a worker must have to run the target; runs carry it in their rows.

    >>> target_needs(HandlerTarget("daily"))
    'handler:daily'
    """
    if isinstance(target, HandlerTarget):
        return f"handler:{target.name}"
    if isinstance(target, CommandTarget):
        return f"command:{target.user}" if target.user else "command"
    return target.kind.value
