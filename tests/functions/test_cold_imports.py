"""What a function's module brings with it: nothing that only people or other parts use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Each would cost a cold start some tens of milliseconds; none has anything to do there.
HEAVY = {
    "asyncio", "click", "flask", "htmx_flask", "pydantic", "sqlite3", "textual", "waitress",
    "werkzeug",
}  # fmt: skip
OURS = {
    "dynsched.cli", "dynsched.client", "dynsched.services.operations", "dynsched.services.views",
    "dynsched.storage.sqlite", "dynsched.targets.http", "dynsched.testing", "dynsched_console",
    "dynsched_web",
}  # fmt: skip
TOLD = {
    "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "DYNSCHED_STORE": "dynamodb://p?region=eu-west-1",
}


def loaded_by(module: str, environment: dict[str, str]) -> set[str]:
    """Return the modules that a fresh interpreter holds after an import."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "console", "web"))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["dispatcher", "reaper", "worker"])
def test_a_function_loads_no_more_than_it_uses(name: str) -> None:
    """As on AWS, where the module makes its parts, the store's client among them, at once."""
    loaded = loaded_by(f"dynsched.lambdas.{name}", TOLD)
    assert "botocore.client" in loaded
    assert {module.partition(".")[0] for module in loaded} & HEAVY == set()
    assert loaded & OURS == set()


@pytest.mark.parametrize("name", ["dispatcher", "reaper", "worker"])
def test_what_is_our_own_looks_up_no_installed_packages(name: str) -> None:
    """Reading packages' metadata from a disk takes longer than most of our modules."""
    loaded = loaded_by(f"dynsched.lambdas.{name}", {})
    assert loaded & {"importlib.metadata", "pkg_resources", "boto3", "botocore"} == set()


def test_a_dispatcher_has_no_part_of_a_worker() -> None:
    """It starts no handler, so it needs none of what starts them."""
    loaded = loaded_by("dynsched.lambdas.dispatcher", TOLD)
    assert not loaded & {"dynsched.services.workbench", "dynsched.services.health"}
