"""Deploy dynsched on this machine: an emulator of AWS, and the Terraform module applied on it.

    python tools/deploy_local.py              deploy, and say how to use it
    python tools/deploy_local.py --stop       end the emulator; nothing is left of what it held

It needs Terraform, and its AWS provider from a mirror or from Terraform's registry. That it works
here says nothing about AWS.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.infra.readme import MODULE  # noqa: E402
from tools.infra.terraform import (  # noqa: E402
    MIRROR_VARIABLE,
    Terraform,
    TerraformFailed,
    ToolsMissing,
    find_mirror,
    find_terraform,
    from_mirror,
    from_registry,
)

PLACE = ROOT / "build" / "local"
PROCESS = PLACE / "emulator.pid"
LOG = PLACE / "emulator.log"
PORT = 4566
REGION = "eu-central-1"
SAID_MAX = 1_000  # characters of what a failed function said
START_S = 30.0
POLL_S = 0.1
STOP_S = 10.0
EMULATOR = {
    "BIND_HOST": "127.0.0.1",
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
    "LAMBDA_EXECUTOR": "local",
    "LOG_LEVEL": "WARNING",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",  # pragma: allowlist secret
    "AWS_EC2_METADATA_DISABLED": "true",
}


class NotDeployed(Exception):
    """Something stands in the way; the text says what, and what to do."""


USE = """
Deployed on this machine, at {endpoint}. The store, for the command line, the consoles and clients:

  export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing
  export DYNSCHED_STORE='{store}'

A first job, which the worker function runs within seconds:

  .venv/bin/dynsched job add hello --now --command 'echo hello'
  .venv/bin/dynsched run list

Log: {log}
Stop it, and lose all that it holds: make deploy-local ARGS=--stop
"""


def deploy(port: int, handlers: Path | None, app: str) -> str:
    """Start the emulator and apply the module on it; return how to use it.

    Args:
        port: where the emulator listens, on the loopback interface.
        handlers: a folder with handlers for the worker function, if any.
        app: their app, as module:attribute; empty for none.

    Raises:
        NotDeployed: it is deployed already, or zip, emulator or dispatcher failed.
        ToolsMissing: there is no Terraform here, or no provider.
        TerraformFailed: the provider could not be had, or the module not be applied.
    """
    program, installation = find_terraform(), find_provider()
    if running() is not None:
        raise NotDeployed("it is deployed already; stop it first: make deploy-local ARGS=--stop")
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.copytree(MODULE, PLACE / "module", ignore=shutil.ignore_patterns(".terraform*"))
    root = PLACE / "module" / "examples" / "local"
    endpoint = f"http://127.0.0.1:{port}"
    variables = {
        "endpoint_url": endpoint,
        "region": REGION,
        "package_path": str(build(handlers)),
        # Its handlers are this machine's user anyway.
        "worker": {"app": app, "allow_commands": True},
    }
    (root / "terraform.tfvars.json").write_text(json.dumps(variables))
    terraform = Terraform(program=program, folder=root, scratch=PLACE, installation=installation)
    start_emulator(port)
    print("Applying the module; about a minute and a half ...", flush=True)
    try:
        terraform.run("init", "-input=false")
        terraform.run("apply", "-auto-approve", "-input=false")
        told = json.loads(terraform.run("output", "-json"))
        wake(endpoint, told["function_names"]["value"]["dispatcher"])
    except (TerraformFailed, NotDeployed):
        stop()
        raise
    store = told["store_url"]["value"]
    return USE.format(endpoint=endpoint, store=store, log=LOG.relative_to(ROOT))


def find_provider() -> str:
    """Return the lines that have Terraform find its AWS provider: in a mirror, else by itself.

    Raises:
        ToolsMissing: a mirror is named, and has no provider.
    """
    try:
        return from_mirror(find_mirror())
    except ToolsMissing:
        if os.environ.get(MIRROR_VARIABLE):
            raise
        print("No mirror of the AWS provider here: it comes from Terraform's registry.", flush=True)
        return from_registry()


def wake(endpoint: str, function: str) -> None:
    """Call the dispatcher once, sooner than its schedule: it prepares the store.

    Raises:
        NotDeployed: it failed.
    """
    client = boto3.client(
        "lambda",
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id=EMULATOR["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=EMULATOR["AWS_SECRET_ACCESS_KEY"],
    )
    try:
        answer = client.invoke(FunctionName=function)
        said = answer["Payload"].read().decode(errors="replace")
    except (BotoCoreError, ClientError) as error:
        raise NotDeployed(f"the emulator did not call the dispatcher: {error}") from error
    if "FunctionError" in answer:
        raise NotDeployed(f"the dispatcher failed: {said[:SAID_MAX]}")


def build(handlers: Path | None) -> Path:
    """Build the functions' zip; return where it is.

    Raises:
        NotDeployed: it could not be built.
    """
    package = PLACE / "functions.zip"
    more = [] if handlers is None else ["--with", str(handlers)]
    command = [sys.executable, str(ROOT / "tools" / "build_zip.py"), "--output", str(package)]
    if subprocess.run([*command, *more], check=False).returncode:
        raise NotDeployed("the functions' zip could not be built; what is wrong stands above")
    return package


def start_emulator(port: int) -> None:
    """Start the emulator as a process of its own, and wait until it answers.

    Raises:
        NotDeployed: it ended, or did not answer in time.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    with LOG.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env={**kept, **EMULATOR, "GATEWAY_PORT": str(port)},
            cwd=PLACE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives this program and its terminal
        )
    PROCESS.write_text(str(process.pid))
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
            with closing(connection):
                connection.request("GET", "/_ministack/health")
                # Somebody else may listen there, while ours has just failed for it.
                if connection.getresponse().status == 200 and process.poll() is None:
                    return
        time.sleep(POLL_S)
    stop()
    raise NotDeployed(f"the emulator did not start on port {port}; see {LOG.relative_to(ROOT)}")


def running() -> int | None:
    """Return the process id of the emulator, None if it does not run."""
    try:
        pid = int(PROCESS.read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid


def stop() -> bool:
    """End the emulator; False if it did not run."""
    pid = running()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + STOP_S
        while running() is not None and time.monotonic() < end:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            time.sleep(POLL_S)
        if running() is not None:
            os.kill(pid, signal.SIGKILL)
    PROCESS.unlink(missing_ok=True)
    return pid is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy or stop; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Deploy on this machine: an emulator, and the Terraform module applied on it."
    )
    parser.add_argument("--stop", action="store_true", help="end it; all that it holds is lost")
    parser.add_argument("--port", type=int, default=PORT, help="where the emulator listens")
    parser.add_argument("--with", dest="handlers", type=Path, metavar="FOLDER")
    parser.add_argument("--app", default="", help="with --with: its app, as module:attribute")
    chosen = parser.parse_args(arguments)
    if chosen.stop:
        print("stopped" if stop() else "nothing was deployed here")
        return 0
    try:
        print(deploy(chosen.port, chosen.handlers, chosen.app))
    except (NotDeployed, ToolsMissing, TerraformFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
