"""Starts: the look at claimed runs, and the call of the handlers of those that may start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dynsched.domain.instants import Clock
from dynsched.domain.run import Run
from dynsched.services.claims import Claims
from dynsched.services.endings import Ending
from dynsched.services.exits import Exits, Slots
from dynsched.services.hand import InHand
from dynsched.services.leadout import LeadOut, step_back
from dynsched.services.look import Found, Look, Looked
from dynsched.services.refusals import Refusals
from dynsched.services.slots import Work
from dynsched.services.start import Starter


class Starts:
    """Starts claimed runs for one process, and leads the others out.

    Args:
        slots: where handlers run.
        unknown_handler: a run whose handler no worker knew for so long is dead.
        on_start: told each call of a handler.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        slots: Slots,
        unknown_handler: timedelta,
        look: Look,
        refusals: Refusals,
        lead_out: LeadOut,
        starter: Starter,
        claims: Claims,
        exits: Exits,
        on_start: Callable[[Run, datetime], None],
    ) -> None:
        self._clock, self._slots = clock, slots
        self._unknown_handler = unknown_handler
        self._look, self._refusals, self._lead_out = look, refusals, lead_out
        self._starter, self._claims, self._exits = starter, claims, exits
        self._on_start = on_start

    def start(self, claimed: Sequence[InHand], alive: Callable[[InHand], bool]) -> int:
        """Look at claimed runs, start those that may, lead the others out; return how many start.

        Args:
            claimed: runs in hand.
            alive: whether a run's lease is alive by this process's own clocks.

        Raises:
            StoreError: the store failed; nothing was started, the runs are kept as stranded.
        """
        items = {item.run.run_id: item for item in claimed}
        ready: list[InHand] = []
        refused: list[tuple[InHand, Looked]] = []
        unknown: list[Ending] = []
        try:
            for looked in self._look.at([item.run for item in claimed]):
                item = items[looked.run.run_id]
                item.job, item.permit = looked.job, looked.permit
                if looked.found is not Found.START or looked.job is None:
                    refused.append((item, looked))
                elif self._refusals.knows(looked.job.needs):
                    ready.append(item)
                elif looked.job.needs != item.run.needs:
                    refused.append((item, replace(looked, found=Found.ELSEWHERE)))
                else:
                    unknown.append(self._lead_out.unknown(item, self._unknown_handler))
            started = self._starter.prepare(ready)
        except Exception:
            self._claims.strand(claimed)
            raise
        self._lead_out.refused(refused)
        self._exits.add(unknown)
        return self._call(started, alive)

    def _call(
        self, prepared: Sequence[tuple[InHand, Work]], alive: Callable[[InHand], bool]
    ) -> int:
        """Call the handlers whose lease is alive by this process's own clocks."""
        late: list[Ending] = []
        count = 0
        for item, work in prepared:
            if alive(item):
                item.started_at = self._clock.now()
                item.number, item.fence = item.run.attempt + 1, item.run.fence
                self._on_start(item.run, item.started_at)
                self._slots.start(work)
                count += 1
            else:
                now = self._clock.now()
                late.append(step_back(item, now, now, "lease over before the start"))
        if late:
            self._exits.write(late)
        return count
