"""The overview: is it on time, is it stuck, is it broken, who is hurt; every line leads on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from dynsched.domain.health import (
    Beat,
    ErrorGroup,
    Grade,
    Health,
    TenantLine,
    Topic,
    Verdict,
    WorkerLine,
)
from dynsched_console.charts import bar, sparkline
from dynsched_console.screens.base import SheetScreen
from dynsched_console.sheet import Link, SheetRow, row
from dynsched_console.text import Piece, ago, long, pad
from dynsched_console.themes import Tone

VERDICTS = {
    Grade.OK: ("ok  ", Tone.GOOD),
    Grade.WARN: ("warn", Tone.WARN),
    Grade.BAD: ("BAD ", Tone.BAD),
}
QUESTIONS = {
    Topic.LATE: "On time?",
    Topic.STUCK: "Stuck?",
    Topic.BROKEN: "Broken?",
    Topic.HURT: "Who is hurt?",
}
LEADS = {
    Topic.LATE: Link(place="runs", filter="@late"),
    Topic.STUCK: Link(place="runs", filter="@stuck"),
    Topic.BROKEN: Link(place="runs", filter="state:dead"),
    Topic.HURT: Link(place="runs", filter="state:dead"),
}
LABEL = 13  # columns of the words at the left
WORKERS_SHOWN = 8
BAR = 24


class OverviewScreen(SheetScreen):
    """The first screen."""

    name_of_place = "overview"

    def reader(self) -> Callable[[], Health]:
        """Return a call that takes the shared snapshot of the store's health."""
        return self.source.health

    def instant_of(self, answer: Health) -> datetime:
        """Return when the snapshot was made, perhaps by another reader."""
        return answer.at

    def rows(self, answer: Health) -> list[SheetRow]:
        """Return verdicts first, then what they rest on."""
        columns = max(self.size.width - 3, 40)
        return [
            *self._verdicts(answer.verdicts),
            SheetRow(),
            *_late(answer, columns),
            SheetRow(),
            *_stuck(answer, columns),
            SheetRow(),
            *_broken(answer, columns),
            SheetRow(),
            *_hurt(answer.top_tenants, columns),
        ]

    def _verdicts(self, verdicts: Iterable[Verdict]) -> list[SheetRow]:
        found = []
        for number, one in enumerate(verdicts):
            words, tone = VERDICTS[one.level]
            question = QUESTIONS[one.topic]
            found.append(
                row(
                    Piece(pad(question, LABEL), Tone.STRONG),
                    Piece(f"{words}  ", tone),
                    one.sentence,
                    link=LEADS[one.topic],
                    key=f"verdict.{one.topic}.{number}",
                )
            )
        return found


def _label(words: str) -> Piece:
    return Piece(pad(words, LABEL), Tone.MUTED)


def _spark_columns(columns: int, taken: int) -> int:
    return max(min(columns - taken, 60), 0)


def _late(health: Health, columns: int) -> list[SheetRow]:
    delay = health.delay
    figures = f"p50 {long(delay.p50):<7} p95 {long(delay.p95):<7} max {long(delay.max):<7}"
    rest = _spark_columns(columns, LABEL + len(figures) + 2)
    trend = sparkline([_s(one.delay_p95) for one in health.minutes], rest)
    late = Link(place="runs", filter="is:late")
    rows = [row(_label("start delay"), figures, "  ", Piece(trend, Tone.MUTED), link=late,
                key="delay")]  # fmt: skip
    if not health.oldest_due:
        rows.append(row(_label("oldest due"), Piece("nothing waits", Tone.MUTED), key="oldest"))
    for queue, oldest in sorted(health.oldest_due.items()):
        link = Link(place="run", subject=oldest.run_id)
        words = f"{ago(oldest.since, health.at):<8} in queue {queue}, {oldest.priority}"
        rows.append(row(_label("oldest due"), words, link=link, key=f"oldest.{queue}"))
    return rows


def _s(delay: timedelta | None) -> float | None:
    return None if delay is None else delay.total_seconds()


def _stuck(health: Health, columns: int) -> list[SheetRow]:
    rows = [*_depths(health), _leases(health), *_trends(health, columns)]
    rows += _beats("dispatcher", health.dispatchers, health.at)
    rows += _beats("reaper", health.reapers, health.at)
    return rows + _workers(health.workers, health.at)


def _depths(health: Health) -> list[SheetRow]:
    top = max((level.count for level in health.depth.values()), default=0)
    return [
        row(
            _label(f"{priority} waiting"[:LABEL]),
            f"{level!s:>8}  ",
            Piece(bar(level.count, top, BAR).rstrip(), Tone.BUSY),
            link=Link(place="runs", filter=f"state:ready prio:{priority}"),
            key=f"depth.{priority}",
        )
        for priority, level in health.depth.items()
    ]


