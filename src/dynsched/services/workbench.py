"""The workbench: what every worker works with, whatever brings it its runs."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Protocol

from dynsched.domain.instants import Clock
from dynsched.domain.lifecycle import Transition
from dynsched.domain.run import Run
from dynsched.services.callbacks import CallbackOpener
from dynsched.services.claims import Claims
from dynsched.services.endings import Endings
from dynsched.services.exits import Exits, Slots
from dynsched.services.hand import Hand
from dynsched.services.leadout import LeadOut
from dynsched.services.look import Look
from dynsched.services.parts import PartCache
from dynsched.services.permits import PermitDesk
from dynsched.services.progress import ProgressNotes
from dynsched.services.refusals import Refusals
from dynsched.services.start import Starter
from dynsched.services.starts import Starts
from dynsched.services.statistics import Statistics
from dynsched.settings import Settings
from dynsched.storage.store import Store
from dynsched.targets.runner import TargetRunner


class Figures(Protocol):
    """Who is told what a worker does, to count it."""

    def started(self, run: Run, at: datetime) -> None:
        """Count a handler's call."""

    def moved(self, move: Transition) -> None:
        """Count a way out of a lease."""


class Workbench:
    """The parts of one worker, put together.

    Args:
        hand: the runs in hand, empty.
        runner: what it can run.
        slots: where handlers run.
        figures: counts besides the minute statistics.

    Concurrency: used by one thread; handlers' threads only leave notes.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Random,
        settings: Settings,
        hand: Hand,
        runner: TargetRunner,
        slots: Slots,
        figures: Figures | None = None,
    ) -> None:
        self.hand, self._figures = hand, figures
        self.desk, self.statistics = PermitDesk(store), Statistics(store)
        self.look = Look(store, clock=clock, desk=self.desk)
        self.endings = Endings(store, clock=clock, rng=rng, desk=self.desk, on_move=self._moved)
        self.progress = ProgressNotes(store, clock=clock, hand=hand)
        self.refusals = Refusals(
            settings=settings, runner=runner, hand=hand, peek=self._peek, reread=store.runs.get
        )
        self.exits = Exits(
            store,
            clock=clock,
            hand=hand,
            endings=self.endings,
            refusals=self.refusals,
            slots=slots,
        )
        self.claims = Claims(store, clock=clock, hand=hand)
        lead_out = LeadOut(
            store, clock, refusals=self.refusals, endings=self.endings, write=self.exits.write
        )
        starter = self._starter(store, runner=runner, clock=clock, rng=rng)
        self.starts = self._starts(starter, lead_out, clock=clock, settings=settings, slots=slots)

    def _starter(self, store: Store, *, runner: TargetRunner, clock: Clock, rng: Random) -> Starter:
        return Starter(
            runner=runner,
            clock=clock,
            parts=PartCache(store),
            on_end=self.exits.returned,
            callbacks=CallbackOpener(store, clock=clock, rng=rng),
        )

    def _starts(
        self, starter: Starter, lead_out: LeadOut, *, clock: Clock, settings: Settings, slots: Slots
    ) -> Starts:
        return Starts(
            clock=clock,
            slots=slots,
            unknown_handler=settings.unknown_handler,
            look=self.look,
            refusals=self.refusals,
            lead_out=lead_out,
            starter=starter,
            claims=self.claims,
            exits=self.exits,
            on_start=self._started,
        )

    def _started(self, run: Run, at: datetime) -> None:
        self.statistics.started(run, at)
        if self._figures is not None:
            self._figures.started(run, at)

    def _moved(self, move: Transition) -> None:
        self.statistics.moved(move)
        if self._figures is not None:
            self._figures.moved(move)

    def _peek(self, tenant: str) -> bool:
        cap = self.look.tenant(tenant).max_running
        return cap is None or self.desk.any_free(tenant, cap)
