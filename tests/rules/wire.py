"""Wires: a process's connection to the store, on which tests hang events and faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dynsched.storage.engine import Delete, Engine, Key, Page, PutNew, Query, Replace, Table, Write
from dynsched.testing.faults import Call, Fault, FaultyEngine

Match = Callable[[Call], bool]
Event = Callable[[], object]


@dataclass(slots=True)
class Snare:
    """An event that waits on a wire for its call."""

    match: Match
    event: Event | None
    fault: Fault
    times: int


class Wire(FaultyEngine):
    """One process's connection to the common store.

    Args:
        engine: the store.
        hidden: keys whose index entries are late: no query of an index shows them.

    Attributes:
        down: every call is refused, until this is False again.
    """

    def __init__(self, engine: Engine, hidden: set[Key]) -> None:
        super().__init__(engine, self._spring)
        self.down = False
        self._snares: list[Snare] = []
        self._hidden = hidden

    def before(
        self,
        match: Match,
        event: Event | None = None,
        *,
        fault: Fault = Fault.NONE,
        times: int = 1,
    ) -> None:
        """Let an event happen right before a call that matches; then a fault of the call.

        Args:
            match: which call.
            event: what happens.
            fault: what becomes of the call.
            times: for so many matching calls; one call is sent six times before it is given up.
        """
        self._snares.append(Snare(match, event, fault, times))

    def after(self, match: Match, event: Event) -> None:
        """Let an event happen once, before the call that follows a matching one."""
        self.before(match, lambda: self.before(lambda _: True, event))

    def break_down(self) -> None:
        """Let the store refuse every call of this process."""
        self.down = True

    def die(self) -> None:
        """Kill the process: no call of it reaches the store any more."""
        self.crashed = True

    @property
    def sprung(self) -> bool:
        """Return whether everything that was hung here has happened."""
        return not self._snares

    def _spring(self, call: Call) -> Fault:
        faults = []
        for snare in [snare for snare in self._snares if snare.match(call)]:
            snare.times -= 1
            if not snare.times:
                self._snares.remove(snare)
            if snare.event is not None:
                snare.event()
            if snare.fault is not Fault.NONE:
                faults.append(snare.fault)
        if faults:
            return faults[0]
        return Fault.UNAVAILABLE if self.down else Fault.NONE

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page; an index does not show what is hidden."""
        page = super().query(query, cursor)
        if not query.index or not self._hidden:
            return page
        return Page([row for row in page.rows if row.key not in self._hidden], page.cursor)

    def count(self, query: Query, most: int) -> int:
        """Count rows; an index does not count what is hidden."""
        if not query.index or not self._hidden:
            return super().count(query, most)
        page = self.query(replace(query, limit=max(most, 1) + len(self._hidden)))
        return min(len(page.rows), most)


def claims(call: Call) -> bool:
    """Match the write that leases runs."""
    return any(_run_state(write) == "leased" and not _marked(write) for write in call.writes)


def leaves_lease(call: Call) -> bool:
    """Match the write that moves runs to another state than leased."""
    return any(
        isinstance(write, Replace) and _run_state(write) not in ("", "leased")
        for write in call.writes
    )


def makes_runs(call: Call) -> bool:
    """Match the write that creates occurrences."""
    return any(isinstance(write, PutNew) and _run_state(write) == "ready" for write in call.writes)


def advances(call: Call) -> bool:
    """Match the write that replaces a job."""
    return any(
        isinstance(write, Replace) and write.key.table is Table.JOBS for write in call.writes
    )


def takes_permit(call: Call) -> bool:
    """Match the write of a permit."""
    return any(write.key.pk.startswith("permit#") for write in call.writes)


def reads_permits(call: Call) -> bool:
    """Match the read of permits."""
    return not call.writes and any(key.pk.startswith("permit#") for key in call.keys)


def writes_session(call: Call) -> bool:
    """Match a write of a session's row."""
    return any(write.key.pk == "sessions" for write in call.writes)


def reads_jobs(call: Call) -> bool:
    """Match the strong read of jobs that a look makes."""
    return call.method == "get_many" and any(key.table is Table.JOBS for key in call.keys)


def reads_leased(call: Call) -> bool:
    """Match the query of a session's partition."""
    return call.query is not None and call.query.partition.startswith("leased#")


def reads_rows(call: Call) -> bool:
    """Match the read of a page of all rows, as the daily sweep makes them."""
    return call.method == "scan"


def any_call(_: Call) -> bool:
    """Match the next call, whichever."""
    return True


def _run_state(write: Write) -> str:
    """Return the state in which a write leaves a run, "" if it is about something else."""
    if isinstance(write, Delete) or write.key.table is not Table.RUNS:
        return ""
    return str(write.row.body.get("s", ""))


def _marked(write: Write) -> bool:
    assert not isinstance(write, Delete)
    return bool(write.row.body.get("c") or write.row.body.get("wa"))
