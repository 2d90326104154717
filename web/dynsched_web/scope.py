"""Scope: what somebody of one tenant may see. Views do not ask; so whoever reads them asks here."""

from __future__ import annotations

from dynsched.domain.access import Access
from dynsched.domain.filters import Filter, parse, term_text
from dynsched.domain.vocabulary import Vocabulary
from dynsched.errors import Forbidden, NotFound


def scoped(text: str, vocabulary: Vocabulary, access: Access) -> Filter:
    """Return the filter that a text means to somebody: of their tenant only, if they have one.

    Raises:
        FilterError: it cannot be read; the column counts in the text as it was given.
    """
    given = parse(text, vocabulary)
    if access.tenant is None:
        return given
    return parse(f"{given.text} {term_text('tenant', access.tenant)}".strip(), vocabulary)


def check_seen(access: Access, tenant: str, kind: str, name: str) -> None:
    """Refuse to show what is another tenant's, in the words for what is not there.

    Raises:
        NotFound: somebody of one tenant asks for what is not that tenant's.
    """
    if access.tenant is not None and tenant != access.tenant:
        raise NotFound(kind, name)


def check_whole(access: Access) -> None:
    """Refuse what concerns all tenants to somebody of one.

    Raises:
        Forbidden: they may see one tenant only.
    """
    if access.tenant is not None:
        raise Forbidden(
            f"this page is about the whole store, and {access.actor} may see tenant"
            f" {access.tenant} only"
        )
