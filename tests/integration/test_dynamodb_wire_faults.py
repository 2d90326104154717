"""Faults of the wire between the real client and an emulator: what each is told as.

A proxy in a process of its own stands before ministack and breaks what its rules say.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from dynsched.errors import OutcomeUnknown, Throttled, Unavailable
from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import Delete, Engine, Key, PutNew, Query, Replace, Row, Table
from tests.contract.dynamo_backends import (
    REGION,
    dummy_credentials,
    free_port,
    ministack_url,
    on_endpoint,
    start_server,
)

WRITE = "w1"
KEY = Key(Table.RUNS, "job", "1")
ROW = Row(key=KEY, body={"state": "ready"}, token=WRITE)
OTHER = Row(key=Key(Table.RUNS, "job", "2"), body={"state": "ready"}, token=WRITE)
LOST_ANSWER = {"response": {"abort_bytes": 0}}

WARM_UP = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "Authorization": f"AWS4-HMAC-SHA256 Credential=t/20260101/{REGION}/dynamodb/aws4_request",
}
WARM_UP_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 0.2
SLOW_MS = 1000

Break = Callable[..., Callable[[], int]]


@functools.cache
def proxy_url() -> str:
    """Start the proxy before ministack, once; return where it listens."""
    home = tempfile.TemporaryDirectory(prefix="microburst-")
    atexit.register(home.cleanup)
    command = [sys.executable, "-m", "microburst", "--upstream", ministack_url()]
    url = start_server(command, {}, Path(home.name), "/_microburst/health", port_flag="--port")
    # Its first call loads the service model, which takes seconds: longer than our client waits.
    ask(url, "POST", "/", {}, WARM_UP)
    return url


def ask(url: str, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    """Make a plain request and return the JSON of its answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WARM_UP_TIMEOUT_S)
    with closing(connection):
        connection.request(method, path, json.dumps(body), headers or {})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)


@pytest.fixture
def engine() -> Iterator[DynamoEngine]:
    """Give an engine that reaches its tables through the proxy, which breaks nothing yet."""
    with on_endpoint(proxy_url()) as engine:
        yield engine


@pytest.fixture
def direct(engine: DynamoEngine) -> Iterator[DynamoEngine]:
    """Give an engine on the same tables without the proxy: it sees what really happened."""
    with dummy_credentials():
        engine = DynamoEngine(engine.prefix, region=REGION, endpoint_url=ministack_url())
    with closing(engine):
        yield engine


@pytest.fixture
def broken() -> Iterator[Break]:
    """Give a function that breaks the calls of one or any operation, until the test is over.

    It returns a function that tells how many calls were broken.
    """

    def break_calls(operation: str = "", **effect: Any) -> Callable[[], int]:
        rule = {"service": "dynamodb"} | effect | ({"operation": operation} if operation else {})
        ask(proxy_url(), "POST", "/_microburst/rules", [rule])
        return lambda: int(ask(proxy_url(), "GET", "/_microburst/rules", None)[0]["fired_count"])

    yield break_calls
    ask(proxy_url(), "POST", "/_microburst/rules", [])


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
def test_a_throttled_write_was_not_made(
    engine: Engine, direct: Engine, broken: Break, code: str
) -> None:
    """The client tries once, says that it was throttled, and nothing is there."""
    calls = broken("PutItem", error={"code": code})
    with pytest.raises(Throttled, match="nothing was written"):
        engine.write(PutNew(ROW))
    assert calls() == 1
    assert direct.get(KEY) is None


def test_a_fault_of_the_store_leaves_a_write_unknown_and_a_read_unavailable(
    engine: Engine, broken: Break
) -> None:
    """A 500 may come after the write was applied, so it says nothing about it."""
    broken(error={"code": "InternalServerError"})
    with pytest.raises(OutcomeUnknown):
        engine.write(PutNew(ROW))
    with pytest.raises(OutcomeUnknown):
        engine.transact([PutNew(ROW), PutNew(OTHER)])
    with pytest.raises(Unavailable):
        engine.get(KEY)
    with pytest.raises(Unavailable):
        engine.query(Query(Table.RUNS, "x", index=True))


