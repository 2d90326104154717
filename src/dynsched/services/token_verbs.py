"""Verbs on the tokens of the JSON API: make one, revoke one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dynsched.domain.access import Action, Role
from dynsched.domain.audit import ACTOR_MAX, plain
from dynsched.domain.names import check_name
from dynsched.domain.token import (
    LIFE,
    Token,
    digest_of_secret,
    expiry_of,
    new_secret,
    token_text,
)
from dynsched.errors import AlreadyExists, Conflict, NotFound
from dynsched.services.gate import Subject, changes, note
from dynsched.services.verbs import CHANGE_TRIES, Verbs


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was just made.

    Attributes:
        token: its row.
        text: what its bearer shows; nobody can read it again.
    """

    token: Token
    text: str


def _on_token(_: Verbs, given: Mapping[str, Any]) -> Subject:
    return Subject(target=f"token:{check_name(given['name'], 'name')}")


class TokenVerbs(Verbs):
    """Make and revoke tokens; only for who may change the whole store."""

    @changes(Action.TOKEN_CREATE, _on_token)
    def create_token(
        self,
        name: str,
        *,
        role: Role = Role.VIEWER,
        tenant: str | None = None,
        life: timedelta = LIFE,
        reason: str = "",
    ) -> NewToken:
        """Make a token; its text is in the answer and nowhere else.

        Args:
            name: how the audit shall name its bearer.
            role: what the bearer is trusted with.
            tenant: the one tenant that the bearer may see and change; None is all.
            life: how long it is good for.
            reason: why, for the audit.

        Raises:
            InvalidInput: an argument is wrong.
            AlreadyExists: there is, or was, a token of that name.
        """
        if tenant is not None:
            check_name(tenant, "tenant")
        now = self._clock.now()
        secret = new_secret(self._rng)
        token = Token(
            name=name,
            role=role,
            tenant=tenant,
            digest=digest_of_secret(secret),
            created_at=now,
            created_by=plain(self.access.actor, ACTOR_MAX),
            expires_at=expiry_of(now, life),
        )
        made = self._store.tokens.write(token)
        if made is None:
            raise AlreadyExists(
                f"name: there is or was a token {name!r}, and in the audit a name means one"
                " program (choose another name)"
            )
        whose = "all tenants" if tenant is None else f"tenant {tenant}"
        note(f"made for {role.value} of {whose}", details={"role": role.value})
        return NewToken(token=made, text=token_text(name, secret))

    @changes(Action.TOKEN_REVOKE, _on_token)
    def revoke_token(self, name: str, *, reason: str = "") -> Token:
        """Revoke a token: the next request that shows it is refused.

        Raises:
            NotFound: there is no such token.
            Conflict: it was revoked before.
        """
        for _ in range(CHANGE_TRIES):
            token = self._store.tokens.get(name)
            if token is None:
                raise NotFound("token", name, "`dynsched token list` shows them")
            actor = plain(self.access.actor, ACTOR_MAX)
            changed = self._store.tokens.write(token.revoked(now=self._clock.now(), actor=actor))
            if changed is not None:
                note("revoked")
                return changed
        raise Conflict(f"token {name} kept changing; try again")
