"""Compiled files for the zip, made by a Python of the functions' own version.

AWS gives a function's code a folder that it cannot write to, so what is not compiled there is
compiled anew at each cold start. What the functions import is compiled here, without a time in
it; the same Python makes the same bytes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.locked_wheels import BuildFailed

FUNCTIONS = (
    "dynsched.lambdas.dispatcher",
    "dynsched.lambdas.reaper",
    "dynsched.lambdas.worker",
    "dynsched.storage.dynamodb",
    "dynsched.storage.sqs",
)
TASK_ROOT = "/var/task"  # where AWS unpacks the zip, as tracebacks show it

PROGRAM = """
import importlib, importlib.util, pathlib, py_compile, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
for name in sys.argv[3:]:
    importlib.import_module(name)
files = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
for path in sorted(pathlib.Path(file) for file in files if file.endswith(".py")):
    if path.is_relative_to(root):
        py_compile.compile(
            str(path),
            cfile=importlib.util.cache_from_source(str(path)),
            dfile=sys.argv[2] + "/" + path.relative_to(root).as_posix(),
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
"""


def version_of(python: str) -> str:
    """Return the version of an interpreter, as `3.13`.

    Raises:
        BuildFailed: it cannot be run.
    """
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildFailed(f"--compile: {python} cannot be run: {error}") from None
    return done.stdout.strip()


def compiled(
    files: Mapping[str, bytes], python: str, modules: Sequence[str] = FUNCTIONS
) -> dict[str, bytes]:
    """Return the compiled files of what some modules import from the zip.

    Args:
        files: the zip's content.
        python: an interpreter of the functions' version.
        modules: which are imported.

    Raises:
        BuildFailed: a module cannot be imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        command = [python, "-S", "-B", "-c", PROGRAM, str(root), TASK_ROOT, *modules]
        # A set among the constants of a module is written in the order of its hashes.
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailed(f"--compile: {done.stderr.strip().splitlines()[-1]}")
        found = sorted(root.rglob("*.pyc"))
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}
