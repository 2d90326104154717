"""What is particular to DynamoDB in its engine: faults, writes, transactions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions as aws

from dynsched.errors import (
    ClockSkewed,
    InvalidInput,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    Throttled,
    Unavailable,
)
from dynsched.storage.dynamodb import DynamoEngine
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
    Write,
)
from dynsched.storage.item import to_item
from dynsched.storage.metering import UNLABELLED, MeteringEngine
from tests.contract.dynamo_backends import (
    REGION,
    dummy_credentials,
)
from tests.integration.scripted_wire import Answer, Wire, error

WRITE = "w1"
KEY = Key(Table.RUNS, "job", "1")
ROW = Row(key=KEY, body={"state": "ready"}, token=WRITE)


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
    """A missing region fails at once and says where to set it, and that is where it is read."""
    with dummy_credentials():
        monkeypatch.delenv("AWS_DEFAULT_REGION")
        with pytest.raises(InvalidInput, match="set AWS_REGION"):
            DynamoEngine("p")
        monkeypatch.setenv("AWS_REGION", REGION)
        DynamoEngine("p").close()


def test_a_region_that_cannot_be_one_is_told_as_such() -> None:
    """A URL that was copied with its ellipsis has no bad endpoint."""
    with dummy_credentials(), pytest.raises(InvalidInput, match=r"^region: "):
        DynamoEngine("p", region="…")


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


def test_what_a_row_has_not_is_no_attribute(engine: Engine, wire: Wire) -> None:
    """DynamoDB takes no empty index key: the attributes are left out, so the index is sparse."""
    wire.answers = [(200, {})]
    engine.write(PutNew(Row(key=KEY, body={})))
    assert wire.requests[0][1]["Item"].keys() == {"pk", "sk", "ver", "body"}


@pytest.mark.parametrize("write", [PutNew(ROW), Replace(ROW, seen=1), Delete(KEY, seen=1)])
def test_every_write_is_guarded_and_asks_for_the_row_that_refuses_it(
    engine: Engine, wire: Wire, write: Write
) -> None:
    """A lost race is answered with the winner, without a further read."""
    refusal = error("ConditionalCheckFailedException", Item=to_item(ROW, 7))
    wire.answers = [refusal]
    outcome = engine.write(write)
    assert isinstance(outcome, Stale)
    assert outcome.current is not None
    assert (outcome.current.version, len(wire.requests)) == (7, 1)
    assert wire.requests[0][1]["ConditionExpression"]
    assert wire.requests[0][1]["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


@pytest.mark.parametrize("seen", [0, 1, 3])
def test_only_the_version_that_was_seen_may_be_replaced(moto_engine: Engine, seen: int) -> None:
    """Neither an older version nor one that does not exist yet passes the guard."""
    moto_engine.write(PutNew(ROW))
    moto_engine.write(Replace(ROW, seen=1))
    current = replace(ROW, version=2)
    assert moto_engine.write(Replace(ROW, seen=seen)) == Stale(current)
    assert moto_engine.write(Delete(KEY, seen=seen)) == Stale(current)
    assert moto_engine.write(Replace(ROW, seen=2)) == Applied(replace(ROW, version=3))


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
        ([error("AccessDeniedException"), error("InternalServerError", 500)], OutcomeUnknown),
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


def test_a_meter_over_dynamodb_counts_the_bill_of_a_run(moto_engine: Engine) -> None:
    """Put, claim and finish: 1+1, 1+2 and 1+1 units, and the rows are as without a meter."""
    meter = MeteringEngine(moto_engine)
    metered: Engine = meter
    metered.write(PutNew(replace(ROW, index=("ready#main", "acme"))))
    metered.write(Replace(replace(ROW, index=("leased#s1", "acme")), seen=1))
    metered.write(Replace(ROW, seen=2))
    assert moto_engine.get(KEY) == replace(ROW, version=3)
    places = meter.report()[UNLABELLED]["places"]
    assert {place: units["write"] for place, units in places.items()} == {
        "runs": 3,
        "runs/sparse": 4,
    }
