"""Probes: what machines ask of a console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from flask import Blueprint, Response

from dynsched.domain.health import Health
from dynsched.errors import DynschedError
from dynsched_web.desk import access, desk, health
from dynsched_web.scope import check_whole

pages = Blueprint("probes", __name__)

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
GRADES = {"ok": 0, "warn": 1, "bad": 2}


@pages.get("/healthz")
def healthz() -> Response:
    """Say that the process answers; it asks nothing of the store."""
    return Response("ok\n", mimetype="text/plain")


@pages.get("/readyz")
def readyz() -> Response:
    """Say whether the store answers."""
    try:
        health()
    except DynschedError:
        return Response("the store does not answer\n", 503, mimetype="text/plain")
    return Response("ready\n", mimetype="text/plain")


@pages.get("/metrics")
def metrics() -> Response:
    """Return the health for Prometheus; without names of tenants, which may be many."""
    if not desk().config.open_metrics:
        check_whole(access())
    return Response("".join(metric_lines(health())), content_type=TEXT_FORMAT)


def _metric(
    name: str, what: str, values: Mapping[str, float | None], label: str = ""
) -> Iterator[str]:
    """Yield a gauge with its values; a value that is not known is left out."""
    yield f"# HELP dynsched_{name} {what}\n# TYPE dynsched_{name} gauge\n"
    for key, value in values.items():
        if value is not None:
            labels = f'{{{label}="{_escaped(key)}"}}' if label else ""
            yield f"dynsched_{name}{labels} {value:g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _s(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def metric_lines(found: Health) -> Iterator[str]:
    """Yield a health as lines of Prometheus' text format; durations in seconds."""
    delay = found.delay
    delays = {"0.5": _s(delay.p50), "0.95": _s(delay.p95), "1": _s(delay.max)}
    yield from _metric("start_delay_seconds", "Scheduling delay, 5 min.", delays, "quantile")
    yield from _metric("start_delay_samples", "Starts measured.", {"": delay.samples})
    depth = {name: float(level.count) for name, level in found.depth.items()}
    yield from _metric("due_runs", "Runs that are due and wait.", depth, "priority")
    queues = {name: float(level.count) for name, level in found.queues.items()}
    yield from _metric("queue_due_runs", "The same by queue.", queues, "queue")
    oldest = {name: _s(found.at - one.since) for name, one in found.oldest_due.items()}
    yield from _metric("oldest_due_seconds", "Wait of the oldest due run.", oldest, "queue")
    states: dict[str, float | None] = {
        name: float(getattr(found, name).count)
        for name in ("ready", "leased", "failed", "dead", "discarded")
    }
    yield from _metric("runs", "Runs, each counted to a bound.", states, "state")
    yield from _metric("dead_last_hour", "Died within an hour.", {"": found.dead_per_hour})
    yield from _metric("expired_leases", "Leases to take back.", {"": found.expired_leases})
    sessions: dict[str, float | None] = {k: float(v) for k, v in found.sessions.items()}
    yield from _metric("sessions", "Worker sessions.", sessions, "state")
    yield from _metric("slots", "Handlers that may run at once.", {"": found.slots})
    lags = {kind: _s(lag) for kind, lag in found.cursor_lags.items()}
    yield from _metric("cursor_lag_seconds", "Lag of the slowest cursor.", lags, "kind")
    grades: dict[str, float | None] = {}
    for verdict in found.verdicts:
        grade = float(GRADES[verdict.level.value])
        grades[verdict.topic.value] = max(grade, grades.get(verdict.topic.value) or 0.0)
    yield from _metric("verdict", "0 ok, 1 warn, 2 bad.", grades, "topic")
    yield from _metric("health_age_seconds", "Age of these figures.", {"": _s(found.age)})
