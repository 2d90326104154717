"""Overview: is it on time, is it stuck, is it broken, who is hurt; every figure leads on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flask import Blueprint

from dynsched.domain.filters import GROUPS
from dynsched.domain.health import ErrorGroup, Health, MinutePoint, Topic
from dynsched.domain.time_words import span
from dynsched_web.charts import Chart, Series, bar_chart, line_chart
from dynsched_web.desk import access, health, read
from dynsched_web.scope import scoped
from dynsched_web.showing import show, wishes

pages = Blueprint("overview", __name__)

QUESTIONS = (
    (Topic.LATE, "Is it on time?"),
    (Topic.STUCK, "Is it stuck?"),
    (Topic.BROKEN, "Is it broken?"),
    (Topic.HURT, "Who is hurt?"),
)
TABLE_MINUTES = 60
GROUPS_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one visitor sees of the health: all of it, or what concerns no other tenant.

    Attributes:
        whole: nothing is left out.
        groups: error groups, those with most runs first.
    """

    health: Health
    whole: bool
    groups: Sequence[ErrorGroup]


@pages.get("/")
def show_overview() -> Any:
    """Show the state of the store."""
    found = health()
    tenant = access().tenant
    groups: Sequence[ErrorGroup] = found.top_groups
    if tenant is not None:
        only = scoped("", GROUPS, access())
        groups = read(
            ("overview", tenant), lambda views: views.groups(only, limit=GROUPS_SHOWN).items
        )
    seen = Seen(health=found, whole=tenant is None, groups=groups[:GROUPS_SHOWN])
    lines = [line for line in found.top_tenants if tenant in (None, line.tenant)]
    return show(
        "overview.html",
        "_overview.html",
        seen=seen,
        health=found,
        tenants=lines,
        questions=QUESTIONS,
        charts_shown=charts_of(found),
    )


def charts_of(found: Health) -> Sequence[Chart]:
    """Return the four charts of a health."""
    minutes = found.minutes[-60:]
    labels = [f"{wishes().local(one.at):%H:%M}" for one in minutes]
    return (
        _delays(found, minutes, labels),
        _depth(found),
        _flow(minutes, labels),
        _deaths(found, minutes, labels),
    )


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _words(value: timedelta | None) -> str:
    return "–" if value is None else span(value)


def _delays(found: Health, minutes: Sequence[MinutePoint], labels: Sequence[str]) -> Chart:
    now = found.delay
    caption = (
        f"p50 {_words(now.p50)}, p95 {_words(now.p95)}, max {_words(now.max)} of"
        f" {now.samples:,} starts in 5 minutes"
        if now.samples
        else "no start in the last 5 minutes"
    )
    series = (
        Series(name="p50", tone="c1", values=[_seconds(one.delay_p50) for one in minutes]),
        Series(name="p95", tone="c0", values=[_seconds(one.delay_p95) for one in minutes]),
    )
    return Chart(
        title="Scheduling delay, seconds",
        caption=caption,
        svg=line_chart("Scheduling delay", caption, series, labels),
        series=series,
        head=("minute", "p50", "p95", "max"),
        rows=[
            (label, _words(one.delay_p50), _words(one.delay_p95), _words(one.delay_max))
            for label, one in reversed(list(zip(labels, minutes, strict=True)))
        ],
    )


def _depth(found: Health) -> Chart:
    names = list(found.depth)
    values = [float(found.depth[name].count) for name in names]
    caption = ", ".join(f"{found.depth[name]} {name}" for name in names) or "nothing waits"
    series = (Series(name="due and waiting", tone="c2", values=values),)
    return Chart(
        title="Depth per priority, runs",
        caption=caption,
        svg=bar_chart("Depth per priority", caption, series, names),
        series=series,
        head=("priority", "due and waiting"),
        rows=[(name, str(found.depth[name])) for name in names],
    )


def _flow(minutes: Sequence[MinutePoint], labels: Sequence[str]) -> Chart:
    series = (
        Series(name="started", tone="c1", values=[float(one.started) for one in minutes]),
        Series(name="done", tone="c4", values=[float(one.done) for one in minutes]),
        Series(name="failed", tone="c3", values=[float(one.failed + one.dead) for one in minutes]),
    )
    recent = minutes[-6:]
    caption = (
        f"in 5 minutes {sum(one.started for one in recent):,} started,"
        f" {sum(one.done for one in recent):,} done,"
        f" {sum(one.failed + one.dead for one in recent):,} failed"
    )
    return Chart(
        title="Starts and ends, runs a minute",
        caption=caption,
        svg=line_chart("Starts and ends", caption, series, labels),
        series=series,
        head=("minute", "started", "done", "failed", "dead"),
        rows=[
            (label, f"{one.started:,}", f"{one.done:,}", f"{one.failed:,}", f"{one.dead:,}")
            for label, one in reversed(list(zip(labels, minutes, strict=True)))
        ],
    )


def _deaths(found: Health, minutes: Sequence[MinutePoint], labels: Sequence[str]) -> Chart:
    series = (Series(name="died", tone="c3", values=[float(one.dead) for one in minutes]),)
    caption = f"{found.dead_per_hour:,} died within an hour; {found.dead} are dead"
    return Chart(
        title="Dead-letter growth, runs a minute",
        caption=caption,
        svg=bar_chart("Dead-letter growth", caption, series, labels),
        series=series,
        head=("minute", "died"),
        rows=[
            (label, f"{one.dead:,}")
            for label, one in reversed(list(zip(labels, minutes, strict=True)))
        ],
    )
