"""dynsched: a distributed job scheduler whose only store is DynamoDB, or one SQLite file.

What programs use: an `App` with handlers, the `Context` that they get, what they may raise, and
`connect` to enqueue work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynsched.domain.retry import ErrorRule, Jitter, RetryPolicy, RuleAction
from dynsched.domain.target import CommandTarget, HandlerTarget, HttpTarget
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.targets.app import App
from dynsched.targets.context import Cancelled, Context, Permanent, RetryAfter, Snooze
from dynsched.version import VERSION

if TYPE_CHECKING:
    from dynsched.client import Client, connect

__version__ = VERSION

__all__ = [
    "App",
    "Cancelled",
    "Client",
    "CommandTarget",
    "Context",
    "ErrorRule",
    "HandlerTarget",
    "HttpTarget",
    "Invocation",
    "Jitter",
    "LambdaTarget",
    "Permanent",
    "RetryAfter",
    "RetryPolicy",
    "RuleAction",
    "Snooze",
    "SqsTarget",
    "connect",
]


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for: handlers' modules need no store."""
    if name in ("Client", "connect"):
        from dynsched import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module 'dynsched' has no attribute {name!r}")
