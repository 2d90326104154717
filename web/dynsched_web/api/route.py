"""Routes: each one declared once, with all that comes in and goes out.

The router, the checks of requests and the OpenAPI document are made of these declarations, so none
of them can say anything else than the others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dynsched.domain.access import Access
from dynsched.domain.instants import Clock
from dynsched.domain.names import JOB_ID, NAME
from dynsched.domain.run import RUN_ID
from dynsched.services.documents import Document
from dynsched.services.operations import Operations
from dynsched.services.search import EXAMINE, EXAMINE_MAX, Found
from dynsched.services.views import Views
from dynsched_web.api.schema import Schema, whole

LIMIT_MAX = 1_000
CURSOR_MAX = 2_000
FILTER_MAX = 8_000
_PLACE = re.compile(r"\{(\w+)\}")

PAGING: Mapping[str, Schema] = {
    "limit": whole(1, LIMIT_MAX, 100) | {"description": "At most so many items."},
    "cursor": {
        "type": "string",
        "maxLength": CURSOR_MAX,
        "description": "Goes on behind a page: what its answer gave.",
    },
}
EXAMINED: Mapping[str, Schema] = {
    "examine": whole(1, EXAMINE_MAX)
    | {"description": f"Rows to look at before the page ends; default {EXAMINE:,}."}
}
FILTER: Schema = {
    "type": "string",
    "maxLength": FILTER_MAX,
    "description": "Which ones, in the language of docs/filters.md.",
}
TENANT: Schema = {
    "type": "string",
    "pattern": f"^{NAME.pattern}$",
    "description": "Whose job is meant by a name; by default the token's tenant, else `default`.",
}
WHY: Schema = {"type": "string", "maxLength": 500, "description": "Why, for the audit."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What may stand at a place of a path.

    Attributes:
        kind: what it names, as an error says it.
        form: what has another form names nothing.
        description: for the OpenAPI document.
    """

    kind: str
    form: re.Pattern[str]
    description: str


PLACES: Mapping[str, Place] = {
    "job": Place(kind="job", form=NAME, description="A job's id, or its name in a tenant."),
    "run": Place(kind="run", form=RUN_ID, description="A run's id."),
    "batch": Place(kind="batch", form=JOB_ID, description="A replay batch's id."),
    "signature": Place(
        kind="error group", form=re.compile("[0-9a-z]{1,64}"), description="A group's signature."
    ),
    "tenant": Place(kind="tenant", form=NAME, description="A tenant's name."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, checked against its route's declaration.

    Attributes:
        access: who asks; of the whole process if `read_only` is in it.
        views: what can be read; not bound to the access's tenant (see `dynsched_web.api.scope`).
        operations: what can be changed by who asks.
        clock: the source of time.
        path: what stands at the places of the path.
        query: the parameters that were given, and defaults.
        headers: the declared headers that were given, by their names.
        body: the fields of the body; empty without one.
    """

    access: Access
    views: Views
    operations: Operations
    clock: Clock
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """Return the present instant."""
        return self.clock.now()

    @property
    def reason(self) -> str:
        """Return why something is to be changed; empty if nobody says."""
        reason: str = self.body.get("reason", self.query.get("reason", ""))
        return reason

    @property
    def page(self) -> dict[str, Any]:
        """Return where a list begins and ends."""
        return {"limit": self.query["limit"], "cursor": self.query.get("cursor")}

    @property
    def examined_page(self) -> dict[str, Any]:
        """Return the same with how many rows a search looks at."""
        examine = self.query.get("examine") or max(EXAMINE, self.query["limit"])
        return {**self.page, "examine": examine}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method of a path.

    Attributes:
        name: its own, `operationId` in the document.
        tag: the noun that it belongs to.
        summary: one line.
        description: the rest of its docstring; may be empty.
        answer: what a good answer's body is.
        status: a good answer's status.
        query: parameters.
        headers: headers that it looks at.
        body: what the body must be; None takes none.
        body_needed: there must be one.
        open: anybody may ask, without a token.
        run_token: field of the body that stands for a bearer's token: the run's own.
        act: what it does.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    description: str
    answer: Schema
    status: int
    query: Mapping[str, Schema]
    headers: Mapping[str, Schema]
    body: Schema | None
    body_needed: bool
    open: bool
    run_token: str
    act: Callable[[Call], Document]

    @property
    def changes(self) -> bool:
        """Return whether it changes anything."""
        return self.method != "GET"

    @property
    def places(self) -> list[str]:
        """Return the names of the places in its path."""
        return _PLACE.findall(self.path)

    @property
    def rule(self) -> str:
        """Return the path as Flask writes it."""
        return _PLACE.sub(r"<\1>", self.path)

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return what its paths look like."""
        parts = (re.escape(part) for part in _PLACE.split(self.path)[::2])
        return re.compile("[^/]+".join(parts))


class Routes:
    """The routes of one noun, in the order in which they are declared.

    Args:
        tag: the noun.
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def route(
        self,
        method: str,
        path: str,
        *,
        answer: Schema,
        status: int = 200,
        query: Mapping[str, Schema] | None = None,
        headers: Mapping[str, Schema] | None = None,
        body: Schema | None = None,
        open: bool = False,
        run_token: str = "",
    ) -> Callable[[Callable[[Call], Document]], Callable[[Call], Document]]:
        """Declare a route; the function's docstring is its description in the document."""

        def declare(act: Callable[[Call], Document]) -> Callable[[Call], Document]:
            summary, _, rest = (inspect.getdoc(act) or "").partition("\n\n")
            route = Route(
                method=method,
                path=path,
                name=act.__name__,
                tag=self._tag,
                summary=summary,
                description=rest.partition("\n\nRaises:")[0],
                answer=answer,
                status=status,
                query=query or {},
                headers=headers or {},
                body=body,
                body_needed=body is not None and bool(body.get("required")),
                open=open,
                run_token=run_token,
                act=act,
            )
            self._routes.append(route)
            return act

        return declare


def page_document(found: Found[Any], items: list[Document]) -> Document:
    """Return a list's answer."""
    return {
        "items": items,
        "matched": found.matched,
        "examined": found.examined,
        "cursor": found.cursor,
        "notes": list(found.notes),
    }
