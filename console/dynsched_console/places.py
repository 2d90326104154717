"""The places that an operator can go to: one line for each screen."""

from __future__ import annotations

from dataclasses import dataclass

from dynsched_console.screens.base import ConsoleScreen
from dynsched_console.screens.batch import BatchScreen
from dynsched_console.screens.dlq import DeadScreen, GroupsScreen
from dynsched_console.screens.overview import OverviewScreen
from dynsched_console.screens.replays import EntriesScreen, ReplaysScreen
from dynsched_console.screens.run import RunScreen
from dynsched_console.screens.runs import RunsScreen


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
    Place(name="replays", key="7", title="Replays", screen=ReplaysScreen),
)
"""In the order of their keys."""

Subject = type[RunScreen] | type[DeadScreen] | type[BatchScreen] | type[EntriesScreen]
SUBJECTS: dict[str, Subject] = {
    "run": RunScreen,
    "dead": DeadScreen,
    "batch": BatchScreen,
    "entries": EntriesScreen,
}
"""Screens of one thing, by name; each is made with the thing's id, or with a filter."""
