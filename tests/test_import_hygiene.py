"""What importing a part of dynsched loads: nobody pays for what they do not use."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

CONSOLES = {"dynsched_console", "dynsched_web", "flask", "htmx_flask", "textual"}
AWS = {"boto3", "botocore"}
AWS_STORAGE = tuple(f"dynsched.storage.{name}" for name in ("dynamodb", "sqs"))

# Parts of the standard library that reach outside the process. (Types such as `random.Random` are
# welcome; that nobody draws from the module itself is proved by tests/test_tidy.py.)
IMPURE = (
    "asyncio", "http", "multiprocessing", "os", "pathlib", "shutil", "signal", "socket", "sqlite3",
    "subprocess", "tempfile", "threading", "time", "urllib.error", "urllib.request",
)  # fmt: skip


def modules_of(package: str) -> list[str]:
    """Return the dotted names of a package's modules, itself first."""
    folder = SRC.joinpath(*package.split("."))
    files = [path.relative_to(SRC).with_suffix("") for path in sorted(folder.rglob("*.py"))]
    names = [".".join(path.parts).removesuffix(".__init__") for path in files]
    return sorted(name for name in names if not name.endswith("__main__"))


def loaded_by(modules: list[str]) -> set[str]:
    """Return the top-level packages that a fresh interpreter holds after these imports."""
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "console", "web"))
    done = subprocess.run(
        [sys.executable, "-c", program, *modules],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    return set(done.stdout.split())


def imports_of(text: str) -> set[str]:
    """Return the full names of what a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def impurities(text: str) -> set[str]:
    """Return what a file of the domain imports and should not."""
    own = ("dynsched.domain", "dynsched.errors")
    others = {name for name in imports_of(text) if not name.startswith(own)}
    allowed = sys.stdlib_module_names | {"croniter"}
    outside = tuple(f"{module}." for module in IMPURE)
    return {
        name
        for name in others
        if name.partition(".")[0] not in allowed or f"{name}.".startswith(outside)
    }


def test_importing_the_package_and_its_core_loads_no_framework() -> None:
    """`import dynsched` in somebody's web application brings in neither console nor AWS."""
    modules = ["dynsched", *modules_of("dynsched.domain"), "dynsched.errors"]
    assert loaded_by(modules) & (CONSOLES | AWS) == set()


def test_services_and_sqlite_load_neither_aws_nor_consoles() -> None:
    """On one machine `dynsched up` never pays for the AWS client."""
    storage = [name for name in modules_of("dynsched.storage") if not name.startswith(AWS_STORAGE)]
    assert loaded_by([*modules_of("dynsched.services"), *storage]) & (CONSOLES | AWS) == set()


def test_lambda_functions_load_no_console() -> None:
    """A cold start pays for no user interface."""
    assert loaded_by(modules_of("dynsched.lambdas")) & (CONSOLES | {"click"}) == set()


def test_what_an_import_loads_is_seen() -> None:
    """The checks above can fail: an import of Flask is seen in the fresh interpreter."""
    assert "flask" in loaded_by(["flask"])


@pytest.mark.parametrize("path", sorted(SRC.glob("dynsched/domain/*.py")), ids=lambda p: p.name)
def test_the_domain_is_pure(path: Path) -> None:
    """The core needs nothing but pure parts of the standard library, croniter and its errors."""
    assert impurities(path.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import urllib.request",
        "from urllib import request",
        "from time import time",
        "import boto3",
        "from dynsched.storage import engine",
        "import dynsched.services",
    ],
)
def test_an_impure_import_is_found(line: str) -> None:
    """The check above sees each way to name a module that reaches outside."""
    assert len(impurities(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from random import Random",
        "import urllib.parse",
        "from croniter import croniter",
        "from dynsched.domain.instants import Clock",
        "from dynsched import errors",
    ],
)
def test_a_pure_import_is_left_alone(line: str) -> None:
    """Types, parsers and the domain itself are welcome."""
    assert impurities(line) == set()
