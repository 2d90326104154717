"""The checker: does a history keep the invariants that dynsched promises?

The numbers are those of the list in the documentation. What the checker finds are sentences, each
with the run, and with the place in the store's order at which the invariant broke.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from dynsched.domain.instants import to_text
from dynsched.domain.job import Job, JobState, Overlap, names_instant
from dynsched.domain.moves import Event
from dynsched.domain.run import TERMINAL, Run, RunKind, RunState
from dynsched.domain.verdict import untouched
from dynsched.storage.engine import Engine
from dynsched.storage.placement import Topology, run_index
from dynsched.testing.history import History, Start, all_rows
from dynsched.testing.occurrences import check_occurrences
from dynsched.testing.trail import JobVersion, RunChange, Trail, read_trail

# What explains that a run starts once more: its last try was ended by one of these.
EXPLAINED = frozenset(
    {Event.RETRY, Event.SNOOZE, Event.HAND_BACK, Event.RECLAIM, Event.BURY, Event.REPLAY}
)


def check_history(history: History, *, topology: Topology | None = None) -> list[str]:
    """Return what in a history breaks an invariant, as sentences; none is what should be.

    Args:
        history: of a store that is at rest, recorded since it was empty.
        topology: its map; None leaves out where rows lie in the index.
    """
    trail = read_trail(history)
    found = list(history.misread)
    for change in trail.changes:
        found += _check_change(change)
        if topology is not None:
            found += _check_place(change, topology)
    found += _check_starts(trail)
    found += _check_crowds(trail)
    found += check_occurrences(trail)
    found += _check_counts(trail)
    return found


def check_rest(trail: Trail, now: datetime) -> list[str]:
    """Return which runs should have ended by now in a store that was left to itself long enough.

    Invariants 8 and 10: whatever was due has a terminal state; nobody holds a lease.
    """
    found = []
    for changes in trail.runs.values():
        run = changes[-1].after
        if run is None or run.state in TERMINAL:
            continue
        if run.state is RunState.LEASED:
            found.append(f"10: {run.run_id} is still leased by session {run.session}")
        elif run.available_at <= now:
            at = to_text(run.available_at)
            found.append(f"10: {run.run_id} is still {run.state.value}, due since {at}")
    return found


def check_rows(history: History, engine: Engine) -> list[str]:
    """Return where a store differs from its history: what was acknowledged and is not there.

    Invariants 3 and 9.
    """
    stored = {row.key: row for row in all_rows(engine)}
    found = []
    for key in history.rows.keys() | stored.keys():
        known, row = history.rows.get(key), stored.get(key)
        if known is None or row is None or known.version != row.version:
            what = "missing in" if row is None else "unknown to the history of"
            found.append(f"3: row {key.pk} {key.sk} is {what} the store, or has another version")
    return found


def _check_change(change: RunChange) -> Iterator[str]:
    """Invariants 1, 4, 5, 6: keys, fences, moves and counts."""
    run, where = change.run, f"{change.run.run_id} at {change.place}"
    key = change.change.key
    if (key.pk, key.sk) != (run.key.partition, run.key.sort):
        yield f"1: {where} lies under another key than its own: {key.pk} {key.sk}"
    if change.after is None:
        if not change.change.purged:
            yield f"3: {where} was deleted before its retention was over"
        return
    if change.before is None:
        if run.state is not RunState.READY or run.fence or run.attempt:
            yield f"5: {where} was made as {run.state.value}, fence {run.fence}"
        return
    if change.event is None and not _moved(change):
        yield f"5: {where} went {_told(change.before)} -> {_told(run)}, which is no move"
    if run.cancel_requested and run.state in (RunState.READY, RunState.FAILED):
        yield f"5: {where} is {run.state.value} again, although it was asked to stop"


def _moved(change: RunChange) -> bool:
    """Say whether only the row's place in the index was changed, after a resize."""
    before, after = change.change.before, change.change.after
    return before is not None and after is not None and before.body == after.body


def _told(run: Run) -> str:
    return (
        f"[{run.state.value} fence {run.fence} attempt {run.attempt} spent {run.spent}/{run.limit}"
        f" losses {run.losses} replays {run.replays} {run.reason!r}]"
    )


def _check_place(change: RunChange, topology: Topology) -> Iterator[str]:
    """Invariant 8: a run lies in the index where those look who need it."""
    row, run = change.change.after, change.after
    if row is None or run is None:
        return
    places = [run_index(run, replace(topology, entries=(entry,))) for entry in topology.entries]
    if row.index not in places:
        yield f"8: {run.run_id} at {change.place} is {run.state.value} and lies in {row.index}"


def _check_starts(trail: Trail) -> Iterator[str]:
    """Invariants 1, 4, 6 and 12: each start had its lease, its number, and a reason."""
    seen: dict[str, list[Start]] = {}
    for start in trail.starts:
        before = seen.setdefault(start.run_id, [])
        yield from _check_start(trail, start)
        if before:
            yield from _check_repeat(trail, before, start)
        before.append(start)
    started = {(start.run_id, start.fence) for start in trail.starts}
    for change in trail.changes:
        run = change.run
        counted = change.before is None or run.attempt > change.before.attempt
        leaves = change.event in (Event.STEP_BACK, Event.SKIP, Event.CANCEL)
        if leaves and not counted and (run.run_id, run.fence) in started and _was_leased(change):
            yield (
                f"6: {run.run_id} at {change.place}: {change.event} does not count the try, but"
                f" it had started under fence {run.fence}"
            )


