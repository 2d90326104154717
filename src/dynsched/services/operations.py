"""Operations: the one door for people. Consoles, CLI, API and user code change things here only."""

from __future__ import annotations

from dynsched.services.job_verbs import Changed, JobVerbs
from dynsched.services.run_verbs import RunVerbs
from dynsched.services.store_verbs import StoreVerbs
from dynsched.services.unmask_verbs import UnmaskVerbs

__all__ = ["Changed", "Operations"]


class Operations(JobVerbs, RunVerbs, StoreVerbs, UnmaskVerbs):
    """Verbs for people and programs; every rule is here and in the domain, none in a view."""
