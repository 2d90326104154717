"""Facts of runs: what holds of a run, for each qualifier that a filter may ask for.

Most lies in the run's own row. A job's name and tags, a payload that lies apart and the worker
sessions are read in batches, and only for rows that all cheaper terms let through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from dynsched.domain.delay import scheduling_delay
from dynsched.domain.filter_match import Fact, Facts, holds
from dynsched.domain.filters import WORD, Filter, Term
from dynsched.domain.job import Job
from dynsched.domain.masking import Masker
from dynsched.domain.payload import Json
from dynsched.domain.run import Run, RunState
from dynsched.services.capacity import Capacity, alive_sessions, is_overdue
from dynsched.storage.control import Session
from dynsched.storage.store import Store

LATE = timedelta(minutes=1)  # the grace after which an occurrence counts as missed
BATCH = 100  # rows that are read together
PARTS_BATCH = 25  # payloads are long
COSTLY = frozenset({WORD, "tag", "payload"})
"""Qualifiers that need more than the run's row."""
NO_GROUP = "0" * 16  # stands for the signature in the index of a dead run that has none
_GONE = object()


class RunFacts:
    """What holds of runs, as far as one search asks.

    Args:
        store: where jobs, payloads and sessions are read.
        found: the filter; what it does not ask for is never read.
        now: the search's own instant.
        jobs: ids by each word that the filter gives for a job.
        workers: sessions by each word that the filter gives for a worker.
        masker: hides what nobody may find by guessing at it either.
    """

    def __init__(
        self,
        store: Store,
        found: Filter,
        now: datetime,
        *,
        jobs: Mapping[str, frozenset[str]],
        workers: Mapping[str, frozenset[str]],
        masker: Masker,
    ) -> None:
        self._masker = masker
        self._store = store
        self._filter = found
        self._now = now
        self._job_words = jobs
        self._worker_words = workers
        self._names = frozenset(found.names())
        self._jobs: dict[str, Job | None] = {}
        self._parts: dict[tuple[str, str], object] = {}
        self._cheap = [term for term in found.terms if not self._costs(term)]
        self._costly = [term for term in found.terms if self._costs(term)]

    def fitting(self, runs: Sequence[Run]) -> list[bool]:
        """Return for each run whether the filter's terms hold."""
        fits = [all(self._holds(term, run) for term in self._cheap) for run in runs]
        if self._costly:
            kept = [run for run, fit in zip(runs, fits, strict=True) if fit]
            self._prepare(kept)
            fits = [
                fit and all(self._holds(term, run) for term in self._costly)
                for run, fit in zip(runs, fits, strict=True)
            ]
        return fits

    @property
    def batched(self) -> bool:
        """Return whether testing several runs together saves reads."""
        return bool(self._costly)

    def _costs(self, term: Term) -> bool:
        names = Filter((term,), self._filter.vocabulary).names()
        return not COSTLY.isdisjoint(names)

    def _holds(self, term: Term, run: Run) -> bool:
        return holds(term, self._filter, self._facts(run), self._now)

    def _facts(self, run: Run) -> Facts:
        def fact(name: str) -> Fact:
            return _FACTS[name](self, run)

        return fact

    # what is read besides the run

    def _prepare(self, runs: Sequence[Run]) -> None:
        """Read the jobs and payloads that testing these runs needs."""
        own = [run for run in runs if run.payload is None and run.payload_ref is None]
        asked = own if not self._names & {WORD, "tag"} else runs
        self._read_jobs([run.job_id for run in asked])
        if "payload" in self._names:
            self._read_parts([part for run in runs if (part := self._part(run)) is not None])

    def _read_jobs(self, job_ids: Sequence[str]) -> None:
        unknown = [one for one in dict.fromkeys(job_ids) if one not in self._jobs]
        for first in range(0, len(unknown), BATCH):
            found = self._store.jobs.read_many(unknown[first : first + BATCH])
            self._jobs |= {
                job_id: job if isinstance(job, Job) else None for job_id, job in found.items()
            }

    def _read_parts(self, wanted: Sequence[tuple[str, str]]) -> None:
        unknown = [one for one in dict.fromkeys(wanted) if one not in self._parts]
        for first in range(0, len(unknown), PARTS_BATCH):
            batch = unknown[first : first + PARTS_BATCH]
            for part, text in zip(batch, self._store.jobs.parts(batch), strict=True):
                self._parts[part] = _GONE if text is None else json.loads(text)

    def _part(self, run: Run) -> tuple[str, str] | None:
        """Return where the payload lies that a run carries, None if in a row at hand."""
        if run.payload is not None:
            return None
        job = self._jobs.get(run.job_id)
        digest = run.payload_ref
        if digest is None and job is not None and job.payload is None:
            digest = job.payload_ref
        return None if digest is None else (run.job_id, digest)

    @cached_property
    def _sessions(self) -> list[Session]:
        return self._store.control.sessions()

    @cached_property
    def _alive(self) -> frozenset[str]:
        return frozenset(one.session for one in alive_sessions(self._sessions, self._now))

    @cached_property
    def _capacity(self) -> Capacity:
        handed_off = self._store.topology.message_queues
        return Capacity(alive_sessions(self._sessions, self._now), handed_off)

    # what holds

    def job_words(self, run: Run) -> Fact:
        """Return the words of the filter that mean a run's job."""
        return [word for word, ids in self._job_words.items() if run.job_id in ids]

    def worker_words(self, run: Run) -> Fact:
        """Return the words of the filter that mean a run's worker."""
        return [word for word, ids in self._worker_words.items() if run.session in ids]

    def tags(self, run: Run) -> Fact:
        """Return the tags of a run's job."""
        job = self._jobs.get(run.job_id)
        return None if job is None else job.tags

    def texts(self, run: Run) -> Fact:
        """Return the texts that a bare word is looked for in."""
        job = self._jobs.get(run.job_id)
        return (run.run_id, self.error(run), "" if job is None else job.name)

    def shown(self, text: str) -> str:
        """Return a text as people are shown it."""
        return self._masker.text(text)

    def error(self, run: Run) -> str:
        """Return a run's last error as people are shown it."""
        return self.shown(run.error)

    def payload(self, run: Run) -> Fact:
        """Return what a run carries, its own payload, else its job's, as people are shown it."""
        return self._masker.value(self._payload(run))

    def _payload(self, run: Run) -> Json:
        part = self._part(run)
        if part is not None:
            value = self._parts.get(part, _GONE)
            return () if value is _GONE else value  # type: ignore[return-value]
        job = self._jobs.get(run.job_id)
        text = run.payload if run.payload is not None or job is None else job.payload
        payload: Json = () if text is None else json.loads(text)
        return payload

    def delay(self, run: Run) -> Fact:
        """Return how late a run started, or is by now."""
        return scheduling_delay(run, self._now)

    def flags(self, run: Run) -> Fact:
        """Return what else holds of a run, of that which the filter asks for."""
        return [word for word in self._flags_asked if _FLAGS[word](self, run)]

    @cached_property
    def _flags_asked(self) -> tuple[str, ...]:
        return tuple(flags_in(self._filter))

    def is_late(self, run: Run) -> bool:
        """Return whether a run started, or still waits, more than the grace after it was due."""
        delay = scheduling_delay(run, self._now)
        return delay is not None and delay > LATE

    def is_overdue(self, run: Run) -> bool:
        """Return whether a run should have been taken by now."""
        return is_overdue(run, self._now)

    def is_stuck(self, run: Run) -> bool:
        """Return whether a run waits for a worker that is gone, or that there is none of."""
        if run.state is RunState.LEASED:
            if run.lease_ends_at is not None:
                return run.lease_ends_at <= self._now
            return run.session not in self._alive
        return bool(self._capacity.lack_of(run, self._now))


