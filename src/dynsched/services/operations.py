"""Operations: the one door for people. Consoles, CLI, API and user code change things here only."""

from __future__ import annotations

from dynsched.services.answer_verbs import AnswerVerbs
from dynsched.services.batch_verbs import BatchVerbs
from dynsched.services.handoff_verbs import HandOffVerbs
from dynsched.services.job_verbs import Changed, JobVerbs
from dynsched.services.replay_verbs import ReplayVerbs
from dynsched.services.store_verbs import StoreVerbs
from dynsched.services.token_verbs import NewToken, TokenVerbs
from dynsched.services.unmask_verbs import UnmaskVerbs

__all__ = ["Changed", "NewToken", "Operations"]


class Operations(
    JobVerbs,
    ReplayVerbs,
    AnswerVerbs,
    BatchVerbs,
    StoreVerbs,
    HandOffVerbs,
    TokenVerbs,
    UnmaskVerbs,
):
    """Verbs for people and programs; every rule is here and in the domain, none in a view."""
