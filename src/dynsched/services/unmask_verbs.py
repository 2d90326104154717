"""The one look that is a right of its own: a run with nothing masked."""

from __future__ import annotations

from dynsched.domain.access import Action
from dynsched.errors import InvalidInput
from dynsched.services.gate import changes, note
from dynsched.services.run_views import RunDetail, RunViews
from dynsched.services.verbs import Verbs, on_run


class UnmaskVerbs(Verbs):
    """See what views hide; it changes nothing but the audit."""

    @changes(Action.PAYLOAD_UNMASK, on_run)
    def unmask_run(self, run_id: str, reason: str) -> RunDetail:
        """Return a run with its attempts and payload as they are.

        Args:
            run_id: the run.
            reason: why; it may not be empty.

        Raises:
            InvalidInput: the text is no run id, or there is no reason.
            NotFound: there is no such run.
        """
        if not reason.strip():
            raise InvalidInput("reason", "it is empty", "say why this must be seen")
        note("shown unmasked")
        return RunViews(self._store, clock=self._clock).show_run(run_id, unmask=True)
