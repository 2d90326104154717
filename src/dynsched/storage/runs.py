"""Runs in the store: creation, guarded transitions, and the index views of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from dynsched.domain.instants import from_ms, to_ms, to_text
from dynsched.domain.job import Priority
from dynsched.domain.lifecycle import Transition
from dynsched.domain.message import calls_for_message
from dynsched.domain.run import Run, RunKey
from dynsched.storage.codec import Attributes, decode_run, encode_run
from dynsched.storage.engine import (
    Applied,
    Body,
    Key,
    PutNew,
    Query,
    Replace,
    Row,
    Table,
    Write,
)
from dynsched.storage.placement import (
    attempts_partition,
    fixed_partition,
    history_partitions,
    leased_partition,
    ready_partition,
    retry_partition,
    run_index,
)
from dynsched.storage.rows import PAGE, Rows, decoded, readable
from dynsched.storage.sending import Sending


@dataclass(frozen=True, slots=True)
class RunApplied:
    """The transition was written; `run` is the run as stored now."""

    run: Run


@dataclass(frozen=True, slots=True)
class RunStale:
    """Somebody else changed the run first; `current` is what is stored, None if it is gone."""

    current: Run | None


RunOutcome = RunApplied | RunStale


@dataclass(frozen=True, slots=True)
class Damaged:
    """A run's row that cannot be decoded, and why."""

    problem: str


REPLAYED = "replayed"
EDITED = "payload edited"
AS_NEW = "replaced"
PULLED_BACK = "pulled back"
PEOPLES = (REPLAYED, EDITED, AS_NEW, PULLED_BACK)
"""What people did to a dead run, noted behind the attempt that had ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is kept of one try: an error, an output, or how the lease was lost.

    Attributes:
        number: the attempt, from 1; with `late` it is a result that came after the lease was lost.
        outcome: `failed`, `lost`, `done`, `late`, `handed back`, `cancelled`; or what people did
            to the run after that attempt: one of `PEOPLES`.
        error_type: class or kind of the error; empty without one.
        message: the error in full, bounded.
        detail: end of the traceback, or a success's output as JSON text, bounded.
        output: what a failure left, as JSON text: exit code and ends of both outputs, bounded.
            Of an edit it is the payload that was replaced, and `detail` is the difference.
        by: who it was, if people did it; `message` is the reason that they gave.
        batch: the replay batch by which they did it.
        order: tells two of people's deeds of one instant apart; it is not read back.
    """

    run_id: str
    number: int
    fence: int
    session: str
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    error_type: str = ""
    message: str = ""
    detail: str = ""
    output: str = ""
    by: str = ""
    batch: str = ""
    order: int = 0
    expires_at_s: int

    @property
    def by_people(self) -> bool:
        """Return whether it is no try, but what people did to the run after one."""
        return self.outcome in PEOPLES

    @property
    def late(self) -> bool:
        """Return whether the result was refused because the lease had changed hands."""
        return self.outcome == "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressNote:
    """What a run's handler reported last of itself.

    Attributes:
        attempt: the attempt that reported.
        done: units done, the handler's own.
        total: units in all, if known.
        note: one short line.
        at: when it was written.
    """

    run_id: str
    attempt: int
    done: float
    total: float | None
    note: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs of one partition, newest sort key first.

    Attributes:
        rows: sort key and run; those that cannot be read are left out.
        last: the sort key of the last row that was read, readable or not; empty without any.
        cursor: continues behind it; None when there is nothing more.
    """

    rows: list[tuple[str, Run]]
    last: str
    cursor: str | None


PROGRESS_SORT = "progress"  # behind the attempts' numbers


def run_table_key(key: RunKey) -> Key:
    """Return where a run's row lies."""
    return Key(Table.RUNS, key.partition, key.sort)


def decode_each(rows: Iterable[Row]) -> list[Run]:
    """Return the runs in rows; one that cannot be read is reported and never blocks the others."""
    return list(readable(decode_run, rows))


