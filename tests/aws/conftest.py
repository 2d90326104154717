"""What the tests of the deployment share: the zip, the wire, and deployments on ministack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.aws.deployment import Deployment
from tests.aws.emulator import emulator_url
from tests.aws.wire import Wire
from tests.contract.dynamo_backends import dummy_credentials

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = Path(__file__).parent / "program"

NewDeployment = Callable[..., Deployment]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the functions' zip with the tests' handlers in it."""
    path = tmp_path_factory.mktemp("zip") / "functions.zip"
    subprocess.run(
        [
            *(sys.executable, str(ROOT / "tools" / "build_zip.py")),
            *("--with", str(HANDLERS), "--output", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture(autouse=True)
def _no_account() -> Iterator[None]:
    """Keep real credentials away from everything here."""
    with dummy_credentials():
        yield


@pytest.fixture(scope="session")
def _wire() -> Iterator[Wire]:
    with closing(Wire(emulator_url())) as wire:
        yield wire


@pytest.fixture
def wire(_wire: Wire) -> Iterator[Wire]:
    """Give the wire before ministack, which breaks and bends nothing yet."""
    yield _wire
    _wire.mend()
    assert _wire.trouble == []


@pytest.fixture
def new_deployment(wire: Wire, package: Path) -> Iterator[NewDeployment]:
    """Return what makes a deployment; it is taken away with the test."""
    with ExitStack() as stack:

        def make(*, listens: bool = True, **options: object) -> Deployment:
            deployment = Deployment(wire=wire, package=package, **options)  # type: ignore[arg-type]
            stack.enter_context(closing(deployment))
            deployment.open()
            if listens:
                deployment.listen()
            return deployment

        yield make


@pytest.fixture
def deployment(new_deployment: NewDeployment) -> Deployment:
    """Return a deployment with the defaults."""
    return new_deployment()
