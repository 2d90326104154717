"""Judging: a store's health in sentences that a person understands who was just woken.

Each finding says what is wrong, how much of it there is, and where; a topic without a finding says
in one sentence that it is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.health import Beat, Grade, Health, OldestDue, Topic, Verdict
from dynsched.domain.job import JobState, Priority
from dynsched.domain.run import RunState
from dynsched.domain.time_words import span

NAMED_MAX = 3  # queues or tenants that one topic names
TRIES_LEAST = 20  # tries below which a share of failures says nothing
WAITING_LEAST = 1_000  # waiting runs below which a large share of them says nothing
MOST = 0.8  # of them is one's own
HALF = 0.5
ERROR_LENGTH = 100
DAMAGED = "damaged"
BAD_FACTOR = 3
LEASES = RunState.LEASED.value  # the kind of cursor that the reaper moves, not the dispatcher
_ORDER = {Grade.BAD: 0, Grade.WARN: 1, Grade.OK: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From when on something is worth a warning, or bad.

    Attributes:
        delay_warn: 95th percentile of start delays.
        delay_bad: likewise.
        wait_warn: how long the oldest due run has waited.
        wait_bad: likewise.
        silence: how long a dispatcher or reaper may say nothing.
        lag: how far cursors may be behind; three times that is bad.
        dead_warn: runs that died in an hour.
        dead_bad: likewise.
    """

    delay_warn: timedelta
    delay_bad: timedelta
    wait_warn: timedelta
    wait_bad: timedelta
    silence: timedelta
    lag: timedelta
    dead_warn: int
    dead_bad: int


def judge(health: Health, limits: Limits) -> tuple[Verdict, ...]:
    """Return what to think of a store, worst first, at least one sentence for each topic."""
    found: list[Verdict] = []
    for topic, findings, well in (
        (Topic.LATE, _late(health, limits), _on_time),
        (Topic.STUCK, _stuck(health, limits), _moving),
        (Topic.BROKEN, _broken(health, limits), _whole),
        (Topic.HURT, _hurt(health, limits), _fair),
    ):
        listed = [Verdict(level=level, topic=topic, sentence=text) for level, text in findings]
        found += listed or [Verdict(level=Grade.OK, topic=topic, sentence=well(health))]
    return tuple(sorted(found, key=lambda verdict: _ORDER[verdict.level]))


Findings = Iterator[tuple[Grade, str]]


def _grade(value: timedelta | int, warn: timedelta | int, bad: timedelta | int) -> Grade | None:
    if value >= bad:  # type: ignore[operator]
        return Grade.BAD
    return Grade.WARN if value >= warn else None  # type: ignore[operator]


def _late(health: Health, limits: Limits) -> Findings:
    delay = health.delay
    if delay.p95 is not None and delay.max is not None:
        grade = _grade(delay.p95, limits.delay_warn, limits.delay_bad)
        if grade is not None:
            yield (
                grade,
                f"Runs start late: p95 start delay is {span(delay.p95)} over the last 5 min"
                f" ({_runs(delay.samples)} started, the latest {span(delay.max)} late).",
            )
    waits = sorted(health.oldest_due.items(), key=lambda item: item[1].since)
    for queue, oldest in waits[:NAMED_MAX]:
        waited = health.at - oldest.since
        grade = _grade(waited, limits.wait_warn, limits.wait_bad)
        if grade is not None:
            patient = oldest.priority == Priority.BULK.value and not oldest.lack
            why = _why_waiting(health, oldest)
            yield (
                Grade.WARN if patient else grade,
                f"The oldest due run has waited {span(waited)} in queue {queue}: {why}.",
            )


def _why_waiting(health: Health, oldest: OldestDue) -> str:
    if oldest.lack:
        return oldest.lack
    if health.slots and health.in_slots >= health.slots:
        return f"all {health.slots:,} slots of the living workers are taken"
    if oldest.priority == Priority.BULK.value:
        return "it is of bulk priority and lets others pass"
    if health.handed_off and not health.sessions.get("alive"):
        return "it waits for a permit, its turn or a function that has what it needs"
    return "it waits for a permit, its turn or a worker that looks"


def _on_time(health: Health) -> str:
    delay = health.delay
    if delay.p95 is None:
        return "No run is late; none started in the last 5 min."
    return (
        f"Runs start on time: p95 start delay is {span(delay.p95)} over the last 5 min"
        f" ({_runs(delay.samples)} started)."
    )


def _stuck(health: Health, limits: Limits) -> Findings:
    silent = _silence(health, health.dispatchers, limits)
    if silent:
        if _nothing_is_due(health):
            yield Grade.WARN, f"{silent.format('dispatcher')}, and no job is active that needs one."
        else:
            yield Grade.BAD, f"{silent.format('dispatcher')}: due jobs are not made into runs."
    silent_reaper = _silence(health, health.reapers, limits)
    if silent_reaper:
        grade = Grade.BAD if health.expired_leases else Grade.WARN
        yield grade, f"{silent_reaper.format('reaper')}: the runs of lost workers stay with them."
    if health.expired_leases:
        yield (
            Grade.BAD if silent_reaper else Grade.WARN,
            f"{_runs(health.expired_leases)} {_verb(health.expired_leases, 'lies', 'lie')} under"
            " workers that are gone; the reaper should have returned them.",
        )
    if not silent:
        yield from _behind(health, limits)
    if not silent_reaper:
        yield from _behind_with_leases(health, limits)
    if not health.sessions.get("alive") and not health.handed_off:
        waiting = sum(level.count for level in health.depth.values())
        more = f", and {_runs(waiting)} {_verb(waiting, 'waits', 'wait')}" if waiting else ""
        yield (Grade.BAD if waiting else Grade.WARN), f"No worker is alive{more}."


