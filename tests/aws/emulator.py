"""ministack with functions that run, for the tests of the deployment alone.

SQS, DynamoDB and the event source mappings are its own; the functions are Python processes that it
starts from the zip and kills at their time limit. Nothing of it is AWS: permissions, quotas and
delays of propagation are not tried here.
"""

from __future__ import annotations

import atexit
import functools
import sys
import tempfile
from pathlib import Path

from tests.contract.dynamo_backends import REGION, start_server

SETTINGS = {
    "BIND_HOST": "127.0.0.1",
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
    "LAMBDA_EXECUTOR": "local",
    "LAMBDA_STATE_TRANSITION_SECONDS": "0",
    "LOG_LEVEL": "WARNING",
    "MINISTACK_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",  # pragma: allowlist secret
    "AWS_EC2_METADATA_DISABLED": "true",
}


@functools.cache
def emulator_url() -> str:
    """Start ministack as a child on the loopback interface, once; return where it listens."""
    home = tempfile.TemporaryDirectory(prefix="ministack-aws-")
    atexit.register(home.cleanup)
    settings = SETTINGS | {"TMPDIR": home.name}
    return start_server(
        [sys.executable, "-m", "ministack"], settings, Path(home.name), "/_ministack/health"
    )


@functools.cache
def breaker_url(upstream: str) -> str:
    """Start a proxy that breaks calls before `upstream`, once; return where it listens."""
    home = tempfile.TemporaryDirectory(prefix="microburst-aws-")
    atexit.register(home.cleanup)
    command = [sys.executable, "-m", "microburst", "--upstream", upstream]
    return start_server(command, {}, Path(home.name), "/_microburst/health", port_flag="--port")
