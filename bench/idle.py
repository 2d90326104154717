"""Idle: the CPU of everything in one process, with nothing to do."""

from __future__ import annotations

from datetime import timedelta

from bench.options import Options, say
from bench.processes import Process
from bench.report import Figure
from bench.stores import fresh, spec
from dynsched.services.specs import AtSpec

JOBS = 10_000
SETTLE_S = 5.0
SPAN_S = 60.0
SHARE_MOST = 0.2  # per cent of a core


def measure(options: Options) -> list[Figure]:
    """Measure the CPU seconds of a minute, jobs stored for tomorrow."""
    span_s = 20.0 if options.quick else SPAN_S
    say(f"idle: {JOBS:,} jobs for tomorrow, {span_s:g} s")
    opened = fresh(options.folder, "idle")
    tomorrow = AtSpec(at=opened.base.clock.now() + timedelta(days=1))
    opened.copies(opened.operations.check(spec("tomorrow", tomorrow)), JOBS)
    roles = ["dispatcher", "reaper", "worker"]
    out = options.folder / "idle"
    with Process(opened.url, out, roles, settle_s=SETTLE_S, span_s=span_s) as all_in_one:
        used_s = all_in_one.wait_end(SETTLE_S + span_s + 30).idle_cpu_s
    opened.close()
    return [
        Figure(
            "share of a core",
            used_s / span_s * 100,
            "%",
            most=SHARE_MOST,
            note="dispatcher, reaper and worker in one process",
        ),
        Figure("CPU of a minute", used_s / span_s * 60, "s"),
    ]
