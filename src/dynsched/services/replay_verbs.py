"""Verbs that replay one dead run otherwise than it was: as a new run, or with another payload."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from dataclasses import replace

from dynsched.domain import lifecycle
from dynsched.domain.access import Action
from dynsched.domain.job import Job
from dynsched.domain.lifecycle import REPLACED_BY, Transition
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.run import Run, RunKey, RunKind, RunState, occur, parse_run_id
from dynsched.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from dynsched.services.gate import changes, note
from dynsched.services.replay_notes import note_by_hand
from dynsched.services.run_verbs import PART_MARGIN, RunVerbs
from dynsched.services.verbs import CHANGE_TRIES, INLINE_MAX, expiry_s, on_run
from dynsched.storage.jobs import digest_of
from dynsched.storage.runs import AS_NEW, EDITED, Attempt, RunApplied

DIFF_LINES = 400
LINE_MAX = 500  # characters of a line of a difference


class ReplayVerbs(RunVerbs):
    """The two louder replays, one run at a time."""

    @changes(Action.RUN_REPLAY_AS_NEW, on_run)
    def replay_as_new(self, run_id: str, *, reason: str = "") -> Run:
        """Make a new run of a dead one's job and payload, with an idempotency key of its own.

        The side effects of the dead run may happen again: its own key protects them no more. One
        death makes one new run, however often this is asked. The dead run is discarded and names
        the new one; the new one names it as its origin.

        Raises:
            NotFound: there is no such run or job.
            InvalidInput: there is no reason.
            IllegalTransition: the run is not dead, or was discarded.
        """
        _needs_reason(reason)
        old = self.get_run(run_id)
        if old.hidden:
            return self._replacement(old)
        now = self._clock.now()
        self._store.refresh_by(now)
        new = self._new_of(old)
        # One guarded row for each death decides which new run it is: whoever comes later, or after
        # a crash, is given the same and finishes what was begun.
        first, _ = self._store.control.submit_once(
            old.job_id,
            f"as new\n{run_id}\n{old.fence}",  # no key of a user's has a line break
            new.run_id,
            "",
            expiry_s(now, 2 * old.retention),
        )
        new = replace(new, key=parse_run_id(first))
        self._store.runs.create_many([new], durable=True)

        def discard(run: Run) -> tuple[Transition, Attempt]:
            move = lifecycle.discard(_same_death(run, old), reason=REPLACED_BY + new.run_id)
            return move, self._by_hand(run, AS_NEW, reason, detail=new.run_id)

        self._apply_noted(old, discard)
        note(f"discarded, replaced by {new.run_id}", details={"new_run": new.run_id})
        return new

    def _replacement(self, old: Run) -> Run:
        """Return the run that took a discarded one's place."""
        replaced, _, new_id = old.reason.partition(REPLACED_BY)
        if replaced or not new_id:
            raise IllegalTransition(f"run {old.run_id} was discarded: restore it first")
        note(f"was replaced by {new_id} before")
        return self.get_run(new_id)

    def _new_of(self, old: Run) -> Run:
        if old.state is not RunState.DEAD:
            state = old.state.value
            raise IllegalTransition(
                f"replay does not apply to run {old.run_id}: it is {state}, not dead"
            )
        job = self.get_job(old.job_id)
        now = self._clock.now()
        ref = old.payload_ref
        if ref is not None:
            text = self._store.jobs.part(job.job_id, ref)
            if text is None:
                raise NotFound("payload", ref, "it was kept longer than the run was to be")
            ref = self._keep(job.job_id, text, expiry_s(now, 2 * old.retention + PART_MARGIN))
        return occur(
            job,
            RunKey(job.job_id, now, RunKind.MANUAL, self._nonces(now, 1)[0]),
            available_at=now,
            now=now,
            priority=old.priority,
            payload=old.payload,
            payload_ref=ref,
            forced=old.forced,
            origin=old.run_id,
        )

    @changes(Action.RUN_REPLAY_EDITED, on_run)
    def replay_edited(self, run_id: str, payload: Json, *, reason: str = "") -> Run:
        """Bring a dead run back with another payload: same row, same idempotency key.

        The payload that it had is kept among its attempts, with the difference.

        Raises:
            NotFound: there is no such run or job.
            InvalidInput: there is no reason, or the payload is wrong, lacks what the target
                names, holds a mask in the place of a secret, or is what the run has.
            IllegalTransition: the run is not dead.
        """
        _needs_reason(reason)
        first = self.get_run(run_id)
        self._store.refresh_by(self._clock.now())
        job = self.get_job(first.job_id)
        attempts = job.policies.retry.max_attempts

        def move(run: Run) -> tuple[Transition, Attempt]:
            old = self._effective_payload(run)
            new = self._edited_text(job, run, payload, old)
            kept = self._kept_payload(run, new)
            now = self._clock.now()
            replayed = lifecycle.replay(run, now=now, max_attempts=attempts, payload=kept)
            shown = [self._masker.json_text(text) for text in (old, new)]
            detail = difference(*shown) or "only what is masked differs"
            return replayed, self._by_hand(run, EDITED, reason, detail=detail, output=old)

        after = self._apply_noted(first, move)
        note(f"dead -> ready with another payload, replay {after.replays}")
        return after

    def _edited_text(self, job: Job, run: Run, payload: Json, old: str) -> str:
        """Return the new payload's text; what still shows a mask keeps what it hides."""
        if run.state is not RunState.DEAD:
            state = run.state.value
            raise IllegalTransition(
                f"replay does not apply to run {run.run_id}: it is {state}, not dead"
            )
        check_payload(payload)
        value = self._restored(payload, lambda: json.loads(old))
        self._check_payloads(job, [value])
        text = check_payload(value)
        if text == old:
            raise InvalidInput("payload", "it is what the run has", "replay it as it is")
        return text

    def _kept_payload(self, run: Run, text: str) -> tuple[str | None, str | None]:
        """Return a payload as a run's row has it: itself, or where it lies apart."""
        if len(text) <= INLINE_MAX:
            return text, None
        expiry = expiry_s(self._clock.now(), 2 * run.retention + PART_MARGIN)
        return None, self._keep(run.job_id, text, expiry)

    def _by_hand(
        self, run: Run, outcome: str, reason: str, *, detail: str = "", output: str = ""
    ) -> Attempt:
        return note_by_hand(
            run,
            outcome,
            now=self._clock.now(),
            by=self.access.actor,
            reason=reason.strip(),
            detail=detail,
            output=output,
        )

    def _apply_noted(self, run: Run, move: Callable[[Run], tuple[Transition, Attempt]]) -> Run:
        """Write a transition and its note together, again if somebody was first."""
        current: Run | None = run
        for _ in range(CHANGE_TRIES):
            if current is None:
                raise NotFound("run", run.run_id, "its retention is over")
            outcome = self._store.runs.apply_noted(*move(current))
            if isinstance(outcome, RunApplied):
                return outcome.run
            current = outcome.current
        raise Conflict(f"run {run.run_id} kept changing; try again")

    def _effective_payload(self, run: Run) -> str:
        """Return what a run's handler was given, as JSON text: its own payload or its job's."""
        text, ref = run.payload, run.payload_ref
        if text is None and ref is None:
            job = self.get_job(run.job_id)
            text, ref = job.payload, job.payload_ref
        if text is None and ref is not None:
            text = self._store.jobs.part(run.job_id, ref)
        return "null" if text is None else text

    def _keep(self, job_id: str, text: str, expires_at_s: int) -> str:
        """Keep a large payload apart; return its address."""
        self._store.jobs.put_part(self._store.jobs.part_row(job_id, text, expires_at_s))
        return digest_of(text)


