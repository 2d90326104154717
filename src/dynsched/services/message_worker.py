"""The message worker: runs what messages name, under leases that end with the invocation.

It is the pulling worker without a session: a message brings it a run, and the run's row decides.
A lease's end is fixed when it is claimed, nobody renews it; so handlers are told to stop before
it, and what still runs then has failed for want of time. A message is kept (and made visible again
when its run may start) if the run is early, may not start here, or steps back, or if the store
fails; else it is done with, since whoever makes the row ready again sends another one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from dynsched.domain.arrival import (
    AGAIN_MIN,
    CAPPED_MAX,
    HELD_MAX,
    Arrival,
    again_after,
    again_at,
    again_waiting,
    arrival_of,
    first_due,
)
from dynsched.domain.instants import Clock, within
from dynsched.domain.job import Job, JobState
from dynsched.domain.lifecycle import SUSPECT_LOSSES
from dynsched.domain.message import decode_message
from dynsched.domain.names import new_id
from dynsched.domain.resending import has_successor
from dynsched.domain.run import Run, RunState, parse_run_id
from dynsched.errors import InvalidInput, StoreError
from dynsched.services.exits import Slots
from dynsched.services.fixed_lease import FixedLease
from dynsched.services.hand import Hand, InHand
from dynsched.services.skew import check_clock
from dynsched.services.workbench import Figures, Workbench
from dynsched.settings import Settings
from dynsched.storage.jobs import Unreadable
from dynsched.storage.peek import Peeked, peek
from dynsched.storage.runs import Damaged
from dynsched.storage.store import Store
from dynsched.targets.runner import TargetRunner
from dynsched.targets.stop import StopReason

log = logging.getLogger("dynsched.worker")

SOON = timedelta(seconds=1)  # a run that is due so soon is waited for here
LOOK_PERIOD = timedelta(seconds=10)  # between two looks for a requested cancel
STEP_S = 0.5  # longest wait between two looks at the clocks
FAULT_AGAIN = timedelta(seconds=5)
FAULT_MAX = timedelta(seconds=30)  # so that an outage of hours costs no message all its receives
OUT_OF_TIME = (
    "it was not done within the function's time (raise the worker function's timeout, or let a"
    " worker that pulls serve its queue)"
)
QUOTED_MAX = 200  # characters of a strange message that the log shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as it was received.

    Attributes:
        id: of this message.
        body: what it says.
        receipt: names this receipt of it, to make it visible again.
        sent_at: when it was sent, if that is known.
    """

    id: str
    body: str
    receipt: str = ""
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fate:
    """What is to be done with a message.

    Attributes:
        keep: it stays in its queue; else it is done with.
        again_in: when it is to be visible again; None leaves that to its queue.
        why: in a few words.
    """

    message: Message
    keep: bool
    again_in: timedelta | None
    why: str


@dataclass(slots=True)
class _Visit:
    """The messages of one call, and what was decided of them so far."""

    lease: FixedLease
    now: datetime
    fates: dict[str, Fate] = field(default_factory=dict)

    def drop(self, message: Message, why: str) -> None:
        self.fates[message.id] = Fate(message, keep=False, again_in=None, why=why)

    def keep(self, message: Message, again_in: timedelta, why: str) -> None:
        self.fates[message.id] = Fate(message, keep=True, again_in=again_in, why=why)


@dataclass(slots=True)
class _Due:
    """A message whose run may be claimed.

    Attributes:
        item: the run in hand, once it is claimed.
    """

    message: Message
    run: Run
    job: Job | None
    item: InHand | None = None

    @property
    def limit(self) -> timedelta | None:
        """Return the run's time limit as it was before the claim."""
        return None if self.job is None else self.job.policies.timeout


