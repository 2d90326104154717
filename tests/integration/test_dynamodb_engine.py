"""What is particular to DynamoDB in its engine: faults, paging, transactions, tables."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore import exceptions as aws
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from tests.contract.dynamo_backends import (
    REGION,
    dummy_credentials,
    fresh_prefix,
    ministack_url,
    on_ministack,
    on_moto,
)
from urllib3 import HTTPResponse

from dynsched.errors import (
    ClockSkewed,
    InvalidInput,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    Throttled,
    Unavailable,
)
from dynsched.storage.dynamodb import BATCH_GET_TRIES, EMPTY_PAGES_MAX, DynamoEngine
from dynsched.storage.engine import (
    Applied,
    Delete,
    Engine,
    Key,
    PutNew,
    Query,
    Replace,
    Row,
    Stale,
    Table,
)
from dynsched.storage.item import to_item
from dynsched.storage.schema import load_schema
from dynsched.storage.tables import POLLS_MAX, creation

WRITE = "w1"
KEY = Key(Table.RUNS, "job", "1")
ROW = Row(key=KEY, body={"state": "ready"}, token=WRITE)
DATE = "Sun, 01 Mar 2026 09:00:00 GMT"

Answer = tuple[int, dict[str, Any]] | Exception


class Wire:
    """Stands in for the network: answers the client's requests from a list, and keeps them."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.waits: list[float] = []

    def answer(self, request: AWSPreparedRequest, event_name: str, **_: object) -> AWSResponse:
        """Give the next answer of the list, the last one again and again."""
        assert isinstance(request.body, bytes)
        self.requests.append((event_name.rsplit(".", maxsplit=1)[-1], json.loads(request.body)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        raw = HTTPResponse(io.BytesIO(json.dumps(body).encode()), preload_content=False)
        return AWSResponse(request.url, status, HTTPHeaders.from_dict({"date": DATE}), raw)

    def operations(self) -> list[str]:
        """Return the operations asked for, in order."""
        return [operation for operation, _ in self.requests]


def error(code: str, status: int = 400, message: str = "the message", **fields: Any) -> Answer:
    """Return an error as DynamoDB would answer it."""
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
    return status, body | fields


@pytest.fixture
def wire() -> Wire:
    """Give a network that answers nothing yet."""
    return Wire()


@pytest.fixture
def engine(wire: Wire) -> Iterator[DynamoEngine]:
    """Give an engine with one worker whose client talks to `wire`."""
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    with dummy_credentials():
        client = boto3.client("dynamodb", region_name=REGION, config=config)
    # The stubs do not know that this event takes an answer.
    client.meta.events.register("before-send.dynamodb", wire.answer)  # type: ignore[arg-type]
    with closing(
        DynamoEngine("p", client=client, max_workers=1, wait=wire.waits.append)
    ) as scripted:
        yield scripted


@pytest.fixture
def moto_engine() -> Iterator[Engine]:
    """Give an engine on moto."""
    with on_moto() as engine:
        yield engine


@pytest.fixture
def ministack_engine() -> Iterator[Engine]:
    """Give an engine on ministack."""
    with on_ministack() as engine:
        yield engine


# Faults


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error("ProvisionedThroughputExceededException"), Throttled),
        (error("ThrottlingException"), Throttled),
        (error("RequestLimitExceeded"), Throttled),
        (error("TransactionConflictException"), Throttled),
        (error("InternalServerError", 500), OutcomeUnknown),
        (error("ServiceUnavailable", 503), OutcomeUnknown),
        (error("ResourceNotFoundException"), NotInitialised),
        (error("AccessDeniedException"), StoreError),
        (error("UnrecognizedClientException"), StoreError),
        (error("InvalidSignatureException", message="Signature expired: it is"), ClockSkewed),
        (error("ValidationException", message="Item size has exceeded"), InvalidInput),
        (error("ValidationException", message="Missing the key pk in the item"), NotInitialised),
        (error("SomethingNewException"), StoreError),
        (aws.EndpointConnectionError(endpoint_url="u"), Unavailable),
        (aws.ConnectTimeoutError(endpoint_url="u"), Unavailable),
        (aws.SSLError(endpoint_url="u", error=OSError("CERTIFICATE_VERIFY_FAILED")), Unavailable),
        (aws.SSLError(endpoint_url="u", error=OSError("EOF occurred")), OutcomeUnknown),
        (aws.ReadTimeoutError(endpoint_url="u"), OutcomeUnknown),
        (aws.ConnectionClosedError(endpoint_url="u"), OutcomeUnknown),
        (aws.NoCredentialsError(), StoreError),
        (aws.CredentialRetrievalError(provider="sso", error_msg="expired"), StoreError),
    ],
)
def test_a_failed_write_says_whether_it_may_have_been_applied(
    engine: Engine, wire: Wire, answer: Answer, expected: type[Exception]
) -> None:
    """Each fault of a write has its error, and only lost answers leave the outcome open."""
    wire.answers = [answer]
    with pytest.raises((StoreError, InvalidInput)) as raised:
        engine.write(PutNew(ROW))
    assert raised.type is expected