def flags_in(found: Filter) -> dict[str, None]:
    """Return the words that a filter gives to `is`, those of shipped filters included."""
    words: dict[str, None] = {}
    for term in found.flat():
        if term.name == "is":
            words |= dict.fromkeys(term.words)
        elif term.name == "@":
            for word in term.words:
                words |= flags_in(found.shipped(word))
    return words


_FLAGS: Mapping[str, Callable[[RunFacts, Run], bool]] = {
    "late": RunFacts.is_late,
    "overdue": RunFacts.is_overdue,
    "retried": lambda _, run: run.attempt > 1,
    "replayed": lambda _, run: run.replays > 0,
    "discarded": lambda _, run: run.hidden,
    "forced": lambda _, run: run.forced,
    "asked": lambda _, run: run.cancel_requested and not run.terminal,
    "stuck": RunFacts.is_stuck,
}
_FACTS: Mapping[str, Callable[[RunFacts, Run], Fact]] = {
    WORD: RunFacts.texts,
    "state": lambda _, run: run.state.value,
    "job": RunFacts.job_words,
    "tenant": lambda _, run: run.tenant,
    "prio": lambda _, run: run.priority.value,
    "queue": lambda _, run: run.queue,
    "worker": RunFacts.worker_words,
    "kind": lambda _, run: run.key.kind.word,
    "id": lambda _, run: run.run_id,
    "err": RunFacts.error,
    "group": lambda _, run: run.signature or NO_GROUP,
    "batch": lambda _, run: run.batch,
    "attempt": lambda _, run: run.attempt,
    "replays": lambda _, run: run.replays,
    "delay": RunFacts.delay,
    "sched": lambda _, run: run.scheduled_for,
    "due": lambda _, run: run.available_at,
    "started": lambda _, run: run.leased_at if run.state is RunState.LEASED else run.started_at,
    "ended": lambda _, run: run.ended_at,
    "dead": lambda _, run: run.ended_at if run.state is RunState.DEAD else None,
    "key": lambda _, run: run.idempotency_key,
    "tag": RunFacts.tags,
    "payload": RunFacts.payload,
    "reason": lambda facts, run: facts.shown(run.reason),
    "is": RunFacts.flags,
}
