"""Replay batches in the store: a row for each, its frozen entries in chunks, and their marks.

Entries are written once and never again. Marks, one letter for each entry, are the checkpoint: a
row of half a kilobyte for each chunk, so that a step costs one unit however long the ids are.
`stepping` names the batches that have something to do, so that an idle stepper makes one read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, cast

from dynsched.domain.access import Role
from dynsched.domain.batch import (
    KEPT,
    Batch,
    BatchState,
    PauseCause,
)
from dynsched.domain.batch_entry import Entry, Mark
from dynsched.domain.instants import EPOCH, from_ms, to_ms
from dynsched.domain.job import Priority
from dynsched.errors import DamagedRow
from dynsched.storage.engine import (
    Applied,
    Body,
    Delete,
    Key,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
)
from dynsched.storage.placement import (
    BATCHES,
    STEPPING,
    batch_key,
    entries_key,
    marks_key,
    marks_partition,
    stepping_key,
)
from dynsched.storage.rows import PAGE, Rows, decoded, readable

CHUNK_WRITES = 8
DRAFT_KEPT = timedelta(days=1)  # a draft can still be looked at after it has expired
CHUNKS_MAX = 10_000
DAMAGED_MAX = 100  # rows that one page of a list passes over
BACK = "#back"  # in the key of a note; the version of the batch that is to be replaced follows


@dataclass(frozen=True, slots=True)
class Marks:
    """What became of a chunk's entries.

    Attributes:
        letters: a `Mark` for each entry.
        version: the stored version, 0 while nothing was stored.
    """

    letters: str
    version: int = 0

    @property
    def counts(self) -> Counter[str]:
        """Return how many entries have each mark."""
        return Counter(self.letters)

    @property
    def complete(self) -> bool:
        """Return whether every entry has its mark."""
        return Mark.LEFT.value not in self.letters


class BatchStore:
    """Verbs on replay batches; every write is guarded by the version seen."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def create(self, batch: Batch, entries: Sequence[Entry]) -> Batch:
        """Write a draft with its entries; the batch's row comes last, so that it is whole.

        Cost: a write unit for each 13 entries.
        """
        expires_at_s = _seconds(batch.created_at + KEPT)
        rows = [
            Row(
                entries_key(batch.batch_id, number),
                {"e": [_entry_text(entry) for entry in entries[start : start + batch.chunk]]},
                None,
                expires_at_s,
                self._rows.token(),
            )
            for number, start in enumerate(range(0, len(entries), batch.chunk))
        ]
        for start in range(0, len(rows), CHUNK_WRITES):
            self._rows.engine.write_many(
                [PutNew(row) for row in rows[start : start + CHUNK_WRITES]]
            )
        self._rows.engine.write(PutNew(self._row(batch)), durable=True)
        return replace(batch, version=1)

    def get(self, batch_id: str) -> Batch | None:
        """Read a batch, strongly. Cost: 1 read unit.

        Raises:
            DamagedRow: its row cannot be read.
        """
        row = self._rows.engine.get(batch_key(batch_id))
        return None if row is None else decoded(decode_batch, row)

    def look_up(self, batch_ids: Sequence[str]) -> list[Batch | DamagedRow | None]:
        """Read batches, each strongly, in order; one that cannot be read harms no other.

        Cost: 1 read unit each.
        """
        found: list[Batch | DamagedRow | None] = []
        for row in self._rows.engine.get_many([batch_key(one) for one in batch_ids]):
            try:
                found.append(None if row is None else decoded(decode_batch, row))
            except DamagedRow as error:
                found.append(error)
        return found

    def newest(self, *, most: int, before: str | None = None) -> list[Batch]:
        """Read batches, newest first, optionally those made before one.

        Cost: half a read unit for each 4 KB, some four batches.
        """
        query = Query(Table.CONTROL, BATCHES, before=before, limit=min(most, PAGE), descending=True)
        rows = self._rows.all(query, most + DAMAGED_MAX)
        return list(islice(readable(decode_batch, rows), most))

    def replace(self, batch: Batch, *, durable: bool = True) -> Batch | None:
        """Write the next version of a batch; None if somebody else wrote first.

        Cost: a write unit for each KB, one to four.
        """
        outcome = self._rows.engine.write(Replace(self._row(batch), batch.version), durable=durable)
        return replace(batch, version=batch.version + 1) if isinstance(outcome, Applied) else None

    def _row(self, batch: Batch) -> Row:
        kept = DRAFT_KEPT if batch.state is BatchState.DRAFT else KEPT
        return Row(
            batch_key(batch.batch_id),
            cast(Body, encode_batch(batch)),
            None,
            _seconds(batch.created_at + kept),
            self._rows.token(),
            batch.version,
        )

    # entries and marks

    def entries(self, batch_id: str, chunk: int) -> list[Entry]:
        """Read a chunk's entries, in their order. Cost: some 10 read units."""
        row = self._rows.engine.get(entries_key(batch_id, chunk))
        texts = () if row is None else cast(Sequence[str], row.body["e"])
        return [_entry_of(text) for text in texts]

    def marks(self, batch: Batch, chunk: int) -> Marks:
        """Read what became of a chunk's entries, strongly. Cost: 1 read unit."""
        row = self._rows.engine.get(marks_key(batch.batch_id, chunk))
        return _unmarked(batch, chunk) if row is None else _marks_of(row)

    def all_marks(self, batch: Batch) -> list[Marks]:
        """Read the marks of all chunks, in their order, strongly.

        Cost: a read unit for each 4,000 entries.
        """
        query = Query(Table.CONTROL, marks_partition(batch.batch_id), limit=PAGE)
        found = {int(row.key.sk): _marks_of(row) for row in self._rows.all(query, CHUNKS_MAX)}
        chunks = range(batch.chunks)
        return [found.get(chunk) or _unmarked(batch, chunk) for chunk in chunks]

    def unmarked(self, batch: Batch) -> list[Marks]:
        """Return the marks of a batch of which nothing was moved; this is no request."""
        return [_unmarked(batch, chunk) for chunk in range(batch.chunks)]

    def write_marks(self, batch: Batch, chunk: int, marks: Marks) -> Marks | None:
        """Write the next version of a chunk's marks; None if somebody else wrote first.

        Cost: 1 write unit.
        """
        row = Row(
            marks_key(batch.batch_id, chunk),
            {"m": marks.letters},
            None,
            _seconds(batch.created_at + KEPT),
            self._rows.token(),
            marks.version,
        )
        write = Replace(row, marks.version) if marks.version else PutNew(row)
        outcome = self._rows.engine.write(write, durable=True)
        if isinstance(outcome, Stale):
            return None
        return Marks(marks.letters, marks.version + 1)

    # what the stepper has to do

    def point(self, batch: Batch, *, back: bool = False) -> None:
        """Note that a batch has something to do, before it has; one that is noted stays.

        Args:
            batch: the batch.
            back: it was noted and forgotten before, and is to be pulled back now.
        """
        # A name of its own each time: a key that was deleted is not used again at once.
        key = stepping_key(batch.batch_id + (f"{BACK}{batch.version}" if back else ""))
        row = Row(key, {}, None, _seconds(batch.created_at + KEPT), self._rows.token())
        self._rows.engine.write(PutNew(row), durable=True)

    def pointed(self, *, most: int) -> dict[str, list[Key]]:
        """Read which batches have something to do, with the keys of their notes.

        Cost: 1 read unit if there are none.
        """
        found: dict[str, list[Key]] = {}
        for row in self._rows.all(Query(Table.CONTROL, STEPPING, limit=min(most, PAGE)), most):
            found.setdefault(row.key.sk.partition("#")[0], []).append(row.key)
        return found

    def unpoint(self, keys: Sequence[Key]) -> None:
        """Forget that a batch has something to do."""
        self._rows.engine.write_many([Delete(key, 1) for key in keys])


