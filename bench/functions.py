"""The functions' cold starts: what importing each takes, from the zip that is deployed.

On AWS a process imports its module once, before its first event; with it go the client of the
store and everything that the environment says. Here that is a process of its own, with the zip's
content and nothing else on its path.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bench.options import Options, say
from bench.report import Figure

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = ("dispatcher", "reaper", "worker")
IMPORT_MAX_MS = 400
ZIP_MAX_MB = 3
ROUNDS = 7
TOLD = {
    "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9",  # so that a module makes its parts at once
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "DYNSCHED_STORE": "dynamodb://bench?region=eu-west-1",
}


def built(folder: Path) -> Path | None:
    """Build the zip; None if that cannot be done here, which is told."""
    output = folder / "functions.zip"
    command = [sys.executable, str(ROOT / "tools" / "build_zip.py"), "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        say(f"functions: {done.stderr.strip()}")
    return output if output.exists() else None


def process_ms(code: str, environment: Mapping[str, str], *, rounds: int) -> tuple[float, float]:
    """Return how long a fresh interpreter takes for some code, and of that the CPU: medians."""
    taken, used = [], []
    for _ in range(rounds):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", code], env=dict(environment), check=True)
        taken.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken) * 1000, statistics.median(used) * 1000


def import_ms(module: str, environment: Mapping[str, str], *, rounds: int) -> float:
    """Return what an import takes by the interpreter's own clock, as a median."""
    taken = []
    for _ in range(rounds):
        command = [sys.executable, "-S", "-X", "importtime", "-c", f"import {module}"]
        done = subprocess.run(
            command, env=dict(environment), check=True, capture_output=True, text=True
        )
        # The last line is the module's, with all that it has brought with it.
        line = next(one for one in reversed(done.stderr.splitlines()) if one.endswith(module))
        taken.append(int(line.split("|")[1]))
    return statistics.median(taken) / 1000


def measure(options: Options) -> list[Figure]:
    """Measure each function's import, with and without compiled files, and the zip."""
    rounds = 3 if options.quick else ROUNDS
    output = built(options.folder)
    figures = []
    path = options.folder / "function"
    if output is None:
        path = ROOT / "src"
        say("functions: measured from the sources, with the packages of this environment")
        outside = [one for one in sys.path if one.endswith("site-packages")]
        search = os.pathsep.join([str(path), *outside])
    else:
        with zipfile.ZipFile(output) as archive:
            archive.extractall(path)
        search = str(path)
        size = output.stat().st_size / 1e6
        figures.append(Figure("the zip", size, "MB", most=ZIP_MAX_MB))
    environment = {**TOLD, "PYTHONPATH": search}
    uncompiled = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    bare, _ = process_ms("pass", environment, rounds=rounds)
    figures.append(Figure("a bare interpreter", bare, "ms"))
    for name in FUNCTIONS:
        say(f"functions: {name}")
        figures += _of(name, environment, uncompiled, rounds)
    return figures


def _of(
    name: str, environment: Mapping[str, str], uncompiled: Mapping[str, str], rounds: int
) -> list[Figure]:
    module = f"dynsched.lambdas.{name}"
    code = f"import {module}"
    first, _ = process_ms(code, uncompiled, rounds=rounds)
    process_ms(code, environment, rounds=1)  # it leaves compiled files
    whole, used = process_ms(code, environment, rounds=rounds)
    return [
        Figure(f"{name}, whole process", whole, "ms"),
        Figure(f"{name}, of that processor time", used, "ms", most=IMPORT_MAX_MS),
        Figure(f"{name}, by -X importtime", import_ms(module, environment, rounds=rounds), "ms"),
        Figure(f"{name}, whole process, nothing compiled", first, "ms"),
    ]