@pytest.mark.parametrize(
    "answer",
    [
        error("InternalServerError", 500),
        aws.ReadTimeoutError(endpoint_url="u"),
        aws.ConnectionClosedError(endpoint_url="u"),
        aws.EndpointConnectionError(endpoint_url="u"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda engine: engine.get(KEY),
        lambda engine: engine.get_many([KEY]),
        lambda engine: engine.query(Query(Table.RUNS, "job")),
        lambda engine: engine.scan(Table.RUNS, 10),
    ],
)
def test_a_read_without_an_answer_is_unavailable(
    engine: Engine, wire: Wire, answer: Answer, read: Callable[[Engine], object]
) -> None:
    """A read changes nothing, so a lost answer is never an unknown outcome."""
    wire.answers = [answer]
    with pytest.raises(Unavailable):
        read(engine)


def test_the_engine_repeats_no_write_by_itself(engine: Engine, wire: Wire) -> None:
    """A repeated guarded write would be refused by its own first try."""
    wire.answers = [error("InternalServerError", 500)]
    with pytest.raises(OutcomeUnknown):
        engine.write(PutNew(ROW))
    assert wire.operations() == ["PutItem"]


@pytest.mark.usefixtures("moto_engine")
def test_a_missing_table_names_the_command_that_makes_it() -> None:
    """Whoever starts a worker before `init` is told what to run."""
    with (
        closing(DynamoEngine("none", region=REGION)) as engine,
        pytest.raises(NotInitialised, match=r"none-runs.*run `dynsched init --store"),
    ):
        engine.get(KEY)


def test_a_table_that_is_being_made_is_only_unavailable(engine: Engine, wire: Wire) -> None:
    """A table that will be there in a moment is no reason to give up."""
    wire.answers = [
        error("ResourceNotFoundException"),
        (200, {"Table": {"TableStatus": "CREATING"}}),
    ]
    with pytest.raises(Unavailable, match="still being made"):
        engine.write(PutNew(ROW))


def test_no_region_is_told_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing region fails at once and says where to set it."""
    with dummy_credentials():
        monkeypatch.delenv("AWS_DEFAULT_REGION")
        with pytest.raises(InvalidInput, match="AWS_REGION"):
            DynamoEngine("p")


@pytest.mark.parametrize("prefix", ["", "a b", "ü", "x" * 201])
def test_a_prefix_that_no_table_can_have_is_refused(prefix: str) -> None:
    """A bad prefix is told as such, not by the first call."""
    with pytest.raises(InvalidInput, match="prefix"):
        DynamoEngine(prefix, region=REGION)


def test_the_store_time_is_that_of_the_last_answer(engine: Engine, wire: Wire) -> None:
    """The Date of an answer is the store's clock; a refusal has one, too."""
    assert engine.store_time() is None
    wire.answers = [error("ThrottlingException")]
    with pytest.raises(Throttled):
        engine.get(KEY)
    assert engine.store_time() == datetime(2026, 3, 1, 9, tzinfo=UTC)


# Writes


def test_a_refusal_without_the_row_reads_it_strongly(engine: Engine, wire: Wire) -> None:
    """An endpoint that does not return the row that refused a write is asked for it."""
    wire.answers = [
        error("ConditionalCheckFailedException"),
        (200, {"Item": to_item(ROW, 7)}),
    ]
    outcome = engine.write(Replace(ROW, seen=6))
    assert isinstance(outcome, Stale)
    assert outcome.current is not None
    assert outcome.current.version == 7
    assert wire.requests[1][1]["ConsistentRead"] is True


def test_a_row_outside_the_index_has_no_index_attributes(engine: Engine, wire: Wire) -> None:
    """DynamoDB takes no empty index key: the attributes are left out, so the index is sparse."""
    wire.answers = [(200, {})]
    engine.write(PutNew(ROW))
    assert wire.requests[0][1]["Item"].keys() == {"pk", "sk", "ver", "tok", "body"}


@pytest.mark.parametrize(
    "row",
    [
        Row(key=Key(Table.RUNS, "", "1"), body={}),
        Row(key=Key(Table.RUNS, "a", "x" * 1025), body={}),
        Row(key=Key(Table.RUNS, "\ud800", "1"), body={}),
        Row(key=KEY, body={}, index=("ready#main", "")),
        Row(key=KEY, body={"payload": "x" * 400 * 1024}),
        Row(key=KEY, body={"rate": float("nan")}),
        Row(key=Key(Table.CONTROL, "cursor", "0"), body={}, index=("a", "b")),
    ],
)
def test_a_row_that_dynamodb_cannot_store_is_refused_before_anything_is_sent(
    engine: Engine, wire: Wire, row: Row
) -> None:
    """Bad input is told as such and leaves the other writes of the batch unsent."""
    with pytest.raises(InvalidInput):
        engine.write_many([PutNew(Row(key=Key(Table.RUNS, "ok", "1"), body={})), PutNew(row)])
    assert wire.requests == []


def test_two_writes_of_one_row_are_refused(engine: Engine) -> None:
    """Concurrent writes of one row have no order, so they are no batch."""
    with pytest.raises(InvalidInput, match="same key"):
        engine.write_many([PutNew(ROW), Delete(KEY, seen=1)])


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(200, {}), error("ThrottlingException")], OutcomeUnknown),
        ([error("ThrottlingException"), error("InternalServerError", 500)], OutcomeUnknown),
        ([error("ThrottlingException"), error("ThrottlingException")], Throttled),
        ([error("ThrottlingException"), error("AccessDeniedException")], StoreError),
        ([error("ThrottlingException"), error("ResourceNotFoundException")], NotInitialised),
    ],
)
def test_a_batch_raises_what_is_true_of_all_its_writes(
    engine: Engine, wire: Wire, answers: list[Answer], expected: type[Exception]
) -> None:
    """Only when nothing can have been written the batch may be told to be repeatable."""
    wire.answers = answers
    other = Row(key=Key(Table.RUNS, "job", "2"), body={})
    with pytest.raises(StoreError) as raised:
        engine.write_many([PutNew(ROW), PutNew(other)])
    assert raised.type is expected


