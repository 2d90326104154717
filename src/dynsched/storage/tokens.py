"""Token rows: one for each token, by its name, so that a request is checked by one read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from dynsched.domain.access import Role
from dynsched.domain.audit import KEPT
from dynsched.domain.instants import EPOCH, from_ms, to_ms
from dynsched.domain.token import Token
from dynsched.storage.engine import Applied, Key, PutNew, Query, Replace, Row, Table
from dynsched.storage.placement import TOKENS
from dynsched.storage.rows import PAGE, Rows


class TokenStore:
    """Verbs on token rows; every write is guarded by the version seen."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def get(self, name: str) -> Token | None:
        """Read a token, strongly: one that was revoked is refused at once. Cost: 1 read unit."""
        row = self._rows.engine.get(_key(name))
        return None if row is None else _decode(row)

    def write(self, token: Token) -> Token | None:
        """Write the next version of a token; None if it exists, or somebody else wrote first.

        The row outlives the token as long as the audit may name it, so that a name means one
        bearer. Cost: 1 write unit.
        """
        expires_at_s = (token.expires_at + KEPT - EPOCH) // timedelta(seconds=1)
        row = Row(_key(token.name), _body(token), None, expires_at_s, self._rows.token())
        seen = token.version
        write = Replace(row, seen) if seen else PutNew(row)
        outcome = self._rows.engine.write(write, durable=True)
        return replace(token, version=seen + 1) if isinstance(outcome, Applied) else None

    def by_name(self, *, most: int, after: str = "") -> list[Token]:
        """Read tokens in the order of their names. Cost: half a read unit for each ten."""
        query = Query(Table.CONTROL, TOKENS, after=after, limit=min(most, PAGE))
        return [_decode(row) for row in self._rows.all(query, most)]


def _key(name: str) -> Key:
    return Key(Table.CONTROL, TOKENS, name)


def _body(token: Token) -> dict[str, Any]:
    body: dict[str, Any] = {
        "r": token.role.value,
        "d": token.digest,
        "at": to_ms(token.created_at),
        "by": token.created_by,
        "x": to_ms(token.expires_at),
    }
    if token.tenant is not None:
        body["n"] = token.tenant
    if token.revoked_at is not None:
        body |= {"rv": to_ms(token.revoked_at), "rb": token.revoked_by}
    return body


def _decode(row: Row) -> Token:
    body = cast(Mapping[str, Any], row.body)
    revoked = body.get("rv")
    return Token(
        name=row.key.sk,
        role=Role(body["r"]),
        tenant=body.get("n"),
        digest=body["d"],
        created_at=from_ms(body["at"]),
        created_by=body["by"],
        expires_at=from_ms(body["x"]),
        revoked_at=None if revoked is None else from_ms(revoked),
        revoked_by=body.get("rb", ""),
        version=row.version,
    )