def awaits(key: Key, batch: Batch) -> bool:
    """Return whether a note was made for a change of a batch that may still be under way."""
    _, back, version = key.sk.partition(BACK)
    return bool(back) and batch.version <= int(version)


def _unmarked(batch: Batch, chunk: int) -> Marks:
    return Marks(Mark.LEFT.value * min(batch.chunk, batch.planned - chunk * batch.chunk))


def _marks_of(row: Row) -> Marks:
    return Marks(cast(str, row.body["m"]), row.version)


def _seconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(seconds=1)


def _entry_text(entry: Entry) -> str:
    died_ms = to_ms(entry.died_at)
    return f"{entry.run_id} {died_ms} {entry.attempt} {entry.fence} {entry.priority.value}"


def _entry_of(text: str) -> Entry:
    run_id, died_ms, attempt, fence, priority = text.split()
    return Entry(
        run_id=run_id,
        died_at=from_ms(int(died_ms)),
        attempt=int(attempt),
        fence=int(fence),
        priority=Priority(priority),
    )


PLAIN = (
    ("w", "why"),
    ("a", "actor"),
    ("r", "reason"),
    ("f", "filter"),
    ("n", "planned"),
    ("ck", "chunk"),
    ("c", "counts"),
    ("t", "tenants"),
    ("x", "skipped_expected"),
    ("wa", "warned"),
    ("ca", "canary"),
    ("ch", "canary_hold"),
    ("cp", "canary_passed"),
    ("wf", "window_from"),
    ("m", "moved"),
    ("sk", "skipped"),
    ("fa", "failed"),
    ("po", "position"),
    ("do", "done"),
    ("by", "confirmed_by"),
    ("pa", "parent"),
    ("pb", "pull_back"),
    ("pu", "pulled"),
    ("se", "settled"),
    ("ow", "owner"),
)
INSTANTS = (
    ("co", "cut_off"),
    ("ol", "oldest"),
    ("ne", "newest"),
    ("cr", "created_at"),
    ("cf", "confirmed_at"),
    ("en", "ended_at"),
    ("pc", "paced_at"),
    ("ou", "owned_until"),
    ("ex", "expires_at"),
)