def test_a_batch_answers_in_the_order_of_its_writes(ministack_engine: Engine) -> None:
    """Concurrent calls keep their places, and a lost race in between is a result."""
    keys = [Key(Table.RUNS, "job", f"{number:03}") for number in range(40)]
    ministack_engine.write(PutNew(Row(key=keys[7], body={"n": -1})))
    outcomes = ministack_engine.write_many(
        [PutNew(Row(key=key, body={"n": place})) for place, key in enumerate(keys)]
    )
    assert [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Stale)] == [7]
    rows = ministack_engine.get_many(keys)
    assert [row.body["n"] for row in rows if row] == [*range(7), -1, *range(8, 40)]


@pytest.mark.parametrize(
    "body",
    [
        {"text": "lone \ud800 surrogate"},
        {"text": 'nul \x00 and quote " and \U0001f680'},
        {"big": 2**200, "small": 5e-324, "nested": [{"a": [None, True, {}]}]},
    ],
)
def test_a_body_comes_back_as_it_was(ministack_engine: Engine, body: dict[str, Any]) -> None:
    """Whatever JSON can say survives the store."""
    ministack_engine.write(PutNew(Row(key=KEY, body=body)))
    stored = ministack_engine.get(KEY)
    assert stored is not None
    assert stored.body == body


# Transactions


def cancelled(*reasons: dict[str, Any]) -> Answer:
    """Return a cancelled transaction."""
    return error("TransactionCanceledException", CancellationReasons=list(reasons))


