"""Control rows: the map, worker sessions, dispatcher cursors, tenants and permits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from dynsched.domain.instants import from_ms, to_ms
from dynsched.domain.job import Priority
from dynsched.errors import NotInitialised
from dynsched.storage.engine import (
    Applied,
    Body,
    Delete,
    Json,
    Key,
    Outcome,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
)
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.placement import (
    QUEUES,
    SESSIONS,
    TENANTS,
    MapEntry,
    Topology,
    cursor_key,
    map_key,
    queue_key,
    session_key,
    submission_key,
    tenant_key,
)
from dynsched.storage.rows import PAGE, Rows

ROWS_VERSION = 1  # of the meaning of all rows; two versions refuse each other's store
SESSIONS_MAX = 20_000
MAIL_TRIES = 10
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A worker process's row: while it lives, so do the leases that name it.

    Attributes:
        open: False once it was closed, by its owner or by a reaper.
        expires_at: end of the last heartbeat's lease.
        mail: run ids (with fence) whose holder is asked to stop.
        closed_at: when it was closed.
        reads: how often its partition was read since.
        by_owner: its owner closed it.
        lock: path of the file that its process holds locked on its host.
        handlers: names of the handlers it has; None if it does not say, as they are too many.
        commands: it may run shell commands; None if it does not say.
    """

    session: str
    open: bool = True
    started_at: datetime
    expires_at: datetime
    mail: tuple[str, ...] = ()
    closed_at: datetime | None = None
    reads: int = 0
    by_owner: bool = False
    host: str = ""
    pid: int = 0
    slots: int = 0
    queues: tuple[str, ...] = ()
    lock: str = ""
    handlers: tuple[str, ...] | None = None
    commands: bool | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a shard's minutes have been read and found empty.

    Attributes:
        minute: the first minute that may still hold entries.
        reread: for each re-reading, the first minute that it has not read yet.
        owner: the dispatcher that serves the shard (soft: correctness does not rest on it).
        owned_until: when others may take it over.
    """

    kind: str
    shard: int
    minute: int
    reread: tuple[int, ...] = ()
    owner: str = ""
    owned_until: datetime | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant's settings.

    Attributes:
        max_running: most runs leased at once; None is no cap.
    """

    name: str
    max_running: int | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """A right to run, named by the run and the fence that hold it; nothing ever releases it.

    It is free when the run that it names is not leased under the fence that it names.

    Attributes:
        holder: (run id, fence), None if it was never held.
        waiter: for overlap, the run id that waits for it.
    """

    key: Key
    holder: tuple[str, int] | None = None
    waiter: str | None = None
    version: int = 0


