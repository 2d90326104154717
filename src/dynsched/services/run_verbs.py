"""Verbs on runs: enqueue, cancel, and the dead-letter queue."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dynsched.domain import lifecycle
from dynsched.domain.access import Action
from dynsched.domain.instants import instant_after, minute_of, to_ms, to_utc
from dynsched.domain.job import (
    Job,
    Priority,
)
from dynsched.domain.lifecycle import Transition
from dynsched.domain.names import new_ordered_ids
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.run import TERMINAL, Run, RunKey, RunKind, RunState, occur, parse_run_id
from dynsched.domain.target import check_target_payload
from dynsched.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from dynsched.services.callbacks import answer_desk
from dynsched.services.cancelling import request_cancel
from dynsched.services.gate import changes, note
from dynsched.services.replay_notes import note_by_hand
from dynsched.services.verbs import CHANGE_TRIES, INLINE_MAX, Verbs, expiry_s, on_job, on_run
from dynsched.storage.jobs import digest_of
from dynsched.storage.runs import REPLAYED, RunApplied

ENQUEUE_CHUNK = 500  # runs of one commit
KEY_BYTES_MAX = 512
WHY_MAX = 120  # characters of a reason that a run's row keeps; the audit has all of it
# A run's large payload lies apart and outlives the run by its expiry alone, which is fixed when the
# run is made. So this bounds how long a run may wait, retry and be replayed with one: a year beyond
# its retention. A part has at most 256 KB and is rare, so the year costs little.
PART_MARGIN = timedelta(days=366)


class RunVerbs(Verbs):
    """Make, read, cancel, replay and discard runs."""

    @changes(Action.JOB_RUN, on_job)
    def run_now(
        self, job_id: str, *, payload: Json = None, force: bool = False, reason: str = ""
    ) -> Run:
        """Make a manual run; it obeys overlap and waits, unless forced.

        Raises:
            NotFound: there is no such job.
            InvalidInput: the payload is wrong.
        """
        if payload is not None:
            check_payload(payload)
            self._refuse_masked("payload", payload)
        run = self._enqueue(job_id, payload, force=force)
        note("forced" if force else "made", target=f"run:{run.run_id}")
        return run

    @changes(Action.RUN_ENQUEUE, on_job, audited=False)
    def enqueue(
        self,
        job_id: str,
        payload: Json = None,
        *,
        at: datetime | None = None,
        delay: timedelta | None = None,
        priority: Priority | None = None,
        key: str | None = None,
        force: bool = False,
    ) -> Run:
        """Make a run of a job with a payload of its own; it is durable when this returns.

        Args:
            job_id: the job.
            payload: JSON values; None takes the job's.
            at: when it may start.
            delay: or how long from now.
            priority: other than the job's.
            key: equal keys of one job are one run; another payload under it is refused.
            force: do not wait for other runs of the job.

        Raises:
            Conflict: the key was used with another payload.
            InvalidInput: an argument is wrong, or the payload lacks what the target names.
        """
        return self._enqueue(
            job_id, payload, at=at, delay=delay, priority=priority, key=key, force=force
        )

    def _enqueue(
        self,
        job_id: str,
        payload: Json,
        *,
        at: datetime | None = None,
        delay: timedelta | None = None,
        priority: Priority | None = None,
        key: str | None = None,
        force: bool = False,
    ) -> Run:
        if key is not None:
            _check_key(key)
        self._store.refresh_by(self._clock.now())
        job = self.get_job(job_id)
        self._check_payloads(job, [payload])
        run = self._manual(job, payload, _start_at(at, delay, self._clock.now()), priority, force)
        if key is not None:
            run = self._once(job, run, key, payload)
        made = self._store.runs.create_many([run], durable=True)
        return run if made[0] else self.get_run(run.run_id)

    @changes(Action.RUN_ENQUEUE, on_job, audited=False)
    def enqueue_many(
        self,
        job_id: str,
        payloads: Sequence[Json],
        *,
        at: datetime | None = None,
        priority: Priority = Priority.BULK,
    ) -> list[Run]:
        """Make a run for each payload, in commits of many; bulk priority unless told otherwise.

        Runs of one lane start in the order of their payloads, as far as there are free slots.

        Args:
            job_id: the job.
            payloads: one for each run; None takes the job's.
            at: when they may start; None is now.
            priority: of all of them.

        Raises:
            InvalidInput: an argument is wrong, or a payload lacks what the target names.
        """
        now = self._clock.now()
        start_at = _start_at(at, None, now)
        self._store.refresh_by(now)
        job = self.get_job(job_id)
        self._check_payloads(job, payloads)
        runs = [
            self._manual(job, payload, start_at, priority, False, nonce=nonce)
            for payload, nonce in zip(payloads, self._nonces(now, len(payloads)), strict=True)
        ]
        for start in range(0, len(runs), ENQUEUE_CHUNK):
            self._store.runs.create_many(runs[start : start + ENQUEUE_CHUNK], durable=True)
        return runs

    def _nonces(self, now: datetime, count: int) -> list[str]:
        """Return nonces in their order, so that runs of one instant start in that order."""
        spread, rng = self._store.topology.writing(minute_of(now)).spread, self._rng
        ids = new_ordered_ids(rng, to_ms(now), count)
        if spread == 1:
            return [f"0-{one}" for one in ids]
        return sorted(f"{rng.randrange(spread)}-{one}" for one in ids)

    def _manual(
        self,
        job: Job,
        payload: Json,
        at: datetime,
        priority: Priority | None,
        force: bool,
        *,
        nonce: str | None = None,
    ) -> Run:
        now = self._clock.now()
        text = None if payload is None else check_payload(payload)
        digest: str | None = None
        if text is not None and len(text) > INLINE_MAX:
            expiry = expiry_s(max(at, now), 2 * job.policies.retention + PART_MARGIN)
            self._store.jobs.put_part(self._store.jobs.part_row(job.job_id, text, expiry))
            digest, text = digest_of(text), None
        return occur(
            job,
            RunKey(job.job_id, at, RunKind.MANUAL, nonce or self._nonces(now, 1)[0]),
            available_at=at,
            now=now,
            priority=priority,
            payload=text,
            payload_ref=digest,
            forced=force,
        )

    def _check_payloads(self, job: Job, payloads: Sequence[Json]) -> None:
        """Check payloads against the job's target; a None takes the job's, which was checked."""
        given = [payload for payload in payloads if payload is not None]
        target = self.target_of(job) if given else None
        if target is not None:
            for payload in given:
                check_target_payload(target, payload)

    def _once(self, job: Job, run: Run, key: str, payload: Json) -> Run:
        digest = digest_of("" if payload is None else check_payload(payload))
        # Counted from now at least: a key given with a past instant must guard all the same.
        expiry = expiry_s(max(run.available_at, run.created_at), job.policies.retention)
        run_id, first = self._store.control.submit_once(job.job_id, key, run.run_id, digest, expiry)
        if first != digest:
            raise Conflict(f"key {key!r} of job {job.name} was used with another payload")
        return replace(run, key=parse_run_id(run_id))

    @changes(Action.RUN_CANCEL, on_run)
    def cancel(self, run_id: str, *, reason: str = "") -> Run:
        """Cancel a run: at once if it waits; a leased one is asked to stop.

        Raises:
            IllegalTransition: it has ended already.
        """
        why = reason[:WHY_MAX] or "cancelled by hand"
        self._store.refresh_by(self._clock.now())
        for _ in range(CHANGE_TRIES):
            run = self.get_run(run_id)
            if run.state in TERMINAL:
                raise IllegalTransition(f"run {run_id} has ended: it is {run.state.value}")
            if run.state is RunState.LEASED:
                asked = request_cancel(self._store, run, reason=why)
                if asked is not None and asked.awaits_callback:
                    asked = answer_desk(self._store, clock=self._clock, rng=self._rng).call_off(
                        asked
                    )
                    if asked is not None:
                        note(f"awaited its callback -> {asked.state.value}")
                        return asked
                elif asked is not None and asked.cancel_requested:
                    note("asked to stop")
                    return asked
                continue
            move = lifecycle.cancel(run, now=self._clock.now(), reason=why)
            outcome = self._store.runs.apply(move, durable=True)
            if isinstance(outcome, RunApplied):
                note(f"{run.state.value} -> {outcome.run.state.value}")
                return outcome.run
        raise Conflict(f"run {run_id} kept changing under the cancel; try again")

    # the dead-letter queue

    @changes(Action.RUN_REPLAY, on_run)
    def replay(self, run_id: str, *, reason: str = "") -> Run:
        """Bring a dead run back: same row, same idempotency key, attempts kept.

        Raises:
            IllegalTransition: it is not dead.
        """
        run = self.get_run(run_id)
        job = self.get_job(run.job_id)
        attempts = job.policies.retry.max_attempts

        def move(run: Run) -> Transition:
            return lifecycle.replay(run, now=self._clock.now(), max_attempts=attempts)

        after = self._apply(run, move)
        self._store.runs.note_attempts(
            [
                note_by_hand(
                    run,
                    REPLAYED,
                    now=self._clock.now(),
                    by=self.access.actor,
                    reason=reason.strip(),
                )
            ]
        )
        return self._noted(after, f"dead -> ready, replay {after.replays}")

    @changes(Action.RUN_DISCARD, on_run)
    def discard(self, run_id: str, *, reason: str = "") -> Run:
        """Hide a dead run from the dead-letter queue; it can be restored until it expires."""
        return self._noted(self._apply(self.get_run(run_id), lifecycle.discard), "hidden")

    @changes(Action.RUN_RESTORE, on_run)
    def restore(self, run_id: str, *, reason: str = "") -> Run:
        """Show a discarded run again."""
        return self._noted(self._apply(self.get_run(run_id), lifecycle.restore), "shown again")

    def _noted(self, run: Run, words: str) -> Run:
        note(words)
        return run

    def _apply(self, run: Run, move: Callable[[Run], Transition]) -> Run:
        """Write a transition that people asked for, again if a friend was first."""
        self._store.refresh_by(self._clock.now())
        current: Run | None = run
        for _ in range(CHANGE_TRIES):
            if current is None:
                raise NotFound("run", run.run_id, "its retention is over")
            outcome = self._store.runs.apply(move(current), durable=True)
            if isinstance(outcome, RunApplied):
                return outcome.run
            current = outcome.current
        raise Conflict(f"run {run.run_id} kept changing; try again")


def _start_at(at: datetime | None, delay: timedelta | None, now: datetime) -> datetime:
    if at is not None and delay is not None:
        raise InvalidInput("at", "at and delay are both given", "give one of them")
    if delay is not None and delay < timedelta(0):
        raise InvalidInput("delay", "it is negative", "give 0s or more")
    if at is not None:
        return to_utc(at, "at")
    return instant_after(now, delay or timedelta(0), "delay")


def _check_key(key: str) -> None:
    if not key:
        raise InvalidInput("key", "it is empty", "give a text, or no key")
    if any(unicodedata.category(one) in ("Cc", "Cs") for one in key):
        raise InvalidInput("key", "it has control characters", "remove them")
    if len(key.encode()) > KEY_BYTES_MAX:
        raise InvalidInput("key", f"longer than {KEY_BYTES_MAX} bytes", "shorten or hash it")