PASSED = {"Code": "None"}
OTHER = Row(key=Key(Table.JOBS, "job", "job"), body={})


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ({"Code": "TransactionConflict", "Message": "ongoing"}, Throttled),
        ({"Code": "ProvisionedThroughputExceeded", "Message": "more"}, Throttled),
        ({"Code": "ThrottlingError", "Message": "more"}, Throttled),
        ({"Code": "ValidationError", "Message": "too big"}, InvalidInput),
        ({"Code": "SomethingNew", "Message": "well"}, StoreError),
    ],
)
def test_a_cancelled_transaction_tells_its_reason(
    engine: Engine, wire: Wire, reason: dict[str, str], expected: type[Exception]
) -> None:
    """A conflict may be repeated, bad input may not, and the reason is in the message."""
    wire.answers = [cancelled(PASSED, reason)]
    with pytest.raises((StoreError, InvalidInput), match=reason["Message"]) as raised:
        engine.transact([PutNew(ROW), PutNew(OTHER)])
    assert raised.type is expected


def test_a_failed_guard_outweighs_a_conflict(engine: Engine, wire: Wire) -> None:
    """A repetition cannot mend a failed guard, so the lost race is the answer."""
    item = to_item(OTHER, 3)
    refused = {"Code": "ConditionalCheckFailed", "Message": "failed", "Item": item}
    wire.answers = [cancelled({"Code": "TransactionConflict", "Message": "ongoing"}, refused)]
    first, second = engine.transact([PutNew(ROW), Replace(OTHER, seen=2)])
    assert first == Stale(None)
    assert isinstance(second, Stale)
    assert second.current is not None
    assert second.current.version == 3


def test_a_transaction_is_all_or_nothing(ministack_engine: Engine) -> None:
    """One failed guard leaves every row as it was, and the row that refused it is told."""
    ministack_engine.write(PutNew(ROW))
    outcomes = ministack_engine.transact([PutNew(OTHER), Replace(ROW, seen=9)])
    assert all(isinstance(outcome, Stale) for outcome in outcomes)
    assert ministack_engine.get(OTHER.key) is None
    outcomes = ministack_engine.transact([PutNew(OTHER), Delete(KEY, seen=1)])
    assert all(isinstance(outcome, Applied) for outcome in outcomes)
    assert ministack_engine.get_many([OTHER.key, KEY])[1] is None


def test_a_transaction_has_a_bound(engine: Engine) -> None:
    """More writes than the protocol promises are refused."""
    rows = [Row(key=Key(Table.RUNS, "job", str(number)), body={}) for number in range(26)]
    with pytest.raises(InvalidInput, match="at most 25"):
        engine.transact([PutNew(row) for row in rows])


# Batches of reads


def unprocessed(*keys: str) -> dict[str, Any]:
    """Return the part of an answer that leaves these rows unread."""
    wanted = [{"pk": {"S": "job"}, "sk": {"S": key}} for key in keys]
    return {"p-runs": {"Keys": wanted, "ConsistentRead": True}} if keys else {}


def test_keys_left_unread_are_asked_for_again(engine: Engine, wire: Wire) -> None:
    """A batch that comes in parts is put together, in the order of the keys."""
    rows = [Row(key=Key(Table.RUNS, "job", name), body={}, version=1) for name in "abc"]
    items = [to_item(row, 1) for row in rows]
    wire.answers = [
        (200, {"Responses": {"p-runs": items[2:]}, "UnprocessedKeys": unprocessed("a", "b")}),
        (200, {"Responses": {"p-runs": items[:2]}, "UnprocessedKeys": {}}),
    ]
    assert engine.get_many([row.key for row in rows]) == rows
    assert wire.requests[1][1]["RequestItems"]["p-runs"]["ConsistentRead"] is True


def test_a_batch_that_stays_unread_is_throttled(engine: Engine, wire: Wire) -> None:
    """Repetition is bounded, with growing pauses in between."""
    wire.answers = [(200, {"Responses": {}, "UnprocessedKeys": unprocessed("1")})]
    with pytest.raises(Throttled, match="p-runs"):
        engine.get_many([KEY])
    assert len(wire.requests) == BATCH_GET_TRIES
    assert wire.waits == sorted(wire.waits)


def test_many_rows_are_read_by_hundreds_and_each_once(ministack_engine: Engine) -> None:
    """250 keys of two tables, some twice and some absent, come back in their places."""
    keys = [Key(table, "job", str(n)) for n in range(110) for table in (Table.RUNS, Table.JOBS)]
    rows = [Row(key=key, body={"n": n}, version=1) for n, key in enumerate(keys) if n % 3]
    ministack_engine.write_many([PutNew(row) for row in rows])
    by_key = {row.key: row for row in rows}
    asked = keys + keys[:30]
    assert ministack_engine.get_many(asked) == [by_key.get(key) for key in asked]


