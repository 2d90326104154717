"""Views: what people look at. Consoles, CLI and API read here; the verbs are `operations`."""

from __future__ import annotations

from dynsched.services.audit_views import AuditQuery, AuditViews
from dynsched.services.job_search import JobSearch
from dynsched.services.job_views import JobDetail
from dynsched.services.listing import Listing
from dynsched.services.run_views import RunDetail, RunViews
from dynsched.services.search import Found, RunSearch
from dynsched.services.store_views import Stats, StoreViews

__all__ = ["AuditQuery", "Found", "JobDetail", "Listing", "RunDetail", "Stats", "Views"]


class Views(JobSearch, RunViews, RunSearch, StoreViews, AuditViews):
    """All that can be read of a store, each answer bounded; no rule of its own."""
