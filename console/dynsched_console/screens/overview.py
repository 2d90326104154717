"""The overview: is it on time, is it stuck, is it broken, who is hurt; every line leads on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from dynsched_console.text import Piece, ago, long, pad, sentence_lines
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
    Topic.BROKEN: Link(place="dlq"),
    Topic.HURT: Link(place="runs", filter="state:dead"),
}
LABEL = 15  # columns of the words at the left
VALUE = 8  # columns of the figure behind them
WORKERS_SHOWN = 8
CHART_MAX = 60
NOTE = 30  # columns that the words behind a chart need


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
            *self._verdicts(answer.verdicts, columns),
            SheetRow(),
            *_late(answer, columns),
            SheetRow(),
            *_stuck(answer, columns),
            SheetRow(),
            *_broken(answer, columns),
            SheetRow(),
            *_hurt(answer.top_tenants),
        ]

    def _verdicts(self, verdicts: Sequence[Verdict], columns: int) -> list[SheetRow]:
        found: list[SheetRow] = []
        before: Topic | None = None
        for number, one in enumerate(verdicts):
            words, tone = VERDICTS[one.level]
            question = QUESTIONS[one.topic] if one.topic is not before else ""
            before = one.topic
            sentences = sentence_lines(one.sentence, columns - LABEL - 6)
            for place, part in enumerate(sentences):
                first = place == 0
                found.append(
                    row(
                        Piece(pad(question if first else "", LABEL), Tone.STRONG),
                        Piece(f"{words}  " if first else " " * 6, tone),
                        part,
                        link=LEADS[one.topic] if first else None,
                        key=f"verdict.{one.topic}.{number}.{place}",
                    )
                )
        return found


def _line(
    words: str,
    value: str,
    *rest: Piece | str,
    key: str,
    link: Link | None = None,
    tone: Tone = Tone.PLAIN,
) -> SheetRow:
    """Return a line of the grid: words, a figure at the right of its column, the rest."""
    figure = Piece(pad(value, VALUE, right=True) + "  ", tone)
    return row(Piece(pad(words, LABEL), Tone.MUTED), figure, *rest, key=key, link=link)


def _muted(*words: str) -> Piece:
    return Piece(" · ".join(filter(None, words)), Tone.MUTED)


def _chart_columns(columns: int) -> int:
    return max(min(columns - LABEL - VALUE - 2 - NOTE, CHART_MAX), 10)


def _trend(values: Sequence[float | None], columns: int) -> Piece:
    """Return a line of bars over the last hour, with the gap behind it."""
    size = _chart_columns(columns)
    return Piece(pad(sparkline(values, size), size) + "  ", Tone.BUSY)


def _late(health: Health, columns: int) -> list[SheetRow]:
    delay = health.delay
    figures = _muted(
        f"p50 {long(delay.p50)}", f"max {long(delay.max)}", f"{delay.samples:,} starts"
    )
    trend = _trend([_seconds(one.delay_p95) for one in health.minutes], columns)
    late = Link(place="runs", filter="@late")
    rows = [_line("delay p95", long(delay.p95), trend, figures, link=late, key="delay")]
    if not health.oldest_due:
        rows.append(_line("oldest due", "–", _muted("nothing that is due waits"), key="oldest"))
    for queue, oldest in sorted(health.oldest_due.items()):
        link = Link(place="run", subject=oldest.run_id)
        words = _muted(f"queue {queue}", f"priority {oldest.priority}")
        lack = Piece(f" · {oldest.lack}" if oldest.lack else "", Tone.WARN)
        age = ago(oldest.since, health.at)
        rows.append(_line("oldest due", age, words, lack, link=link, key=f"oldest.{queue}"))
    return rows


def _seconds(delay: timedelta | None) -> float | None:
    return None if delay is None else delay.total_seconds()


def _stuck(health: Health, columns: int) -> list[SheetRow]:
    return [
        *_depths(health, columns),
        _leases(health, columns),
        *_trends(health, columns),
        *_beats("dispatcher", health.dispatchers, health.at),
        *_beats("reaper", health.reapers, health.at),
        *_workers(health.workers, health.at),
    ]


def _depths(health: Health, columns: int) -> list[SheetRow]:
    # As many as there are slots are no backlog, so one waiting run draws no full bar.
    top = max(health.slots, *(level.count for level in health.depth.values()), 1)
    return [
        _line(
            f"waits {priority}",
            str(level),
            Piece(bar(level.count, top, _chart_columns(columns)).rstrip(), Tone.BUSY),
            link=Link(place="runs", filter=f"state:ready prio:{priority}"),
            key=f"depth.{priority}",
        )
        for priority, level in health.depth.items()
    ]


def _leases(health: Health, columns: int) -> SheetRow:
    size = _chart_columns(columns)
    drawn = bar(health.in_slots, max(health.slots, 1), size)
    functions = health.leased_by_functions
    by_functions = f"{functions} by functions" if functions.count else ""
    expired = f" · {health.expired_leases:,} expired" if health.expired_leases else ""
    return _line(
        "running",
        str(health.leased),
        Piece(drawn + "  ", Tone.BUSY),
        _muted(f"of {health.slots:,} slots", by_functions, f"{health.failed} to be retried"),
        Piece(expired, Tone.WARN),
        link=Link(place="runs", filter="state:leased"),
        key="running",
    )


def _trends(health: Health, columns: int) -> list[SheetRow]:
    minutes = health.minutes
    started, done = [one.started for one in minutes], [one.done for one in minutes]
    return [
        _line("started", f"{sum(started):,}", _trend(started, columns), _muted("in the last hour"),
              key="started"),
        _line("done", f"{sum(done):,}", _trend(done, columns), key="done",
              link=Link(place="runs", filter="state:done")),
    ]  # fmt: skip


def _beats(what: str, beats: Sequence[Beat], now: datetime) -> list[SheetRow]:
    return [
        _line(
            what,
            ago(one.at, now),
            _muted(
                "ago", f"lag {long(one.lag)}" if one.lag is not None else "", one.name, one.note
            ),
            key=f"{what}.{one.name}",
        )
        for one in beats
    ]


def _workers(workers: Sequence[WorkerLine], now: datetime) -> list[SheetRow]:
    alive = [one for one in workers if one.open]
    if not alive:
        return [_line("workers", "none", tone=Tone.BAD, key="workers")]
    rows = [
        _line(
            "worker",
            f"{one.leased}/{one.slots}",
            f"{one.host}:{one.pid}",
            _muted(f"  queues {', '.join(one.queues)}", f"beat {ago(one.last_beat, now)} ago"),
            link=Link(place="runs", filter=f"worker:{one.session}"),
            key=f"worker.{one.session}",
        )
        for one in alive[:WORKERS_SHOWN]
    ]
    more = len(alive) - WORKERS_SHOWN
    return rows + ([_line("", "", f"and {more:,} more", key="workers.more")] if more > 0 else [])


def _broken(health: Health, columns: int) -> list[SheetRow]:
    dead = _line(
        "dead",
        str(health.dead),
        _trend([one.dead for one in health.minutes], columns),
        _muted(f"{health.dead_per_hour:,} in the last hour", f"{health.discarded} discarded"),
        link=Link(place="dlq"),
        key="dead",
        tone=Tone.BAD if health.dead.count else Tone.PLAIN,
    )
    return [dead, *(_group(one, health.at) for one in health.top_groups)]


def _group(group: ErrorGroup, now: datetime) -> SheetRow:
    return _line(
        "  of one error",
        str(group.count),
        Piece(pad(f"{ago(group.last_seen, now)} ago", 11) + "  ", Tone.MUTED),
        group.error,
        link=Link(place="dead", subject=f"group:{group.signature}"),
        key=f"group.{group.signature}",
    )


def _hurt(tenants: Sequence[TenantLine]) -> list[SheetRow]:
    if not tenants:
        return [_line("tenants", "–", _muted("none has anything to wait for"), key="tenants")]
    head = f"{'running':>8}  {'died':>6}  cap"
    rows = [_line("tenant", "waiting", Piece(head, Tone.MUTED), key="tenants", tone=Tone.MUTED)]
    for one in tenants:
        full = one.cap is not None and one.running >= one.cap
        cap = "–" if one.cap is None else f"{one.cap}"
        rows.append(
            row(
                pad(one.tenant, LABEL - 1) + " ",
                pad(str(one.waiting), VALUE, right=True),
                f"  {one.running:>8,}  {one.dead:>6,}  ",
                Piece(f"{cap} full" if full else cap, Tone.WARN if full else Tone.MUTED),
                link=Link(place="runs", filter=f"tenant:{one.tenant}"),
                key=f"tenant.{one.tenant}",
            )
        )
    return rows
