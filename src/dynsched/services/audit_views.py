"""Views of the audit: who did what, newest first, by filter or about one thing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.audit import KEPT, AuditEntry, check_target
from dynsched.domain.filter_match import Fact, Range, matches, window
from dynsched.domain.filters import AUDIT, WORD, Filter
from dynsched.domain.instants import MILLISECOND, Clock, to_text
from dynsched.domain.masking import PLAIN, Masker
from dynsched.services.listing import check_limit
from dynsched.services.masked import masked_entry
from dynsched.services.search import (
    EXAMINE,
    LIMIT,
    Cursor,
    Found,
    as_filter,
    check_examine,
    read_cursor,
)
from dynsched.storage.audit import place
from dynsched.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which entries to show.

    Attributes:
        filter: of the vocabulary `AUDIT`.
        since: leave out what was asked for before; None goes back as far as entries are kept.
        limit: at most so many, newest first.
        cursor: of the page before.
        examine: entries to look at before the page ends, however few fit.
    """

    filter: Filter | str = ""
    since: datetime | None = None
    limit: int = LIMIT
    cursor: str | None = None
    examine: int = EXAMINE


class AuditViews:
    """Reads the audit for people; only reading, every page bounded, secrets masked."""

    masker: Masker = PLAIN

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def audit(self, query: AuditQuery | None = None) -> Found[AuditEntry]:
        """Return a page of entries, newest first.

        Cost: one query for each month of the range, or for each target that the filter names.

        Raises:
            FilterError: the filter cannot be read.
            InvalidInput: a number is out of range, or the cursor belongs to another filter.
        """
        query = query or AuditQuery()
        found = as_filter(query.filter, AUDIT)
        check_limit(query.limit)
        check_examine(query.examine)
        now, start = self._clock.now(), None
        if query.cursor is not None:
            read = read_cursor(query.cursor, found)
            now, start = read.at, read.place[0]
        kept = Range(low=max(query.since or now - KEPT, now - KEPT), high=now + MILLISECOND)
        within = window(found, "at", now).meet(kept)
        page = _Page(found, now, query)
        entries = _entries(self._store, found, within, start)
        end = None if within.empty else page.read(map(self._shown_entry, entries))
        indexed = ("at",) if _targets(found) is None else ("at", "target")
        asked = ["text" if one == WORD else one for one in dict.fromkeys(found.names())]
        return Found(
            items=tuple(page.items),
            matched=len(page.items),
            examined=page.examined,
            cursor=None if end is None else Cursor(now, (end, "")).text(found),
            indexed=tuple(one for one in asked if one in indexed),
            tested=tuple(one for one in asked if one not in indexed),
        )

    def audit_of(self, target: str, limit: int = 100) -> list[AuditEntry]:
        """Return the newest entries about one thing. Cost: one query.

        Raises:
            InvalidInput: the target names nothing that can be changed.
        """
        found = self._store.audit.of_target(check_target(target), most=check_limit(limit))
        return list(map(self._shown_entry, found))

    def _shown_entry(self, entry: AuditEntry) -> AuditEntry:
        return masked_entry(self.masker, entry)


def _entries(store: Store, found: Filter, within: Range, start: str | None) -> Iterator[AuditEntry]:
    """Yield the entries that may fit, newest first, from their months or from their targets."""
    after, before = to_text(within.low), to_text(within.high)
    if start is not None:
        before = min(before, start)
    targets = _targets(found)
    if targets is None:
        return store.audit.newest(after=after, before=before)
    streams = [store.audit.of_target(one, after=after, before=before) for one in sorted(targets)]
    return heapq.merge(*streams, key=place, reverse=True)


def _targets(found: Filter) -> frozenset[str] | None:
    """Return the targets that a filter names, None if it leaves them open."""
    sets = [frozenset(term.words) for term in found.asking("target")]
    return frozenset.intersection(*sets) if sets else None


class _Page:
    """Takes what fits until the page is full."""

    def __init__(self, found: Filter, now: datetime, query: AuditQuery) -> None:
        self._filter = found
        self._now = now
        self._query = query
        self.items: list[AuditEntry] = []
        self.examined = 0

    def read(self, entries: Iterator[AuditEntry]) -> str | None:
        """Fill the page; return the place behind which the next one begins, None at the end."""
        for entry in entries:
            self.examined += 1
            if self._fits(entry):
                self.items.append(entry)
            full = len(self.items) >= self._query.limit
            if full or self.examined >= self._query.examine:
                return place(entry) if next(entries, None) is not None else None
        return None

    def _fits(self, entry: AuditEntry) -> bool:
        def fact(name: str) -> Fact:
            return _FACTS[name](entry)

        return matches(self._filter, fact, self._now)


_FACTS: Mapping[str, Callable[[AuditEntry], Fact]] = {
    WORD: lambda entry: (
        entry.actor,
        entry.target,
        entry.reason,
        entry.note,
        *entry.details.values(),
    ),
    "actor": lambda entry: entry.actor,
    "action": lambda entry: entry.action.value,
    "target": lambda entry: entry.target,
    "tenant": lambda entry: entry.tenant,
    "outcome": lambda entry: entry.outcome.value,
    "via": lambda entry: entry.via,
    "at": lambda entry: entry.at,
}
