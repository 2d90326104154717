"""Health: the state of a store for all who look, made by one reader for the others."""

from __future__ import annotations

from dynsched.domain.health import (
    Beat,
    Cost,
    Delay,
    ErrorGroup,
    Grade,
    Health,
    Level,
    MinutePoint,
    OldestDue,
    TenantLine,
    Topic,
    Verdict,
    WorkerLine,
)

__all__ = [
    "Beat",
    "Cost",
    "Delay",
    "ErrorGroup",
    "Grade",
    "Health",
    "Level",
    "MinutePoint",
    "OldestDue",
    "TenantLine",
    "Topic",
    "Verdict",
    "WorkerLine",
]
