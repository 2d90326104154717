"""Selection: whose work is next. Priorities by weight, tenants in turn, shards by fair share."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil

from dynsched.domain.job import Priority
from dynsched.domain.run import Run

WEIGHTS: Mapping[Priority, int] = {Priority.HIGH: 6, Priority.DEFAULT: 3, Priority.BULK: 1}


def in_turn(runs: Iterable[Run], served: Mapping[str, str] | None = None) -> list[Run]:
    """Return runs so that tenants take turns, and inside a tenant its share keys.

    The order of first appearance decides which tenant begins; within one share key the order
    stays.

    Args:
        runs: in the order in which they were found.
        served: of a tenant, the share key that was served last; the one behind it begins.
    """
    tenants: OrderedDict[str, OrderedDict[str, deque[Run]]] = OrderedDict()
    for run in runs:
        shares = tenants.setdefault(run.tenant, OrderedDict())
        shares.setdefault(run.share, deque()).append(run)
    for tenant, last in (served or {}).items():
        for share in sorted(tenants.get(tenant, ())):
            if share <= last:
                tenants[tenant].move_to_end(share)
    found: list[Run] = []
    while tenants:
        for tenant in list(tenants):
            shares = tenants[tenant]
            share, queue = next(iter(shares.items()))
            found.append(queue.popleft())
            shares.move_to_end(share)
            if not queue:
                del shares[share]
            if not shares:
                del tenants[tenant]
    return found


class WeightedTurns:
    """Smooth weighted round robin over priorities that have work; no priority starves.

    >>> turns = WeightedTurns()
    >>> picks = [turns.next([Priority.HIGH, Priority.BULK]).value for _ in range(7)]
    >>> picks.count("high"), picks.count("bulk")
    (6, 1)
    """

    def __init__(self, weights: Mapping[Priority, int] = WEIGHTS) -> None:
        self._weights = weights
        self._credit = dict.fromkeys(weights, 0)

    def next(self, available: Sequence[Priority]) -> Priority:
        """Return whose turn it is among priorities that have work now."""
        total = 0
        for priority in available:
            self._credit[priority] += self._weights[priority]
            total += self._weights[priority]
        chosen = max(available, key=lambda priority: self._credit[priority])
        self._credit[chosen] -= total
        return chosen


def take_by_weight(
    sources: Mapping[Priority, list[deque[Run]]],
    turns: WeightedTurns,
    count: int,
    usable: Callable[[Run], bool],
) -> list[Run]:
    """Take up to `count` usable runs by weight; the queues of one priority take turns.

    Args:
        sources: for each priority its queues; runs that are not usable now are dropped from them.
        turns: whose turn it is among priorities.
        count: most runs to take.
        usable: asked right before a run is taken.
    """
    taken: list[Run] = []
    while len(taken) < count:
        available = [priority for priority, queues in sources.items() if any(queues)]
        if not available:
            break
        queues = sources[turns.next(available)]
        while any(queues):
            queue = queues.pop(0)
            queues.append(queue)
            if queue and usable(queue[0]):
                taken.append(queue.popleft())
                break
            if queue:
                queue.popleft()
    return taken


def home_lanes(me: str, sessions: Iterable[str], lanes: int) -> frozenset[int]:
    """Return the lanes that a session reads at each poll: its share by its rank among all.

    >>> sorted(home_lanes("b", ["a", "b"], 4))
    [1, 3]
    >>> sorted(home_lanes("a", ["a"], 2))
    [0, 1]
    """
    ranked = sorted({*sessions, me})
    rank = ranked.index(me)
    if len(ranked) >= lanes:
        return frozenset({rank % lanes})
    return frozenset(lane for lane in range(lanes) if lane % len(ranked) == rank)


def shards_to_serve(
    me: str, owners: Sequence[tuple[str, datetime | None]], now: datetime
) -> frozenset[int]:
    """Return the shards that a dispatcher serves in this tick.

    Soft ownership spares failed writes; correctness does not rest on it. A dispatcher keeps its
    own, takes free ones, and takes from those that have more than their fair share.

    Args:
        me: the dispatcher's name.
        owners: (owner, owned until) for each shard.
        now: the tick's instant.
    """
    alive = [owner if until is not None and until > now else "" for owner, until in owners]
    fair = ceil(len(owners) / len({me, *filter(None, alive)}))
    mine = {shard for shard, owner in enumerate(alive) if owner == me}
    for shard, owner in enumerate(alive):
        if len(mine) >= fair:
            break
        if not owner or (owner != me and alive.count(owner) > fair):
            mine.add(shard)
            alive[shard] = me
    return frozenset(mine | {shard for shard, owner in enumerate(alive) if not owner})