def test_a_write_whose_answer_was_lost_is_unknown_and_named_by_its_token(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """It was applied once; the token in the row settles it."""
    calls = broken("PutItem", **LOST_ANSWER)
    with pytest.raises(OutcomeUnknown):
        engine.write(PutNew(ROW))
    assert calls() == 1
    stored = direct.get(KEY)
    assert stored is not None
    assert (stored.token, stored.version) == (WRITE, 1)


def test_a_deletion_whose_answer_was_lost_is_unknown(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """It was applied, although no answer came."""
    engine.write(PutNew(ROW))
    broken("DeleteItem", **LOST_ANSWER)
    with pytest.raises(OutcomeUnknown):
        engine.write(Delete(KEY, seen=1))
    assert direct.get(KEY) is None


def test_a_transaction_whose_answer_was_lost_is_unknown(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """All of it was applied, although no answer came."""
    broken("TransactWriteItems", **LOST_ANSWER)
    with pytest.raises(OutcomeUnknown):
        engine.transact([PutNew(ROW), PutNew(OTHER)])
    assert None not in direct.get_many([KEY, OTHER.key])


def test_a_connection_closed_before_the_write_leaves_it_unknown(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """Nothing was applied, but the client cannot tell this from a lost answer."""
    broken("PutItem", reset=True)
    with pytest.raises(OutcomeUnknown):
        engine.write(PutNew(ROW))
    assert direct.get(KEY) is None


def test_a_lost_answer_to_a_read_is_unavailable(engine: Engine, broken: Break) -> None:
    """A read may be repeated as it is."""
    broken(**LOST_ANSWER)
    with pytest.raises(Unavailable):
        engine.get(KEY)
    with pytest.raises(Unavailable):
        engine.scan(Table.RUNS, 10)


def test_a_slow_answer_to_a_write_leaves_it_unknown(engine: DynamoEngine, broken: Break) -> None:
    """Who stops waiting does not know what came of it."""
    config = Config(read_timeout=READ_TIMEOUT_S, retries={"total_max_attempts": 1})
    with dummy_credentials():
        client = boto3.client(
            "dynamodb", region_name=REGION, endpoint_url=proxy_url(), config=config
        )
    broken("PutItem", latency={"min": SLOW_MS, "max": SLOW_MS})
    with (
        closing(DynamoEngine(engine.prefix, client=client)) as hasty,
        pytest.raises(OutcomeUnknown, match=r"[Tt]imeout"),
    ):
        hasty.write(PutNew(ROW))


def test_a_transaction_in_conflict_was_not_made(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """Another transaction held a row for a moment: the same call may be sent again."""
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict", "Message": "ongoing"}]
    error = {"code": "TransactionCanceledException", "fields": {"CancellationReasons": reasons}}
    broken("TransactWriteItems", error=error, times=1)
    with pytest.raises(Throttled, match="ongoing"):
        engine.transact([PutNew(ROW), PutNew(OTHER)])
    assert direct.get_many([KEY, OTHER.key]) == [None, None]
    engine.transact([PutNew(ROW), PutNew(OTHER)])


def test_a_batch_in_which_one_write_was_throttled_is_unknown(
    engine: Engine, direct: Engine, broken: Break
) -> None:
    """The others were made, so the batch must not be repeated blindly."""
    broken("PutItem", error={"code": "ThrottlingException"}, times=1)
    with pytest.raises(OutcomeUnknown, match="1 of 2"):
        engine.write_many([PutNew(ROW), PutNew(OTHER)])
    assert direct.get_many([KEY, OTHER.key]).count(None) == 1


def test_a_batch_that_was_throttled_as_a_whole_may_be_repeated(
    engine: Engine, broken: Break
) -> None:
    """Nothing was written, so the same batch may be sent again."""
    broken("PutItem", error={"code": "ThrottlingException"}, times=2)
    with pytest.raises(Throttled):
        engine.write_many([PutNew(ROW), PutNew(OTHER)])
    engine.write_many([PutNew(ROW), PutNew(OTHER)])
    assert None not in engine.get_many([KEY, OTHER.key])


def test_nobody_listening_means_that_nothing_was_sent() -> None:
    """A refused connection is no unknown outcome, not even for a write."""
    with dummy_credentials():
        engine = DynamoEngine("p", region=REGION, endpoint_url=f"http://127.0.0.1:{free_port()}")
    with closing(engine), pytest.raises(Unavailable, match="was not sent"):
        engine.write(Replace(ROW, seen=1))
