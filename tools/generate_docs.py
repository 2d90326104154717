"""Write the pages that are generated from the code, or say whether they are up to date.

python tools/generate_docs.py --write
python tools/generate_docs.py --check
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

from dynsched.domain.lifecycle import MOVES, Move
from dynsched.domain.run import TERMINAL, RunState
from dynsched.settings import Settings

DOCS = Path(__file__).parent.parent / "docs"
STATES = {
    RunState.READY: "may be claimed from `available_at` on",
    RunState.LEASED: "a worker's session holds it under its fence",
    RunState.FAILED: "waits for its next attempt, beyond the look-ahead",
    RunState.DONE: "succeeded",
    RunState.DEAD: "given up; the dead-letter queue is the view of these",
    RunState.CANCELLED: "called off",
    RunState.SKIPPED: "was not to start; the reason says why",
}


def lifecycle_page() -> str:
    """Return docs/lifecycle.md."""
    lines = [
        "# The lifecycle of a run",
        "",
        "Generated from `src/dynsched/domain/lifecycle.py` by `make docs`. A run changes in no",
        "other way: each row below is one named constructor, and each write is guarded by the",
        "version that was seen.",
        "",
        "| state | meaning | ends |",
        "|---|---|---|",
    ]
    for state in RunState:
        ends = "yes" if state in TERMINAL else ""
        lines.append(f"| `{state.value}` | {STATES[state]} | {ends} |")
    lines += ["", "| event | from | to | by | meaning |", "|---|---|---|---|---|"]
    lines += [_row(move) for move in MOVES]
    lines += [
        "",
        "An ended run stays as it ended, except that a dead one may be replayed: same row, same",
        "idempotency key, attempts kept, limit raised.",
        "",
    ]
    return "\n".join(lines)


def _row(move: Move) -> str:
    cells = [f"`{move.event.value}`"]
    cells += [
        " · ".join(f"`{state.value}`" for state in RunState if state in states)
        for states in (move.sources, move.targets)
    ]
    return "| " + " | ".join([*cells, move.by, move.meaning]) + " |"


def settings_page() -> str:
    """Return docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "Generated from `src/dynsched/settings.py` by `make docs`. Each is an environment",
        "variable; durations are in seconds. What all processes of a store must share (look-ahead,",
        "shards, lanes) lies in the store and is given to `dynsched init`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    meanings = _meanings()
    defaults = Settings()
    for field in fields(Settings):
        value = getattr(defaults, field.name)
        duration = isinstance(value, timedelta)
        variable = f"DYNSCHED_{field.name.upper()}" + ("_S" if duration else "")
        shown = f"{value.total_seconds():g}" if duration else str(value)
        lines.append(f"| `{variable}` | {shown} | {meanings[field.name]} |")
    return "\n".join([*lines, ""])


def _meanings() -> dict[str, str]:
    """Return what the class's docstring says of each field."""
    text = (Settings.__doc__ or "").partition("Attributes:")[2]
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        head, colon, rest = line.strip().partition(": ")
        if colon and head.isidentifier():
            name, found[head] = head, rest
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


PAGES = {"lifecycle.md": lifecycle_page, "settings.md": settings_page}


def main() -> int:
    """Write or check all pages; 1 if one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="write the pages")
    mode.add_argument("--check", action="store_true", help="say which are out of date")
    options = parser.parse_args()
    old = [
        name
        for name, page in PAGES.items()
        if not (DOCS / name).exists() or (DOCS / name).read_text() != page()
    ]
    for name in old:
        if options.write:
            (DOCS / name).write_text(PAGES[name]())
        verb = "wrote" if options.write else "out of date, run `make docs`:"
        sys.stdout.write(f"{verb} docs/{name}\n")
    return 1 if old and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
