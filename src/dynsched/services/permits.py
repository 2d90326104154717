"""Permits: overlap of a job's runs, and caps on a tenant's.

A permit is taken after the claim, under its version, and names the run and its fence. Nobody
releases it: it is free when the run that it names is not leased under that fence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dynsched.domain.job import Overlap
from dynsched.domain.names import bucket_of
from dynsched.domain.overlap import OverlapDecision, decide_overlap, holds
from dynsched.domain.run import Run, parse_run_id
from dynsched.storage.control import Permit
from dynsched.storage.placement import freed_mark_key, overlap_permit_key, tenant_permit_key
from dynsched.storage.store import Store

ROUNDS = 8  # how often a permit is read again after somebody else wrote it
READ_AT_ONCE = 10  # permits of one tenant read together


@dataclass(frozen=True, slots=True)
class Taken:
    """A tenant's permit that a run holds: its number, for the freed mark."""

    tenant: str
    number: int


class PermitDesk:
    """Takes permits for runs that this process has just claimed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # overlap

    def overlap(self, wanted: Sequence[tuple[Run, Overlap]]) -> dict[str, OverlapDecision]:
        """Decide for claimed runs of jobs that forbid overlap; by run id.

        Runs of one job are decided one after the other. A run for which the permit kept changing
        hands has no decision; it steps back and comes again.
        """
        decided: dict[str, OverlapDecision] = {}
        pending = list(wanted)
        for _ in range(ROUNDS + len(wanted)):
            batch: dict[str, tuple[Run, Overlap]] = {}
            for run, policy in pending:
                batch.setdefault(run.job_id, (run, policy))
            if not batch:
                break
            self._round(list(batch.values()), decided)
            pending = [item for item in pending if item[0].run_id not in decided]
        return decided

    def _round(
        self, batch: Sequence[tuple[Run, Overlap]], decided: dict[str, OverlapDecision]
    ) -> None:
        permits = self._store.control.permits([overlap_permit_key(run.job_id) for run, _ in batch])
        rows = self._named(
            name
            for (run, _), permit in zip(batch, permits, strict=True)
            for name in _names(permit)
            if name != run.run_id
        )
        changed: list[tuple[Run, OverlapDecision, Permit]] = []
        for (run, policy), permit in zip(batch, permits, strict=True):
            decision = decide_overlap(
                run,
                policy,
                holder=permit.holder,
                waiter=permit.waiter,
                holder_run=_row_of(permit.holder, rows, run),
                waiter_run=rows.get(permit.waiter or ""),
            )
            if (decision.holder, decision.waiter) == (permit.holder, permit.waiter):
                decided[run.run_id] = decision
            else:
                after = replace(permit, holder=decision.holder, waiter=decision.waiter)
                changed.append((run, decision, after))
        written = self._store.control.write_permits([after for _, _, after in changed])
        for (run, decision, _), done in zip(changed, written, strict=True):
            if done:
                decided[run.run_id] = decision

    def _named(self, run_ids: Iterable[str]) -> dict[str, Run]:
        """Read runs that permits name, strongly; by run id."""
        keys = [parse_run_id(run_id) for run_id in dict.fromkeys(run_ids)]
        found = self._store.runs.get_many(keys) if keys else []
        return {run.run_id: run for run in found if run is not None}

    # caps

    def tenant(self, tenant: str, cap: int, runs: Sequence[Run]) -> dict[str, Taken | None]:
        """Take one of a tenant's `cap` permits for each claimed run, None where none is free."""
        taken: dict[str, Taken | None] = dict.fromkeys((run.run_id for run in runs), None)
        waiting = list(runs)
        for numbers in self._order(tenant, cap, runs[0].run_id):
            if not waiting:
                break
            for _ in range(ROUNDS):
                lost = self._take(tenant, numbers, waiting, taken)
                waiting = [run for run in waiting if taken[run.run_id] is None]
                if not lost or not waiting:
                    break
        return taken

    def any_free(self, tenant: str, cap: int) -> bool:
        """Return whether a tenant has a free permit. It may refuse a claim, never allow a start."""
        for numbers in self._order(tenant, cap, ""):
            permits = self._permits(tenant, numbers)
            rows = self._named(p.holder[0] for p in permits if p.holder is not None)
            if not all(holds(p.holder, _row_of(p.holder, rows, None)) for p in permits):
                return True
        return False

    def freed(self, taken: Taken) -> None:
        """Leave the hint that a permit was freed, so that the next run finds it in one read."""
        self._store.control.write_freed_mark(freed_mark_key(taken.tenant), taken.number)

    def _order(self, tenant: str, cap: int, turn: str) -> Iterable[list[int]]:
        """Yield the marked permit first, then all from an offset that differs by run."""
        mark = self._store.control.freed_mark(freed_mark_key(tenant))
        if mark is not None and mark < cap:
            yield [mark]
        offset = bucket_of(turn, cap)
        numbers = [(offset + step) % cap for step in range(cap)]
        for start in range(0, cap, READ_AT_ONCE):
            yield numbers[start : start + READ_AT_ONCE]

    def _permits(self, tenant: str, numbers: Sequence[int]) -> list[Permit]:
        return self._store.control.permits([tenant_permit_key(tenant, n) for n in numbers])

    def _take(
        self,
        tenant: str,
        numbers: Sequence[int],
        waiting: Sequence[Run],
        taken: dict[str, Taken | None],
    ) -> bool:
        """Write waiting runs into free permits; True if a race was lost."""
        permits = self._permits(tenant, numbers)
        rows = self._named(p.holder[0] for p in permits if p.holder is not None)
        free = [
            (number, permit)
            for number, permit in zip(numbers, permits, strict=True)
            if not holds(permit.holder, _row_of(permit.holder, rows, None))
        ]
        pairs = list(zip(waiting, free, strict=False))
        written = self._store.control.write_permits(
            [replace(permit, holder=(run.run_id, run.fence)) for run, (_, permit) in pairs]
        )
        for (run, (number, _)), done in zip(pairs, written, strict=True):
            if done:
                taken[run.run_id] = Taken(tenant, number)
        return not all(written)


def _names(permit: Permit) -> Iterable[str]:
    if permit.holder is not None:
        yield permit.holder[0]
    if permit.waiter is not None:
        yield permit.waiter


def _row_of(holder: tuple[str, int] | None, rows: Mapping[str, Run], run: Run | None) -> Run | None:
    """Return the row of a permit's holder; the claimed run itself needs no reading."""
    if holder is None:
        return None
    if run is not None and holder[0] == run.run_id:
        return run
    return rows.get(holder[0])
