"""The places that an operator can go to: one line for each screen."""

from __future__ import annotations

from dataclasses import dataclass

from dynsched_console.screens.audit import AuditScreen
from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.screens.batch import BatchScreen
from dynsched_console.screens.dlq import DeadScreen, GroupsScreen
from dynsched_console.screens.job import JobScreen
from dynsched_console.screens.jobs import JobsScreen
from dynsched_console.screens.overview import OverviewScreen
from dynsched_console.screens.replays import EntriesScreen, ReplaysScreen
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
    Place(name="dlq", key="3", title="DLQ", screen=GroupsScreen),
    Place(name="jobs", key="4", title="Jobs", screen=JobsScreen),
    Place(name="tenants", key="5", title="Tenants", screen=TenantsScreen),
    Place(name="workers", key="6", title="Workers", screen=WorkersScreen),
    Place(name="replays", key="7", title="Replays", screen=ReplaysScreen),
    Place(name="audit", key="8", title="Audit", screen=AuditScreen),
)
"""In the order of their keys."""

Subject = (
    type[RunScreen]
    | type[JobScreen]
    | type[WhyScreen]
    | type[DeadScreen]
    | type[BatchScreen]
    | type[EntriesScreen]
)
SUBJECTS: dict[str, Subject] = {
    "run": RunScreen,
    "job": JobScreen,
    "why": WhyScreen,
    "dead": DeadScreen,
    "batch": BatchScreen,
    "entries": EntriesScreen,
}
"""Screens of one thing, by name; each is made with the thing's id, or with a filter."""
