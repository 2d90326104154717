"""AWS calls as what IAM asks for: the one place that says which action a call needs, and where.

A permission is an action with the resource it acts on. Resources are named without account, region
and the store's prefix, so that calls and policies of different deployments can be compared:
`table/runs`, `table/runs/index/sparse`, `queue/main-high`, `function/NAME`.

What IAM asks for, where it is not the operation's own name:

| Operation | Action, for each resource |
| --- | --- |
| TransactWriteItems | PutItem, UpdateItem, DeleteItem or ConditionCheckItem, by what is inside |
| TransactGetItems | GetItem, of each table inside |
| BatchGetItem | BatchGetItem, of each table inside |
| BatchWriteItem | BatchWriteItem, of each table inside |
| Query, Scan of an index | the same action, on the index and not on its table |
| SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch | the action for one message |
| Invoke | lambda:InvokeFunction |
| GetCallerIdentity | none: everybody may ask who they are |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Permission: TypeAlias = tuple[str, str]
"""An IAM action and the resource it acts on."""

_BATCHES: Final = {
    "SendMessageBatch": "SendMessage",
    "DeleteMessageBatch": "DeleteMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
}
_INSIDE: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}
_WRITES: Final = frozenset({"dynamodb:PutItem", "dynamodb:DeleteItem"})
_TARGETS: Final = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs"}
_INVOKE: Final = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One AWS call.

    Attributes:
        caller: who made it.
        number: its place among the caller's calls, from 1.
        service: as IAM calls it: `dynamodb`, `sqs`, `lambda`, `sts`.
        operation: as the service calls it.
        request: its parameters.
    """

    caller: str
    number: int
    service: str
    operation: str
    request: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"call {self.number} of {self.caller}: {self.service} {self.operation}"


def read_call(caller: str, number: int, path: str, headers: Mapping[str, str], body: bytes) -> Call:
    """Return the call that an HTTP request makes; its headers' names are in lower case."""
    prefix, _, operation = headers.get("x-amz-target", "").partition(".")
    if prefix in _TARGETS:
        service, request = _TARGETS[prefix], json.loads(body)
    elif invoked := _INVOKE.match(path):
        service, operation, request = "lambda", "Invoke", {"FunctionName": unquote(invoked[1])}
    elif b"GetCallerIdentity" in body:
        service, operation, request = "sts", "GetCallerIdentity", {}
    else:
        raise AssertionError(f"{caller} makes a call that no permission is known for: {path}")
    return Call(caller=caller, number=number, service=service, operation=operation, request=request)


def needs(call: Call, prefix: str) -> Iterator[Permission]:
    """Yield the permissions that a call of a deployment with this prefix needs."""
    if call.service == "dynamodb":
        for operation, name in _tables(call.operation, call.request):
            yield f"dynamodb:{operation}", name.replace(f"table/{prefix}-", "table/")
    elif call.service == "sqs":
        queue = call.request["QueueUrl"].rpartition("/")[2].removeprefix(f"{prefix}-")
        yield f"sqs:{_BATCHES.get(call.operation, call.operation)}", f"queue/{queue}"
    elif call.service == "lambda":
        function = call.request["FunctionName"].partition(":function:")
        yield "lambda:InvokeFunction", f"function/{function[2] or function[0]}"


def rereads(used: set[Permission]) -> set[Permission]:
    """Return what writes may need besides: to read the rows that they were about.

    A write whose answer was lost is settled by BatchGetItem. One whose guard fails on a row that is
    gone brings no row, and is told from the store's answer to GetItem.
    """
    tables = {where for action, where in used if action in _WRITES}
    return {(f"dynamodb:{verb}", where) for verb in ("BatchGetItem", "GetItem") for where in tables}


def _tables(operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the actions of a DynamoDB operation with the tables or indexes that they act on."""
    if "TransactItems" in request:
        for item in request["TransactItems"]:
            for verb, inside in item.items():
                yield _INSIDE[verb], f"table/{inside['TableName']}"
    elif "RequestItems" in request:
        for name in request["RequestItems"]:
            yield operation, f"table/{name}"
    elif "IndexName" in request:
        yield operation, f"table/{request['TableName']}/index/{request['IndexName']}"
    else:
        yield operation, f"table/{request['TableName']}"


def granted(policy: Mapping[str, Any], prefix: str) -> set[Permission]:
    """Return the permissions that a policy document grants; denials are left out."""
    found = set()
    for statement in _listed(policy["Statement"]):
        if statement["Effect"] == "Allow":
            found |= {
                (action, named(resource, prefix))
                for action in _listed(statement["Action"])
                for resource in _listed(statement["Resource"])
            }
    return found


def named(arn: str, prefix: str) -> str:
    """Return a resource as permissions name it.

    >>> named("arn:aws:dynamodb:eu-central-1:123456789012:table/p-runs/index/sparse", "p")
    'table/runs/index/sparse'
    >>> named("arn:aws:sqs:eu-central-1:123456789012:p-main-high", "p")
    'queue/main-high'
    """
    parts = arn.split(":", 5)
    if len(parts) < 6:
        return arn
    service, name = parts[2], parts[5]
    if service == "sqs":
        return f"queue/{name.removeprefix(f'{prefix}-')}"
    if service == "lambda":
        return name.replace("function:", "function/", 1).replace(f"/{prefix}-", "/", 1)
    return name.replace(f"table/{prefix}-", "table/", 1)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