def _leases(health: Health) -> SheetRow:
    expired = health.expired_leases
    tone = Tone.WARN if expired else Tone.MUTED
    return row(
        _label("running"),
        f"{health.leased!s:>8}  of {health.slots:,} slots",
        Piece(f" · {health.failed} wait to be retried", Tone.MUTED),
        Piece(f" · {expired:,} expired leases" if expired else "", tone),
        link=Link(place="runs", filter="state:leased"),
        key="running",
    )


def _trends(health: Health, columns: int) -> list[SheetRow]:
    if not health.minutes:
        return []
    rest = _spark_columns(columns, LABEL + 10 + 22)
    started = sum(one.started for one in health.minutes)
    ended = sum(one.done for one in health.minutes)
    return [
        row(_label("started"), f"{started:>8,}  ",
            Piece(sparkline([one.started for one in health.minutes], rest), Tone.MUTED),
            Piece("  in the last hour", Tone.MUTED), key="started"),
        row(_label("done"), f"{ended:>8,}  ",
            Piece(sparkline([one.done for one in health.minutes], rest), Tone.MUTED), key="done",
            link=Link(place="runs", filter="state:done")),
    ]  # fmt: skip


def _beats(what: str, beats: Sequence[Beat], now: datetime) -> list[SheetRow]:
    return [
        row(
            _label(what),
            f"{ago(one.at, now):>8}  ago",
            Piece(f" · lag {long(one.lag)}" if one.lag is not None else "", Tone.MUTED),
            Piece(f" · {one.name}", Tone.MUTED),
            Piece(f" · {one.note}" if one.note else "", Tone.MUTED),
            key=f"{what}.{one.name}",
        )
        for one in beats
    ]


def _workers(workers: Sequence[WorkerLine], now: datetime) -> list[SheetRow]:
    alive = [one for one in workers if one.open]
    if not alive:
        return [row(_label("workers"), Piece("none is alive", Tone.BAD), key="workers")]
    rows = [
        row(
            _label("worker"),
            f"{one.leased:>4}/{one.slots:<3}  {one.host}:{one.pid}",
            Piece(f" · queues {', '.join(one.queues)}", Tone.MUTED),
            Piece(f" · beat {ago(one.last_beat, now)} ago" if one.last_beat else "", Tone.MUTED),
            link=Link(place="runs", filter=f"worker:{one.session}"),
            key=f"worker.{one.session}",
        )
        for one in alive[:WORKERS_SHOWN]
    ]
    more = len(alive) - WORKERS_SHOWN
    return rows + ([row(_label(""), f"and {more:,} more", key="workers.more")] if more > 0 else [])


def _broken(health: Health, columns: int) -> list[SheetRow]:
    rest = _spark_columns(columns, LABEL + 10 + 40)
    rows = [
        row(
            _label("dead"),
            f"{health.dead!s:>8}  ",
            Piece(f"{health.dead_per_hour:,} in the last hour", Tone.MUTED),
            Piece(f" · {health.discarded} discarded  ", Tone.MUTED),
            Piece(sparkline([one.dead for one in health.minutes], rest), Tone.MUTED),
            link=Link(place="runs", filter="state:dead"),
            key="dead",
        )
    ]
    return rows + [_group(one, health.at) for one in health.top_groups]


def _group(group: ErrorGroup, now: datetime) -> SheetRow:
    tenants = len(group.tenants)
    return row(
        _label("  group"),
        f"{group.count!s:>8}  ",
        Piece(f"{ago(group.last_seen, now):>7} ago  ", Tone.MUTED),
        Piece(f"{tenants} tenant{'s' if tenants != 1 else ' '}  ", Tone.MUTED),
        group.error,
        link=Link(place="runs", filter=f"state:dead group:{group.signature}"),
        key=f"group.{group.signature}",
    )


def _hurt(tenants: Sequence[TenantLine], columns: int) -> list[SheetRow]:
    del columns
    if not tenants:
        return [row(_label("tenants"), Piece("none waits", Tone.MUTED), key="tenants")]
    head = f"{'waiting':>8}  {'running':>8}  {'dead':>6}  cap"
    rows = [row(_label("tenant"), Piece(head, Tone.MUTED), key="tenants")]
    for one in tenants:
        full = one.cap is not None and one.running >= one.cap
        cap = "–" if one.cap is None else f"{one.cap}"
        rows.append(
            row(
                pad(one.tenant, LABEL - 1) + " ",
                f"{one.waiting!s:>8}  {one.running:>8,}  {one.dead:>6,}  ",
                Piece(f"{cap} full" if full else cap, Tone.WARN if full else Tone.MUTED),
                link=Link(place="runs", filter=f"tenant:{one.tenant}"),
                key=f"tenant.{one.tenant}",
            )
        )
    return rows