class ControlStore:
    """Verbs on control rows; every write is guarded by the version seen."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    # the map

    def read_map(self) -> Topology | None:
        """Read the map, strongly; None before `init`.

        Raises:
            NotInitialised: the store was written by a version with other rows.
        """
        row = self._rows.engine.get(map_key())
        if row is None:
            return None
        body = cast(Mapping[str, Any], row.body)
        if body["v"] != ROWS_VERSION:
            raise NotInitialised(
                f"the store has rows of version {body['v']}, this program writes {ROWS_VERSION}:"
                " run the program's version that made the store"
            )
        entries = tuple(MapEntry(*item) for item in body["m"])
        queues = tuple(
            MessageQueue(queue=queue, priority=Priority(priority), url=url)
            for queue, priority, url in body.get("mq", ())
        )
        return Topology(entries, body["la"] * SECOND / 1000, body["ke"], row.version, queues)

    def write_map(self, topology: Topology) -> bool:
        """Write the map as the next version of the one seen."""
        entries = [[e.from_minute, e.shards, e.lanes, e.spread] for e in topology.entries]
        look_ahead_ms = topology.look_ahead // timedelta(milliseconds=1)
        body: dict[str, Any] = {
            "v": ROWS_VERSION,
            "m": entries,
            "la": look_ahead_ms,
            "ke": topology.keep_ended,
        }
        queues = [[one.queue, one.priority.value, one.url] for one in topology.message_queues]
        if queues:
            body["mq"] = queues
        return self._put(Row(map_key(), body), topology.version)

    def _put(self, row: Row, seen: int) -> bool:
        return isinstance(self._write(row, seen), Applied)

    def _write(self, row: Row, seen: int, *, durable: bool = False) -> Outcome:
        """Write a row whose version was `seen` (0 = did not exist)."""
        tokened = replace(row, token=self._rows.token())
        write = Replace(tokened, seen) if seen else PutNew(tokened)
        return self._rows.engine.write(write, durable=durable)

    # sessions

    def write_session(self, session: Session) -> Session | None:
        """Write the next version of a session; None if somebody else wrote first."""
        outcome = self._write(_session_row(session), session.version)
        return (
            replace(session, version=session.version + 1) if isinstance(outcome, Applied) else None
        )

    def session(self, session: str) -> Session | None:
        """Read a session, strongly."""
        row = self._rows.engine.get(session_key(session))
        return None if row is None else _decode_session(row)

    def sessions(self) -> list[Session]:
        """Read all sessions by one strong query of their partition."""
        query = Query(Table.CONTROL, SESSIONS, limit=PAGE)
        return [_decode_session(row) for row in self._rows.all(query, SESSIONS_MAX)]

    def delete_session(self, session: Session) -> None:
        """Delete a closed session's row once nothing can be found under it any more."""
        self._rows.engine.write(Delete(session_key(session.session), session.version))

    def leave_mail(self, session: str, mail: str) -> bool:
        """Append to an open session's mailbox; False if it is closed or gone.

        Heartbeats are guarded by the row's version, so mail is never overwritten unread.
        """
        for _ in range(MAIL_TRIES):
            row = self.session(session)
            if row is None or not row.open:
                return False
            if mail in row.mail:
                return True
            if self.write_session(replace(row, mail=(*row.mail, mail))) is not None:
                return True
        return False

    # cursors

    def cursors(self, kind: str, shards: int) -> list[Cursor | None]:
        """Read the cursors of a kind, strongly, one for each shard; None where there is none."""
        keys = [cursor_key(kind, shard) for shard in range(shards)]
        rows = self._rows.engine.get_many(keys)
        return [None if row is None else _decode_cursor(row) for row in rows]

    def write_cursor(self, cursor: Cursor) -> Cursor | None:
        """Write the next version of a cursor; None if somebody else wrote first."""
        body: dict[str, Any] = {"k": cursor.kind, "s": cursor.shard, "m": cursor.minute}
        if cursor.reread:
            body["rr"] = list(cursor.reread)
        if cursor.owner and cursor.owned_until is not None:
            body["o"], body["u"] = cursor.owner, to_ms(cursor.owned_until)
        row = Row(cursor_key(cursor.kind, cursor.shard), body)
        if not self._put(row, cursor.version):
            return None
        return replace(cursor, version=cursor.version + 1)

    # tenants

    def tenants(self, names: Sequence[str]) -> dict[str, Tenant]:
        """Read tenants' settings, strongly; one without a row has the defaults."""
        rows = self._rows.engine.get_many([tenant_key(name) for name in names])
        return {
            name: Tenant(name=name) if row is None else _decode_tenant(row)
            for name, row in zip(names, rows, strict=True)
        }

    def all_tenants(self, *, most: int, after: str = "") -> list[Tenant]:
        """Read the tenants that have jobs or settings, in the order of their names."""
        query = Query(Table.CONTROL, TENANTS, after=after, limit=min(most, PAGE))
        return [_decode_tenant(row) for row in self._rows.all(query, most)]

    def write_tenant(self, tenant: Tenant) -> bool:
        """Write the next version of a tenant's settings."""
        body: Body = {} if tenant.max_running is None else {"mr": tenant.max_running}
        return self._put(Row(tenant_key(tenant.name), body), tenant.version)

    def note_use(self, tenant: str, queue: str) -> None:
        """Note that a tenant and a queue are in use, so that views find them."""
        token = self._rows.token
        self._rows.engine.write_many(
            [
                PutNew(Row(tenant_key(tenant), {}, token=token())),
                PutNew(Row(queue_key(queue), {}, token=token())),
            ]
        )

    def queues(self, *, most: int) -> list[str]:
        """Read the names of the queues in use, in their order."""
        query = Query(Table.CONTROL, QUEUES, limit=min(most, PAGE))
        return [row.key.sk for row in self._rows.all(query, most)]

    def submit_once(
        self, job_id: str, key: str, run_id: str, digest: str, expires_at_s: int
    ) -> tuple[str, str]:
        """Guard an enqueue's idempotency key; return the run id and payload digest it stands for.

        The first submission wins; a later one with the same key is given the first one's run.
        """
        row = Row(submission_key(job_id, key), {"r": run_id, "d": digest}, None, expires_at_s)
        outcome = self._write(row, 0, durable=True)
        if isinstance(outcome, Stale) and outcome.current is not None:
            body = outcome.current.body
            return cast(str, body["r"]), cast(str, body["d"])
        return run_id, digest

    # permits

    def permits(self, keys: Sequence[Key]) -> list[Permit]:
        """Read permits, strongly; one that was never written is free."""
        rows = self._rows.engine.get_many(keys)
        return [
            Permit(key) if row is None else _decode_permit(row)
            for key, row in zip(keys, rows, strict=True)
        ]

    def write_permits(self, permits: Sequence[Permit]) -> list[bool]:
        """Write the next versions of distinct permits; True for each that was written."""
        writes = []
        for permit in permits:
            holder: Json = None if permit.holder is None else [*permit.holder]
            body: Body = {"h": holder, "w": permit.waiter}
            row = Row(permit.key, body, token=self._rows.token(), version=permit.version)
            writes.append(Replace(row, permit.version) if permit.version else PutNew(row))
        outcomes = self._rows.engine.write_many(writes) if writes else []
        return [isinstance(outcome, Applied) for outcome in outcomes]

    def freed_mark(self, key: Key) -> int | None:
        """Read the hint which permit of a tenant was freed last."""
        row = self._rows.engine.get(key)
        return None if row is None else cast(int, row.body["i"])

    def write_freed_mark(self, key: Key, number: int) -> None:
        """Leave the hint; a lost race does no harm."""
        row = self._rows.engine.get(key)
        outcome = self._write(Row(key, {"i": number}), 0 if row is None else row.version)
        assert isinstance(outcome, Applied | Stale)