def _behind(health: Health, limits: Limits) -> Findings:
    lags = (lag for kind, lag in health.cursor_lags.items() if kind != LEASES)
    lag = max(filter(None, lags), default=timedelta(0))
    grade = _grade(lag, limits.lag, BAD_FACTOR * limits.lag)
    if grade is not None:
        yield grade, f"The dispatcher is {span(lag)} behind: past minutes are not worked off yet."


def _behind_with_leases(health: Health, limits: Limits) -> Findings:
    lag = health.cursor_lags.get(LEASES) or timedelta(0)
    if lag > limits.lag:
        yield (
            Grade.WARN,
            f"The reaper is {span(lag)} behind with the leases of functions: it has yet to return"
            " runs whose leases ended, or fails to.",
        )


def _nothing_is_due(health: Health) -> bool:
    """Return whether a dispatcher would have nothing to do: a new store, or all jobs paused."""
    active = health.jobs_by_state.get(JobState.ACTIVE.value, 0) or health.jobs_at_least
    return not active and not health.failed.count


def _silence(health: Health, beats: tuple[Beat, ...], limits: Limits) -> str:
    """Return a sentence's beginning, with a place for the role; empty if one was heard."""
    if not beats:
        return "No {} gives a sign of life"
    newest = max(beat.at for beat in beats)
    silence = health.at - newest
    return f"The last {{}} was heard {span(silence)} ago" if silence > limits.silence else ""


def _moving(health: Health) -> str:
    alive = health.sessions.get("alive", 0)
    workers = "1 worker" if alive == 1 else f"{alive:,} workers"
    if not alive and health.handed_off:
        return (
            "Dispatcher and reaper give signs of life, and functions are told of runs; no worker"
            " pulls, and no run lies under a lost one."
        )
    return f"Dispatcher, reaper and {workers} give signs of life; no run lies under a lost worker."


def _broken(health: Health, limits: Limits) -> Findings:
    grade = _grade(health.dead_per_hour, limits.dead_warn, limits.dead_bad)
    if grade is not None:
        count = health.dead_per_hour
        mostly = _mostly(health)
        yield (
            grade,
            f"{_runs(count)} died in the last hour{mostly}; the dead-letter queue holds"
            f" {health.dead}.",
        )
    tries = sum(one.done + one.failed + one.dead for one in health.recent)
    failed = sum(one.failed + one.dead for one in health.recent)
    if tries >= TRIES_LEAST and failed >= HALF * tries:
        yield Grade.WARN, f"Of {tries:,} tries in the last 5 min {failed:,} failed."
    parked = health.jobs_by_state.get(JobState.PARKED.value, 0)
    if parked:
        jobs = "1 job is" if parked == 1 else f"{parked:,} jobs are"
        yield Grade.WARN, f"{jobs} parked: the schedule cannot be evaluated, so nothing is due."
    damaged = health.jobs_by_state.get(DAMAGED, 0)
    if damaged:
        rows = "The row of 1 job" if damaged == 1 else f"The rows of {damaged:,} jobs"
        yield Grade.BAD, f"{rows} cannot be read: nothing of that is run."


def _mostly(health: Health) -> str:
    """Return which error group most of the last hour's deaths belong to."""
    groups: Counter[str] = Counter()
    for one in health.minutes:
        groups.update(one.dead_groups)
    known = [(name, count) for name, count in groups.most_common() if name]
    if not known or known[0][1] < HALF * health.dead_per_hour:
        return ""
    name = known[0][0]
    error = next((one.error for one in health.top_groups if one.signature == name), "")
    error = " ".join(error.split())[:ERROR_LENGTH]
    return f", mostly of group {name}" + (f" ({error})" if error else "")


def _whole(health: Health) -> str:
    count = health.dead_per_hour
    died = f"{_runs(count)} died" if count else "No run died"
    return f"{died} in the last hour; the dead-letter queue holds {health.dead}."


def _hurt(health: Health, limits: Limits) -> Findings:
    capped = [
        line
        for line in health.top_tenants
        if line.cap is not None and line.running >= line.cap and line.waiting.count
    ]
    for line in capped[:NAMED_MAX]:
        yield (
            Grade.WARN,
            f"Tenant {line.tenant} runs {line.running:,} of the {line.cap:,} that it may, and"
            f" {_runs(line.waiting.count, at_least=line.waiting.at_least)}"
            f" {_verb(line.waiting.count, 'waits', 'wait')}.",
        )
    lines = health.top_tenants
    waiting = sum(line.waiting.count for line in lines)
    dead = sum(line.dead for line in lines)
    for line in lines if len(lines) > 1 else ():
        if waiting >= WAITING_LEAST and line.waiting.count >= MOST * waiting:
            share = f"{line.waiting.count / waiting:.0%}"
            yield Grade.WARN, f"Tenant {line.tenant} has {share} of all that waits."
        if dead >= limits.dead_warn and line.dead >= MOST * dead:
            yield (
                Grade.WARN,
                f"{line.dead:,} of the {_runs(dead)} that died in the last hour are"
                f" tenant {line.tenant}'s.",
            )


def _fair(health: Health) -> str:
    if not health.top_tenants:
        return "No tenant has anything to wait for."
    return "No tenant waits at its cap, and none stands out."


def _runs(count: int, *, at_least: bool = False) -> str:
    return "1 run" if count == 1 else f"{count:,}{'+' if at_least else ''} runs"


def _verb(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
