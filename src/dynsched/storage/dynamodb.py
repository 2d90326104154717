"""The engine on DynamoDB.

One low-level client for each engine. Every write is a single guarded call, so that a race is
answered by `Stale` with the row that won. The SDK never repeats a call by itself: a repeated
guarded write would be refused by its own first try and be told as a lost race. Repeating is for
`dynsched.storage.steady`, which knows how to settle it.

No exception of botocore leaves this module. What may have reached the store without an answer is
`OutcomeUnknown` for a write and `Unavailable` for a read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore import exceptions as aws
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from dynsched.aws_client import make_client
from dynsched.clock import SystemClock
from dynsched.domain.instants import to_utc
from dynsched.errors import (
    DynschedError,
    InvalidInput,
    NotInitialised,
    StoreError,
    Throttled,
    Unavailable,
)
from dynsched.storage import dynamodb_answers as answers
from dynsched.storage.dynamodb_queries import count_request, counted, query_request
from dynsched.storage.engine import (
    Applied,
    Delete,
    Key,
    Outcome,
    Page,
    PutNew,
    Query,
    Row,
    Stale,
    Table,
    Write,
)
from dynsched.storage.item import (
    BATCH_GET_KEYS,
    INDEX_SORT,
    SORT,
    Item,
    cursor_text,
    from_item,
    key_item,
    start_key,
    to_item,
)
from dynsched.storage.schema import load_schema
from dynsched.storage.tables import describe, make_tables

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

# The guards, all of them. A write without one of these does not exist.
NOT_THERE: Final = "attribute_not_exists(pk)"
"""No item has this key: of any number of concurrent first writes exactly one passes."""
STILL_SEEN: Final = "ver = :seen"
"""Nobody wrote since the caller read version `:seen`. Each write raises `ver` by one, so whoever
read the same version and comes second is refused; false too when the item is gone."""

TRANSACT_WRITES_MAX: Final = 25
"""Writes in one transaction: the protocol's limit, well below DynamoDB's 100."""
BATCH_GET_TRIES: Final = 5
"""BatchGetItem calls in a row that bring nothing before the batch counts as throttled."""
BATCH_GET_PAUSE_S: Final = 0.05
"""Seconds before the rest of a batch is asked for; doubled for each call that brought nothing."""
EMPTY_PAGES_MAX: Final = 16
"""Empty pages with a cursor that one `query` or `scan` steps over by itself."""
CONNECT_TIMEOUT_S: Final = 2.0
READ_TIMEOUT_S: Final = 5.0
"""Half of a heartbeat period at the default lease: a hung call never costs a lease."""

_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")

DATA_VERBS: Final = answers.WRITE_VERBS | {"get_item", "batch_get_item", "query", "scan"}

# A certificate that cannot be verified is found out before anything is sent, too; its exception is
# the one of a broken TLS stream.
_NOT_SENT: Final = (aws.ConnectTimeoutError, aws.EndpointConnectionError, aws.ProxyConnectionError)
_MAYBE_SENT: Final = (
    aws.ChecksumError,
    aws.HTTPClientError,
    aws.IncompleteReadError,
    aws.SSLError,
    ResponseParserError,
)

CLOCK = SystemClock()


class _Refused(Exception):
    """A guard failed; carries DynamoDB's answer."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__("a guard failed")
        self.answer = answer


class _Call(NamedTuple):
    """One guarded write as a request; `stored` is what lies there once it is applied."""

    key: Key
    verb: str
    request: dict[str, Any]
    stored: Row | None


