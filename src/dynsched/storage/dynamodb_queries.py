"""Queries and counts as DynamoDB requests.

Pure: knows the requests and their answers, not the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from dynsched.storage.engine import Query
from dynsched.storage.item import INDEX_PARTITION, INDEX_SORT, PARTITION, SORT


def query_request(query: Query, table_name: str, index_name: str | None) -> dict[str, Any]:
    """Return the request for a page of a query.

    Between two bounds the answer holds rows at the bounds too, which the protocol leaves out.
    """
    partition, sort = (INDEX_PARTITION, INDEX_SORT) if query.index else (PARTITION, SORT)
    request: dict[str, Any] = {
        "TableName": table_name,
        "Limit": query.limit,
        "ScanIndexForward": not query.descending,
    }
    if index_name is not None:
        request["IndexName"] = index_name
    else:
        request["ConsistentRead"] = True
    condition, values = f"{partition} = :partition", {":partition": {"S": query.partition}}
    if query.after:
        values[":after"] = {"S": query.after}
    if query.before is not None:
        values[":before"] = {"S": query.before}
    if query.after and query.before is not None:
        condition += f" AND {sort} BETWEEN :after AND :before"
    elif query.after:
        condition += f" AND {sort} > :after"
    elif query.before is not None:
        condition += f" AND {sort} < :before"
    return request | {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}


def count_request(request: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a page's request as one that counts.

    Between two bounds the rows' sort keys are asked for and not their number: BETWEEN takes its
    bounds in, and only a key tells whether its row lies at one.
    """
    asked = dict(request) | {"Limit": most}
    if "BETWEEN" not in request["KeyConditionExpression"]:
        return asked | {"Select": "COUNT"}
    sort = INDEX_SORT if "IndexName" in request else SORT
    # Two more, for the rows at the bounds.
    return asked | {"ProjectionExpression": sort, "Limit": most + 2}


def counted(request: Mapping[str, Any], answer: Mapping[str, Any], outside: Set[str | None]) -> int:
    """Return how many rows the answer to a count tells of, without those at its bounds."""
    sort = request.get("ProjectionExpression")
    if sort is None:
        return int(answer["Count"])
    return sum(item[sort]["S"] not in outside for item in answer["Items"])
