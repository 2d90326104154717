"""The list of worker sessions: where they run, what they hold, when they were last heard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.filters import WORKERS
from dynsched.domain.health import WorkerLine
from dynsched.domain.time_words import distance, stamp
from dynsched.services.search import Found
from dynsched.services.worker_views import worker_state
from dynsched_console.charts import bar
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import command_line
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import Line, Piece, ago, line
from dynsched_console.themes import Tone

BAR = 12
STATES = {
    "alive": ("A", Tone.GOOD),
    "expired": ("E", Tone.BAD),
    "closed": ("C", Tone.MUTED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A session, and when it was looked at."""

    worker: WorkerLine
    at: datetime


def _state(row: WorkerRow) -> Piece:
    name = worker_state(row.worker, row.at)
    letter, tone = STATES[name]
    return Piece(f"{letter} {name}", tone)


def _load(row: WorkerRow) -> Piece:
    """Return the leases in the slots as a figure and a bar."""
    one = row.worker
    words = f"{one.leased:>4}/{one.slots:<4} "
    tone = Tone.WARN if one.leased >= one.slots > 0 else Tone.BUSY
    return Piece(words + bar(one.leased, max(one.slots, 1), BAR).rstrip(), tone)


def _beat(row: WorkerRow) -> Piece:
    expired = worker_state(row.worker, row.at) == "expired"
    return Piece(ago(row.worker.last_beat, row.at), Tone.BAD if expired else Tone.PLAIN)


COLUMNS: tuple[Column[WorkerRow], ...] = (
    Column(name="state", letter="s", title="STATE", columns=9, cell=_state,
           sort=lambda row: worker_state(row.worker, row.at)),
    Column(name="host", letter="h", title="HOST", columns=14, stretch=True,
           cell=lambda row: Piece(row.worker.host)),
    Column(name="pid", letter="p", title="PID", columns=7, right=True, rank=3,
           cell=lambda row: Piece(str(row.worker.pid), Tone.MUTED),
           sort=lambda row: row.worker.pid),
    Column(name="load", letter="l", title="LEASED/SLOTS", columns=BAR + 10, cell=_load,
           sort=lambda row: row.worker.leased),
    Column(name="beat", letter="b", title="HEARD", columns=8, right=True, cell=_beat,
           sort=lambda row: row.worker.last_beat),
    Column(name="queues", letter="q", title="QUEUES", columns=14, rank=2,
           cell=lambda row: Piece(", ".join(row.worker.queues), Tone.MUTED)),
    Column(name="session", letter="i", title="SESSION", columns=20, rank=4,
           cell=lambda row: Piece(row.worker.session, Tone.MUTED)),
)  # fmt: skip


class WorkersScreen(ListScreen[WorkerRow]):
    """Sessions by a filter, open ones first."""

    name_of_place = "workers"
    columns = COLUMNS
    problems = "is:expired,closed"
    vocabulary = WORKERS

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[WorkerRow]:
        """Read the sessions; there is one page."""
        del cursor, limit
        found = self.source.find_workers(text)
        now = self.source.now()
        return mapped(found, tuple(WorkerRow(worker=one, at=now) for one in found.items))

    def key(self, item: WorkerRow) -> str:
        """Return the session's id."""
        return item.worker.session

    def open_item(self, item: WorkerRow) -> None:
        """Open the runs that it holds."""
        self.desk.visit(Link(place="runs", filter=f"state:leased worker:{item.worker.session}"))

    def empty(self) -> str:
        """Return what to say where there is no session."""
        if self.filter == self.problems:
            return "no worker is expired, and none that has gone holds runs"
        if self.filter:
            return "no worker fits this filter (/ changes it)"
        return "no worker is there (`dynsched worker --help` shows how to start one)"

    def detail(self, item: WorkerRow) -> list[Line]:
        """Return the session in a few lines."""
        one = item.worker
        return [
            line(_state(item), "  ", Piece(f"{one.host}:{one.pid}", Tone.STRONG),
                 Piece(f"  {one.session}", Tone.MUTED)),
            line(Piece("holds   ", Tone.MUTED), f"{one.leased} runs in {one.slots} slots"),
            line(Piece("queues  ", Tone.MUTED), ", ".join(one.queues)),
            line(Piece("heard   ", Tone.MUTED), f"{stamp(one.last_beat)}",
                 Piece(f"  {distance(one.last_beat, item.at)}", Tone.MUTED)),
            line(Piece("lease   ", Tone.MUTED), f"until {stamp(one.expires_at)}",
                 Piece(f"  {distance(one.expires_at, item.at)}", Tone.MUTED)),
        ]  # fmt: skip

    def copies_of(self, item: WorkerRow) -> list[Copy]:
        """Return what can be copied of a session."""
        one = item.worker
        return [
            Copy("session", one.session),
            Copy("host", one.host),
            Copy("command", command_line("run", "list", f"worker:{one.session}")),
        ]