def encode_batch(batch: Batch) -> dict[str, Any]:
    """Return the body of a batch's row; what is empty is left out."""
    body: dict[str, Any] = {
        "s": batch.state.value,
        "p": batch.priority.value,
        "rl": batch.role.value,
        "ra": _number(batch.rate),
        "br": _number(batch.breaker),
    }
    if batch.cause is not None:
        body["cs"] = batch.cause.value
    if batch.notes:
        body["no"] = list(batch.notes)
    for name, attribute in PLAIN:
        value = getattr(batch, attribute)
        if value:
            body[name] = value
    for name, attribute in INSTANTS:
        value = getattr(batch, attribute)
        if value is not None:
            body[name] = to_ms(value)
    return body


def decode_batch(row: Row) -> Batch:
    """Return the batch in a row."""
    body = cast(Mapping[str, Any], row.body)
    fields = {attribute: body[name] for name, attribute in PLAIN if name in body}
    fields |= {attribute: from_ms(body[name]) for name, attribute in INSTANTS if name in body}
    fields = {"actor": "", "filter": "", "planned": 0, **fields}
    rate = body["ra"]
    return Batch(
        batch_id=row.key.sk,
        state=BatchState(body["s"]),
        cause=PauseCause(body["cs"]) if "cs" in body else None,
        notes=tuple(body.get("no", ())),
        rate=None if rate is None else float(rate),
        breaker=float(body["br"]),
        priority=Priority(body["p"]),
        role=Role(body["rl"]),
        version=row.version,
        **fields,
    )


def _number(value: float | None) -> float | None:
    """Return a number as it is stored: whole ones as such, so that every engine agrees."""
    return int(value) if value is not None and value == int(value) else value
