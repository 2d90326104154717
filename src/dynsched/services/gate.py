"""The gate: every verb that changes a store passes it, and there is no other way in.

`changes` marks a verb with the action that it is. It asks `Access` first; so no rule about roles
or read-only mode lives in a verb, a command or a console.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from dynsched.domain.access import Access, Action

P = ParamSpec("P")
R = TypeVar("R")


class Guarded(Protocol):
    """What has verbs that pass the gate."""

    @property
    def access(self) -> Access:
        """Return who acts."""


G = TypeVar("G", bound=Guarded)
Verb = Callable[Concatenate[G, P], R]


def changes(action: Action) -> Callable[[Verb[G, P, R]], Verb[G, P, R]]:
    """Mark a verb: it is refused unless its actor may take the action.

    The verb keeps the action as its attribute `action`, so that tests find every verb.
    """

    def decorate(verb: Verb[G, P, R]) -> Verb[G, P, R]:
        @wraps(verb)
        def gated(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
            self.access.check(action)
            return verb(self, *args, **kwargs)

        marked: Any = gated
        marked.action = action
        return gated

    return decorate