class DynamoEngine:
    """An `Engine` on three DynamoDB tables.

    Args:
        prefix: the first part of the tables' names.
        region: the AWS region; None takes it from the environment.
        endpoint_url: another endpoint than the region's own.
        client: a ready-made low-level client, left open by `close`. It should make no retries of
            its own (`retries={"total_max_attempts": 1}`): a guarded write that it repeats may be
            told as a lost race.
        max_workers: how many calls `write_many` and `get_many` have in flight.
        wait: lets that many seconds pass, while a batch is throttled or a table is being made.

    Raises:
        InvalidInput: the prefix or the endpoint cannot be one, or no region is configured.
    """

    def __init__(
        self,
        prefix: str,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        client: DynamoDBClient | None = None,
        max_workers: int = 16,
        wait: Callable[[float], None] = CLOCK.wait,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise InvalidInput(
                "prefix", f"{prefix!r} cannot begin a table name", "letters, digits, _ . and -"
            )
        self.prefix = prefix
        self._schema = load_schema()
        self._names = {table: self._schema.table_name(prefix, table) for table in Table}
        self._tables = {name: table for table, name in self._names.items()}
        self._own_client = client is None
        self._client = client or _make_client(region, endpoint_url, 2 * max_workers)
        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix="dynsched-dynamodb")
        self._wait = wait
        self._date: str | None = None

    def init(self) -> bool:
        """Make the missing tables, with expiry and back-ups; True if one was made.

        Raises:
            NotInitialised: a table of that name has other keys; names the difference.
        """
        return make_tables(self._send, self._wait, self._schema, self.prefix)

    def get(self, key: Key) -> Row | None:
        """Read one row.

        Consistency: strong. Cost: one read unit for each 4 KB.
        """
        item = self._send(
            "get_item",
            {"TableName": self._names[key.table], "Key": key_item(key), "ConsistentRead": True},
        ).get("Item")
        return None if item is None else from_item(key.table, item)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        """Read rows by hundreds, in the order of `keys`; a key may be given twice.

        Consistency: each row strong, together no snapshot. Cost: one read unit for each 4 KB of
        each row.
        """
        distinct = list(dict.fromkeys(keys))
        batches = [
            distinct[start : start + BATCH_GET_KEYS]
            for start in range(0, len(distinct), BATCH_GET_KEYS)
        ]
        if len(batches) <= 1:
            found = [row for batch in batches for row in self._get_batch(batch)]
        else:
            found = [row for rows in self._pool.map(self._get_batch, batches) for row in rows]
        by_key = {row.key: row for row in found}
        return [by_key.get(key) for key in keys]

    def _get_batch(self, keys: Sequence[Key]) -> list[Row]:
        wanted: dict[str, Any] = {}
        for key in keys:
            entry = wanted.setdefault(self._names[key.table], {"Keys": [], "ConsistentRead": True})
            entry["Keys"].append(key_item(key))
        rows: list[Row] = []
        tries, missing = 0, len(keys)
        while wanted:
            answer = self._send("batch_get_item", {"RequestItems": wanted})
            for name, items in answer.get("Responses", {}).items():
                rows.extend(from_item(self._tables[name], item) for item in items)
            wanted = answer.get("UnprocessedKeys", {})
            left = sum(len(entry["Keys"]) for entry in wanted.values())
            # A batch over 16 MB comes in parts without any throttling: only a call that brings
            # nothing counts as a failed try.
            tries, missing = (0 if left < missing else tries + 1), left
            if tries >= BATCH_GET_TRIES:
                raise Throttled(f"DynamoDB left {left} keys of {', '.join(wanted)} unread")
            if wanted:
                self._wait(BATCH_GET_PAUSE_S * 2**tries)
        return rows

    def query(self, query: Query, cursor: str | None = None) -> Page:
        """Read a page of one partition; empty pages in between are stepped over.

        Consistency: strong on the base table; the index lags behind it.
        Cost: one read unit for each 4 KB of the rows together, half of it on the index.

        Raises:
            InvalidInput: the table has no index, the limit is not positive, or the cursor is not
                one of this query's.
        """
        if query.before is not None and query.before <= query.after:
            return Page(rows=(), cursor=None)
        request = self._query_request(query)
        if cursor is not None:
            request["ExclusiveStartKey"] = start_key(cursor, index=query.index)
        # BETWEEN takes its bounds in, the protocol leaves them out.
        return self._page("query", query.table, request, outside={query.after, query.before})

    def _query_request(self, query: Query) -> dict[str, Any]:
        index = self._index_name(query.table) if query.index else None
        return query_request(query, self._names[query.table], index)

    def count(self, query: Query, most: int) -> int:
        """Count the rows of a query, a request for each MB of them; no body is sent.

        Consistency and cost: those of `query`.

        Raises:
            InvalidInput: the table has no index.
        """
        if most < 1 or (query.before is not None and query.before <= query.after):
            return 0
        request = count_request(self._query_request(query), most)
        outside, found = {query.after, query.before}, 0
        while True:
            answer = self._send("query", request)
            found += counted(request, answer, outside)
            last = answer.get("LastEvaluatedKey")
            if not last or found >= most:
                return min(found, most)
            request["ExclusiveStartKey"] = last

    def scan(self, table: Table, limit: int, cursor: str | None = None) -> Page:
        """Read a page of a whole table, in no order.

        Consistency: strong, so that a sweep or an export misses nothing that was acknowledged.
        Cost: one read unit for each 4 KB of the rows together.
        """
        request = {"TableName": self._names[table], "Limit": limit, "ConsistentRead": True}
        if cursor is not None:
            request["ExclusiveStartKey"] = start_key(cursor, index=False)
        return self._page("scan", table, request, outside=frozenset())

    def _page(
        self, verb: str, table: Table, request: dict[str, Any], outside: Set[str | None]
    ) -> Page:
        if request["Limit"] < 1:
            raise InvalidInput("limit", f"a page of {request['Limit']} rows", "at least 1")
        sort = INDEX_SORT if "IndexName" in request else SORT
        rows: list[Row] = []
        last: Item | None = None
        for _ in range(EMPTY_PAGES_MAX):
            answer = self._send(verb, request)
            rows = [
                from_item(table, item) for item in answer["Items"] if item[sort]["S"] not in outside
            ]
            last = answer.get("LastEvaluatedKey")
            if rows or not last:
                break
            request["ExclusiveStartKey"] = last
        return Page(rows=rows, cursor=cursor_text(last) if last else None)

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make one guarded write; DynamoDB acknowledges none that could be lost.

        Cost: one write unit for each KB of the larger of the old and the new row, or of the row
        that refused it; the index besides (see `dynsched.storage.metering`).
        """
        del durable
        return self._carry_out(self._call(write))

    def write_many(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make independent guarded writes as concurrent calls; see `write`.

        Raises:
            OutcomeUnknown: a call failed, and another was applied or may have been.
            DynschedError: calls failed and nothing was written: the first failure that
                repeating would not mend, else the first.
        """
        del durable
        calls = self._calls(writes)
        if len(calls) <= 1:
            return [self._carry_out(call) for call in calls]
        return answers.settled(list(self._pool.map(self._attempt, calls)))

    def transact(self, writes: Sequence[Write], *, durable: bool = False) -> list[Outcome]:
        """Make up to 25 guarded writes together.

        Cost: twice that of the single writes on the base table, also when it is refused.

        Raises:
            Throttled: another write held one of the rows at that moment, or a table was
                throttled; nothing was written.
        """
        del durable
        if len(writes) > TRANSACT_WRITES_MAX:
            raise InvalidInput(
                "writes", f"{len(writes)} in one transaction", f"at most {TRANSACT_WRITES_MAX}"
            )
        calls = self._calls(writes)
        if not calls:
            return []
        actions = {"put_item": "Put", "delete_item": "Delete"}
        request = {"TransactItems": [{actions[call.verb]: call.request} for call in calls]}
        try:
            self._send("transact_write_items", request)
        except _Refused as refused:
            return self._reasons(calls, refused.answer)
        return [Applied(call.stored) for call in calls]

    def _reasons(self, calls: Sequence[_Call], answer: Mapping[str, Any]) -> list[Outcome]:
        reasons = answer.get("CancellationReasons", [])
        failed = [reason.get("Code") == "ConditionalCheckFailed" for reason in reasons]
        if not any(failed):
            raise answers.cancellation(answer)
        return [
            Stale(self._current(call.key, reason.get("Item")) if guard_failed else None)
            for call, reason, guard_failed in zip(calls, reasons, failed, strict=True)
        ]

    def _calls(self, writes: Sequence[Write]) -> list[_Call]:
        # All of them are built before the first is sent, so that bad input writes nothing.
        if len({write.key for write in writes}) < len(writes):
            raise InvalidInput("writes", "two of them have the same key", "keep one of them")
        return [self._call(write) for write in writes]

    def _call(self, write: Write) -> _Call:
        key = write.key
        request: dict[str, Any] = {
            "TableName": self._names[key.table],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if isinstance(write, PutNew):
            request["ConditionExpression"] = NOT_THERE
            stored = replace(write.row, version=1)
        else:
            request["ConditionExpression"] = STILL_SEEN
            request["ExpressionAttributeValues"] = {":seen": {"N": str(write.seen)}}
            if isinstance(write, Delete):
                return _Call(key, "delete_item", request | {"Key": key_item(key)}, None)
            stored = replace(write.row, version=write.seen + 1)
        if stored.index is not None:
            self._index_name(key.table)
        request["Item"] = to_item(stored, stored.version)
        return _Call(key, "put_item", request, stored)

    def _index_name(self, table: Table) -> str:
        index = self._schema.tables[table].index
        if index is None:
            raise InvalidInput("index", f"table {table} has none", "read it by its key")
        return index.name

    def _carry_out(self, call: _Call) -> Outcome:
        try:
            self._send(call.verb, call.request)
        except _Refused as refused:
            return Stale(self._current(call.key, refused.answer.get("Item")))
        return Applied(call.stored)

    def _attempt(self, call: _Call) -> Outcome | DynschedError:
        try:
            return self._carry_out(call)
        except DynschedError as error:
            return error

    def _current(self, key: Key, item: Item | None) -> Row | None:
        # Without an item there is none, or the endpoint does not return it: the read tells.
        return from_item(key.table, item) if item else self.get(key)

    def store_time(self) -> datetime | None:
        """Return the Date of DynamoDB's last answer, in whole seconds; None before the first."""
        if self._date is None:
            return None
        try:
            return to_utc(parsedate_to_datetime(self._date), "Date")
        except (ValueError, InvalidInput):
            return None

    def purge_expired(self, now_s: int, limit: int) -> int:
        """Do nothing: DynamoDB deletes expired rows by itself, within days."""
        del now_s, limit
        return 0

    def close(self) -> None:
        """Wait for the calls in flight, then release threads and connections."""
        self._pool.shutdown()
        if self._own_client:
            self._client.close()

    def _send(self, verb: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make one call of the client, whose method is `verb`."""
        try:
            answer: Mapping[str, Any] = getattr(self._client, verb)(**request)
        except ClientError as error:
            self._note_date(error.response)
            if answers.error_code(error.response) in answers.GUARD_CODES:
                raise _Refused(error.response) from None
            fault = answers.refusal(verb, request, error.response)
            raise self._while_made(verb, request, fault) from error
        except (BotoCoreError, ResponseParserError) as error:
            raise _unanswered(verb, request, error) from error
        self._note_date(answer)
        return answer

    def _while_made(
        self, verb: str, request: Mapping[str, Any], fault: DynschedError
    ) -> DynschedError:
        """Tell a table that is being made, which mends itself, from one that is missing."""
        if isinstance(fault, NotInitialised) and verb in DATA_VERBS:
            for name in answers.table_names(request):
                with suppress(DynschedError):
                    described = describe(self._send, name)
                    if described is not None and described["TableStatus"] == "CREATING":
                        return Unavailable(f"table {name} is still being made; try again soon")
        return fault

    def _note_date(self, answer: Mapping[str, Any]) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self._date = date


def _make_client(region: str | None, endpoint_url: str | None, pool: int) -> DynamoDBClient:
    client: DynamoDBClient = make_client(
        "dynamodb",
        region,
        endpoint_url,
        Config(
            # Checked in `item` already: a tenth of a call's CPU.
            parameter_validation=False,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=pool,
        ),
    )
    return client


def _unanswered(verb: str, request: Mapping[str, Any], error: Exception) -> StoreError:
    """Return the error for a call that DynamoDB did not answer."""
    where = answers.target(verb, request)
    if isinstance(error, aws.NoCredentialsError):
        return StoreError(
            f"{where} was not sent: no AWS credentials found; set AWS_PROFILE, or give this"
            " process a role"
        )
    if isinstance(error, _NOT_SENT) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Unavailable(f"{where} was not sent: {error}")
    if isinstance(error, _MAYBE_SENT):
        return answers.lost(verb, request, str(error))
    # What is left failed while the request was being made: credentials, profile, endpoint.
    return StoreError(f"{where} was not sent: {error}; check the AWS credentials and settings")