def _session_row(session: Session) -> Row:
    body: dict[str, Any] = {
        "st": to_ms(session.started_at),
        "x": to_ms(session.expires_at),
        "ho": session.host,
        "pid": session.pid,
        "sl": session.slots,
        "q": list(session.queues),
        "lk": session.lock,
    }
    if session.handlers is not None:
        body["h"] = list(session.handlers)
    if session.commands is not None:
        body["cm"] = session.commands
    if session.mail:
        body["ml"] = list(session.mail)
    if not session.open and session.closed_at is not None:
        body |= {"cl": to_ms(session.closed_at), "rd": session.reads, "ow": session.by_owner}
    return Row(session_key(session.session), body)


def _decode_session(row: Row) -> Session:
    body = cast(Mapping[str, Any], row.body)
    closed, handlers = body.get("cl"), body.get("h")
    return Session(
        session=row.key.sk,
        open=closed is None,
        started_at=from_ms(body["st"]),
        expires_at=from_ms(body["x"]),
        mail=tuple(body.get("ml", ())),
        closed_at=None if closed is None else from_ms(closed),
        reads=body.get("rd", 0),
        by_owner=body.get("ow", False),
        host=body["ho"],
        pid=body["pid"],
        slots=body["sl"],
        queues=tuple(body["q"]),
        lock=body["lk"],
        handlers=None if handlers is None else tuple(handlers),
        commands=body.get("cm"),
        version=row.version,
    )


def _decode_cursor(row: Row) -> Cursor:
    body = cast(Mapping[str, Any], row.body)
    return Cursor(
        kind=body["k"],
        shard=body["s"],
        minute=body["m"],
        reread=tuple(body.get("rr", ())),
        owner=body.get("o", ""),
        owned_until=from_ms(body["u"]) if "u" in body else None,
        version=row.version,
    )


def _decode_tenant(row: Row) -> Tenant:
    max_running = cast("int | None", row.body.get("mr"))
    return Tenant(name=row.key.sk, max_running=max_running, version=row.version)


def _decode_permit(row: Row) -> Permit:
    body = cast(Mapping[str, Any], row.body)
    holder = body.get("h")
    return Permit(
        row.key, None if holder is None else (holder[0], holder[1]), body.get("w"), row.version
    )
