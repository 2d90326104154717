"""Rows as DynamoDB items, and the tables that take them."""

from __future__ import annotations

import re

import boto3
import moto
import pytest

from dynsched.storage import item as item_module
from dynsched.storage.engine import Key, Row, Table
from dynsched.storage.item import cursor_text, from_item, item_size, row_size, start_key, to_item
from dynsched.storage.schema import load_schema
from dynsched.storage.tables import creation

WRITE = "w1"
FULL = Row(
    key=Key(Table.RUNS, "job", "1"),
    body={"n": [1, 2.5, None, True, "é"]},
    index=("ready#main", "acme"),
    expires_at_s=1_700_000_000,
    token=WRITE,
    version=12,
)


@pytest.mark.parametrize("row", [FULL, Row(key=FULL.key, body={}, version=1)])
def test_a_row_comes_back_from_its_item(row: Row) -> None:
    """An item says all that a row has, also what it lacks."""
    assert from_item(Table.RUNS, to_item(row, row.version)) == row


def test_the_size_of_a_row_counts_names_and_values() -> None:
    """The bytes of each attribute by hand, as DynamoDB counts them."""
    sizes = {
        "pk": 2 + 3,
        "sk": 2 + 1,
        "ver": 3 + 1 + 1,  # two digits take one byte, the number itself another
        "tok": 3 + 2,
        "ipk": 3 + 10,
        "isk": 3 + 4,
        "expires_at_s": 12 + 1 + 1,  # trailing noughts take nothing
        "body": 4 + len('{"n":[1,2.5,null,true,"é"]}'.encode()),
    }
    assert row_size(FULL) == sum(sizes.values())


@pytest.mark.parametrize(
    ("digits", "size"), [("0", 1), ("7", 2), ("12", 2), ("123", 3), ("-12", 3), ("1200", 2)]
)
def test_a_number_takes_a_byte_for_two_significant_digits(digits: str, size: int) -> None:
    """Noughts around the digits take nothing, a sign takes one byte."""
    assert item_size({"": {"N": digits}}) == size


@pytest.mark.parametrize("index", [False, True])
def test_a_cursor_comes_back_as_the_key_it_was_made_of(index: bool) -> None:
    """It carries the base key, and in an index that of the index as well."""
    names = ("pk", "sk", "ipk", "isk") if index else ("pk", "sk")
    last = {name: {"S": f"{name} ü#"} for name in names}
    assert start_key(cursor_text(last), index=index) == last


@pytest.mark.parametrize("table", Table)
def test_the_schema_file_names_the_attributes_that_items_have(table: Table) -> None:
    """Tables are made from the file, items by the code: both must mean the same attributes."""
    schema = load_schema().tables[table]
    assert (schema.partition_key, schema.sort_key) == (item_module.PARTITION, item_module.SORT)
    assert schema.ttl_attribute == item_module.EXPIRES
    if schema.index is not None:
        keys = (schema.index.partition_key, schema.index.sort_key)
        assert keys == (item_module.INDEX_PARTITION, item_module.INDEX_SORT)
        assert schema.index.projection == "ALL"


@pytest.mark.parametrize("table", Table)
def test_dynamodb_takes_the_tables_of_the_schema_file(
    monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    """The SDK checks names and lengths that emulators let pass, such as that of an index."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    schema = load_schema()
    with moto.mock_aws():
        client = boto3.client("dynamodb", region_name="eu-central-1")
        made = client.create_table(**creation(schema.table_name("p", table), schema.tables[table]))
    assert re.fullmatch(r"p-(jobs|runs|control)", made["TableDescription"]["TableName"])


def test_every_key_attribute_is_declared_and_no_other() -> None:
    """DynamoDB refuses a table with an undeclared key or an unused declaration."""
    for schema in load_schema().tables.values():
        keys = {schema.partition_key, schema.sort_key}
        if schema.index is not None:
            keys |= {schema.index.partition_key, schema.index.sort_key}
        assert schema.attributes.keys() == keys
