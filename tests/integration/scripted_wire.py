"""A network for the DynamoDB client that answers from a list."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from urllib3 import HTTPResponse

from dynsched.storage.dynamodb import DynamoEngine
from tests.contract.dynamo_backends import REGION, dummy_credentials

DATE = "Sun, 01 Mar 2026 09:00:00 GMT"
"""What every answer is dated."""

Answer = tuple[int, dict[str, Any]] | Exception
"""Status and body, or what the transport raises."""


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


@contextmanager
def engine_on(wire: Wire) -> Iterator[DynamoEngine]:
    """Give an engine with the prefix `p` and one worker whose client talks to `wire`."""
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    with dummy_credentials():
        client = boto3.client("dynamodb", region_name=REGION, config=config)
    # The stubs do not know that this event takes an answer.
    client.meta.events.register("before-send.dynamodb", wire.answer)  # type: ignore[arg-type]
    with closing(DynamoEngine("p", client=client, max_workers=1, wait=wire.waits.append)) as engine:
        yield engine