def _needs_reason(reason: str) -> None:
    if not reason.strip():
        raise InvalidInput("reason", "it is empty", "say why; the audit keeps it")


def _same_death(run: Run, old: Run) -> Run:
    if (run.state, run.fence, run.hidden) != (RunState.DEAD, old.fence, False):
        state = run.state.value
        raise IllegalTransition(f"run {run.run_id} was changed meanwhile: it is {state}")
    return run


def difference(old: str, new: str) -> str:
    r"""Return what differs between two payloads as a unified diff of their laid-out JSON.

    >>> print(difference('{"a":1,"b":2}', '{"a":1,"b":3}'))
    --- before
    +++ after
    @@ -1,4 +1,4 @@
     {
       "a": 1,
    -  "b": 2
    +  "b": 3
     }
    """
    before, after = (
        json.dumps(json.loads(text), indent=2, ensure_ascii=False).splitlines()
        for text in (old, new)
    )
    found = list(difflib.unified_diff(before, after, "before", "after", lineterm=""))
    shown = [line if len(line) <= LINE_MAX else line[:LINE_MAX] + "…" for line in found]
    if len(shown) > DIFF_LINES:
        shown = [*shown[:DIFF_LINES], f"… {len(found) - DIFF_LINES:,} more lines"]
    return "\n".join(shown)
