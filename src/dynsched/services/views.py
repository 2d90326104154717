"""Views: what people look at. Consoles, CLI and API read here; the verbs are `operations`."""

from __future__ import annotations

from dynsched.services.audit_views import AuditQuery, AuditViews
from dynsched.services.batch_views import BatchDetail, BatchEntry, BatchViews
from dynsched.services.groups import GroupViews
from dynsched.services.handoff_views import HandOffViews
from dynsched.services.job_search import JobSearch
from dynsched.services.job_views import JobDetail
from dynsched.services.listing import Listing
from dynsched.services.run_views import RunDetail, RunViews
from dynsched.services.search import Found
from dynsched.services.store_views import Stats, StoreViews
from dynsched.services.tenant_views import TenantShare, TenantViews
from dynsched.services.token_views import TokenViews
from dynsched.services.why import WhyViews
from dynsched.services.worker_views import WorkerViews

__all__ = [
    "AuditQuery",
    "BatchDetail",
    "BatchEntry",
    "Found",
    "JobDetail",
    "Listing",
    "RunDetail",
    "Stats",
    "TenantShare",
    "Views",
]


class Views(
    WhyViews,
    JobSearch,
    RunViews,
    GroupViews,
    BatchViews,
    StoreViews,
    HandOffViews,
    AuditViews,
    TenantViews,
    WorkerViews,
    TokenViews,
):
    """All that can be read of a store, each answer bounded; no rule of its own."""
