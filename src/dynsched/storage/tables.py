"""Make the DynamoDB tables of the schema, or say how those that exist differ from it.

Knows the requests and answers of the table operations, not the client: `send` makes a call by its
name and raises dynsched's errors.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from dynsched.errors import DynschedError, NotInitialised, Unavailable
from dynsched.storage.engine import Table
from dynsched.storage.schema import IndexSchema, Schema, TableSchema

log = logging.getLogger("dynsched.store")

Send: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

POLLS_MAX: Final = 120
POLL_S: Final = 1.0
"""How often, and how many seconds apart, a new table is looked at until it is active."""
BACK_UPS_ON: Final = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
BACK_UPS_MEND: Final = " (`aws dynamodb update-continuous-backups` turns it on)"


def make_tables(send: Send, wait: Callable[[float], None], schema: Schema, prefix: str) -> bool:
    """Make the missing tables, wait until all are active, set their expiry and their back-ups.

    Args:
        send: makes one DynamoDB call.
        wait: lets that many seconds pass.
        schema: what the tables should be like.
        prefix: the first part of their names.

    Returns:
        Whether a table was made.

    Raises:
        NotInitialised: a table of that name exists, with other keys or another index.
        Unavailable: a table was not active after `POLLS_MAX` looks.
    """
    names = {table: schema.table_name(prefix, table) for table in Table}
    made = [table for table in Table if _make(send, names[table], schema.tables[table])]
    for table, name in names.items():
        described = _await_active(send, wait, name)
        found = list(_differences(described, schema.tables[table]))
        if found:
            raise NotInitialised(
                f"table {name} is not one of this version of dynsched: {'; '.join(found)}"
                " (give another prefix, or mend the table)"
            )
        _set_expiry(send, name, schema.tables[table].ttl_attribute)
        if schema.tables[table].point_in_time_recovery:
            _keep_back_ups(send, wait, name, new=table in made)
    return bool(made)


def describe(send: Send, name: str) -> Mapping[str, Any] | None:
    """Return DynamoDB's description of a table, None if there is none of that name."""
    try:
        answer = send("describe_table", {"TableName": name})
    except NotInitialised:
        return None
    description: Mapping[str, Any] = answer["Table"]
    return description


def _make(send: Send, name: str, schema: TableSchema) -> bool:
    if describe(send, name) is not None:
        return False
    try:
        send("create_table", creation(name, schema))
    except DynschedError:
        # Somebody else may have made it in between; then it is as good as ours.
        if describe(send, name) is None:
            raise
    return True


def creation(name: str, schema: TableSchema) -> dict[str, Any]:
    """Return the CreateTable request for a table."""
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": schema.billing_mode,
        "KeySchema": _key_schema(schema),
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": kind}
            for attribute, kind in schema.attributes.items()
        ],
    }
    if schema.index is not None:
        index = {
            "IndexName": schema.index.name,
            "KeySchema": _key_schema(schema.index),
            "Projection": {"ProjectionType": schema.index.projection},
        }
        request["GlobalSecondaryIndexes"] = [index]
    return request


def _key_schema(schema: TableSchema | IndexSchema) -> list[dict[str, str]]:
    return [
        {"AttributeName": schema.partition_key, "KeyType": "HASH"},
        {"AttributeName": schema.sort_key, "KeyType": "RANGE"},
    ]


def _await_active(send: Send, wait: Callable[[float], None], name: str) -> Mapping[str, Any]:
    waiting = "missing"
    for _ in range(POLLS_MAX):
        described = describe(send, name)
        if described is not None:
            indexes = described.get("GlobalSecondaryIndexes", [])
            statuses = {described["TableStatus"]}
            statuses |= {index.get("IndexStatus", "ACTIVE") for index in indexes}
            # What is being updated answers as usual.
            waiting = "/".join(sorted(statuses - {"ACTIVE", "UPDATING"}))
            if not waiting:
                return described
        wait(POLL_S)
    raise Unavailable(
        f"table {name} is {waiting} after {POLLS_MAX * POLL_S:.0f} s; run `dynsched init` again"
    )


