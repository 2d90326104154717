"""Signs of life: a dispatcher or reaper tells, now and then, that it lives and what it has done."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from dynsched.domain.health import Beat
from dynsched.domain.instants import within
from dynsched.errors import StoreError
from dynsched.storage.store import Store

log = logging.getLogger("dynsched")

BEAT_PERIOD = timedelta(seconds=30)


class Beats:
    """The signs of life of one replica: one write unit in half a minute.

    Args:
        role: `dispatcher` or `reaper`.
        name: unique among replicas.
    """

    def __init__(self, store: Store, *, role: str, name: str) -> None:
        self._store = store
        self._role, self._name = role, name
        self._beaten_at: datetime | None = None
        self._version = 0
        self._done: Counter[str] = Counter()

    def note(self, now: datetime, done: Mapping[str, int], *, lag: timedelta | None = None) -> None:
        """Note what a step did, and tell it if the last sign was half a minute ago.

        A sign that cannot be written is left out: the step itself has been made.

        Args:
            now: when the step was made.
            done: what it did, by words that follow a number (`runs made`).
            lag: how far its cursors are behind.
        """
        self._done.update(done)
        if within(now, self._beaten_at, BEAT_PERIOD):
            return
        words = ", ".join(f"{count:,} {what}" for what, count in self._done.items() if count)
        beat = Beat(name=self._name, at=now, note=words, lag=lag)
        try:
            self._version = self._store.beats.write(self._role, beat, self._version)
        except StoreError as error:
            log.warning("%s: no sign of life could be written: %s", self._role, error)
            return
        self._beaten_at = now
        self._done.clear()

    def end(self) -> None:
        """Take the sign of life away, as the replica ends in good order."""
        if self._version:
            self._store.beats.delete(self._role, self._name, self._version)
            self._version, self._beaten_at = 0, None
