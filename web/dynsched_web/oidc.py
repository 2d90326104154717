"""OIDC, the rules: which provider is asked, and what its claims make of somebody here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dynsched.domain.access import RANK, Role
from dynsched.domain.names import check_name
from dynsched.errors import Forbidden, InvalidInput
from dynsched_web.people import Person

SECRET_VARIABLE = "DYNSCHED_OIDC_CLIENT_SECRET"  # noqa: S105  # the name of a variable
ROLE_CLAIM = "roles"
NAME_CLAIM = "preferred_username"
ALL_TENANTS = "*"  # no tenant can be called so
NAME_MAX = 100
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Which provider says who somebody is, and what it is believed about.

    Attributes:
        issuer: its address.
        client_id: this console, as the provider calls it.
        client_secret: proves that to the provider; empty for a public client.
        role_claim: where the values stand that name roles; dots lead into objects.
        roles: those values with the roles that they mean.
        name_claim: where the name for the audit stands; without it, the provider's id of somebody.
        tenant_claim: where the one tenant stands that somebody may see; empty for all tenants.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    role_claim: str = ROLE_CLAIM
    roles: Mapping[str, Role]
    name_claim: str = NAME_CLAIM
    tenant_claim: str = ""

    @property
    def host(self) -> str:
        """Return the provider as people know it."""
        return urlsplit(self.issuer).netloc

    @property
    def mark(self) -> str:
        """Return what changes with anything that sessions rest on; other ones are over."""
        roles = sorted((value, role.value) for value, role in self.roles.items())
        rests_on = [self.issuer, self.client_id, self.role_claim, roles]
        text = json.dumps([*rests_on, self.name_claim, self.tenant_claim])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def person(self, name: str, role: str, tenant: str | None) -> Person:
        """Return somebody whom this provider has let in; no password fits."""
        return Person(name=name, role=Role(role), tenant=tenant, hashed=f"oidc:{self.mark}")


def oidc_of(
    *,
    issuer: str,
    client_id: str,
    client_secret: str,
    role_claim: str,
    roles: Sequence[str],
    name_claim: str,
    tenant_claim: str,
) -> OidcConfig | None:
    """Return how somebody logs in by OIDC as it was typed; None if nobody does.

    Raises:
        InvalidInput: what was typed does not go together.
    """
    if not issuer:
        if client_id or roles or role_claim or name_claim or tenant_claim:
            raise InvalidInput("--oidc-issuer", "it is missing", "give the provider's address")
        return None
    _check_issuer(issuer)
    if not client_id:
        raise InvalidInput("--oidc-client-id", "it is missing", "the provider gave it to you")
    if not roles:
        mend = "such as --oidc-role ops=operator"
        raise InvalidInput("--oidc-role", "nobody could come in without one", mend)
    return OidcConfig(
        issuer=issuer,
        client_id=client_id,
        client_secret=client_secret,
        role_claim=role_claim or ROLE_CLAIM,
        roles=dict(map(_mapped, roles)),
        name_claim=name_claim or NAME_CLAIM,
        tenant_claim=tenant_claim,
    )


def _check_issuer(issuer: str) -> None:
    parts = urlsplit(issuer)
    plain = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not (parts.scheme == "https" or plain) or not parts.hostname or parts.query:
        mend = "give an https address, such as https://login.example.com/realm"
        raise InvalidInput("--oidc-issuer", f"{issuer!r} cannot be trusted or asked", mend)


def _mapped(text: str) -> tuple[str, Role]:
    """Return one value of the claim with its role; the value may hold equals signs itself."""
    value, _, role = text.rpartition("=")
    known = [one.value for one in Role]
    if not value or role not in known:
        mend = f"give VALUE=ROLE with a role of {', '.join(known)}"
        raise InvalidInput("--oidc-role", f"{text!r} maps nothing to a role", mend)
    return value, Role(role)


def claimed(claims: Mapping[str, Any], config: OidcConfig) -> Person:
    """Return who somebody is by the claims of a token that was checked.

    Raises:
        Forbidden: no role is mapped to them, or the tenant cannot be told.
    """
    name = _name(claims.get(config.name_claim)) or _name(claims.get("sub"))
    if not name:
        raise Forbidden("the login provider does not say who you are")
    found = [config.roles[one] for one in _values(claims, config.role_claim) if one in config.roles]
    if not found:
        raise Forbidden(
            f"{name} has no role here: the claim {config.role_claim!r} holds no value that this"
            " console maps to one; ask whoever runs it"
        )
    role = max(found, key=lambda one: RANK[one])
    return config.person(name, role.value, _tenant(claims, config, name))


def _name(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= NAME_MAX and text.isprintable() else ""


def _tenant(claims: Mapping[str, Any], config: OidcConfig, name: str) -> str | None:
    """Return the only tenant that somebody may see; who has none sees nothing, not everything."""
    if not config.tenant_claim:
        return None
    values = _values(claims, config.tenant_claim)
    if values == [ALL_TENANTS]:
        return None
    try:
        (tenant,) = values
        return check_name(tenant, "tenant")
    except (ValueError, InvalidInput):
        raise Forbidden(
            f"{name} has no tenant here: the claim {config.tenant_claim!r} does not name just one;"
            " ask whoever runs this console"
        ) from None


def _values(claims: Mapping[str, Any], path: str) -> list[str]:
    """Return the texts of a claim, which may be one or a list.

    >>> _values({"realm": {"roles": ["a", 1, "b"]}, "x.y": "c"}, "realm.roles")
    ['a', 'b']
    >>> _values({"x.y": "c"}, "x.y"), _values({}, "x.y")
    (['c'], [])
    """
    found: Any = claims.get(path)
    if found is None:
        found = claims
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return [one for one in listed if isinstance(one, str)]
