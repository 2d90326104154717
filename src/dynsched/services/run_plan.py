"""The plan of a search for runs: which states and instants can fit, and so where to read.

A plan follows from the filter and an instant alone. What it leaves out by default (ended runs of
long ago, discarded ones) it leaves out wherever rows come from, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dynsched.domain.filter_match import FIRST, Range, window
from dynsched.domain.filter_values import LAST
from dynsched.domain.filters import GROUPS, NAMED, WORD, Filter
from dynsched.domain.instants import to_text
from dynsched.domain.run import TERMINAL, Run, RunState

RECENT = timedelta(hours=1)
KEPT_MAX = timedelta(days=400)  # longer than any retention
LONGEST = timedelta(days=31)  # before an upper bound, where no lower one is given
ENDED = frozenset({RunState.DONE, RunState.SKIPPED, RunState.CANCELLED})


class Place(StrEnum):
    """Where runs are read, with the qualifiers that its keys answer."""

    IDS = "ids"
    HISTORY = "history"
    READY = "ready"
    LEASED = "leased"
    FAILED = "failed"
    DEAD = "dead"
    ENDED = "ended"


ANSWERS = {
    Place.IDS: frozenset({"id"}),
    Place.HISTORY: frozenset({"job", "sched"}),
    Place.READY: frozenset({"state", "tenant", "queue", "prio", "due"}),
    Place.LEASED: frozenset({"state", "worker"}),
    Place.FAILED: frozenset({"state", "due"}),
    Place.DEAD: frozenset({"state", "group", "dead", "ended"}),
    Place.ENDED: frozenset({"state", "ended"}),
}
IMPLIED: dict[str, frozenset[RunState]] = {
    "overdue": frozenset({RunState.READY}),
    "discarded": frozenset({RunState.DEAD}),
    "asked": frozenset({RunState.LEASED}),
    "stuck": frozenset({RunState.LEASED, RunState.READY}),
}
"""States outside of which a condition never holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Which runs can fit and where they lie.

    Attributes:
        states: that can fit.
        places: where to read.
        hidden: discarded runs may be shown.
        only_hidden: no others.
        by_schedule: the list is in the order of scheduled instants.
        ended: when runs may have ended otherwise than dead.
        dead: when dead runs may have died.
        due: when runs that wait or run may start, or might have started.
        sched: what they may be scheduled for.
        notes: what is left out by default.
        indexed: qualifiers that keys answer everywhere.
        tested: those that are tested row by row.
    """

    states: frozenset[RunState]
    places: tuple[Place, ...]
    hidden: bool
    only_hidden: bool
    by_schedule: bool
    ended: Range
    dead: Range
    due: Range
    sched: Range
    notes: tuple[str, ...]
    indexed: tuple[str, ...]
    tested: tuple[str, ...]

    def admits(self, run: Run) -> bool:
        """Return whether what the plan leaves out by default lets a run through."""
        if run.state not in self.states:
            return False
        if run.hidden and not self.hidden:
            return False
        if run.ended_at is None or self.by_schedule or Place.IDS in self.places:
            return True
        within = self.dead if run.state is RunState.DEAD else self.ended
        return within.holds(run.ended_at)


def plan_runs(found: Filter, now: datetime) -> RunPlan:
    """Return the plan of a search."""
    states = states_of(found)
    flags = [set(term.words) for term in found.asking("is")]
    ids = bool(found.asking("id"))
    places = _places(found, states, ids=ids)
    notes: list[str] = []
    whole = ids or Place.HISTORY in places
    ended = _ended_range(found, states, now, notes if not whole else [])
    dead = window(found, "dead", now).meet(window(found, "ended", now))
    if states & ENDED:
        dead = dead.meet(ended)
    indexed, tested = _answered(found, places)
    return RunPlan(
        states=states,
        places=places,
        hidden=ids or any("discarded" in words for words in flags),
        only_hidden=any(words == {"discarded"} for words in flags),
        by_schedule=Place.HISTORY in places,
        ended=ended,
        dead=dead,
        due=window(found, "due", now),
        sched=window(found, "sched", now),
        notes=tuple(notes),
        indexed=indexed,
        tested=tested,
    )


def states_of(found: Filter) -> frozenset[RunState]:
    """Return the states that runs can be in which fit a filter."""
    named = found.asking("state")
    states = set(RunState)
    for term in named:
        states &= {RunState(word) for word in term.words}
    for term in found.asking("state", negated=True):
        states -= {RunState(word) for word in term.words}
    dead_only = found.vocabulary is GROUPS or found.asking("dead")
    if dead_only or (found.asking("group") and not named):
        states &= {RunState.DEAD}
    if found.asking("ended"):
        states &= TERMINAL
    if found.asking("worker"):
        states &= {RunState.LEASED}
    for term in found.asking("is"):
        states &= {state for word in term.words for state in IMPLIED.get(word, frozenset(RunState))}
    return frozenset(states)


def _places(found: Filter, states: frozenset[RunState], *, ids: bool) -> tuple[Place, ...]:
    if ids:
        return (Place.IDS,)
    if found.asking("job") and states != {RunState.DEAD}:
        return (Place.HISTORY,)
    wanted = {
        Place.LEASED: RunState.LEASED in states,
        Place.READY: RunState.READY in states,
        Place.FAILED: RunState.FAILED in states,
        Place.DEAD: RunState.DEAD in states,
        Place.ENDED: bool(states & ENDED),
    }
    return tuple(place for place, want in wanted.items() if want)


def _ended_range(
    found: Filter, states: frozenset[RunState], now: datetime, notes: list[str]
) -> Range:
    """Return when runs may have ended, with a lower bound in any case."""
    asked = window(found, "ended", now)
    oldest = _before(now, KEPT_MAX)
    if asked.low > FIRST or not states & ENDED:
        return Range(max(asked.low, oldest), asked.high)
    others = [window(found, name, now).low for name in ("started", "sched", "due")]
    low = max(others)
    if low == FIRST:
        low = now - RECENT if asked.high == LAST else _before(asked.high, LONGEST)
    notes.append(
        f"of ended runs only those since {to_text(low)} were looked at"
        " (for example ended:>-1d goes further back)"
    )
    return Range(max(low, oldest), asked.high)


def _before(instant: datetime, span: timedelta) -> datetime:
    return instant - span if instant - FIRST > span else FIRST


def _answered(found: Filter, places: tuple[Place, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the qualifiers of a filter that keys answer, and those that are tested."""
    answers = frozenset.intersection(*(ANSWERS[place] for place in places)) if places else set()
    indexed: dict[str, None] = {}
    tested: dict[str, None] = {}
    for term in found.flat():
        shown = {WORD: "text", NAMED: f"@{','.join(term.words)}"}.get(term.name, term.name)
        by_key = term.name in answers and (not term.negated or term.name in ("state", "ended"))
        (indexed if by_key else tested)[shown] = None
    return tuple(one for one in indexed if one not in tested), tuple(tested)
