"""Verbs on the store itself: the map's counts, and tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dynsched.domain.access import Action
from dynsched.domain.instants import minute_of
from dynsched.domain.names import check_name
from dynsched.errors import Conflict, InvalidInput
from dynsched.services.gate import Subject, changes, note
from dynsched.services.verbs import CHANGE_TRIES, Verbs, on_store
from dynsched.storage.control import Tenant
from dynsched.storage.placement import MapEntry, Topology

RESIZE_MINUTES = 2  # until every process has read the changed map
RESIZE_MAX = 1_024
CAP_MAX = 1_000
COUNTS = ("shards", "lanes", "spread")


def _on_tenant(_: Verbs, given: Mapping[str, Any]) -> Subject:
    name = check_name(given["name"], "tenant")
    return Subject(target=f"tenant:{name}", tenant=name)


class StoreVerbs(Verbs):
    """Resize the store, cap tenants."""

    @changes(Action.STORE_RESIZE, on_store)
    def resize(
        self,
        *,
        shards: int | None = None,
        lanes: int | None = None,
        spread: int | None = None,
        reason: str = "",
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
        for name in COUNTS:
            if not 1 <= getattr(entry, name) <= RESIZE_MAX:
                raise InvalidInput(name, "out of range", f"give 1 to {RESIZE_MAX}")
        changed = replace(topology, entries=(*topology.entries, entry))
        if not self._store.control.write_map(changed):
            raise Conflict("the map was changed at the same time; look at it and try again")
        note(
            ", ".join(
                f"{name} {getattr(last, name)} -> {getattr(entry, name)}"
                for name in COUNTS
                if getattr(last, name) != getattr(entry, name)
            )
        )
        changed = self._store.refresh()
        self._store.ensure_cursors(changed)
        return changed

    @changes(Action.TENANT_SET, _on_tenant)
    def set_tenant(self, name: str, *, max_running: int | None, reason: str = "") -> Tenant:
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
                note(f"max_running {_cap(tenant.max_running)} -> {_cap(max_running)}")
                return replace(changed, version=tenant.version + 1)
        raise Conflict(f"tenant {name} kept changing; try again")


def _cap(max_running: int | None) -> str:
    return "none" if max_running is None else str(max_running)
