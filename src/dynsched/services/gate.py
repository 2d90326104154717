"""The gate: every verb that changes a store passes it, and there is no other way in.

`changes` marks a verb with the action that it is. The gate asks `Access` first, writes down who
begins what before the verb runs, and how it ended after; so no rule about roles or read-only mode
lives in a verb, a command or a console, and no change is without its entry, whatever crashes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from random import Random
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from dynsched.domain.access import Access, Action
from dynsched.domain.audit import (
    ACTOR_MAX,
    NOTE_MAX,
    STORE,
    AuditEntry,
    AuditOutcome,
    check_reason,
    plain,
)
from dynsched.domain.instants import Clock
from dynsched.domain.masking import mask_text
from dynsched.domain.names import new_id
from dynsched.errors import Conflict, DynschedError, Forbidden, StoreError
from dynsched.storage.audit import AuditStore

log = logging.getLogger("dynsched.audit")

P = ParamSpec("P")
R = TypeVar("R")

BEGIN_TRIES = 3  # an id that is taken is another's entry of the same millisecond
UNSURE = "the store failed, so it may have been made or not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a verb is about to change.

    Attributes:
        target: as audit entries name it.
        tenant: whose it is; empty for the store's own.
        details: what else the entry shall say.
    """

    target: str = STORE
    tenant: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Call:
    """A verb under way: its entry as begun, and what the verb has noted since."""

    begun: AuditEntry
    noted: AuditEntry


_CALL: ContextVar[_Call | None] = ContextVar("dynsched_call", default=None)


class Gate:
    """Admits an actor's changes and keeps the audit of them.

    Args:
        access: who acts, and what that actor may do.
        audit: where entries are kept.
        clock: the source of time.
        rng: for the entries' ids.
    """

    def __init__(self, access: Access, audit: AuditStore, *, clock: Clock, rng: Random) -> None:
        # Once for all that names the actor: nobody writes lines of his own into what others read.
        self.access = replace(access, actor=plain(access.actor, ACTOR_MAX))
        self._audit = audit
        self._clock = clock
        self._rng = rng

    def admit(self, action: Action, find: Callable[[], Subject], *, audited: bool) -> Subject:
        """Return what is to be changed, if the actor may.

        Raises:
            Forbidden: the role, the tenant or read-only mode forbids it; that is written down.
            DynschedError: there is no such thing.
        """
        try:
            self.access.of_any_tenant().check(action)
        except Forbidden as refusal:
            if audited and not self.access.read_only:
                self._refuse(action, _found(find), refusal)
            raise
        subject = find()
        try:
            self.access.check(action, tenant=subject.tenant or None)
        except Forbidden as refusal:
            if audited:
                self._refuse(action, subject, refusal)
            raise
        return subject

    @contextmanager
    def recorded(self, action: Action, subject: Subject, reason: str) -> Iterator[None]:
        """Write an entry, let the verb run, and write how that ended.

        A process that dies leaves the entry as begun. So does a store that fails under the verb:
        nobody knows then how much of it was made.

        Raises:
            StoreError: the entry could not be written; the verb did not run.
        """
        entry = self._begin(self._entry(action, subject, reason))
        call = _Call(entry, entry)
        outer = _CALL.set(call)
        outcome, note = AuditOutcome.DONE, ""
        try:
            yield
        except Forbidden as error:
            outcome, note = AuditOutcome.REFUSED, str(error)
            raise
        except StoreError as error:
            outcome, note = AuditOutcome.BEGUN, f"{UNSURE}: {error}"
            raise
        except DynschedError as error:
            outcome, note = AuditOutcome.FAILED, str(error)
            raise
        except Exception as error:
            outcome, note = AuditOutcome.BEGUN, f"{type(error).__name__}: {error}"
            raise
        except BaseException:  # the process is dying: what was begun stays so
            outcome = AuditOutcome.BEGUN
            raise
        finally:
            _CALL.reset(outer)
            if note or outcome is AuditOutcome.DONE:
                self._complete(call, outcome, note)

    def _entry(self, action: Action, subject: Subject, reason: str = "") -> AuditEntry:
        return AuditEntry(
            entry_id=new_id(self._rng, 10),
            at=self._clock.now(),
            actor=self.access.actor,
            role=self.access.role,
            via=self.access.via,
            action=action,
            target=subject.target,
            tenant=subject.tenant,
            reason=reason,
            details=subject.details,
        )

    def _begin(self, entry: AuditEntry) -> AuditEntry:
        for _ in range(BEGIN_TRIES):
            try:
                if self._audit.begin(entry):
                    return entry
            except StoreError as error:
                raise type(error)(
                    f"nothing was changed, as the audit entry of {entry.action.value} could not be"
                    f" written: {error}"
                ) from error
            entry = replace(entry, entry_id=new_id(self._rng, 10))
        raise Conflict("nothing was changed, as no audit entry could be written; try again")

    def _complete(self, call: _Call, outcome: AuditOutcome, note: str) -> None:
        """Write how it ended; the change stands whether or not that succeeds."""
        text = plain(mask_text(note or call.noted.note), NOTE_MAX)
        ended = replace(call.noted, outcome=outcome, note=text)
        try:
            self._audit.complete(call.begun, ended)
        except StoreError as error:
            log.error(  # noqa: TRY400  # the store's failure is one line, not a bug's trace
                "the audit entry %s of %s on %s stays as begun, although it is %s: %s",
                ended.entry_id,
                ended.action.value,
                ended.target,
                outcome.value,
                error,
            )

    def _refuse(self, action: Action, subject: Subject, refusal: Forbidden) -> None:
        """Write down that an actor was refused, as well as that can be done."""
        note = plain(str(refusal), NOTE_MAX)
        entry = self._entry(action, subject)
        try:
            self._audit.begin(replace(entry, outcome=AuditOutcome.REFUSED, note=note))
        except StoreError as error:
            log.warning("a refusal could not be written down: %s: %s", refusal, error)


