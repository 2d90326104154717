"""Audit: who did what to what, when, why and with what end."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.access import Action, Role
from dynsched.domain.names import check_name
from dynsched.domain.run import parse_run_id
from dynsched.errors import InvalidInput

REASON_MAX = 500
NOTE_MAX = 500
ACTOR_MAX = 100
KEPT = timedelta(days=400)
STORE = "store"
KINDS = ("run", "job", "batch", "tenant", "token")

_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What makes a terminal write backwards; joiners within words and emoji stay."""


class AuditOutcome(StrEnum):
    """How an action ended."""

    BEGUN = "begun"  # written before the change: it may or may not have been made
    DONE = "done"
    FAILED = "failed"  # not made: an argument or the present state forbade it
    REFUSED = "refused"  # not made: the actor may not


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action of one actor.

    Attributes:
        entry_id: its own.
        at: when it was asked for.
        actor: who, as `Access` names it.
        role: what the actor was trusted with.
        via: the door it came through.
        action: what.
        target: on what: `run:ID`, `job:ID`, `batch:ID`, `tenant:NAME`, `token:NAME`
            or `store`.
        tenant: whose; empty if it is the store's own or nobody knows.
        reason: why, in the actor's words; may be empty.
        outcome: how it ended.
        note: one short line of what changed, or the sentence of what stopped it.
        details: what else is worth keeping, such as the names of changed fields.
    """

    entry_id: str
    at: datetime
    actor: str
    role: Role
    via: str
    action: Action
    target: str
    tenant: str = ""
    reason: str = ""
    outcome: AuditOutcome = AuditOutcome.BEGUN
    note: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


def check_reason(text: str) -> str:
    """Return a reason without blanks around it, after checking it.

    Raises:
        InvalidInput: it is too long, or would not show as it is.

    >>> check_reason("  disk is full ")
    'disk is full'
    """
    reason = text.strip()
    if len(reason) > REASON_MAX:
        raise InvalidInput("reason", f"longer than {REASON_MAX} characters", "shorten it")
    if any(_hides(letter) for letter in reason):
        raise InvalidInput("reason", "it has line breaks or control characters", "remove them")
    return reason


def plain(text: str, most: int) -> str:
    r"""Return a text on one line, cut, with nothing in it that hides or moves other text.

    >>> plain("a\nb\x1b[31m", 20), plain("abcdef", 4)
    ('a b?[31m', 'abc…')
    """
    line = " ".join(text.split())
    kept = "".join("?" if _hides(letter) else letter for letter in line[: most + 1])
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def _hides(letter: str) -> bool:
    return unicodedata.category(letter) in _HIDDEN or letter in _TURNING


def check_target(text: str) -> str:
    """Return the target of an audit entry, after checking its form.

    Raises:
        InvalidInput: it names nothing that can be changed.

    >>> check_target("tenant:acme"), check_target("store")
    ('tenant:acme', 'store')
    """
    kind, _, name = text.partition(":")
    if text == STORE:
        return text
    if kind not in KINDS:
        raise InvalidInput(
            "target",
            f"{text!r} names nothing that can be changed",
            "give run:ID, job:ID, batch:ID, tenant:NAME, token:NAME or store",
        )
    if kind == "run":
        parse_run_id(name)
    else:
        check_name(name, "target")
    return text
