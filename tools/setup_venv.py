"""Make `.venv` what `requirements.lock` and `pyproject.toml` say, and nothing if it is so already.

Run by `make`. Two callers at the same time take turns; a set-up that was interrupted leaves no
stamp and is begun anew. The lock is the only source of versions: every package is checked against
its hash, and the project itself is installed in place without looking at any index.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "ready"
LOCK = ROOT / "requirements.lock"


def fingerprint() -> str:
    """Return a text that changes whenever the environment has to be made anew."""
    digest = hashlib.sha256()
    hook = ROOT / "tools" / "fetch_htmx.py"
    for path in (LOCK, ROOT / "pyproject.toml", hook, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_ready(wanted: str) -> bool:
    """Say whether `.venv` was made from the present files and its interpreter still exists."""
    made_from = STAMP.read_text() if STAMP.exists() else ""
    return made_from == wanted and (VENV / "bin" / "python").exists()


def pip(*arguments: str) -> None:
    """Run the environment's own pip, silent but for errors.

    Raises:
        CalledProcessError: pip failed, and has said why.
    """
    command = [str(VENV / "bin" / "python"), "-m", "pip", "-qq", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True, cwd=ROOT)


def make() -> None:
    """Make `.venv` from nothing: the locked packages, then the project in place.

    Raises:
        CalledProcessError: a step failed, and has said why.
    """
    print("Setting up .venv from requirements.lock; once, about half a minute ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    pip("install", "--require-hashes", "-r", str(LOCK))
    pip("install", "--no-index", "--no-deps", "--no-build-isolation", "--editable", ".")


def main() -> int:
    """Set up if needed; the exit code is that of the step that failed."""
    with LOCK.open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        wanted = fingerprint()
        if is_ready(wanted):
            return 0
        try:
            make()
        except subprocess.CalledProcessError as failure:
            print(f"The set-up failed (exit {failure.returncode}); see above.", file=sys.stderr)
            return 1
        STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
