"""Verbs on runs that wait for a callback: the answer of whoever did the work, and an operator's."""

from __future__ import annotations

from dynsched.domain.access import Action
from dynsched.domain.run import Run, parse_run_id
from dynsched.errors import Conflict
from dynsched.services.callbacks import Answer, answer_desk, check_token, check_waits
from dynsched.services.gate import changes, note
from dynsched.services.verbs import CHANGE_TRIES, Verbs, on_run


class AnswerVerbs(Verbs):
    """End runs that wait for a callback."""

    @changes(Action.RUN_ANSWER, on_run, audited=False)
    def answer_run(self, run_id: str, token: str, answer: Answer) -> Run:
        """Tell how an attempt ended that waits for its callback, by the token in its event.

        Args:
            run_id: the run.
            token: of the attempt.
            answer: how it ended.

        Raises:
            Forbidden: the token is not of the run's present attempt.
            Conflict: the run was answered or called off, or its wait is over.
        """
        return self._end(run_id, token, answer)

    @changes(Action.RUN_END, on_run)
    def end_run(self, run_id: str, answer: Answer, *, reason: str = "") -> Run:
        """End an attempt by hand that waits for a callback which will not come by itself.

        Raises:
            Conflict: the run does not wait for a callback.
        """
        run = self._end(run_id, None, answer)
        note(f"awaited its callback -> {run.state.value}")
        return run

    def _end(self, run_id: str, token: str | None, answer: Answer) -> Run:
        self._store.refresh_by(self._clock.now())
        desk = answer_desk(self._store, clock=self._clock, rng=self._rng)
        for _ in range(CHANGE_TRIES):
            if token is None:
                run = self.get_run(run_id)
            else:
                run = check_token(self._store.runs.get(parse_run_id(run_id)), run_id, token)
            ended = desk.end(check_waits(run), answer.result)
            if ended is not None:
                return ended
        raise Conflict(f"run {run_id} kept changing under the answer; try again")