# Pages


def page(*names: str, more: str = "") -> Answer:
    """Return an answer to a query: these rows, and perhaps the key to go on from."""
    items = [to_item(Row(key=Key(Table.RUNS, "job", name), body={}), 1) for name in names]
    last = {"LastEvaluatedKey": {"pk": {"S": "job"}, "sk": {"S": more}}} if more else {}
    return 200, {"Items": items} | last


def test_an_empty_page_with_a_cursor_is_stepped_over(engine: Engine, wire: Wire) -> None:
    """DynamoDB may answer nothing and still have more: no caller has to know."""
    wire.answers = [page(more="a"), page(more="b"), page("c")]
    found = engine.query(Query(Table.RUNS, "job"))
    assert [row.key.sk for row in found.rows] == ["c"]
    assert found.cursor is None
    starts = [body.get("ExclusiveStartKey", {}).get("sk") for _, body in wire.requests]
    assert starts == [None, {"S": "a"}, {"S": "b"}]


def test_endless_empty_pages_end_in_an_honest_answer(engine: Engine, wire: Wire) -> None:
    """The number of steps is bounded; the cursor says that there may be more."""
    wire.answers = [page(more="a")]
    found = engine.query(Query(Table.RUNS, "job"))
    assert (list(found.rows), found.cursor is None) == ([], False)
    assert len(wire.requests) == EMPTY_PAGES_MAX


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_both_bounds_of_a_query_are_outside(
    moto_engine: Engine, limit: int, descending: bool
) -> None:
    """BETWEEN takes its bounds in, the protocol leaves them out; pages stay complete."""
    for name in "abcdef":
        moto_engine.write(PutNew(Row(key=Key(Table.RUNS, "job", name), body={})))
    query = Query(Table.RUNS, "job", after="b", before="e", limit=limit, descending=descending)
    found, cursor = [], None
    for _ in range(10):
        answer = moto_engine.query(query, cursor)
        found += [row.key.sk for row in answer.rows]
        cursor = answer.cursor
        if cursor is None:
            break
    assert found == (["d", "c"] if descending else ["c", "d"])


@pytest.mark.parametrize(("after", "before"), [("b", "b"), ("c", "b"), ("", "")])
def test_an_empty_range_asks_nothing(engine: Engine, wire: Wire, after: str, before: str) -> None:
    """DynamoDB refuses a range that ends before it begins; here it is just empty."""
    assert engine.query(Query(Table.RUNS, "job", after=after, before=before)).cursor is None
    assert wire.requests == []


def test_a_cursor_goes_on_between_rows_of_one_index_key(ministack_engine: Engine) -> None:
    """Rows that share an index key come each once, page by page."""
    keys = [Key(Table.RUNS, f"job{number}", "1") for number in range(7)]
    index = ("ready#main", "same")
    ministack_engine.write_many([PutNew(Row(key=key, body={}, index=index)) for key in keys])
    found, cursor = [], None
    for _ in range(10):
        answer = ministack_engine.query(
            Query(Table.RUNS, "ready#main", index=True, limit=3), cursor
        )
        found += [row.key for row in answer.rows]
        cursor = answer.cursor
        if cursor is None:
            break
    assert sorted(found, key=lambda key: key.pk) == keys


@pytest.mark.parametrize("cursor", ["", "x", "bm8=", "WyJhIl0=", "é", "WyJqb2IiLCAiYSJd"])
def test_a_cursor_of_another_list_is_refused(engine: Engine, cursor: str) -> None:
    """A cursor comes back through a browser, so it may be anything."""
    with pytest.raises(InvalidInput, match="cursor"):
        engine.query(Query(Table.RUNS, "job", index=True), cursor)


def test_a_limit_below_one_is_refused(engine: Engine) -> None:
    """An empty page that says it is all would hide rows."""
    with pytest.raises(InvalidInput, match="limit"):
        engine.scan(Table.RUNS, 0)


def test_a_table_without_an_index_has_none_to_query(engine: Engine) -> None:
    """The schema file says which tables have an index."""
    with pytest.raises(InvalidInput, match="control has none"):
        engine.query(Query(Table.CONTROL, "x", index=True))


