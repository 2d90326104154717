"""The audit: who did what to what, when, why and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.audit import AuditEntry, AuditOutcome
from dynsched.domain.filters import AUDIT, term_text
from dynsched.domain.time_words import distance, stamp
from dynsched.services.documents import audit_document
from dynsched.services.search import Found
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import command_line
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import Line, Piece, line
from dynsched_console.themes import Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """An entry, and when it was looked at."""

    entry: AuditEntry
    at: datetime


OUTCOMES = {
    AuditOutcome.BEGUN: ("b", Tone.WARN),
    AuditOutcome.DONE: ("D", Tone.GOOD),
    AuditOutcome.FAILED: ("F", Tone.WARN),
    AuditOutcome.REFUSED: ("R", Tone.BAD),
}


def opened(target: str) -> Link | None:
    """Return where what was changed is shown; None for the store itself.

    >>> opened("tenant:acme")
    Link(place='tenants', filter='tenant:acme', subject='')
    """
    kind, _, name = target.partition(":")
    if kind == "tenant":
        return Link(place="tenants", filter=f"tenant:{name}")
    return Link(place=kind, subject=name) if name else None


def _outcome(one: AuditEntry) -> Piece:
    letter, tone = OUTCOMES[one.outcome]
    return Piece(f"{letter} {one.outcome.value}", tone)


def _words(one: AuditEntry) -> Piece:
    return Piece(" · ".join(filter(None, (one.reason, one.note))))


COLUMNS: tuple[Column[AuditRow], ...] = (
    Column(name="when", letter="a", title="WHEN", columns=11, right=True,
           cell=lambda row: Piece(distance(row.entry.at, row.at)),
           sort=lambda row: row.entry.at),
    Column(name="at", letter="e", title="AT", columns=20, rank=4,
           cell=lambda row: Piece(stamp(row.entry.at), Tone.MUTED),
           sort=lambda row: row.entry.at),
    Column(name="actor", letter="w", title="ACTOR", columns=12,
           cell=lambda row: Piece(row.entry.actor)),
    Column(name="action", letter="c", title="ACTION", columns=13,
           cell=lambda row: Piece(row.entry.action.value)),
    Column(name="outcome", letter="o", title="OUTCOME", columns=9,
           cell=lambda row: _outcome(row.entry)),
    Column(name="words", letter="y", title="REASON · NOTE", columns=18, stretch=True,
           cell=lambda row: _words(row.entry)),
    Column(name="target", letter="t", title="TARGET", columns=20, rank=3,
           cell=lambda row: Piece(row.entry.target, Tone.MUTED)),
    Column(name="tenant", letter="n", title="TENANT", columns=10, rank=5,
           cell=lambda row: Piece(row.entry.tenant, Tone.MUTED)),
    Column(name="via", letter="v", title="VIA", columns=7, rank=6,
           cell=lambda row: Piece(row.entry.via, Tone.MUTED)),
    Column(name="role", letter="r", title="ROLE", columns=8, wide=True, rank=7,
           cell=lambda row: Piece(row.entry.role.value, Tone.MUTED)),
)  # fmt: skip


class AuditScreen(ListScreen[AuditRow]):
    """Entries by a filter, the newest first."""

    name_of_place = "audit"
    columns = COLUMNS
    problems = "-outcome:done"
    vocabulary = AUDIT

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[AuditRow]:
        """Read one page of entries."""
        found = self.source.audit(text, limit=limit, cursor=cursor)
        now = self.source.now()
        return mapped(found, tuple(AuditRow(entry=one, at=now) for one in found.items))

    def key(self, item: AuditRow) -> str:
        """Return the entry's id."""
        return item.entry.entry_id

    def open_item(self, item: AuditRow) -> None:
        """Open what it was done to."""
        link = opened(item.entry.target)
        if link is None:
            self.notify("the whole store was meant; there is no screen of it", markup=False)
        else:
            self.desk.visit(link)

    def empty(self) -> str:
        """Return what to say where there is no entry."""
        if self.filter:
            return "no entry fits this filter (/ changes it)"
        return "nobody has changed anything yet"

    def detail(self, item: AuditRow) -> list[Line]:
        """Return the entry whole."""
        one = item.entry
        details = [
            line(Piece(f"{name[:10]:<10} ", Tone.MUTED), value)
            for name, value in one.details.items()
        ]
        return [
            line(_outcome(one), "  ", Piece(one.action.value, Tone.STRONG),
                 Piece(f"  {one.entry_id}", Tone.MUTED)),
            line(Piece("who        ", Tone.MUTED), one.actor,
                 Piece(f"  {one.role.value}, via {one.via}", Tone.MUTED)),
            line(Piece("when       ", Tone.MUTED), stamp(one.at)),
            line(Piece("to what    ", Tone.MUTED), one.target,
                 Piece(f"  tenant {one.tenant}" if one.tenant else "", Tone.MUTED)),
            line(Piece("reason     ", Tone.MUTED), one.reason or "–"),
            line(Piece("note       ", Tone.MUTED), one.note or "–"),
            *details,
        ]  # fmt: skip

    def copies_of(self, item: AuditRow) -> list[Copy]:
        """Return what can be copied of an entry."""
        one = item.entry
        return [
            Copy("target", one.target),
            Copy("reason", one.reason),
            Copy("note", one.note),
            Copy("command", command_line("audit", term_text("target", one.target))),
            Copy("JSON", json.dumps(audit_document(one), indent=2)),
        ]
