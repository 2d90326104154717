"""Sources of a search: lazy streams of runs, newest first, one for each place where runs lie.

Each stream begins behind a place and yields steps in descending order, so that a merge of them is
the list, and any step of it is a place to go on from. A step without a run is a mark: the stream
holds nothing more above it, so the others need not wait for what lies far back. When the queries
that a page may cost are used up, a stream ends with a cut, and the page ends where the merge meets
it: nothing is lost, and the next page goes on there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dynsched.domain.filter_match import Range
from dynsched.domain.instants import to_text
from dynsched.domain.run import Run, parse_run_id
from dynsched.storage.runs import RunPage, RunStore

QUERIES_MAX = 1_000  # after which a page's streams are cut, once each has given something
OPENINGS_MAX = 2_000  # after which no more groups are looked for
GROUPS_MAX = 500  # error groups of one shard, or share keys of one lane, that one page merges
CHUNK_MIN = 10
CHUNK_MAX = 500
FIRST_CHUNK = 200  # finds a small dead-letter queue whole with one query
PEEK = 10  # of each further group: some 7 KB, one read unit

Place = tuple[datetime, str]  # the instant that a run is listed by, and its id


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a stream.

    Attributes:
        place: where; streams go down.
        run: what lies there; None for a mark.
        cut: the stream was ended here.
    """

    place: Place
    run: Run | None = None
    cut: bool = False


def moment(run: Run) -> datetime:
    """Return the instant that a run is listed by: its end, else when it may or might start."""
    return run.available_at if run.ended_at is None else run.ended_at


def merged(streams: Iterable[Iterator[Step]]) -> Iterator[Step]:
    """Return streams as one, newest first."""
    return heapq.merge(*streams, key=lambda step: step.place, reverse=True)


