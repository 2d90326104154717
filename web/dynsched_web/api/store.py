"""Routes of the store as a whole: tenants, workers, the audit, health."""

from __future__ import annotations

from dynsched.domain.filters import AUDIT
from dynsched.services.documents import Document, audit_document, tenant_document
from dynsched.services.health_documents import health_document
from dynsched.services.store_verbs import CAP_MAX
from dynsched.services.views import AuditQuery
from dynsched_web.api import answers, bodies
from dynsched_web.api.route import EXAMINED, FILTER, PAGING, WHY, Call, Routes, page_document
from dynsched_web.api.schema import INSTANT, fields, orelse_null, whole
from dynsched_web.api.scope import scoped, whole_store

ROUTES = Routes("store")


def _all(items: list[Document], notes: list[str] | None = None) -> Document:
    """Return the answer of a list that has one page."""
    count = len(items)
    return {
        "items": items,
        "matched": count,
        "examined": count,
        "cursor": None,
        "notes": notes or [],
    }


@ROUTES.route("GET", "/tenants", answer=answers.TENANTS)
def list_tenants(call: Call) -> Document:
    """List the tenants that have jobs or settings, by name."""
    found = call.views.list_tenants()
    own = call.access.tenant
    shown = [tenant for tenant in found.items if own in (None, tenant.name)]
    notes = [*found.notes, *(["not all tenants were looked at"] if found.more else [])]
    return _all([tenant_document(tenant) for tenant in shown], notes)


@ROUTES.route(
    "PUT",
    "/tenants/{tenant}",
    answer=answers.TENANT,
    body=fields("Cap", {"max_running": orelse_null(whole(1, CAP_MAX))}, {"reason": WHY}),
)
def set_tenant(call: Call) -> Document:
    """Cap how many of a tenant's runs are under way at once; null lifts the cap."""
    name, cap = call.path["tenant"], call.body["max_running"]
    return tenant_document(call.operations.set_tenant(name, max_running=cap, reason=call.reason))


@ROUTES.route("GET", "/workers", answer=answers.WORKERS)
def list_workers(call: Call) -> Document:
    """List worker sessions, open ones first, as the last look at the store's health saw them."""
    whole_store(call)
    document = health_document(call.views.health())
    workers = document["workers"]
    assert isinstance(workers, list)
    return _all(workers)


@ROUTES.route(
    "GET",
    "/audit",
    answer=answers.AUDIT,
    query={
        "filter": FILTER,
        "since": {**INSTANT, "description": "Leave out what was asked for before."},
        **PAGING,
        **EXAMINED,
    },
)
def list_audit(call: Call) -> Document:
    """List who changed what, when, why and how it ended, newest first."""
    query = AuditQuery(
        filter=scoped(call, call.query.get("filter", ""), AUDIT),
        since=bodies.instant_of(call.query, "since"),
        **call.examined_page,
    )
    found = call.views.audit(query)
    return page_document(found, [audit_document(entry) for entry in found.items])


@ROUTES.route("GET", "/health", answer=answers.HEALTH)
def get_health(call: Call) -> Document:
    """Show whether runs start late, whether anything is stuck or broken, and for whom.

    The look is shared: however many ask, the store is looked at every five seconds at most.
    """
    whole_store(call)
    return health_document(call.views.health())
