"""What looking costs: health and error groups over a store full of dead runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median

from bench.crowd import Crowd, fill
from bench.options import Options, say
from bench.report import Figure
from bench.stores import fresh
from dynsched.bootstrap import build_views, open_base
from dynsched.services.views import Views
from dynsched.storage.metering import MeteringEngine
from dynsched.storage.sqlite import SqliteEngine

ROUNDS = 5
LOOK_MOST_MS = 1_000.0
GROUPS_MOST_MS = 1_000.0
NOW = timedelta(0)


def _ms(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median of some calls, milliseconds."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return median(took) * 1_000


def _first(views: Callable[[], Views]) -> float:
    """Return how long a look takes that has no other before it."""
    began = time.perf_counter()
    views().health()
    return (time.perf_counter() - began) * 1_000


def measure(options: Options) -> list[Figure]:
    """Measure looks at tens of thousands of dead runs, by time on a file and by units."""
    dead = 5_000 if options.quick else 50_000
    say(f"triage: {dead:,} dead runs in 40 groups")
    opened = fresh(options.folder, "crowd")
    crowd = fill(base=opened.base, dead=dead)
    views = build_views(opened.base)
    first = _first(lambda: views)
    figures = [
        Figure(f"health, {dead:,} dead: first look", first, "ms", most=LOOK_MOST_MS),
        Figure(
            "health: a later look", _ms(lambda: views.health(NOW)), "ms", note="groups known by it"
        ),
        Figure(
            "health: a reader of the snapshot",
            _ms(lambda: build_views(opened.base).health(timedelta(hours=1))),
            "ms",
        ),
        Figure(f"groups, {dead:,} dead", _ms(views.groups), "ms", most=GROUPS_MOST_MS),
        Figure("one group", _ms(lambda: views.group(crowd.signatures[0])), "ms"),
    ]
    opened.close()
    return figures + _units(options, crowd)


def _units(options: Options, crowd: Crowd) -> list[Figure]:
    """Return what the same looks cost on DynamoDB."""
    meter = MeteringEngine(SqliteEngine(str(options.folder / "crowd.db")))
    views = build_views(open_base(environment={}, engine=meter))
    other = build_views(open_base(environment={}, engine=meter))
    looks: dict[str, Callable[[], object]] = {
        "look": lambda: views.health(NOW),
        "snapshot": lambda: other.health(timedelta(hours=1)),
        "groups": views.groups,
        "group": lambda: views.group(crowd.signatures[0]),
    }
    for label, look in looks.items():
        with meter.label(label):
            look()
    report = meter.report()
    meter.close()
    return [
        Figure(
            f"{name}: read units",
            report[label]["read"],
            "units",
            note=f"{sum(report[label]['requests'].values()):,} requests,"
            f" {report[label]['write']:.0f} units written; DynamoDB, computed",
        )
        for label, name in (
            ("look", "health, a later look"),
            ("snapshot", "health, a reader of the snapshot"),
            ("groups", "groups"),
            ("group", "one group"),
        )
    ]