class RunStore:
    """Verbs on runs. Every write is guarded by the version that was seen, or by absence."""

    def __init__(self, rows: Rows, sending: Sending) -> None:
        self._rows = rows
        self._sending = sending

    def row_of(self, run: Run) -> Row:
        """Return the row that stores a run, with a fresh token."""
        return Row(
            run_table_key(run.key),
            cast(Body, encode_run(run)),
            run_index(run, self._rows.topology),
            run.expires_at_s,
            self._rows.token(),
            run.version,
        )

    def get(self, key: RunKey) -> Run | None:
        """Read a run, strongly. Cost: 1 read unit.

        Raises:
            DamagedRow: its row cannot be read.
        """
        row = self._rows.engine.get(run_table_key(key))
        return None if row is None else decoded(decode_run, row)

    def get_many(self, keys: Sequence[RunKey]) -> list[Run | None]:
        """Read runs, each strongly, in order. Cost: 1 read unit each."""
        rows = self._rows.engine.get_many([run_table_key(key) for key in keys])
        return [None if row is None else decode_run(row) for row in rows]

    def look_up(self, keys: Sequence[RunKey]) -> list[Run | Damaged | None]:
        """Read runs, each strongly, in order; one that cannot be read harms no other.

        Cost: 1 read unit each.
        """
        rows = self._rows.engine.get_many([run_table_key(key) for key in keys])
        found: list[Run | Damaged | None] = []
        for row in rows:
            try:
                found.append(None if row is None else decode_run(row))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                found.append(Damaged(repr(error)))
        return found

    def create_many(self, runs: Sequence[Run], *, durable: bool = False) -> list[bool]:
        """Write new runs; False where the key exists already, which is success for an occurrence.

        Args:
            runs: with version 1 and distinct keys.
            durable: they shall survive a power cut when this returns.
        """
        writes = [PutNew(self.row_of(run)) for run in runs]
        outcomes = self._rows.engine.write_many(writes, durable=durable)
        made = [isinstance(outcome, Applied) for outcome in outcomes]
        self._sending.tell(run for run, new in zip(runs, made, strict=True) if new)
        return made

    def apply(self, transition: Transition, *, durable: bool = False) -> RunOutcome:
        """Write one transition under its guard. Cost: 1 to 3 write units (base and index)."""
        return self.apply_many([transition], durable=durable)[0]

    def apply_many(
        self, transitions: Sequence[Transition], *, durable: bool = False
    ) -> list[RunOutcome]:
        """Write independent transitions of distinct runs, one outcome each."""
        if not transitions:
            return []
        writes = [Replace(self.row_of(item.after), item.before.version) for item in transitions]
        outcomes = self._rows.engine.write_many(writes, durable=durable)
        pairs = zip(transitions, outcomes, strict=True)
        self._tell(item for item, outcome in pairs if isinstance(outcome, Applied))
        return [
            RunApplied(item.after)
            if isinstance(outcome, Applied)
            else RunStale(None if outcome.current is None else decode_run(outcome.current))
            for item, outcome in zip(transitions, outcomes, strict=True)
        ]

    def apply_noted(self, transition: Transition, note: Attempt) -> RunOutcome:
        """Write one transition and a row among the run's attempts together, or neither.

        Cost: a transaction, twice the units of both.
        """
        writes: list[Write] = [
            Replace(self.row_of(transition.after), transition.before.version),
            PutNew(_attempt_row(note, self._rows.token())),
        ]
        outcomes = self._rows.engine.transact(writes, durable=True)
        if all(isinstance(outcome, Applied) for outcome in outcomes):
            self._tell([transition])
            return RunApplied(transition.after)
        return RunStale(self.get(transition.before.key))

    def _tell(self, applied: Iterable[Transition]) -> None:
        """Tell functions of the runs that are ready now."""
        if self._sending.on:
            self._sending.tell(item.after for item in applied if calls_for_message(item))

    def ready(
        self, queue: str, priority: Priority, lane: int, *, after: str = "", limit: int = 100
    ) -> list[Run]:
        """Read claimable runs of one lane in the order of share key and `available_at`.

        Consistency: an index read; a row may be gone or missing for a moment.
        """
        partition = ready_partition(queue, priority, lane)
        query = Query(Table.RUNS, partition, index=True, after=after, limit=limit)
        return decode_each(self._rows.engine.query(query).rows)

    def ready_head(
        self, queue: str, priority: Priority, lane: int, *, after: str = ""
    ) -> tuple[str, Run | None] | None:
        """Read the first row of a lane behind a sort key: its share key, and the run.

        The run is None if its row cannot be read; the answer is None if there is no row.
        """
        partition = ready_partition(queue, priority, lane)
        rows = self._rows.engine.query(
            Query(Table.RUNS, partition, index=True, after=after, limit=1)
        ).rows
        if not rows:
            return None
        share = ("" if rows[0].index is None else rows[0].index[1]).partition("#")[0]
        return share, next(iter(decode_each(rows)), None)

    def waiting(self, minute: int, shard: int, before: datetime, *, most: int) -> list[Run]:
        """Read failed runs of one minute bucket whose back-off ends before an instant."""
        query = Query(
            Table.RUNS,
            retry_partition(minute, shard),
            index=True,
            before=to_text(before),
            limit=min(most, PAGE),
        )
        return decode_each(self._rows.all(query, most))

    def leased(self, session: str, *, most: int) -> list[Run]:
        """Read the runs that lie in a session's partition, by the index."""
        query = Query(Table.RUNS, leased_partition(session), index=True, limit=min(most, PAGE))
        return decode_each(self._rows.all(query, most))

    def ending(
        self, minute: int, shard: int, *, most: int, before: datetime | None = None
    ) -> list[Run]:
        """Read the runs whose fixed leases end in a minute, by the index, the first end first.

        Args:
            minute: the minute of the ends.
            shard: of that minute.
            most: read no more than these.
            before: only leases that end before it; None is all.
        """
        query = Query(
            Table.RUNS,
            fixed_partition(minute, shard),
            index=True,
            before=None if before is None else to_text(before),
            limit=min(most, PAGE),
        )
        return decode_each(self._rows.all(query, most))

    def count(
        self, partition: str, *, most: int, after: str = "", before: str | None = None
    ) -> int:
        """Count the rows of an index partition between two sort keys, no further than `most`."""
        query = Query(Table.RUNS, partition, index=True, after=after, before=before)
        return self._rows.engine.count(query, most)

    def history(self, job_id: str, *, most: int, before: datetime | None = None) -> Iterator[Run]:
        """Read a job's runs, newest instant first, strongly; merged over its partitions."""
        found: list[Run] = []
        for partition in history_partitions(job_id, self._rows.topology):
            query = Query(
                Table.RUNS,
                partition,
                before=None if before is None else to_text(before),
                limit=min(most, PAGE),
                descending=True,
            )
            found += decode_each(self._rows.all(query, most))
        found.sort(key=lambda run: run.key.sort, reverse=True)
        yield from found[:most]

    def newest(
        self,
        partition: str,
        *,
        index: bool = True,
        after: str = "",
        before: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> RunPage:
        """Read one page of a partition from its end, between two sort keys. Cost: one query."""
        query = Query(
            Table.RUNS,
            partition,
            index=index,
            after=after,
            before=before,
            limit=limit,
            descending=True,
        )
        page = self._rows.engine.query(query, cursor)
        rows = [(_sort_of(row, index=index), row) for row in page.rows]
        runs = [(sort, run) for sort, row in rows for run in decode_each([row])]
        return RunPage(runs, rows[-1][0] if rows else "", page.cursor)

    def scan(self, limit: int, cursor: str | None) -> tuple[list[Run], str | None]:
        """Read a page of all runs in no order; for the daily sweep."""
        page = self._rows.engine.scan(Table.RUNS, limit, cursor)
        rows = [row for row in page.rows if not row.key.pk.startswith("attempts#")]
        return decode_each(rows), page.cursor

    def note_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Write attempt rows; a row that exists stays, so repeating is harmless."""
        writes = [PutNew(_attempt_row(item, self._rows.token())) for item in attempts]
        if writes:
            self._rows.engine.write_many(writes)

    def attempts(self, run_id: str, *, most: int = 200, newest: bool = False) -> list[Attempt]:
        """Read what is kept of a run's tries, oldest first.

        Args:
            run_id: whose.
            most: read no more than these.
            newest: if there are more, leave out the oldest ones.
        """
        partition, limit = attempts_partition(run_id), min(most, PAGE)
        query = Query(Table.RUNS, partition, before=PROGRESS_SORT, limit=limit, descending=newest)
        rows = self._rows.all(query, most)
        found = list(readable(lambda row: _decode_attempt(run_id, row), rows))
        return found[::-1] if newest else found

    def note_progress(self, note: ProgressNote, expires_at_s: int) -> None:
        """Write a run's last report over the one before; a lost race does no harm."""
        key = Key(Table.RUNS, attempts_partition(note.run_id), PROGRESS_SORT)
        row = self._rows.engine.get(key)
        body: Attributes = {"a": note.attempt, "d": note.done, "at": to_ms(note.at)}
        if note.total is not None:
            body["t"] = note.total
        if note.note:
            body["n"] = note.note
        new = Row(key, body, None, expires_at_s, self._rows.token())
        self._rows.engine.write(PutNew(new) if row is None else Replace(new, row.version))

    def progress(self, run_id: str) -> ProgressNote | None:
        """Read what a run's handler reported last, None if it reported nothing."""
        key = Key(Table.RUNS, attempts_partition(run_id), PROGRESS_SORT)
        row = self._rows.engine.get(key)
        if row is None:
            return None
        body = cast(Mapping[str, Any], row.body)
        return ProgressNote(
            run_id=run_id,
            attempt=body["a"],
            done=body["d"],
            total=body.get("t"),
            note=body.get("n", ""),
            at=from_ms(body["at"]),
        )


def _sort_of(row: Row, *, index: bool) -> str:
    return row.index[1] if index and row.index is not None else row.key.sk


def _attempt_row(item: Attempt, token: str) -> Row:
    body: Attributes = {"f": item.fence, "s": item.session, "o": item.outcome}
    body["en"] = to_ms(item.ended_at)
    if item.started_at is not None:
        body["st"] = to_ms(item.started_at)
    texts = {
        "t": item.error_type,
        "m": item.message,
        "d": item.detail,
        "ou": item.output,
        "by": item.by,
        "b": item.batch,
    }
    body |= {name: value for name, value in texts.items() if value}
    key = Key(Table.RUNS, attempts_partition(item.run_id), _attempt_sort(item))
    return Row(key, body, None, item.expires_at_s, token, 1)


def _attempt_sort(item: Attempt) -> str:
    """Return where an attempt lies; behind it lies what people did, in the order of their doing.

    A batch has one place behind an attempt: its note may be written again and stays one.
    """
    place = f"{item.number:06}#{item.fence:06}#"
    if not item.by_people:
        return place + item.outcome
    order = int(item.outcome == PULLED_BACK) if item.batch else item.order
    return f"{place}~{item.batch or to_text(item.ended_at)}#{order:06}"


def _decode_attempt(run_id: str, row: Row) -> Attempt:
    body = row.body
    started = body.get("st")
    return Attempt(
        run_id=run_id,
        number=int(row.key.sk.partition("#")[0]),
        fence=cast(int, body["f"]),
        session=cast(str, body["s"]),
        outcome=cast(str, body["o"]),
        started_at=None if started is None else from_ms(cast(int, started)),
        ended_at=from_ms(cast(int, body["en"])),
        error_type=cast(str, body.get("t", "")),
        message=cast(str, body.get("m", "")),
        detail=cast(str, body.get("d", "")),
        output=cast(str, body.get("ou", "")),
        by=cast(str, body.get("by", "")),
        batch=cast(str, body.get("b", "")),
        expires_at_s=row.expires_at_s or 0,
    )
