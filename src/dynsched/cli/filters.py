"""Options that stand for terms of a filter, so that there is one way of filtering."""

from __future__ import annotations

from dynsched.cli.runtime import Runtime
from dynsched.domain.filters import term_text
from dynsched.domain.names import check_name
from dynsched.services.search import EXAMINE


def run_terms(runtime: Runtime, *, job: str | None, tenant: str | None) -> list[str]:
    """Return the terms of a job and a tenant that were given as options.

    Raises:
        InvalidInput: the tenant is no name.
        NotFound: there is no such job, or several tenants have one.
    """
    terms = tenant_terms(tenant)
    if job is not None:
        found = runtime.find_any_job(job, tenant)
        terms.append(term_text("job", found.job_id))
    return terms


def tenant_terms(tenant: str | None) -> list[str]:
    """Return the term of a tenant that was given as an option.

    Raises:
        InvalidInput: it is no name.
    """
    return [] if tenant is None else [term_text("tenant", check_name(tenant, "tenant"))]


def rows_examined(examine: int | None, limit: int) -> int:
    """Return how many rows a page looks at."""
    return max(EXAMINE, limit) if examine is None else examine
