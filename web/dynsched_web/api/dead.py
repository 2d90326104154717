"""Routes of the dead-letter queue: its runs, and what they died of."""

from __future__ import annotations

from dynsched.domain.filters import GROUPS
from dynsched.services.documents import Document
from dynsched.services.health_documents import group_document
from dynsched_web.api import answers
from dynsched_web.api.route import EXAMINED, FILTER, PAGING, Call, Routes, page_document
from dynsched_web.api.runs import runs_page
from dynsched_web.api.scope import own_group, scoped

ROUTES = Routes("dead")


@ROUTES.route("GET", "/dlq", answer=answers.RUNS, query={"filter": FILTER, **PAGING, **EXAMINED})
def list_dead_runs(call: Call) -> Document:
    """List dead runs, newest first; `is:discarded` shows those that were discarded."""
    return runs_page(call, scoped(call, call.query.get("filter", ""), GROUPS))


@ROUTES.route("GET", "/groups", answer=answers.GROUPS, query={"filter": FILTER, **PAGING})
def list_groups(call: Call) -> Document:
    """List the dead-letter queue by error, the groups with most runs first."""
    given = scoped(call, call.query.get("filter", ""), GROUPS)
    found = call.views.groups(given, **call.page)
    return page_document(found, [group_document(group) for group in found.items])


@ROUTES.route("GET", "/groups/{signature}", answer=answers.GROUP)
def get_group(call: Call) -> Document:
    """Show the dead runs of one error."""
    return group_document(own_group(call))
