"""The health reader: reads a store's health for a process that shows nothing else of it."""

from __future__ import annotations

from datetime import timedelta

from dynsched.domain.instants import Clock
from dynsched.domain.masking import Masker
from dynsched.services.health import HealthViews
from dynsched.settings import Settings
from dynsched.storage.store import Store

RECOUNT = timedelta(minutes=15)
"""No metric tells how many jobs there are or what runs died of, and counting 10,000 jobs in each
minute would cost as much as everything else that an idle store does."""


class HealthReader(HealthViews):
    """Makes the store's snapshots of health, and shares them with all who look.

    Args:
        store: the store.
        clock: the source of time.
        settings: say what is worth a warning.
    """

    def __init__(self, store: Store, *, clock: Clock, settings: Settings) -> None:
        self._store, self._clock, self.settings = store, clock, settings
        self.masker = Masker(settings.mask_keys)
        self.recount = RECOUNT
