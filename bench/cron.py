"""Cron: the cost of one schedule, from its text in a row to its next instant."""

from __future__ import annotations

import time
from datetime import timedelta

from bench.options import Options
from bench.report import Figure
from bench.simulated import MIDNIGHT
from dynsched.domain.recurrence import Cron, schedule_from_body

EXPRESSIONS = (
    ("* * * * *", "UTC"),
    ("*/5 8-18 * * 1-5", "Europe/Berlin"),
    ("30 2 * * *", "America/New_York"),
    ("0 0 29 2 *", "UTC"),
)


def _parse() -> Figure:
    """Parse expressions that this process has not seen before."""
    texts = [f"{minute} {hour} * * 1-5" for minute in range(60) for hour in range(24)]
    began = time.perf_counter()
    for text in texts:
        Cron.parse(text, zone="Europe/Berlin", key="job")
    took_s = time.perf_counter() - began
    return Figure("an expression not seen before: parse", took_s / len(texts) * 1e6, "µs")


def measure(options: Options) -> list[Figure]:
    """Decode a schedule whose text is known, and ask it for its next instant."""
    rounds = 200 if options.quick else 2_000
    figures = [_parse()]
    for text, zone in EXPRESSIONS:
        body = Cron.parse(text, zone=zone, key="job").to_body()
        schedule = schedule_from_body(body)
        began = time.perf_counter()
        for _ in range(rounds):
            schedule_from_body(body)
        decoded = time.perf_counter()
        for number in range(rounds):
            schedule.next_after(MIDNIGHT + timedelta(hours=number))
        stepped = time.perf_counter()
        name = f"{text!r} {zone}"
        figures.append(Figure(f"{name}: decode", (decoded - began) / rounds * 1e6, "µs"))
        figures.append(Figure(f"{name}: next_after", (stepped - decoded) / rounds * 1e6, "µs"))
    return figures
