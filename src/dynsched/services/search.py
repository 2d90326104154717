"""Search: pages of runs and jobs that fit a filter, newest first, with an honest count.

A page says what it read and no more: how many rows it looked at, how many of them fit, and where
the next page goes on. Pages never overlap and never lose a row that does not move, since a page
begins behind the last row of the one before and not at a number of rows.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Generic, TypeVar

from dynsched.domain.filter_values import is_run_id
from dynsched.domain.filters import RUNS, Filter, Vocabulary, parse
from dynsched.domain.instants import Clock, from_ms, to_ms
from dynsched.domain.masking import PLAIN, Masker
from dynsched.domain.run import Run
from dynsched.errors import InvalidInput
from dynsched.services.listing import check_limit
from dynsched.services.masked import Masked
from dynsched.services.run_facts import BATCH, RunFacts
from dynsched.services.run_places import RunPlaces
from dynsched.services.run_plan import RunPlan, plan_runs
from dynsched.services.search_sources import Place, Reads, Step
from dynsched.storage.store import Store

T = TypeVar("T")

LIMIT = 200
EXAMINE = 2_000
EXAMINE_MAX = 100_000
MARKS_MAX = 100  # marks that the look for one more row passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """A page of a search.

    Attributes:
        items: what fits, in order.
        matched: how many that are.
        examined: rows that were looked at for this page.
        cursor: where the next page goes on; None when the end was reached.
        indexed: qualifiers that led straight to the rows.
        tested: qualifiers that were tested row by row.
        notes: what was not looked at, one sentence each; empty if the search is exact.
    """

    items: tuple[T, ...]
    matched: int
    examined: int
    cursor: str | None = None
    indexed: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def words(self) -> str:
        """Return the status line.

        >>> Found(items=(), matched=37, examined=2000, cursor="x").words()
        'matched 37, examined 2,000; more'
        """
        more = "; more" if self.cursor is not None else ""
        return f"matched {self.matched:,}, examined {self.examined:,}{more}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page goes on.

    Attributes:
        at: the instant of the first page; relative times count from it on all pages.
        place: behind which the page begins.
    """

    at: datetime
    place: tuple[str, str]

    def text(self, found: Filter) -> str:
        """Return the cursor as text that fits into a URL, bound to the filter."""
        body = json.dumps([found.digest, to_ms(self.at), *self.place], separators=(",", ":"))
        return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def read_cursor(text: str, found: Filter) -> Cursor:
    """Return the cursor in a text.

    Raises:
        InvalidInput: it is none, or belongs to another filter.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        digest, at, *place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        first, second = place
        cursor = Cursor(from_ms(at), (str(first), str(second)))
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        raise InvalidInput("cursor", "it is none of a search", "begin again without it") from None
    if digest != found.digest:
        raise InvalidInput("cursor", "it belongs to another filter", "begin again without it")
    return cursor


def check_examine(examine: int) -> int:
    """Return how many rows a page may look at, after checking it.

    Raises:
        InvalidInput: it is out of range.
    """
    if not 1 <= examine <= EXAMINE_MAX:
        raise InvalidInput("examine", f"{examine} is out of range", f"give 1 to {EXAMINE_MAX}")
    return examine


def as_filter(given: Filter | str, vocabulary: Vocabulary) -> Filter:
    """Return a filter, read if it is a text."""
    return parse(given, vocabulary) if isinstance(given, str) else given


class RunSearch(Masked):
    """Finds runs; only reading, every page bounded, secrets masked and not to be searched for."""

    def __init__(self, store: Store, *, clock: Clock, masker: Masker = PLAIN) -> None:
        Masked.__init__(self, masker)
        self._store = store
        self._clock = clock

    def find_runs(
        self,
        filter: Filter | str = "",
        *,
        limit: int = LIMIT,
        cursor: str | None = None,
        examine: int = EXAMINE,
    ) -> Found[Run]:
        """Return a page of runs, newest first: by their end, else when they may start.

        With `job:` they are in the order of their scheduled instants, unless only dead ones are
        asked for.

        Args:
            filter: which.
            limit: at most so many.
            cursor: of the page before.
            examine: rows to look at before the page ends, however few fit.

        Raises:
            FilterError: the filter cannot be read, or names a job that does not exist.
            InvalidInput: a number is out of range, or the cursor belongs to another filter.
        """
        found = as_filter(filter, RUNS)
        check_limit(limit)
        check_examine(examine)
        now = self._clock.now()
        self._store.refresh_by(now)
        start: Place | None = None
        if cursor is not None:
            read = read_cursor(cursor, found)
            now, start = read.at, _run_place(read.place)
        plan = plan_runs(found, now)
        reads = Reads(self._store.runs, start=start, chunk=limit + 1)
        places = RunPlaces(self._store, found, plan, reads, now)
        facts = RunFacts(
            self._store,
            found,
            now,
            jobs=places.jobs,
            workers=places.workers,
            masker=self.masker,
        )
        page = _Page(plan, facts, limit=limit, examine=examine)
        end = page.read(places.stream())
        strangers = () if page.items else places.strangers()
        return Found(
            items=tuple(map(self.masked, page.items.values())),
            matched=len(page.items),
            examined=page.examined,
            cursor=None if end is None else Cursor(now, _as_text(end)).text(found),
            indexed=plan.indexed,
            tested=plan.tested,
            notes=(*plan.notes, *reads.notes, *page.notes(), *strangers),
        )


def _run_place(texts: tuple[str, str]) -> Place:
    try:
        instant = from_ms(int(texts[0]))
    except (ValueError, OverflowError):
        instant = None
    if instant is None or (texts[1] and not is_run_id(texts[1])):
        raise InvalidInput("cursor", "it is none of a search", "begin again without it")
    return instant, texts[1]


def _as_text(place: Place) -> tuple[str, str]:
    return str(to_ms(place[0])), place[1]


class _Page:
    """Takes what fits from a stream until the page is full."""

    def __init__(self, plan: RunPlan, facts: RunFacts, *, limit: int, examine: int) -> None:
        self._plan = plan
        self._facts = facts
        self._limit = limit
        self._examine = examine
        self._hidden = 0
        self._cut = False
        self.items: dict[str, Run] = {}
        self.examined = 0

    def notes(self) -> Iterator[str]:
        """Yield what this page met and left out."""
        if self._hidden:
            some = "run was" if self._hidden == 1 else "runs were"
            which = "it" if self._hidden == 1 else "them"
            yield f"{self._hidden:,} discarded {some} left out (is:discarded shows {which})"
        if self._cut:
            yield "the page ended early, at the queries that one may cost (its cursor goes on)"

    def read(self, stream: Iterator[Step]) -> Place | None:
        """Fill the page; return the place behind which the next one begins, None at the end."""
        while True:
            room = self._examine - self.examined
            size = min(BATCH, room) if self._facts.batched else 1
            batch = list(islice(stream, size))
            if not batch:
                return None
            tested = self._tested(batch)
            for number, step in enumerate(batch):
                if step.cut:
                    self._cut = True
                    return step.place
                if step.run is None:
                    continue
                self.examined += 1
                if tested[number]:
                    self._take(step.run)
                if len(self.items) >= self._limit or self.examined >= self._examine:
                    goes_on = self._goes_on(batch[number + 1 :], stream)
                    return step.place if goes_on else None

    def _tested(self, batch: Sequence[Step]) -> list[bool]:
        runs = [step.run for step in batch if step.run is not None]
        kept = [run for run in runs if self._plan.admits(run)]
        fits: Mapping[str, bool] = dict(
            zip((run.run_id for run in kept), self._facts.fitting(kept), strict=True)
        )
        self._hidden += sum(run.hidden and not self._plan.hidden for run in runs)
        return [step.run is not None and fits.get(step.run.run_id, False) for step in batch]

    def _take(self, run: Run) -> None:
        """Keep a run; one that moved between two reads is there once, as it was read last."""
        seen = self.items.get(run.run_id)
        if seen is None or seen.version < run.version:
            self.items.pop(run.run_id, None)
            self.items[run.run_id] = run

    def _goes_on(self, rest: Sequence[Step], stream: Iterator[Step]) -> bool:
        """Return whether anything lies behind, or may."""
        marks = 0
        for step in islice(chain(rest, stream), MARKS_MAX):
            if step.run is not None or step.cut:
                return True
            marks += 1
        return marks >= MARKS_MAX
