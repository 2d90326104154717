"""Bearers: who shows a token, and how often an address may show what is none."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.access import Access, Role
from dynsched.domain.instants import Clock
from dynsched.errors import Unauthenticated
from dynsched.services.views import Views
from dynsched_web.api.problems import Refused

SCHEME = "bearer"
ADDRESSES_MAX = 10_000
KNOWN_MAX = 1_000


@dataclass(slots=True)
class _Count:
    since_s: float
    failures: int = 0


class Bearers:
    """Tells who asks, and looks at no more than a few wrong tokens of one address.

    A token that was good before is looked at whatever its address has done: behind a proxy all
    bearers share one. It is read from the store again each time, so it is refused once revoked.

    Args:
        views: where tokens are read.
        clock: the source of time.
        read_only: whoever asks, nothing may be changed.
        replay_limit: runs that a batch may hold which a bearer who is no admin confirms.
        failures_max: wrong tokens of one address within the period.
        period: after which an address begins anew.

    Concurrency: any number of threads may ask.
    """

    def __init__(
        self,
        views: Views,
        clock: Clock,
        *,
        read_only: bool,
        replay_limit: int,
        failures_max: int,
        period: timedelta,
    ) -> None:
        self._views = views
        self._clock = clock
        self._read_only = read_only
        self._replay_limit = replay_limit
        self._failures_max = failures_max
        self._period_s = period.total_seconds()
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def access(self, header: str | None, address: str) -> Access:
        """Return who asks and what that bearer may do.

        Args:
            header: the request's `Authorization`.
            address: where the request comes from.

        Raises:
            Unauthenticated: no good token is shown.
            Refused: the address has shown too many wrong ones.
        """
        scheme, _, text = (header or "").partition(" ")
        text = text.strip()
        mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if mark not in self._known:
            self._check_bound(address)
        try:
            token = self._views.bearer(text if scheme.lower() == SCHEME else "")
        except Unauthenticated:
            self._failed(address, mark)
            raise
        with self._lock:
            self._known[mark] = None
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        return Access(
            actor=token.name,
            role=token.role,
            read_only=self._read_only,
            replay_limit=self._replay_limit,
            via="api",
            tenant=token.tenant,
        )

    def of_run(self, address: str) -> Access:
        """Return what whoever shows a run's own token may do; the verb looks at that token.

        Args:
            address: where the request comes from.

        Raises:
            Refused: the address has shown too many wrong ones.
        """
        self._check_bound(address)
        return Access(actor="callback", role=Role.OPERATOR, read_only=self._read_only, via="api")

    def note_wrong(self, address: str) -> None:
        """Count a run's token that was wrong."""
        self._failed(address, b"")

    def _check_bound(self, address: str) -> None:
        with self._lock:
            count = self._counts.get(address)
            if count is None:
                return
            left_s = count.since_s + self._period_s - self._clock.monotonic()
            if left_s <= 0:
                del self._counts[address]
            elif count.failures >= self._failures_max:
                raise Refused(
                    429,
                    "too_many_failures",
                    "too many requests without a good token came from this address; wait",
                    {"Retry-After": str(int(left_s) + 1)},
                )

    def _failed(self, address: str, mark: bytes) -> None:
        with self._lock:
            self._known.pop(mark, None)
            count = self._counts.setdefault(address, _Count(self._clock.monotonic()))
            count.failures += 1
            while len(self._counts) > ADDRESSES_MAX:
                self._counts.popitem(last=False)