def _found(find: Callable[[], Subject]) -> Subject:
    """Return what an actor wanted to change who may not; nothing of it may be there."""
    try:
        return find()
    except DynschedError:
        return Subject()


class Guarded(Protocol):
    """What has verbs that pass the gate."""

    @property
    def gate(self) -> Gate:
        """Return the gate."""


G = TypeVar("G", bound=Guarded)
Verb = Callable[Concatenate[G, P], R]
Find = Callable[[Any, Mapping[str, Any]], Subject]
"""Finds what a verb is about to change, by the verb's owner and its arguments by name."""


def changes(
    action: Action, on: Find, *, audited: bool = True
) -> Callable[[Verb[G, P, R]], Verb[G, P, R]]:
    """Mark a verb: it is refused unless its actor may take the action, and is written down.

    The verb keeps the action as its attribute `action`, so that tests find every verb. An audited
    verb takes `reason`, and may say more about what it does by `note`.

    Args:
        action: what it does.
        on: finds what it does it to; it is called before the verb, and reads only.
        audited: False for what programs do in bulk, whose record is the rows that they make.
    """

    def decorate(verb: Verb[G, P, R]) -> Verb[G, P, R]:
        signature = inspect.signature(verb)
        assert not audited or "reason" in signature.parameters, f"{verb} takes no reason"

        @wraps(verb)
        def gated(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
            gate = self.gate
            if not audited and gate.access.tenant is None:
                gate.access.check(action)
                return verb(self, *args, **kwargs)
            given = signature.bind(self, *args, **kwargs).arguments
            subject = gate.admit(action, lambda: on(self, given), audited=audited)
            if not audited:
                return verb(self, *args, **kwargs)
            with gate.recorded(action, subject, check_reason(given.get("reason", ""))):
                return verb(self, *args, **kwargs)

        marked: Any = gated
        marked.action, marked.audited = action, audited
        return gated

    return decorate


def note(
    words: str = "",
    *,
    target: str | None = None,
    tenant: str | None = None,
    details: Mapping[str, str] | None = None,
) -> None:
    """Say more about the verb that is under way, for its audit entry; without one, nothing.

    Args:
        words: what has changed, such as `ready -> cancelled`.
        target: what it is done to, if only the verb knows.
        tenant: whose that is.
        details: names and values to keep besides.
    """
    call = _CALL.get()
    if call is None:
        return
    noted = call.noted
    call.noted = replace(
        noted,
        note=words or noted.note,
        target=noted.target if target is None else target,
        tenant=noted.tenant if tenant is None else tenant,
        details={**noted.details, **(details or {})},
    )
