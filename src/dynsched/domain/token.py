"""Tokens: what programs show to the JSON API instead of a password.

A token's text is shown once, when it is made: `dynsched_NAME_SECRET`. The store keeps the secret's
SHA-256 only. A slow hash would protect guessable words; this secret is 256 random bits, so there is
nothing to guess, and every request can be checked for the price of one read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from dynsched.domain.access import Role
from dynsched.domain.instants import instant_after
from dynsched.domain.names import NAME
from dynsched.errors import Conflict, InvalidInput

PREFIX = "dynsched_"
SECRET_BITS = 256
LIFE = timedelta(days=90)
"""How long a token is good for unless told otherwise."""
LIFE_MAX = timedelta(days=3_660)
_SECRET = re.compile(f"[0-9a-f]{{{SECRET_BITS // 4}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token's row: everything but its secret.

    Attributes:
        name: its own for good, as the audit names its bearer by it.
        role: what its bearer is trusted with.
        tenant: the one tenant that its bearer may see and change; None is all.
        digest: SHA-256 of its secret, in hexadecimal.
        created_by: the actor who made it.
        expires_at: when it stops being good.
        revoked_at: when it was revoked; None if it was not.
        version: the stored version, 0 for one not stored yet.
    """

    name: str
    role: Role
    tenant: str | None = None
    digest: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None = None
    revoked_by: str = ""
    version: int = 0

    def why_not(self, now: datetime) -> str:
        """Return why it is no longer good; empty if it is."""
        if self.revoked_at is not None:
            return "it was revoked"
        return "it has expired" if now >= self.expires_at else ""

    def fits(self, secret: str) -> bool:
        """Return whether the secret is this token's; in a time that tells nothing."""
        return hmac.compare_digest(self.digest, digest_of_secret(secret))

    def revoked(self, *, now: datetime, actor: str) -> Token:
        """Return it as good for nothing from now on.

        Raises:
            Conflict: it was revoked before.
        """
        if self.revoked_at is not None:
            raise Conflict(f"token {self.name} was revoked before, by {self.revoked_by}")
        return replace(self, revoked_at=now, revoked_by=actor)


def new_secret(rng: Random) -> str:
    """Return a secret; as good as the source, which outside of tests is the operating system's.

    >>> len(new_secret(Random(1)))
    64
    """
    return f"{rng.getrandbits(SECRET_BITS):0{SECRET_BITS // 4}x}"


def digest_of_secret(secret: str) -> str:
    """Return what is kept of a secret."""
    # A command line may hold bytes that are no text: they are no secret, and no fault either.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def token_text(name: str, secret: str) -> str:
    """Return a token as its bearer shows it."""
    return f"{PREFIX}{name}_{secret}"


def read_token(text: str) -> tuple[str, str] | None:
    """Return the name and the secret in a token's text; None if it has not the form of one.

    >>> read_token(token_text("ci_2", "0" * 64)) == ("ci_2", "0" * 64)
    True
    >>> read_token("dynsched_ci_short"), read_token("Basic YTpi")
    (None, None)
    """
    if not text.startswith(PREFIX):
        return None
    name, _, secret = text[len(PREFIX) :].rpartition("_")
    if not NAME.fullmatch(name) or not _SECRET.fullmatch(secret):
        return None
    return name, secret


def expiry_of(now: datetime, life: timedelta) -> datetime:
    """Return when a token that is made now stops being good.

    Raises:
        InvalidInput: the life is none, or too long.
    """
    if life <= timedelta(0):
        raise InvalidInput("expires", "it would never be good", "give 1h or more")
    if life > LIFE_MAX:
        raise InvalidInput("expires", f"longer than {LIFE_MAX.days:,} days", "give less")
    return instant_after(now, life, "expires")
