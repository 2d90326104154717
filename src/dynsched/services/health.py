"""Health: the state of a store for all who look, made by one reader for the others.

A snapshot lies in the store. Whoever finds it too old takes a guard, looks at the store and stores
the next one; all others are given the one that is there, whose age is told. So what looking costs
does not depend on how many look, and while nobody looks nothing is read.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from dynsched.domain.health import (
    Beat,
    Cost,
    Delay,
    ErrorGroup,
    Grade,
    Health,
    Level,
    MinutePoint,
    OldestDue,
    TenantLine,
    Topic,
    Verdict,
    WorkerLine,
)
from dynsched.domain.instants import Clock, within
from dynsched.domain.judging import Limits
from dynsched.domain.masking import Masker
from dynsched.errors import InvalidInput, StoreError
from dynsched.services.health_look import Look
from dynsched.services.packing import packed, unpacked
from dynsched.settings import Settings
from dynsched.storage.snapshot import Stored
from dynsched.storage.store import Store

__all__ = [
    "Beat",
    "Cost",
    "Delay",
    "ErrorGroup",
    "Grade",
    "Health",
    "HealthViews",
    "Level",
    "MinutePoint",
    "OldestDue",
    "TenantLine",
    "Topic",
    "Verdict",
    "WorkerLine",
]

log = logging.getLogger("dynsched.health")

MAX_AGE = timedelta(seconds=5)
TAKEN_FOR = timedelta(seconds=15)  # how long one who undertook to look keeps others from it
STALE = timedelta(seconds=60)  # a snapshot older than this is waited for, not shown
WAIT_S = 0.1


class HealthViews:
    """Reads the health of a store.

    Attributes:
        settings: say what is worth a warning.
        shares: a look is stored for others; what others have stored is read in any case.
        recount: how long counts that read very many rows are good at least.
    """

    _store: Store
    _clock: Clock
    masker: Masker
    settings: Settings = Settings()
    shares: bool = True
    recount: timedelta = timedelta(0)
    _last: Health | None = None

    def health(self, max_age: timedelta = MAX_AGE) -> Health:
        """Return the state of the store, no older than is asked for if that can be had.

        While another reader is making the next snapshot, the one before is returned: `age` tells.

        Cost: nothing within `max_age` in one process; else one request of some 5 read units, and
        for one reader of all what `Health.cost` tells, and some 10 write units.

        Args:
            max_age: how old it may be.

        Raises:
            StoreError: the store failed.
        """
        now = self._clock.now()
        if self._last is None or not within(now, self._last.at, max_age):
            self._last = self._shared(max_age)
        last = self._last
        return replace(last, age=max(self._clock.now() - last.at, timedelta(0)))

    def _shared(self, max_age: timedelta) -> Health:
        """Return the stored snapshot, or look if it is too old and nobody else does."""
        while True:
            now = self._clock.now()
            stored = self._store.snapshot.read()
            health = _unpacked(stored)
            if health is not None and self._fresh(health, now, max_age):
                return self._shown(health)
            if not stored.held(now):
                taken = self._take(stored, now)
                if taken is not False:
                    return self._shown(self._look(stored, health, share=taken is True))
            elif health is not None and self._fresh(health, now, max(max_age, STALE)):
                return self._shown(health)
            self._clock.wait(WAIT_S)

    def _fresh(self, health: Health, now: datetime, max_age: timedelta) -> bool:
        """Return whether a health is young enough; its maker's clock may be ahead of this one."""
        return -self.settings.clock_bound <= now - health.at < max_age

    def _take(self, stored: Stored, now: datetime) -> bool | None:
        """Undertake to look; None if this reader writes nothing."""
        if not self.shares:
            return None
        try:
            return self._store.snapshot.take(stored, now, now + TAKEN_FOR)
        except StoreError as error:
            log.warning("this look at the store cannot be shared: %s", error)
            return None

    def _look(self, stored: Stored, before: Health | None, *, share: bool) -> Health:
        look = Look(self._store, clock=self._clock, settings=self.settings, recount=self.recount)
        health = look.health(before, limits_of(self.settings))
        if share:
            try:
                self._store.snapshot.put(stored, packed(health), health.at)
            except (StoreError, InvalidInput) as error:
                log.warning("this look at the store cannot be shared: %s", error)
        return health

    def _shown(self, health: Health) -> Health:
        """Return a health without what looks like a secret in errors."""
        text = self.masker.text
        return replace(
            health,
            verdicts=tuple(replace(one, sentence=text(one.sentence)) for one in health.verdicts),
            top_groups=tuple(replace(one, error=text(one.error)) for one in health.top_groups),
        )


def _unpacked(stored: Stored) -> Health | None:
    """Return the stored health; None if there is none, or another version stored it."""
    if stored.text is None:
        return None
    try:
        return unpacked(Health, stored.text)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        log.warning("the stored health cannot be read, it is made anew: %r", error)
        return None


def limits_of(settings: Settings) -> Limits:
    """Return from when on something is worth a warning."""
    return Limits(
        delay_warn=settings.health_delay_warn,
        delay_bad=settings.health_delay_bad,
        wait_warn=settings.health_wait_warn,
        wait_bad=settings.health_wait_bad,
        silence=settings.health_silence,
        lag=settings.health_lag,
        dead_warn=settings.health_dead_warn,
        dead_bad=settings.health_dead_bad,
    )