def _differences(described: Mapping[str, Any], schema: TableSchema) -> Iterator[str]:
    if described["KeySchema"] != _key_schema(schema):
        yield f"its key is {_key_text(described)}, not {schema.partition_key} + {schema.sort_key}"
    kinds = {a["AttributeName"]: a["AttributeType"] for a in described["AttributeDefinitions"]}
    for attribute, kind in schema.attributes.items():
        if kinds.get(attribute, kind) != kind:
            yield f"its key attribute {attribute} has type {kinds[attribute]}, not {kind}"
    if schema.index is not None:
        yield from _index_differences(described, schema.index)
    if described.get("Replicas"):
        # The last writer wins between regions: a lease taken in one does not hold in the other.
        yield "it is a global table, across whose regions leases do not hold"


def _index_differences(described: Mapping[str, Any], schema: IndexSchema) -> Iterator[str]:
    indexes = {i["IndexName"]: i for i in described.get("GlobalSecondaryIndexes", [])}
    index = indexes.get(schema.name)
    if index is None:
        yield f"it has no index {schema.name}"
        return
    if index["KeySchema"] != _key_schema(schema):
        yield (
            f"the key of its index {schema.name} is {_key_text(index)},"
            f" not {schema.partition_key} + {schema.sort_key}"
        )
    projection = index["Projection"]["ProjectionType"]
    if projection != schema.projection:
        yield f"its index {schema.name} projects {projection}, not {schema.projection}"


def _key_text(described: Mapping[str, Any]) -> str:
    return " + ".join(part["AttributeName"] for part in described["KeySchema"])


def _set_expiry(send: Send, name: str, attribute: str) -> None:
    if _expiry_set(send, name, attribute):
        return
    request = {
        "TableName": name,
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": attribute},
    }
    try:
        send("update_time_to_live", request)
    except DynschedError:
        # Somebody else may have set it in between; DynamoDB refuses to set it twice.
        if not _expiry_set(send, name, attribute):
            raise


def _expiry_set(send: Send, name: str, attribute: str) -> bool:
    answer = send("describe_time_to_live", {"TableName": name})
    expiry = answer.get("TimeToLiveDescription", {})
    if expiry.get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
        return False
    found = expiry.get("AttributeName")
    if found != attribute:
        raise NotInitialised(
            f"table {name} expires its rows by the attribute {found}, not {attribute}"
            " (turn its time to live off, then run `dynsched init` again)"
        )
    return True


def _keep_back_ups(send: Send, wait: Callable[[float], None], name: str, *, new: bool) -> None:
    """Turn point-in-time recovery on for a new table; of an older one say that it is off.

    A table without back-ups works, so nothing here is an error: rights for it may be others' than
    those for rows, and emulators need not have it. Somebody may have turned it off on purpose.
    """
    trouble: DynschedError | None = None
    if not new:
        if _back_ups(send, name) == "DISABLED":
            log.warning("table %s has no point-in-time recovery%s", name, BACK_UPS_MEND)
        return
    for _ in range(POLLS_MAX):
        try:
            send("update_continuous_backups", {"TableName": name, **BACK_UPS_ON})
        except Unavailable as error:
            trouble = error
            wait(POLL_S)
        except DynschedError as error:
            trouble = error
            break
        else:
            return
    log.warning("table %s has no point-in-time recovery: %s%s", name, trouble, BACK_UPS_MEND)


def _back_ups(send: Send, name: str) -> str | None:
    try:
        answer = send("describe_continuous_backups", {"TableName": name})
    except DynschedError:
        return None
    described = answer.get("ContinuousBackupsDescription", {})
    status: str | None = described.get("PointInTimeRecoveryDescription", {}).get(
        "PointInTimeRecoveryStatus"
    )
    return status
