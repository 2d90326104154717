"""Verbs on replay batches: preview, confirm, pause, resume, abort, pace, and the rest of one.

They only write what is to be done; `dynsched.services.stepper` does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dynsched.domain import batch as rules
from dynsched.domain.access import Action
from dynsched.domain.batch import (
    BREAKER,
    RATE,
    Batch,
    BatchState,
    PauseCause,
    check_options,
    rate_words,
)
from dynsched.domain.batch_entry import Mark
from dynsched.domain.filters import Filter
from dynsched.domain.instants import to_ms
from dynsched.domain.job import Priority
from dynsched.domain.names import new_timed_id
from dynsched.errors import Conflict, Forbidden, InvalidInput, NotFound
from dynsched.services.choosing import Chooser, dead_only, pages
from dynsched.services.gate import Subject, changes, note
from dynsched.services.search import RunSearch
from dynsched.services.verbs import CHANGE_TRIES, Verbs


def _on_chosen(verbs: Verbs, given: Mapping[str, Any]) -> Subject:
    """Find the subject of a preview: of an actor of one tenant that tenant's, or the one named.

    Raises:
        FilterError: the filter cannot be read.
    """
    own = verbs.access.tenant
    if own is None:
        return Subject()
    named = [word for term in dead_only(given["filter"]).asking("tenant") for word in term.words]
    return Subject(tenant=next((name for name in named if name != own), own))


def _on_batch(verbs: Verbs, given: Mapping[str, Any]) -> Subject:
    """Find the subject of a verb that takes `batch_id`; one of several tenants is nobody's own.

    Raises:
        NotFound: there is no such batch.
    """
    assert isinstance(verbs, BatchVerbs)
    batch = verbs.get_batch(given["batch_id"])
    return Subject(target=f"batch:{batch.batch_id}", tenant=batch.tenant)


class BatchVerbs(Verbs):
    """Replay many dead runs: what was previewed, once, at a pace."""

    @changes(Action.BATCH_PREVIEW, _on_chosen)
    def preview_replay(
        self,
        filter: str,
        *,
        reason: str = "",
        limit: int | None = None,
        rate: float | None = RATE,
        canary: int = 0,
        canary_hold: bool = False,
        breaker: float = BREAKER,
        priority: Priority | None = None,
    ) -> Batch:
        """Freeze the dead runs that a filter chooses as a draft; nothing is moved.

        What dies later is never included. The draft is confirmed within some minutes or expires.

        Args:
            filter: which dead runs.
            reason: why; it may be given with the confirm instead.
            limit: at most so many, those with the earliest intended instants.
            rate: runs moved a second; None is as fast as the store takes them.
            canary: move so many first, and the others when those have ended well.
            canary_hold: pause after the canary however it went.
            breaker: pause if more than this part of the last 50 moved is dead again.
            priority: what moved runs get; None is bulk, so that they stay behind all others.

        Raises:
            InvalidInput: an argument is wrong, or nothing is there to be replayed.
        """
        check_options(rate, canary, breaker, 1)
        if limit is not None and limit < 1:
            raise InvalidInput("limit", f"{limit} is too small", "give 1 or more, or none")
        found = dead_only(filter)
        draft = self._draft(found.text, reason, rate, priority)
        chooser = self._chooser(draft)
        notes = self._choose(found, chooser)
        draft = replace(draft, canary=canary, canary_hold=canary_hold, breaker=breaker)
        return self._freeze(draft, chooser, limit=limit, notes=notes)

    def _choose(self, found: Filter, chooser: Chooser) -> tuple[str, ...]:
        """Let a chooser consider what a filter finds; return what was not looked at."""
        most = self._settings.batch_runs
        search = RunSearch(self._store, clock=self._clock, masker=self._masker)
        notes: dict[str, None] = {}
        more = False
        for page in pages(search, found, most=most):
            chooser.consider(page.items)
            notes |= dict.fromkeys(page.notes)
            more = page.cursor is not None
        if more:
            notes[f"not all were looked at, as a batch has at most {most:,} runs"] = None
        return tuple(notes)

    @changes(Action.BATCH_PREVIEW, _on_batch)
    def rest_of_replay(self, batch_id: str, *, reason: str = "") -> Batch:
        """Freeze what a batch that has ended did not move as a new draft, paced as it was.

        Raises:
            NotFound: there is no such batch.
            Conflict: it has not ended.
            InvalidInput: nothing of it can be replayed.
        """
        parent = self.get_batch(batch_id)
        if parent.state not in (BatchState.FINISHED, BatchState.ABORTED) or not parent.settled:
            still = "still being settled" if parent.ended else parent.state.value
            raise Conflict(f"batch {batch_id} is {still}: its rest is known when that has ended")
        draft = self._draft(parent.filter, reason or parent.reason, parent.rate, parent.priority)
        chooser = self._chooser(draft)
        marks = self._store.batches.all_marks(parent)
        for chunk in range(parent.chunks):
            entries = self._store.batches.entries(batch_id, chunk)
            pairs = zip(entries, marks[chunk].letters, strict=True)
            chooser.consider_again([one for one, letter in pairs if letter != Mark.MOVED.value])
        draft = replace(
            draft,
            parent=batch_id,
            canary=parent.canary,
            canary_hold=parent.canary_hold,
            breaker=parent.breaker,
        )
        return self._freeze(draft, chooser)

    def _draft(
        self, text: str, reason: str, rate: float | None, priority: Priority | None
    ) -> Batch:
        now = self._clock.now()
        self._store.refresh_by(now)
        return Batch(
            batch_id=new_timed_id(self._rng, to_ms(now)),
            actor=self.access.actor,
            reason=reason.strip(),
            filter=text,
            cut_off=now,
            planned=0,
            chunk=self._settings.batch_chunk,
            rate=rate,
            priority=priority or Priority.BULK,
            created_at=now,
            expires_at=now + self._settings.batch_draft,
        )

    def _chooser(self, draft: Batch) -> Chooser:
        return Chooser(
            self._store,
            batch_id=draft.batch_id,
            cut_off=draft.cut_off,
            tenant=self.access.tenant,
        )

    def _freeze(
        self,
        draft: Batch,
        chooser: Chooser,
        *,
        limit: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> Batch:
        """Store a draft with what was chosen, in the order of the intended instants."""
        choice = chooser.choice
        left_out = choice.keep(limit)
        if left_out:
            notes = (*notes, f"{left_out:,} more were found and are left out by the limit")
        entries = [one.entry for one in choice.chosen]
        if not entries:
            raise _nothing(choice.skipped, of=draft.parent)
        check_options(draft.rate, draft.canary, draft.breaker, len(entries))
        deaths = [entry.died_at for entry in entries]
        now = self._clock.now()
        batch = replace(
            draft,
            planned=len(entries),
            counts=choice.counts(),
            tenants=choice.tenants,
            oldest=min(deaths),
            newest=max(deaths),
            skipped_expected=dict(choice.skipped),
            warned=chooser.warnings(now),
            notes=notes,
        )
        note(
            f"draft of {batch.planned:,} runs",
            target=f"batch:{batch.batch_id}",
            tenant=batch.tenant,
            details=_details(batch),
        )
        return self._store.batches.create(batch, entries)

    @changes(Action.BATCH_CONFIRM, _on_batch)
    def confirm_replay(self, batch_id: str, *, reason: str = "", count: int | None = None) -> Batch:
        """Start a draft, once: whoever comes second is told who was first.

        Args:
            batch_id: the draft.
            reason: why; needed from two runs on, unless the draft has one.
            count: the number of runs, needed from a hundred runs or two tenants on.

        Raises:
            NotFound: there is no such batch.
            Conflict: it was confirmed before, or has expired.
            Forbidden: it has more runs than the actor may replay at once.
            InvalidInput: the reason or the count is missing or wrong.
        """
        batch = self.get_batch(batch_id)
        self._check_limit(batch)

        def start(batch: Batch) -> Batch:
            return rules.confirmed(
                batch, now=self._clock.now(), access=self.access, reason=reason, count=count
            )

        start(batch)  # what is refused writes nothing
        # First, so that no batch ever runs without its note; that of a draft does no harm.
        self._store.batches.point(batch)
        running = self._change_batch(batch, start)
        note(f"draft -> running, {batch.planned:,} runs", details=_details(running))
        return running

    def _check_limit(self, batch: Batch) -> None:
        try:
            self.access.check(
                Action.BATCH_CONFIRM, tenant=batch.tenant or None, count=batch.planned
            )
        except Forbidden as error:
            mend = f"an admin can confirm batch {batch.batch_id}"
            raise Forbidden(f"{error} ({mend})") from error

    @changes(Action.BATCH_PAUSE, _on_batch)
    def pause_replay(self, batch_id: str, *, reason: str = "") -> Batch:
        """Stop moving; the step under way may still move what it has begun.

        Raises:
            NotFound: there is no such batch.
            Conflict: it is not running.
        """
        why = f"paused by {self.access.actor}" + (f": {reason.strip()}" if reason.strip() else "")

        def pause(batch: Batch) -> Batch:
            return rules.paused(batch, cause=PauseCause.HAND, why=why)

        return self._noted_batch(self._change_batch(self.get_batch(batch_id), pause))

    @changes(Action.BATCH_RESUME, _on_batch)
    def resume_replay(self, batch_id: str, *, reason: str = "") -> Batch:
        """Go on with a paused batch.

        Raises:
            NotFound: there is no such batch.
            Conflict: it is not paused.
            InvalidInput: the breaker paused it, and no reason is given.
        """
        actor = self.access.actor

        def go_on(batch: Batch) -> Batch:
            return rules.resumed(batch, now=self._clock.now(), actor=actor, reason=reason)

        return self._noted_batch(self._change_batch(self.get_batch(batch_id), go_on))

    @changes(Action.BATCH_ABORT, _on_batch)
    def abort_replay(self, batch_id: str, *, reason: str = "", pull_back: bool = False) -> Batch:
        """End a batch: what was not moved stays dead.

        Args:
            batch_id: the batch; with `pull_back` also one that has ended.
            reason: why.
            pull_back: what was moved and not tried yet is made dead again.

        Raises:
            NotFound: there is no such batch.
            Conflict: there is nothing to abort.
        """

        def end(batch: Batch) -> Batch:
            aborted = rules.aborted(
                batch,
                now=self._clock.now(),
                actor=self.access.actor,
                reason=reason,
                pull_back=pull_back,
            )
            if batch.ended:  # also one that ended only now: the stepper looks at it no more
                self._store.batches.point(batch, back=True)
            return aborted

        batch = self.get_batch(batch_id)
        return self._noted_batch(
            self._change_batch(batch, end), ", pulling back" if pull_back else ""
        )

    @changes(Action.BATCH_PACE, _on_batch)
    def pace_replay(self, batch_id: str, rate: float | None, *, reason: str = "") -> Batch:
        """Change how many runs a second a batch moves; None is as fast as the store takes them.

        Raises:
            NotFound: there is no such batch.
            Conflict: it has ended.
            InvalidInput: the rate is out of range.
        """

        def pace(batch: Batch) -> Batch:
            return rules.paced(batch, now=self._clock.now(), rate=rate)

        changed = self._change_batch(self.get_batch(batch_id), pace)
        note(f"{rate_words(rate)} from now on")
        return changed

    def _noted_batch(self, batch: Batch, more: str = "") -> Batch:
        note(f"{batch.state.value}{more}: {batch.moved:,} moved, {batch.left:,} left")
        return batch

    def get_batch(self, batch_id: str) -> Batch:
        """Return a batch as its row says; a running one's counts may be some seconds old.

        Raises:
            NotFound: there is no such batch.
        """
        found = self._store.batches.get(batch_id)
        if found is None:
            raise NotFound("batch", batch_id, "`dynsched replay list` shows them")
        return found.at(self._clock.now())

    def _change_batch(self, batch: Batch, change: Callable[[Batch], Batch]) -> Batch:
        """Write a change that people asked for, again if the stepper was first."""
        for _ in range(CHANGE_TRIES):
            stored = self._store.batches.replace(change(batch))
            if stored is not None:
                return stored
            batch = self.get_batch(batch.batch_id)
        raise Conflict(f"batch {batch.batch_id} kept changing; try again")


def _nothing(skipped: Mapping[str, int], *, of: str) -> InvalidInput:
    """Return the error of a preview without entries; `of` names the batch whose rest it is."""
    found = "; ".join(f"{count:,} {why}" for why, count in skipped.items())
    mend = "" if found else "`dynsched dlq list` shows the dead runs"
    if of:
        mend = "nothing is left of it; `dynsched replay preview` finds what has died since"
    return InvalidInput(
        "filter", "no dead run that can be replayed" + (f": {found}" if found else ""), mend
    )


def _details(batch: Batch) -> dict[str, str]:
    """Return what the audit keeps of a batch."""
    return {
        "filter": batch.filter,
        "planned": str(batch.planned),
        "tenants": str(batch.tenants),
        "rate": rate_words(batch.rate),
    }
