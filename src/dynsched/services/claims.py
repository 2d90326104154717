"""Claims: runs are entered in the table of runs in hand, then taken by guarded writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from dynsched.domain import lifecycle
from dynsched.domain.instants import Clock
from dynsched.domain.run import Run, RunState
from dynsched.services.endings import Ending
from dynsched.services.hand import Hand, InHand
from dynsched.services.leadout import step_back
from dynsched.storage.runs import RunApplied
from dynsched.storage.store import Store


class Claims:
    """Takes runs for one process, and gives back those that it could not go on with."""

    def __init__(self, store: Store, *, clock: Clock, hand: Hand) -> None:
        self._store = store
        self._clock = clock
        self._hand = hand
        self._stranded: list[InHand] = []

    @property
    def stranded(self) -> bool:
        """Return whether there are runs of which the store's failure left it unknown."""
        return bool(self._stranded)

    def take(
        self, runs: Sequence[Run], session: str, ends: Mapping[str, datetime] | None = None
    ) -> list[InHand]:
        """Claim runs under a session; each is entered in the table of runs in hand before.

        Args:
            runs: as last seen.
            session: what their leases name.
            ends: the ends of their leases by run id, where no heartbeat extends them.

        Raises:
            StoreError: the store failed; what it may have done is given back by `give_back`.
        """
        ends = {} if ends is None else ends
        entered = [item for run in runs if (item := self._hand.enter(run, session)) is not None]
        now = self._clock.now()
        moves = [
            lifecycle.claim(
                item.run, session=session, now=now, lease_ends_at=ends.get(item.run.run_id)
            )
            for item in entered
        ]
        try:
            outcomes = self._store.runs.apply_many(moves)
        except Exception:
            self.strand(entered)
            raise
        claimed: list[InHand] = []
        for item, move, outcome in zip(entered, moves, outcomes, strict=True):
            current = outcome.run if isinstance(outcome, RunApplied) else outcome.current
            mine = (
                current is not None
                and current.state is RunState.LEASED
                and (current.session, current.fence) == (session, move.after.fence)
            )
            if mine and current is not None:
                item.run = current
                claimed.append(item)
            else:
                self._hand.leave(item)
        return claimed

    def strand(self, items: Sequence[InHand]) -> None:
        """Keep runs in hand that may be leased here and were not looked at."""
        self._stranded += items

    def give_back(self, now: datetime) -> list[Ending]:
        """Return the steps back from claims that the store's failure left unanswered.

        Raises:
            StoreError: it fails still; they are kept for the next time.
        """
        if not self._stranded:
            return []
        keys = [item.run.key for item in self._stranded]
        endings: list[Ending] = []
        for item, run in zip(self._stranded, self._store.runs.get_many(keys), strict=True):
            mine = run is not None and run.state is RunState.LEASED
            if run is None or not mine or run.session != item.session:
                self._hand.leave(item)
                continue
            item.run = run
            endings.append(step_back(item, now, now, "the store failed before the start"))
        self._stranded = []
        return endings