class Reads:
    """The reads of one page.

    Args:
        runs: where to read.
        start: only what lies behind this place is of use; None is everything.
        chunk: rows to read at once where a stream is in the list's order.
    """

    def __init__(self, runs: RunStore, *, start: Place | None, chunk: int) -> None:
        self._runs = runs
        self.start = start
        self.chunk = max(CHUNK_MIN, min(chunk, CHUNK_MAX))
        self.queries = 0
        self.notes: dict[str, None] = {}

    @property
    def out(self) -> bool:
        """Return whether the page has cost what it may."""
        return self.queries >= QUERIES_MAX

    def note(self, sentence: str) -> None:
        """Note what was not looked at, once."""
        self.notes[sentence] = None

    def behind(self, place: Place) -> bool:
        """Return whether a place lies behind the start."""
        return self.start is None or place < self.start

    def page(
        self,
        partition: str,
        *,
        index: bool = True,
        after: str = "",
        before: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> RunPage:
        """Read a page from a partition's end."""
        self.queries += 1
        return self._runs.newest(
            partition, index=index, after=after, before=before, limit=limit, cursor=cursor
        )

    def listed(self, runs: Iterable[Run], within: Range) -> Iterator[Step]:
        """Yield runs that were read in another order."""
        steps = (Step((moment(run), run.run_id), run) for run in runs)
        kept = [step for step in steps if self.behind(step.place) and within.holds(step.place[0])]
        yield from sorted(kept, key=lambda step: step.place, reverse=True)

    def ordered(
        self,
        partition: str,
        *,
        within: Range,
        prefix: str = "",
        read: Sequence[tuple[str, Run]] = (),
        more: bool = True,
        before: str | None = None,
        chunk: int = 0,
    ) -> Iterator[Step]:
        """Yield the runs of an index range whose keys sort by instant and run id.

        Args:
            partition: which.
            within: only these instants; the keys outside are not read.
            prefix: what stands before the instant in each key.
            read: rows from its end that were read already.
            more: there may be others behind them.
            before: the first key behind them that need not be read.
            chunk: rows to read at once; each further read doubles it.
        """
        last: Step | None = None
        for _, run in read:
            step = Step((moment(run), run.run_id), run)
            if self.behind(step.place) and within.holds(step.place[0]):
                yield (last := step)
        after = prefix + to_text(within.low)
        end = self._end(prefix, within, before)
        size, cursor = chunk or self.chunk, None
        while more and end > after:
            if self.out and last is not None:
                yield Step(last.place, cut=True)
                return
            page = self.page(partition, after=after, before=end, limit=size, cursor=cursor)
            for _, run in page.rows:
                yield (last := Step((moment(run), run.run_id), run))
            cursor, size = page.cursor, min(2 * size, CHUNK_MAX)
            more = cursor is not None

    def _end(self, prefix: str, within: Range, before: str | None) -> str:
        """Return the lowest of the keys that bound a range from above."""
        ends = [prefix + to_text(within.high)]
        if self.start is not None:
            ends.append(f"{prefix}{to_text(self.start[0])}#{self.start[1]}")
        if before is not None:
            ends.append(before)
        return min(ends)

    def grouped(
        self,
        partition: str,
        *,
        within: Range,
        after: str = "",
        before: str | None = None,
        beyond: str,
    ) -> Iterator[Step]:
        """Yield the runs of a partition that sorts by a group first, merged over its groups.

        Groups are found from the end by stepping over each; what is read on the way are their
        newest rows.

        Args:
            partition: which.
            within: only these instants.
            after: only groups whose keys lie behind this.
            before: only groups whose keys lie before this.
            beyond: what to note when there are more groups than are merged.
        """
        streams: list[Iterator[Step]] = []
        limit, end, whole = max(self.chunk, FIRST_CHUNK), before, False
        while not whole:
            page = self.page(partition, after=after, before=end, limit=limit)
            whole = page.cursor is None
            last = page.last.partition("#")[0]
            by_group: dict[str, list[tuple[str, Run]]] = {last: []} if page.last else {}
            for sort, run in page.rows:
                by_group.setdefault(sort.partition("#")[0], []).append((sort, run))
            for group, rows in by_group.items():
                streams.append(
                    self.ordered(
                        partition,
                        within=within,
                        prefix=f"{group}#",
                        read=rows,
                        more=group == last and not whole,
                        before=page.last if group == last else None,
                        chunk=2 * PEEK,
                    )
                )
            limit, end = PEEK, f"{last}#"
            if not whole and (len(streams) >= GROUPS_MAX or self.queries >= OPENINGS_MAX):
                self.note(beyond)
                break
        return merged(streams)

    def bucketed(
        self,
        buckets: Iterable[tuple[datetime, Callable[[], Iterable[Iterator[Step]]]]],
    ) -> Iterator[Step]:
        """Yield the runs of buckets of time, newest first, each opened when it is reached.

        Args:
            buckets: the first instant of each, and what opens the streams of its partitions.
        """
        floor: datetime | None = None
        for first, opened in buckets:
            if self.out and floor is not None:
                yield Step((floor, ""), cut=True)
                return
            yield from merged(opened())
            floor = first
            if self.behind((floor, "")):
                yield Step((floor, ""))

    def history(self, job_id: str, partition: str, within: Range) -> Iterator[Step]:
        """Yield the runs of one base partition of a job, newest scheduled instant first."""
        after, end = to_text(within.low), to_text(within.high)
        if self.start is not None:
            end = min(end, _history_key(job_id, self.start))
        size, cursor, more = self.chunk, None, end > after
        last: Step | None = None
        while more:
            if self.out and last is not None:
                yield Step(last.place, cut=True)
                return
            page = self.page(
                partition, index=False, after=after, before=end, limit=size, cursor=cursor
            )
            for _, run in page.rows:
                yield (last := Step((run.scheduled_for, run.run_id), run))
            cursor, size = page.cursor, min(2 * size, CHUNK_MAX)
            more = cursor is not None


def _history_key(job_id: str, start: Place) -> str:
    """Return the base sort key before which a job's runs lie behind a place."""
    instant, run_id = to_text(start[0]), start[1]
    if run_id.startswith(f"{job_id}@"):
        return parse_run_id(run_id).sort
    return f"{instant}$" if f"{job_id}@" < run_id else instant