class MessageWorker:
    """One process that is handed messages, a few at a time.

    Args:
        runner: what it can run.
        slots: where handlers run.
        figures: is told what it does, to count it.

    Concurrency: `work` is called from one thread.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        settings: Settings,
        runner: TargetRunner,
        slots: Slots,
        figures: Figures | None = None,
    ) -> None:
        self._store, self._clock, self._rng, self._settings = store, clock, rng, settings
        self._hand = Hand()
        bench = Workbench(
            store,
            clock=clock,
            rng=rng,
            settings=settings,
            hand=self._hand,
            runner=runner,
            slots=slots,
            figures=figures,
        )
        self._look, self._refusals, self._exits = bench.look, bench.refusals, bench.exits
        self._claims, self._starts, self._progress = bench.claims, bench.starts, bench.progress
        self._statistics = bench.statistics
        self._looked_at = clock.now()  # for requested cancels
        self._lacks: set[str] = set()  # what was told to be lacking here

    def work(
        self, messages: Sequence[Message], *, ends_at: datetime, invocation: str
    ) -> list[Fate]:
        """Run what messages name; return what is to be done with each, in their order.

        Never raises for the store: what it did not answer is kept for another visit.

        Args:
            messages: with distinct ids.
            ends_at: when this process may be frozen or killed, by the wall clock.
            invocation: the id under which the logs know this call.
        """
        lease = FixedLease.until(
            ends_at,
            self._clock,
            invocation=invocation,
            nonce=new_id(self._rng, 4),
            margin=self._settings.lease_margin,
        )
        visit = _Visit(lease, self._clock.now())
        try:
            self._statistics.turn(visit.now)
            self._work(messages, visit)
            self._statistics.write_by(self._clock.now())
        except StoreError as error:
            log.warning("messages are kept, as the store failed: %s", error)
        for message in messages:
            if message.id not in visit.fates:
                visit.keep(message, _after_fault(message, visit.now), "the store failed")
        fates = [visit.fates[message.id] for message in messages]
        for fate in fates:
            if fate.keep:
                log.info("message %s stays for later: %s", fate.message.body[:QUOTED_MAX], fate.why)
        return fates

    def _work(self, messages: Sequence[Message], visit: _Visit) -> None:
        self._exits.add(self._claims.give_back(visit.now))
        self._exits.flush(visit.now)
        self._store.refresh_by(visit.now)
        due = self._chosen(self._due(messages, visit), visit)
        if not due:
            return
        ends = {one.run.run_id: visit.lease.end_for(self._clock.now(), one.limit) for one in due}
        try:
            self._take_and_start(due, ends, visit.lease)
        except StoreError as error:
            log.warning("what was claimed is given back, as the store failed: %s", error)
        self._attend([one.item for one in due if one.item is not None], visit.lease)
        for one in due:
            self._conclude(one, visit)

    # before the claim

    def _due(self, messages: Sequence[Message], visit: _Visit) -> list[_Due]:
        """Return the messages whose runs are due; decide of the others."""
        named: list[tuple[Message, str]] = []
        for message in messages:
            try:
                named.append((message, decode_message(message.body)))
            except InvalidInput as error:
                quoted = message.body[:QUOTED_MAX]
                log.error("message %s is dropped: %s: %r", message.id, error, quoted)  # noqa: TRY400
                visit.drop(message, str(error))
        found = peek(self._store.engine, [parse_run_id(run_id) for _, run_id in named])
        visit.now = self._clock.now()
        check_clock(self._store.engine.store_time(), visit.now, self._settings)
        due: list[_Due] = []
        taken: set[str] = set()
        for (message, run_id), peeked in zip(named, found, strict=True):
            if run_id in taken:
                visit.drop(message, "it says the same as another one of this batch")
            elif (one := self._judged(message, run_id, peeked, visit)) is not None:
                due.append(one)
                taken.add(run_id)
        return due

    def _judged(self, message: Message, run_id: str, peeked: Peeked, visit: _Visit) -> _Due | None:
        run, job = peeked.run, peeked.job
        if isinstance(run, Damaged):
            log.error("run %s cannot be read: %s", run_id, run.problem)
            visit.keep(message, HELD_MAX, "its run cannot be read")
            return None
        arrival, why = arrival_of(run, visit.now)
        if arrival is Arrival.DROP or run is None:
            visit.drop(message, why)
            return None
        if arrival is Arrival.EARLY and run.available_at - visit.now > SOON:
            visit.keep(message, again_at(run.available_at, visit.now), why)
            return None
        refusal = self._refusal(message, run, job, visit.now)
        if refusal is not None:
            if has_successor(message.sent_at, visit.now, self._settings.resend_after):
                visit.drop(message, "its run may not start, and has a younger message")
            else:
                visit.keep(message, *refusal)
            return None
        if isinstance(job, Job):
            self._look.learn(job)
        return _Due(message, run, job if isinstance(job, Job) else None)

    def _refusal(
        self, message: Message, run: Run, job: Job | Unreadable | None, now: datetime
    ) -> tuple[timedelta, str] | None:
        """Return for how long and why a run is not even claimed; it costs no write."""
        age = now - first_due(run, message.sent_at)
        if isinstance(job, Unreadable):
            return again_after(age, HELD_MAX), "its job cannot be read"
        if job is not None and job.state is JobState.PAUSED and job.policies.hold:
            return again_after(age, HELD_MAX), "its job is paused with hold"
        if not self._refusals.knows(run.needs) and not self._refusals.overdue(run, now):
            self._tell_lack(run)
            return again_after(age, HELD_MAX), f"{run.needs} is unknown here"
        if self._refusals.shut(run.tenant, now):
            return again_after(age, CAPPED_MAX), "its tenant is at its cap"
        return None

    def _tell_lack(self, run: Run) -> None:
        """Say once for each need what is lacking: runs may wait a day, and the store is silent."""
        if run.needs not in self._lacks:
            self._lacks.add(run.needs)
            log.warning("run %s waits, as this process has no %s", run.run_id, run.needs)

    def _chosen(self, due: Sequence[_Due], visit: _Visit) -> list[_Due]:
        """Return what is claimed in this call; the other messages come again at once.

        A suspect may kill its process, so it is claimed alone. Of a job that forbids overlap the
        earliest run is taken. Nothing is begun when there is no time to end it.
        """
        chosen = list(due)
        if visit.lease.left(self._clock) <= 3 * visit.lease.margin:
            chosen, why = [], "there is no time left for it"
        elif suspects := [one for one in due if one.run.losses >= SUSPECT_LOSSES]:
            chosen, why = suspects[:1], "a suspect run is run alone"
        else:
            runs = self._look.one_of_each([one.run for one in due])[: self._settings.slots]
            ids = {run.run_id for run in runs}
            chosen = [one for one in due if one.run.run_id in ids]
            why = "there is no room for it in this batch"
        for one in due:
            if one not in chosen:
                visit.keep(one.message, AGAIN_MIN, why)
        return chosen

    # the claim, and what follows

    def _take_and_start(
        self, due: Sequence[_Due], ends: dict[str, datetime], lease: FixedLease
    ) -> None:
        latest = max(one.run.available_at for one in due)
        if latest > self._clock.now():
            self._clock.wait((latest - self._clock.now()).total_seconds())
        claimed = self._claims.take([one.run for one in due], lease.session, ends)
        items = {item.run.run_id: item for item in claimed}
        for one in due:
            one.item = items.get(one.run.run_id)

        def alive(item: InHand) -> bool:
            limit = None if item.job is None else item.job.policies.timeout
            return lease.lets_start(self._clock, ends[item.run.run_id], limit)

        if claimed:
            self._starts.start(claimed, alive)

    def _attend(self, items: Sequence[InHand], lease: FixedLease) -> None:
        """Stay with runs until they are out of hand, or until the time is over."""
        self._looked_at = self._clock.now()
        while True:
            self._exits.wake.clear()
            now, left = self._clock.now(), lease.left(self._clock)
            try:
                self._exits.add(self._claims.give_back(now))
                self._exits.flush(now)
                self._exits.fail_overdue(now)
                self._look_around(now)
            except StoreError as error:
                log.warning("the store fails while %d runs are in hand: %s", len(items), error)
            self._stop_in_time(left, lease, now)
            held = set(map(id, self._hand.items()))
            waiting = self._claims.stranded or any(id(item) in held for item in items)
            if not waiting or left <= lease.margin / 2:
                return
            self._clock.wait_for(self._exits.wake, STEP_S)

    def _stop_in_time(self, left: timedelta, lease: FixedLease, now: datetime) -> None:
        """Ask handlers to end before the lease does; then fail what still runs.

        That it was not done in the whole of a function's time is a failure: handed back, it would
        begin anew and be cut off for ever. Only a process that was frozen hands back.
        """
        if left > 2 * lease.margin:
            return
        running = self._exits.running()
        for item in running:
            item.stop.set(StopReason.FUNCTION_LIMIT)
        if left <= timedelta(0):
            self._exits.hand_back(running, StopReason.LEASE_LOST, now)
        elif left <= lease.margin:
            self._exits.fail(running, OUT_OF_TIME, now)

    def _look_around(self, now: datetime) -> None:
        """Write progress and statistics; look whether a run was cancelled or taken away."""
        self._progress.write(now)
        self._statistics.turn(now)
        self._statistics.write_by(now)
        running = self._exits.running()
        if not running or within(now, self._looked_at, LOOK_PERIOD):
            return
        self._looked_at = now
        rows = self._store.runs.look_up([item.run.key for item in running])
        for item, row in zip(running, rows, strict=True):
            if isinstance(row, Damaged):
                continue
            held = row is not None and (row.session, row.fence) == (item.session, item.fence)
            if not held:
                item.stop.set(StopReason.LEASE_LOST)
            elif row is not None and row.cancel_requested:
                item.stop.set(StopReason.CANCELLED)

    def _conclude(self, one: _Due, visit: _Visit) -> None:
        """Decide of a message whose run was to be claimed."""
        item, message, now = one.item, one.message, self._clock.now()
        if item is None:
            visit.keep(message, AGAIN_MIN, "another was faster, or the store failed")
        elif not item.run.awaits_callback and any(item is held for held in self._hand.items()):
            visit.keep(message, _after_fault(message, now), "the store failed")
        elif item.started_at is not None or item.run.state is not RunState.READY:
            # What is ready again after a try has a message of its own.
            visit.drop(message, f"its run is {item.run.state.value}")
        else:
            visit.keep(message, self._after_step_back(item.run, one, now), item.run.reason)

    def _after_step_back(self, run: Run, one: _Due, now: datetime) -> timedelta:
        """Return when a message is looked at again whose run was put back unstarted.

        A held run was put off from now, so only its message has an age by which it is looked at
        ever more rarely.
        """
        if run.waits > one.run.waits:
            return again_waiting(run, now)
        if self._refusals.shut(run.tenant, now):
            return again_after(now - first_due(one.run, one.message.sent_at), CAPPED_MAX)
        if run.available_at > now:
            age = now - (one.message.sent_at or run.scheduled_for)
            return max(again_at(run.available_at, now), again_after(age, HELD_MAX))
        return again_at(run.available_at, now)


def _after_fault(message: Message, now: datetime) -> timedelta:
    """Return when a message is looked at again whose run the store did not tell, or not take."""
    age = timedelta(0) if message.sent_at is None else now - message.sent_at
    return max(again_after(age, FAULT_MAX), FAULT_AGAIN)
