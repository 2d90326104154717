"""The places that an operator can go to: one line for each screen."""

from __future__ import annotations

from dataclasses import dataclass

from dynsched_console.screens.audit import AuditScreen
from dynsched_console.screens.base import ConsoleScreen, SubjectScreen
from dynsched_console.screens.job import JobScreen
from dynsched_console.screens.jobs import JobsScreen
from dynsched_console.screens.overview import OverviewScreen
from dynsched_console.screens.run import RunScreen
from dynsched_console.screens.runs import RunsScreen
from dynsched_console.screens.tenants import TenantsScreen
from dynsched_console.screens.why import WhyScreen
from dynsched_console.screens.workers import WorkersScreen


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A screen with a key and a name of its own.

    Attributes:
        name: what `:` goes to.
        key: the key that leads there.
        title: as the header shows it.
        screen: its class.
    """

    name: str
    key: str
    title: str
    screen: type[ConsoleScreen]


PLACES = (
    Place(name="overview", key="1", title="Overview", screen=OverviewScreen),
    Place(name="runs", key="2", title="Runs", screen=RunsScreen),
    Place(name="jobs", key="4", title="Jobs", screen=JobsScreen),
    Place(name="tenants", key="5", title="Tenants", screen=TenantsScreen),
    Place(name="workers", key="6", title="Workers", screen=WorkersScreen),
    Place(name="audit", key="8", title="Audit", screen=AuditScreen),
)
"""In the order of their keys."""

SUBJECTS: dict[str, type[SubjectScreen]] = {
    "run": RunScreen,
    "job": JobScreen,
    "why": WhyScreen,
}
"""Screens of one thing, by name; each is made with the thing's id."""
