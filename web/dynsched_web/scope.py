"""Scope: what somebody of one tenant may see. Views do not ask; so whoever reads them asks here."""

from __future__ import annotations

from dynsched.domain.access import Access
from dynsched.domain.batch import Batch
from dynsched.domain.filters import Filter, parse, term_text
from dynsched.domain.vocabulary import Vocabulary
from dynsched.errors import Forbidden, NotFound
from dynsched.services.search import Found
from dynsched.services.views import Views

LOOKED_MAX = 2_000  # batches that one page of somebody of one tenant passes
PAGE = 200


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


def seen_batches(
    views: Views, tenant: str | None, *, limit: int, cursor: str | None
) -> Found[Batch]:
    """Return a page of the batches that somebody may see, newest first.

    Args:
        views: reads them.
        tenant: the only one all of whose runs are shown; None is all.
        limit: at most so many.
        cursor: goes on behind a page.
    """
    if tenant is None:
        return views.batches(limit=limit, cursor=cursor)
    items: list[Batch] = []
    examined, more = 0, True
    while more and len(items) < limit and examined < LOOKED_MAX:
        page = views.batches(limit=PAGE, cursor=cursor)
        more = page.cursor is not None
        for number, batch in enumerate(page.items, 1):
            examined, cursor = examined + 1, batch.batch_id
            if batch.tenant == tenant:
                items.append(batch)
            if len(items) == limit:
                more = more or number < len(page.items)
                break
    return Found(
        items=tuple(items),
        matched=len(items),
        examined=examined,
        cursor=cursor if more else None,
    )
