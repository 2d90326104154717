"""Take each rule of the protocol out of a copy of the code and see its tests fail.

    python tools/mutate_rules.py            all mutations
    python tools/mutate_rules.py solo reread   those of some rules

A mutation is killed if each of its tests fails by an assertion of its own, or by an error of ours;
not if the edit only breaks the program. Exit code 1 if one survives.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.rules.mutation import Mutation  # noqa: E402
from tests.rules.mutations import MUTATIONS  # noqa: E402

SOURCES = Path("src") / "dynsched"
TIMEOUT_S = 300
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", "-q")


def mutated(mutation: Mutation, root: Path) -> dict[Path, str]:
    """Return the files that a mutation changes, with their new texts."""
    texts: dict[Path, str] = {}
    for path in dict.fromkeys(edit.path for edit in mutation.edits):
        text = (root / SOURCES / path).read_text("utf-8")
        places = []
        for edit in mutation.edits:
            if edit.path == path:
                if text.count(edit.old) != 1:
                    raise ValueError(f"{path} has {edit.old!r} {text.count(edit.old)} times")
                places.append((text.index(edit.old), edit))
        # From the end, so that earlier places stay where they are.
        for start, edit in sorted(places, key=lambda place: place[0], reverse=True):
            text = text[:start] + edit.new + text[start + len(edit.old) :]
        ast.parse(text, path)
        texts[SOURCES / path] = text
    return texts


def verdict(mutation: Mutation, copy: Path, files: Mapping[str, str]) -> str:
    """Apply a mutation to the copy, run its tests there, undo it; say what became of it."""
    texts = mutated(mutation, copy)
    before = {path: (copy / path).read_text("utf-8") for path in texts}
    try:
        for path, text in texts.items():
            (copy / path).write_text(text, "utf-8")
        return judged(mutation, run_tests(mutation.tests, copy, files))
    finally:
        for path, text in before.items():
            (copy / path).write_text(text, "utf-8")


def run_tests(tests: Sequence[str], copy: Path, files: Mapping[str, str]) -> str:
    """Run tests in the copy and return what pytest printed."""
    names = [f"{files[test.partition('[')[0]]}::{test}" for test in tests]
    done = subprocess.run(
        [*PYTEST, *names],
        cwd=copy,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout + done.stderr


def judged(mutation: Mutation, printed: str) -> str:
    """Return `killed`, or why not."""
    failed = set(re.findall(r"^FAILED \S+?::([^\s]+)", printed, re.MULTILINE))
    passed = [test for test in mutation.tests if test not in failed]
    if passed:
        return "SURVIVED " + ", ".join(passed)
    # With --tb=line each failure is told by its place and its exception: an assertion of a test,
    # or an error that the code raises on purpose.
    asserted = re.findall(r"tests/rules/\w+\.py:\d+: (?:AssertionError|assert|Failed)", printed)
    raised = re.findall(r"\.py:\d+: dynsched\.errors\.", printed)
    told = len(asserted) + len(raised)
    return "killed" if told >= len(mutation.tests) else "killed by another error"


def test_files(root: Path) -> dict[str, str]:
    """Return the file of each test of a rule."""
    found = {}
    for path in sorted((root / "tests" / "rules").glob("test_*.py")):
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE):
            found[name] = str(path.relative_to(root))
    return found


def main(rules: Sequence[str]) -> int:
    """Run the mutations of some rules, or of all, and print a table."""
    chosen = [mutation for mutation in MUTATIONS if not rules or mutation.rule in rules]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests/__init__.py", "tests/rules", "pyproject.toml"):
            source = ROOT / part
            ignore = shutil.ignore_patterns("__pycache__")
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=ignore)
            else:
                (copy / part).parent.mkdir(exist_ok=True)
                shutil.copy(source, copy / part)
        files = test_files(copy)
        for number, mutation in enumerate(chosen, 1):
            said = verdict(mutation, copy, files)
            survived += said != "killed"
            where = mutation.edits[0].path
            print(f"{number:3} {mutation.rule:14} {where:26} {said}", flush=True)
            for test in mutation.tests:
                print(f"      {test}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} killed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
