"""Targets on AWS: a Lambda function that is invoked, a message that is sent to an SQS queue."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar
from urllib.parse import urlsplit

from dynsched.domain.body import Body
from dynsched.domain.payload import Json
from dynsched.domain.target_base import TargetKind, check_text, cut
from dynsched.domain.template import check_template
from dynsched.errors import InvalidInput

GROUP_LENGTH_MAX = 128
QUEUE_URL_LENGTH_MAX = 2048

_NAME = r"[A-Za-z0-9_-]{1,64}"
_QUALIFIER = r"(?::(?:\$LATEST|[A-Za-z0-9_-]{1,128}))?"
_REGION = r"[a-z]{2,4}(?:-[a-z]+){1,3}-\d"
_FUNCTION_NAME = re.compile(_NAME + _QUALIFIER)
_FUNCTION_ARN = re.compile(
    rf"arn:aws[a-z-]*:lambda:({_REGION}):\d{{12}}:function:({_NAME}{_QUALIFIER})"
)
_QUEUE_HOST = re.compile(
    rf"(?:sqs(?:-fips)?\.|[a-z0-9-]+\.sqs\.)({_REGION})\.(?:vpce\.)?amazonaws\.com(?:\.cn)?"
    rf"|({_REGION})\.queue\.amazonaws\.com(?:\.cn)?"
)
_QUEUE_PATH = re.compile(r"/(?:\d{12}|queue)/([A-Za-z0-9_-]{1,80}(?:\.fifo)?)")
_GROUP = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,./:;<=>?@\[\\\]^_`{|}~-]+")


class Invocation(StrEnum):
    """How a function is invoked."""

    SYNC = "sync"
    """Wait for its answer, which is the attempt's."""
    ASYNC = "async"
    """Lambda queues the event; that it took it is the attempt's success."""
    CALLBACK = "callback"
    """Lambda queues the event; the run ends when somebody reports how the work went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaTarget:
    """One invocation of a Lambda function.

    Attributes:
        function: name or ARN; with `:QUALIFIER` a version or an alias.
        invocation: how it is invoked.
        body: template of the event (see `dynsched.domain.template`); None sends the payload in an
            envelope. With `callback` there is none, as the envelope carries the token.

    Raises:
        InvalidInput: a field is wrong.

    >>> LambdaTarget("arn:aws:lambda:eu-west-1:123456789012:function:report:live").describe()
    'lambda report:live'
    """

    kind: ClassVar = TargetKind.LAMBDA
    function: str = field(kw_only=False)
    invocation: Invocation = Invocation.SYNC
    body: str | None = None

    def __post_init__(self) -> None:
        if not _FUNCTION_NAME.fullmatch(self.function) and not _FUNCTION_ARN.fullmatch(
            self.function
        ):
            raise InvalidInput(
                "function",
                f"{cut(self.function, 60)!r} is neither a Lambda function's name nor its ARN",
                "for example report, report:live or"
                " arn:aws:lambda:eu-west-1:123456789012:function:report",
            )
        if self.body is None:
            return
        if self.invocation is Invocation.CALLBACK:
            raise InvalidInput(
                "body",
                "a function that calls back gets its token in the envelope",
                "drop it, or invoke sync or async",
            )
        check_text("body", self.body)
        check_template(self.body, "body", is_json=True)

    @property
    def region(self) -> str | None:
        """The region that its ARN names; None for a plain name."""
        arn = _FUNCTION_ARN.fullmatch(self.function)
        return arn[1] if arn else None

    def describe(self) -> str:
        """Return one short line: the function, and how it is invoked unless that is `sync`."""
        arn = _FUNCTION_ARN.fullmatch(self.function)
        name = arn[2] if arn else self.function
        how = "" if self.invocation is Invocation.SYNC else f" ({self.invocation.value})"
        return cut(f"lambda {name}{how}")

    def to_body(self) -> Body:
        """Return it as JSON, without what is default."""
        body: dict[str, Json] = {"kind": self.kind.value, "function": self.function}
        if self.invocation is not Invocation.SYNC:
            body["invocation"] = self.invocation.value
        if self.body is not None:
            body["body"] = self.body
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsTarget:
    """One message to an SQS queue.

    Attributes:
        queue_url: the queue's; one that ends in `.fifo` is a FIFO queue.
        group: message group; None is the job's id for a FIFO queue, and none for another.
        body: template of the message (see `dynsched.domain.template`); None sends the payload as
            JSON.

    Raises:
        InvalidInput: a field is wrong.

    >>> SqsTarget("https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo").describe()
    'sqs orders.fifo'
    """

    kind: ClassVar = TargetKind.SQS
    queue_url: str = field(kw_only=False)
    group: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        _check_queue(self.queue_url)
        group = self.group
        if group is not None and (len(group) > GROUP_LENGTH_MAX or not _GROUP.fullmatch(group)):
            raise InvalidInput(
                "group",
                f"{cut(group, 40)!r} is no message group",
                f"give 1 to {GROUP_LENGTH_MAX} ASCII letters, digits and punctuation",
            )
        if self.body is not None:
            if not self.body:
                raise InvalidInput("body", "SQS takes no empty message", "give a text, or none")
            check_text("body", self.body)
            check_template(self.body, "body", is_json=False)

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue."""
        return self.queue_url.endswith(".fifo")

    @property
    def region(self) -> str | None:
        """The region that the address names; None where it is none of AWS's own."""
        host = _QUEUE_HOST.fullmatch(urlsplit(self.queue_url).hostname or "")
        return (host[1] or host[2]) if host else None

    def describe(self) -> str:
        """Return one short line: the queue's name."""
        return cut(f"sqs {self.queue_url.rpartition('/')[2]}")

    def to_body(self) -> Body:
        """Return it as JSON, without what is default."""
        body: dict[str, Json] = {"kind": self.kind.value, "url": self.queue_url}
        if self.group is not None:
            body["group"] = self.group
        if self.body is not None:
            body["body"] = self.body
        return body


def invocation_of(word: str) -> Invocation:
    """Return the invocation of that name.

    Raises:
        InvalidInput: there is none.
    """
    try:
        return Invocation(word)
    except ValueError:
        known = ", ".join(Invocation)
        raise InvalidInput("invocation", f"{cut(word, 20)!r} is unknown", f"give {known}") from None


def _check_queue(url: str) -> None:
    mend = "for example https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    shown = cut(url, 80)
    if len(url) > QUEUE_URL_LENGTH_MAX or not url.isascii() or not url.isprintable():
        raise InvalidInput("queue_url", f"{shown!r} is no address of a queue", mend)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # reading it is what checks it
    except ValueError as error:
        raise InvalidInput("queue_url", f"it cannot be read: {error}", mend) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("queue_url", f"{shown!r} is not http or https", mend)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("queue_url", "it holds a user or password", "drop them")
    if parts.query or parts.fragment or not _QUEUE_PATH.fullmatch(parts.path):
        raise InvalidInput("queue_url", f"{shown!r} does not end in ACCOUNT/QUEUE", mend)
