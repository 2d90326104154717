"""The tables on DynamoDB: made once, waited for, and refused when they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import boto3
import pytest

from dynsched.errors import (
    InvalidInput,
    NotInitialised,
    StoreError,
    Unavailable,
)
from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import (
    Applied,
    Engine,
    Key,
    PutNew,
    Row,
    Table,
)
from dynsched.storage.schema import load_schema
from dynsched.storage.tables import POLLS_MAX, creation, make_tables
from tests.contract.dynamo_backends import (
    REGION,
    dummy_credentials,
    fresh_prefix,
    ministack_url,
)
from tests.integration.scripted_wire import Wire

WRITE = "w1"
KEY = Key(Table.RUNS, "job", "1")
ROW = Row(key=KEY, body={"state": "ready"}, token=WRITE)


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


@pytest.mark.usefixtures("moto_engine")
def test_init_turns_on_the_back_ups_of_new_tables() -> None:
    """A store made by `dynsched init` can be restored as well as one made by Terraform."""
    client = boto3.client("dynamodb", region_name=REGION)
    for name in client.list_tables()["TableNames"]:
        told = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = told["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
        assert recovery == "ENABLED"


def test_back_ups_that_somebody_turned_off_stay_off(
    moto_engine: DynamoEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """A later init says so and changes nothing: it may be on purpose."""
    client = boto3.client("dynamodb", region_name=REGION)
    table = f"{moto_engine.prefix}-runs"
    client.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )
    assert moto_engine.init() is False
    told = client.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert told["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
    assert [record.getMessage() for record in caplog.records] == [
        f"table {table} has no point-in-time recovery"
        " (`aws dynamodb update-continuous-backups` turns it on)"
    ]


@pytest.mark.parametrize(
    ("faults", "waits", "told"),
    [
        ([Unavailable("soon")], 1, []),
        ([StoreError("not allowed")], 0, ["not allowed"]),
        ([Unavailable("soon")] * POLLS_MAX, POLLS_MAX, ["soon"]),
    ],
)
def test_a_table_without_back_ups_is_made_all_the_same(
    caplog: pytest.LogCaptureFixture, faults: list[Exception], waits: int, told: list[str]
) -> None:
    """A new table takes a while until it can have them; without the right for it there are none."""
    left, waited = list(faults), list[float]()
    schema = load_schema()
    schema = replace(schema, tables=dict.fromkeys(Table, schema.tables[Table.CONTROL]))
    described: dict[str, Any] = {}

    def send(verb: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        name = request["TableName"]
        if verb == "create_table":
            described[name] = {"Table": dict(request) | {"TableStatus": "ACTIVE"}}
        if verb == "describe_table" and name not in described:
            raise NotInitialised(name)
        if verb == "update_continuous_backups" and name == "p-runs" and left:
            raise left.pop()
        expiry = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at_s"}
        return {**described[name], "TimeToLiveDescription": expiry}

    assert make_tables(send, waited.append, schema, "p") is True
    assert (left, len(waited)) == ([], waits)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(told)
    assert all(words in text for words, text in zip(told, messages, strict=True))


def test_an_expiry_set_by_somebody_else_in_between_is_as_good() -> None:
    """DynamoDB refuses to set it twice; the second of two operators need not know."""
    table = creation("any", load_schema().tables[Table.CONTROL]) | {"TableStatus": "ACTIVE"}
    table["GlobalSecondaryIndexes"] = [
        index | {"IndexStatus": "ACTIVE"}
        for index in creation("any", load_schema().tables[Table.RUNS])["GlobalSecondaryIndexes"]
    ]
    enabled = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at_s"}
    expiries = [{"TimeToLiveStatus": "DISABLED"}, enabled, enabled, enabled]
    waits: list[float] = []

    def send(verb: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if verb == "update_time_to_live":
            raise InvalidInput("request", f"{request['TableName']} has it already")
        if verb == "describe_time_to_live":
            return {"TimeToLiveDescription": expiries.pop(0)}
        return {"Table": table}

    assert make_tables(send, waits.append, load_schema(), "p") is False
    assert (expiries, waits) == ([], [])


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
