"""The shape of the three DynamoDB tables, read from `schema.json`.

The JSON file is the only source: `dynsched init` makes the tables from it and the Terraform module
reads the same file. A table is called prefix, separator, suffix: `prod-runs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dynsched.storage.engine import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSchema:
    """A global secondary index: its name, key attributes and projection type."""

    name: str
    partition_key: str
    sort_key: str
    projection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One table as DynamoDB needs to know it.

    Attributes:
        attributes: the type ("S" for text) of each attribute that is part of a key.
        partition_key: the attribute of the base partition key.
        sort_key: the attribute of the base sort key.
        billing_mode: as CreateTable calls it.
        index: the sparse index, None where the table has none.
        ttl_attribute: holds whole seconds since 1970 after which DynamoDB may delete the row.
        point_in_time_recovery: whether the table keeps continuous back-ups, if it is made anew.
    """

    attributes: Mapping[str, str]
    partition_key: str
    sort_key: str
    billing_mode: str
    index: IndexSchema | None
    ttl_attribute: str
    point_in_time_recovery: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All tables, and what stands between prefix and suffix in their names."""

    name_separator: str
    tables: Mapping[Table, TableSchema]

    def table_name(self, prefix: str, table: Table) -> str:
        """Return the name of a table.

        >>> load_schema().table_name("prod", Table.RUNS)
        'prod-runs'
        """
        return f"{prefix}{self.name_separator}{table.value}"


@cache
def load_schema() -> Schema:
    """Return the schema that this version of dynsched works with."""
    document = json.loads(files(__package__).joinpath("schema.json").read_text("utf-8"))
    tables = {
        table: TableSchema(index=_only_index(entry.pop("indexes")), **entry)
        for table, entry in ((table, dict(document["tables"][table.value])) for table in Table)
    }
    return Schema(name_separator=document["name_separator"], tables=tables)


def _only_index(entries: list[dict[str, str]]) -> IndexSchema | None:
    # A list in the file, since Terraform makes one block of each; the engine protocol has one.
    assert len(entries) <= 1, "the engine protocol knows one index a table"
    return IndexSchema(**entries[0]) if entries else None
