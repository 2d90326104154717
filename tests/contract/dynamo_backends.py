"""Places where the DynamoDB engine runs in tests: two emulators, and AWS itself when asked.

`BACKENDS[name]()` is a context manager that gives an initialised engine on fresh tables.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import itertools
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import boto3
import moto
from botocore.config import Config

from dynsched.bootstrap import open_engine
from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import Delete, Row, Table
from dynsched.storage.schema import load_schema

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

REGION = "eu-central-1"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
START_TRIES = 3
POLL_S = 0.05
SCAN_PAGE = 1_000
GIVEN = "DYNSCHED_TEST_STORE"

_prefixes = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A place where the engine runs.

    Attributes:
        open: makes an engine on fresh tables.
        threads: whether concurrent guarded writes are atomic there.
    """

    open: Callable[[], AbstractContextManager[DynamoEngine]]
    threads: bool

    def __call__(self) -> AbstractContextManager[DynamoEngine]:
        """Return a context manager that gives an initialised engine."""
        return self.open()


def dummy_credentials() -> AbstractContextManager[object]:
    """Set credentials that no AWS account knows, and keep real ones out, while it lasts."""
    mine = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",  # pragma: allowlist secret
        "AWS_SESSION_TOKEN": "testing",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return patch.dict(os.environ, kept | mine, clear=True)


def fresh_prefix() -> str:
    """Return a table prefix that no other test of this process has."""
    return f"t{os.getpid()}x{next(_prefixes)}"


@contextmanager
def on_moto() -> Iterator[DynamoEngine]:
    """Give an engine on moto in this process: quick for one thread, not atomic for several."""
    with (
        dummy_credentials(),
        moto.mock_aws(),
        # One call after the other: moto has no locks at all.
        closing(DynamoEngine(fresh_prefix(), region=REGION, max_workers=1)) as engine,
    ):
        engine.init()
        yield engine


@contextmanager
def on_endpoint(url: str) -> Iterator[DynamoEngine]:
    """Give an engine on fresh tables of an emulator."""
    with dummy_credentials():
        engine = DynamoEngine(fresh_prefix(), region=REGION, endpoint_url=url)
    with closing(engine):
        engine.init()
        yield engine


def on_ministack() -> AbstractContextManager[DynamoEngine]:
    """Give an engine on ministack, one process for the whole test session."""
    return on_endpoint(ministack_url())


@functools.cache
def ministack_url() -> str:
    """Start ministack as a child on the loopback interface; return where it listens."""
    home = tempfile.TemporaryDirectory(prefix="ministack-")
    atexit.register(home.cleanup)
    settings = {
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": home.name,
    }
    return start_server(
        [sys.executable, "-m", "ministack"], settings, Path(home.name), "/_ministack/health"
    )


def start_server(
    command: list[str], settings: Mapping[str, str], home: Path, health: str, port_flag: str = ""
) -> str:
    """Start a server as a child that ends with this process, and wait until it answers.

    Args:
        command: the program with its arguments.
        settings: environment variables besides this process's own without AWS credentials; the
            port comes as GATEWAY_PORT.
        home: where it runs and writes its log.
        health: the path that is asked.
        port_flag: the argument before the port, for a program that takes it so.

    Returns:
        Its URL.
    """
    log = home / "log.txt"
    for _ in range(START_TRIES):
        port = free_port()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        environment |= {**settings, "GATEWAY_PORT": str(port)}
        arguments = [*command, port_flag, str(port)] if port_flag else command
        with log.open("wb") as sink:
            process = subprocess.Popen(
                arguments, env=environment, cwd=home, stdout=sink, stderr=sink
            )
        atexit.register(_stop, process)
        if _answers(process, port, health):
            return f"http://127.0.0.1:{port}"
        # Somebody may have taken the port in between: try another one.
        _stop(process)
    raise RuntimeError(f"{command} did not start:\n{log.read_text('utf-8', 'replace')[-2000:]}")


def free_port() -> int:
    """Return a port of the loopback interface on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _answers(process: subprocess.Popen[bytes], port: int, health: str) -> bool:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        # Waiting for its end is the pause: a program that cannot start is seen at once.
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
            return False
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_TIMEOUT_S)
            with closing(connection):
                connection.request("GET", health)
                if connection.getresponse().status == 200:
                    return True
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def on_aws() -> Iterator[DynamoEngine]:
    """Give an engine on real DynamoDB, with the caller's credentials; its tables are deleted."""
    prefix = f"dynsched-test-{secrets.token_hex(6)}"
    client: DynamoDBClient = boto3.client(
        "dynamodb", config=Config(retries={"mode": "standard", "max_attempts": 10})
    )
    try:
        with closing(DynamoEngine(prefix)) as engine:
            engine.init()
            yield engine
    finally:
        for table in Table:
            with suppress(client.exceptions.ResourceNotFoundException):
                client.delete_table(TableName=load_schema().table_name(prefix, table))


@contextmanager
def on_given() -> Iterator[DynamoEngine]:
    """Give an engine on the tables that `GIVEN` names, which others made; rows in them are lost."""
    engine, _ = open_engine(os.environ[GIVEN])
    assert isinstance(engine, DynamoEngine)
    with closing(engine):
        for table in Table:
            rows = all_of(engine, table)
            engine.write_many([Delete(row.key, seen=row.version) for row in rows])
        yield engine


def all_of(engine: DynamoEngine, table: Table) -> list[Row]:
    """Return every row of a table."""
    page = engine.scan(table, SCAN_PAGE)
    rows = list(page.rows)
    while page.cursor is not None:
        page = engine.scan(table, SCAN_PAGE, page.cursor)
        rows += page.rows
    return rows


BACKENDS: dict[str, Backend] = {
    "moto": Backend(open=on_moto, threads=False),
    "ministack": Backend(open=on_ministack, threads=True),
}
if os.environ.get("DYNSCHED_TEST_AWS"):
    BACKENDS["aws"] = Backend(open=on_aws, threads=True)
if os.environ.get(GIVEN):
    BACKENDS["given"] = Backend(open=on_given, threads=True)
