"""Verbs on the store itself: the map's counts, and tenants."""

from __future__ import annotations

from dataclasses import replace

from dynsched.domain.instants import minute_of
from dynsched.domain.names import check_name
from dynsched.errors import Conflict, InvalidInput
from dynsched.services.verbs import CHANGE_TRIES, Verbs
from dynsched.storage.control import Tenant
from dynsched.storage.placement import MapEntry, Topology

RESIZE_MINUTES = 2  # until every process has read the changed map
RESIZE_MAX = 1_024
CAP_MAX = 1_000


class StoreVerbs(Verbs):
    """Resize the store, cap tenants."""

    def resize(
        self, *, shards: int | None = None, lanes: int | None = None, spread: int | None = None
    ) -> Topology:
        """Change the counts of shards, lanes or spread partitions while everything runs.

        They hold from a coming minute on, when every process has read the map again. Readers
        look at the larger count until a daily sweep has moved the last row.

        Raises:
            InvalidInput: a count is out of range.
            Conflict: somebody else changed the map at the same time.
        """
        topology = self._store.refresh()
        last = topology.entries[-1]
        now = self._clock.now()
        entry = MapEntry(
            max(minute_of(now + topology.look_ahead) + RESIZE_MINUTES, last.from_minute + 1),
            last.shards if shards is None else shards,
            last.lanes if lanes is None else lanes,
            last.spread if spread is None else spread,
        )
        for name in ("shards", "lanes", "spread"):
            if not 1 <= getattr(entry, name) <= RESIZE_MAX:
                raise InvalidInput(name, "out of range", f"give 1 to {RESIZE_MAX}")
        changed = replace(topology, entries=(*topology.entries, entry))
        if not self._store.control.write_map(changed):
            raise Conflict("the map was changed at the same time; look at it and try again")
        changed = self._store.refresh()
        self._store.ensure_cursors(changed)
        return changed

    def set_tenant(self, name: str, *, max_running: int | None) -> Tenant:
        """Cap how many of a tenant's runs are leased at once; None lifts the cap.

        It holds in every worker within five seconds.
        """
        check_name(name, "tenant")
        if max_running is not None and not 1 <= max_running <= CAP_MAX:
            raise InvalidInput("max_running", "out of range", f"give 1 to {CAP_MAX}, or none")
        for _ in range(CHANGE_TRIES):
            tenant = self._store.control.tenants([name])[name]
            changed = replace(tenant, max_running=max_running)
            if self._store.control.write_tenant(changed):
                return replace(changed, version=tenant.version + 1)
        raise Conflict(f"tenant {name} kept changing; try again")
