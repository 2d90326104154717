"""Views of tenants: what each may run, what of it runs and waits, by a filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dynsched.domain.filter_match import Fact, matches
from dynsched.domain.filters import TENANTS, WORD, Filter
from dynsched.domain.health import Health, Level, TenantLine
from dynsched.services.health import HealthViews
from dynsched.services.health_look import TENANTS_MAX as BUSY_MAX
from dynsched.services.listing import check_limit
from dynsched.services.search import EXAMINE, LIMIT, Cursor, Found, as_filter, read_cursor
from dynsched.storage.control import Tenant

PAGE = 500  # tenants that are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantShare:
    """One tenant beside the others.

    Attributes:
        tenant: its name.
        cap: most runs leased at once; None is no cap.
        waiting: due runs; None if the tenant is not among the busiest, which alone are counted.
        running: leased runs; None likewise.
        dead: runs that died in the last hour; None likewise.
        total: leased runs of all tenants.
        busy: it is among those with most waiting, running or dying.
    """

    tenant: str
    cap: int | None
    waiting: Level | None
    running: int | None
    dead: int | None
    total: int
    busy: bool

    @property
    def share(self) -> float:
        """Return which part of all that runs is this tenant's, 0 to 1."""
        return (self.running or 0) / self.total if self.total else 0.0

    @property
    def full(self) -> bool:
        """Return whether as many runs are running as the cap allows."""
        return self.cap is not None and (self.running or 0) >= self.cap


class TenantViews(HealthViews):
    """Reads tenants for people; only reading, every page bounded."""

    def find_tenants(
        self, filter: Filter | str = "", *, limit: int = LIMIT, cursor: str | None = None
    ) -> Found[TenantShare]:
        """Return a page of the tenants that have jobs or settings, by name.

        What runs and waits is that of the shared look at the store's health, which counts the
        busiest tenants only; the others are told as not counted if there are more.

        Cost: that of `health`, and half a read unit for each 4 KB of tenants.

        Raises:
            FilterError: the filter cannot be read.
            InvalidInput: a number is out of range, or the cursor belongs to another filter.
        """
        found = as_filter(filter, TENANTS)
        check_limit(limit)
        now, after = self._clock.now(), ""
        if cursor is not None:
            read = read_cursor(cursor, found)
            now, after = read.at, read.place[0]
        health = self.health()
        items: list[TenantShare] = []
        examined, end = 0, None
        rows = self._tenants_behind(after)
        for row in rows:
            examined += 1
            share = _share(row, health)
            if matches(found, lambda name, one=share: _fact(name, one), now):  # type: ignore[misc]
                items.append(share)
            if len(items) >= limit or examined >= EXAMINE:
                end = row.name if next(rows, None) is not None else None
                break
        return Found(
            items=tuple(items),
            matched=len(items),
            examined=examined,
            cursor=None if end is None else Cursor(now, (end, "")).text(found),
            tested=tuple("text" if one == WORD else one for one in dict.fromkeys(found.names())),
        )

    def _tenants_behind(self, after: str) -> Iterator[Tenant]:
        while page := self._store.control.all_tenants(most=PAGE, after=after):
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].name


def _share(row: Tenant, health: Health) -> TenantShare:
    line = next((one for one in health.top_tenants if one.tenant == row.name), None)
    counted = line
    if line is None and len(health.top_tenants) < BUSY_MAX:
        counted = TenantLine(tenant=row.name, waiting=Level(0), running=0)
    return TenantShare(
        tenant=row.name,
        cap=row.max_running,
        waiting=None if counted is None else counted.waiting,
        running=None if counted is None else counted.running,
        dead=None if counted is None else counted.dead,
        total=health.leased.count,
        busy=line is not None,
    )


def _fact(name: str, one: TenantShare) -> Fact:
    if name == "cap":
        return one.cap
    if name == "is":
        flags = {
            "busy": one.busy,
            "capped": one.cap is not None,
            "full": one.full,
            "hurt": bool(one.dead),
            "waiting": one.waiting is not None and one.waiting.count > 0,
        }
        return [flag for flag, holds in flags.items() if holds]
    return one.tenant
