"""Views of tokens: all of them, and whose one is that a request shows."""

from __future__ import annotations

from dynsched.domain.instants import Clock
from dynsched.domain.names import NAME
from dynsched.domain.token import Token, read_token
from dynsched.errors import InvalidInput, Unauthenticated
from dynsched.services.listing import check_limit
from dynsched.services.search import Found
from dynsched.storage.store import Store

MEND = "send `Authorization: Bearer TOKEN` with a token of `dynsched token create`"


class TokenViews:
    """Reads tokens; only reading, never a secret."""

    _store: Store
    _clock: Clock

    def tokens(self, *, limit: int = 100, cursor: str | None = None) -> Found[Token]:
        """List tokens by name, those too that are good no more.

        Raises:
            InvalidInput: the limit or the cursor is wrong.
        """
        check_limit(limit)
        if cursor is not None and not NAME.fullmatch(cursor):
            raise InvalidInput("cursor", "it is none of this list's", "begin again without it")
        found = self._store.tokens.by_name(most=limit + 1, after=cursor or "")
        items = tuple(found[:limit])
        more = len(found) > limit
        return Found(
            items=items,
            matched=len(items),
            examined=len(items),
            cursor=items[-1].name if more else None,
        )

    def bearer(self, text: str) -> Token:
        """Return the token whose text a request shows. Cost: 1 read unit if it has the form of one.

        Raises:
            Unauthenticated: it is none, or good no more; the error does not say of which name.
        """
        shown = read_token(text)
        if shown is None:
            raise Unauthenticated(f"no token was shown ({MEND})")
        token = self._store.tokens.get(shown[0])
        if token is None or not token.fits(shown[1]):
            raise Unauthenticated(f"the token is not known ({MEND})")
        why = token.why_not(self._clock.now())
        if why:
            raise Unauthenticated(f"the token is refused: {why} ({MEND})")
        return token