def _was_leased(change: RunChange) -> bool:
    return change.before is not None and change.before.state is RunState.LEASED


def _check_start(trail: Trail, start: Start) -> Iterator[str]:
    where = f"{start.run_id} at {start.place}"
    run, claim = trail.at(start.run_id, start.place), trail.claim_of(start)
    if run is None or claim is None:
        yield f"4: {where} started under fence {start.fence}, which nobody claimed"
        return
    if run.state is not RunState.LEASED or run.fence != start.fence:
        yield f"4: {where} started under fence {start.fence}, but it is {_told(run)}"
    elif start.attempt != run.attempt + 1:
        yield f"6: {where} started as attempt {start.attempt} of {_told(run)}"
    versions = trail.versions(run.job_id, claim.place, start.place)
    if not any(_permits(version, run) for version in versions):
        yield f"1: {where} started, but its job names no such instant, or counts it as skipped"


def _check_repeat(trail: Trail, before: list[Start], start: Start) -> Iterator[str]:
    where = f"{start.run_id} at {start.place}"
    if start.attempt in {other.attempt for other in before}:
        yield f"12: {where} started twice as attempt {start.attempt}"
    if start.fence in {other.fence for other in before}:
        yield f"12: {where} started twice under fence {start.fence}"
    last = before[-1].place
    between = {
        change.event
        for change in trail.runs.get(start.run_id, [])
        if last < change.place < start.place
    }
    if not between & EXPLAINED:
        yield f"12: {where} started again, and nothing explains it: {sorted(filter(None, between))}"


def _permits(version: JobVersion, run: Run) -> bool:
    """Say whether a job, as it was, lets a claimed run start."""
    job = version.job
    if job is None or job.state is JobState.DELETED:
        return False
    if job.state is JobState.PAUSED and job.policies.hold:
        return False
    if run.key.kind is not RunKind.CRON:
        return True
    if untouched(run) and any(span.covers(run.scheduled_for) for span in version.spans):
        return False
    return names_instant(version.generations, run.scheduled_for)


def _check_crowds(trail: Trail) -> Iterator[str]:
    """Invariant 7: overlap and caps, among runs that have started and hold their lease."""
    running: dict[str, Start] = {}
    events: list[Start | RunChange] = sorted(
        [*trail.starts, *trail.changes], key=lambda item: item.place
    )
    for event in events:
        if isinstance(event, RunChange):
            if event.after is None or event.after.state is not RunState.LEASED:
                running.pop(event.run.run_id, None)
            continue
        run = trail.at(event.run_id, event.place)
        if run is None or run.state is not RunState.LEASED or run.fence != event.fence:
            continue
        others = [other for other in running.values() if other.run_id != event.run_id]
        yield from _check_overlap(trail, run, event, others)
        yield from _check_cap(trail, run, event, others)
        running[event.run_id] = event


def _check_overlap(trail: Trail, run: Run, start: Start, others: list[Start]) -> Iterator[str]:
    if run.forced:
        return
    for other in others:
        beside = trail.at(other.run_id, start.place)
        if beside is None or beside.job_id != run.job_id or beside.forced:
            continue
        claim = trail.claim_of(other)
        first = claim.place if claim is not None else other.place
        jobs = [version.job for version in trail.versions(run.job_id, first, start.place)]
        if all(job is not None and job.policies.overlap is not Overlap.ALLOW for job in jobs):
            yield f"7: {run.run_id} at {start.place} started beside {other.run_id}"


def _check_cap(trail: Trail, run: Run, start: Start, others: list[Start]) -> Iterator[str]:
    caps = trail.caps.get(run.tenant, [])
    beside = [trail.at(other.run_id, start.place) for other in others]
    count = 1 + sum(other is not None and other.tenant == run.tenant for other in beside)
    most = [cap for cap in caps if cap is not None]
    if most and len(most) == len(caps) and count > max(most):
        yield f"7: {run.run_id} at {start.place} is the {count}th run of tenant {run.tenant}"


def _check_counts(trail: Trail) -> Iterator[str]:
    """Invariant 9: what was made is somewhere, or has been purged."""
    made: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for changes in trail.runs.values():
        tenant = changes[0].run.tenant
        made[tenant] += sum(change.before is None for change in changes)
        gone[tenant] += sum(change.after is None for change in changes)
        kept[tenant] += changes[-1].after is not None
    for tenant, count in made.items():
        if count != gone[tenant] + kept[tenant]:
            yield (
                f"9: tenant {tenant} had {count} runs made, {gone[tenant]} purged,"
                f" {kept[tenant]} kept"
            )


def told(found: list[str], *, most: int = 20) -> str:
    """Return violations as the text of a failed test."""
    more = f"\n... and {len(found) - most} more" if len(found) > most else ""
    return "\n".join(found[:most]) + more


def jobs_at_rest(trail: Trail) -> list[Job]:
    """Return the jobs as they are now."""
    last = [versions[-1].job for versions in trail.jobs.values()]
    return [job for job in last if job is not None]