def test_an_item_of_somebody_else_is_named(engine: Engine, wire: Wire) -> None:
    """A foreign item in a table is told by its key, not by a missing attribute alone."""
    wire.answers = [(200, {"Item": {"pk": {"S": "job"}, "sk": {"S": "odd"}}})]
    with pytest.raises(StoreError, match=r"odd.*no dynsched row"):
        engine.get(KEY)


# Tables


def test_init_may_be_repeated(ministack_engine: Engine) -> None:
    """A second init makes nothing and keeps what is stored."""
    ministack_engine.write(PutNew(ROW))
    assert ministack_engine.init() is False
    assert ministack_engine.get(KEY) is not None


def test_concurrent_inits_make_the_tables_once() -> None:
    """Two operators who start a store at once both succeed."""
    prefix, url = fresh_prefix(), ministack_url()
    with dummy_credentials():
        engines = [DynamoEngine(prefix, region=REGION, endpoint_url=url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(DynamoEngine.init, engines))
    outcomes = [engine.write(PutNew(ROW)) for engine in engines]
    for engine in engines:
        engine.close()
    assert any(made)
    assert [isinstance(outcome, Applied) for outcome in outcomes] == [True, False, False, False]


@pytest.mark.usefixtures("moto_engine")
def test_init_sets_the_expiry_attribute() -> None:
    """DynamoDB deletes expired rows by the attribute that rows have."""
    client = boto3.client("dynamodb", region_name=REGION)
    for name in client.list_tables()["TableNames"]:
        expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at_s"}


def test_init_waits_for_a_new_table(engine: Engine, wire: Wire) -> None:
    """Its return means that the tables answer; the wait is bounded."""
    wire.answers = [(200, {"Table": {"TableStatus": "CREATING"}})]
    with pytest.raises(Unavailable, match="CREATING after"):
        engine.init()
    assert len(wire.waits) == POLLS_MAX


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda request: _rename_key(request, "sk", "range"), "its key is pk \\+ range, not"),
        (lambda request: request.pop("GlobalSecondaryIndexes"), "it has no index sparse"),
        (lambda request: _index(request).update(IndexName="gsi1"), "it has no index sparse"),
        (
            lambda request: _index(request).update(Projection={"ProjectionType": "KEYS_ONLY"}),
            "projects KEYS_ONLY, not ALL",
        ),
        (lambda request: request["AttributeDefinitions"][1].update(AttributeType="N"), "type N"),
    ],
)
@pytest.mark.usefixtures("moto_engine")
def test_init_names_what_differs_in_a_table_of_somebody_else(
    change: Callable[[dict[str, Any]], None], told: str
) -> None:
    """A table of the same name is neither used nor changed, and the difference is told."""
    request = creation("foreign-runs", load_schema().tables[Table.RUNS])
    change(request)
    used = {p["AttributeName"] for p in _key_parts(request)}
    request["AttributeDefinitions"] = [
        a for a in request["AttributeDefinitions"] if a["AttributeName"] in used
    ]
    boto3.client("dynamodb", region_name=REGION).create_table(**request)
    with (
        closing(DynamoEngine("foreign", region=REGION)) as engine,
        pytest.raises(NotInitialised, match=f"foreign-runs.*{told}"),
    ):
        engine.init()


def test_init_refuses_a_global_table(engine: Engine, wire: Wire) -> None:
    """Between regions the last writer wins, so no lease would hold."""
    table = creation("p-jobs", load_schema().tables[Table.JOBS])
    replicas = [{"RegionName": "us-east-1"}]
    wire.answers = [(200, {"Table": table | {"TableStatus": "ACTIVE", "Replicas": replicas}})]
    with pytest.raises(NotInitialised, match="global table"):
        engine.init()


def _index(request: dict[str, Any]) -> dict[str, Any]:
    index: dict[str, Any] = request["GlobalSecondaryIndexes"][0]
    return index


def _key_parts(request: dict[str, Any]) -> list[dict[str, str]]:
    indexes = request.get("GlobalSecondaryIndexes", [])
    return [part for keyed in (request, *indexes) for part in keyed["KeySchema"]]


def _rename_key(request: dict[str, Any], old: str, new: str) -> None:
    for part in (*request["KeySchema"], *request["AttributeDefinitions"]):
        if part["AttributeName"] == old:
            part["AttributeName"] = new
