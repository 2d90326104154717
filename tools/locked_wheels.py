"""The wheels that the functions need, as `requirements.lock` names them, for another platform.

pip fetches what is missing into `build/wheels`; each file is checked against the lock's hashes,
also one that is there already. So the second build needs no network.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
CACHE = ROOT / "build" / "wheels"

PACKAGES = (
    "boto3",
    "botocore",
    "croniter",
    "jmespath",
    "python-dateutil",
    "s3transfer",
    "six",
    "tzdata",
    "urllib3",
)
"""What the functions import besides dynsched itself, and what that needs; a test compares it."""

MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
"""What a wheel may be built for that is to run on Amazon Linux 2023, whose glibc is 2.34."""

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class BuildFailed(Exception):
    """The zip cannot be built; the message says why."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What the functions run on.

    Attributes:
        python: its version, as `3.13`.
        arch: Lambda's name of the architecture.
    """

    python: str = "3.13"
    arch: str = "arm64"

    @property
    def folder(self) -> Path:
        """Return where its wheels are kept."""
        return CACHE / f"py{self.python}-{self.arch}"

    @property
    def options(self) -> list[str]:
        """Return pip's options to fetch wheels for it."""
        machine, version = MACHINES[self.arch], self.python.replace(".", "")
        abis = [f"cp{version}", "abi3", "none"]
        return [
            "--only-binary=:all:",
            "--implementation=cp",
            f"--python-version={self.python}",
            *(f"--abi={abi}" for abi in abis),
            *(f"--platform={name}_{machine}" for name in PLATFORMS),
        ]


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of the lock."""

    name: str
    version: str
    hashes: frozenset[str]

    @property
    def requirement(self) -> str:
        """Return it as a line of a requirements file."""
        hashes = "".join(f" --hash=sha256:{one}" for one in sorted(self.hashes))
        return f"{self.name}=={self.version}{hashes}"


def read_lock(text: str) -> dict[str, Pin]:
    """Return the pins of a lock file by name."""
    starts = list(_PINNED.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    return {
        match[1]: Pin(match[1], match[2], frozenset(_HASH.findall(text[match.start() : end])))
        for match, end in zip(starts, ends, strict=True)
    }


def wheels(platform: Platform) -> list[Path]:
    """Return the wheels of `PACKAGES` for a platform, fetched if they are not there.

    Raises:
        BuildFailed: the lock lacks one, pip failed, or a file is not what the lock says.
    """
    known = read_lock(LOCK.read_text("utf-8"))
    missing = [name for name in PACKAGES if name not in known]
    if missing:
        raise BuildFailed(f"requirements.lock has no {', '.join(missing)}: run `make lock`")
    pins = [known[name] for name in PACKAGES]
    found = [_kept(pin, platform.folder) for pin in pins]
    wanted = [pin for pin, path in zip(pins, found, strict=True) if path is None]
    if wanted:
        _fetch(wanted, platform)
        found = [_kept(pin, platform.folder) for pin in pins]
    lost = [pin.name for pin, path in zip(pins, found, strict=True) if path is None]
    if lost:
        raise BuildFailed(f"pip brought no wheel of {', '.join(lost)} that the lock knows")
    return [path for path in found if path is not None]


def more_wheels(requirements: Path, platform: Platform) -> list[Path]:
    """Return the wheels of a team's own requirements, with what they need.

    They are resolved under the lock's versions of `PACKAGES`, which are in the zip already and
    are left out here.

    Raises:
        BuildFailed: there is no such file, or pip failed.
    """
    if not requirements.is_file():
        raise BuildFailed(f"--requirements: there is no file {requirements}")
    known = read_lock(LOCK.read_text("utf-8"))
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = platform.folder / f"team-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    bounds = folder / "constraints.txt"
    bounds.write_text("".join(f"{name}=={known[name].version}\n" for name in PACKAGES))
    for old in folder.glob("*.whl"):
        old.unlink()
    chosen = ["--constraint", str(bounds), "--requirement", str(requirements)]
    pip_download([*chosen, f"--find-links={platform.folder}"], platform, folder)
    ours = {_normal(name) for name in PACKAGES}
    return [path for path in sorted(folder.glob("*.whl")) if _package(path) not in ours]


def _kept(pin: Pin, folder: Path) -> Path | None:
    """Return the wheel of a pin that is there already and is what the lock says."""
    for path in sorted(folder.glob("*.whl")):
        name, version = path.name.split("-")[:2]
        if _normal(name) == _normal(pin.name) and version == pin.version:
            if hashlib.sha256(path.read_bytes()).hexdigest() in pin.hashes:
                return path
            raise BuildFailed(f"{path} is not what requirements.lock says; delete it")
    return None


def _fetch(pins: Sequence[Pin], platform: Platform) -> None:
    platform.folder.mkdir(parents=True, exist_ok=True)
    wanted = platform.folder / "wanted.txt"
    wanted.write_text("".join(f"{pin.requirement}\n" for pin in pins))
    chosen = ["--no-deps", "--require-hashes", "--requirement", str(wanted)]
    pip_download(chosen, platform, platform.folder)


def pip_download(chosen: Sequence[str], platform: Platform, folder: Path) -> None:
    """Let pip fetch wheels for a platform into a folder.

    Raises:
        BuildFailed: pip failed; its last words are the message.
    """
    quiet = ["-q", "--disable-pip-version-check", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *quiet, *platform.options, *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise BuildFailed("pip download failed: " + (said[-1:] or [done.stderr.strip()])[0])


def _package(path: Path) -> str:
    return _normal(path.name.split("-")[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
