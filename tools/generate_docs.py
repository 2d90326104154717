"""Write the pages that are generated from the code, or say whether they are up to date.

python tools/generate_docs.py --write
python tools/generate_docs.py --check
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import click

from dynsched.cli.main import main as main_command
from dynsched.domain.filters import AUDIT, JOBS, RUNS, TENANTS, WORKERS
from dynsched.domain.moves import MOVES, Move
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
        "Generated from `src/dynsched/domain/moves.py` by `make docs`. A run changes in no other",
        "way: each row below is one named constructor of `domain/lifecycle.py`, and each write is",
        "guarded by the version that was seen.",
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
        plain = "none" if value == () else str(value)
        shown = f"{value.total_seconds():g}" if duration else plain
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


def cli_page() -> str:
    """Return docs/cli.md."""
    lines = [
        "# The command line",
        "",
        "Generated from the program by `make docs`; `dynsched COMMAND --help` says the same. Every",
        "command takes `--store URL`, before or after its name (or `DYNSCHED_STORE`): a file",
        "`sqlite:///path.db` (the default is `sqlite:///dynsched.db` in the working directory) or",
        "`dynamodb://PREFIX?region=…&endpoint_url=…`. With `--json` it writes one document:",
        "snake_case names, instants ISO 8601 in UTC with `Z`. Durations are written `30s`, `5m`,",
        "`2h`, `1d`, `1h30m`; instants have an offset or `Z`.",
        "",
        "Every command also takes, before or after its name, who acts: `--actor NAME` (or",
        "`DYNSCHED_ACTOR`; else your login and host), `--role viewer|operator|admin` (or",
        "`DYNSCHED_ROLE`; else admin) and `--read-only` (or `DYNSCHED_READ_ONLY=1`), which refuses",
        "every change. They keep your own hands from slipping: whoever has the store's file or",
        "credentials can write to it whatever the role says. What changes something takes",
        "`--reason TEXT`; `dynsched audit` shows who did what and why. What looks like a secret is",
        "shown as `***`.",
        "",
        "A failure is one line on standard error, `error: …`, that begins with the option or",
        "argument that is wrong, and an exit code:",
        "",
        "| code | means |",
        "|---|---|",
        *(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()),
    ]
    for name, command in main_command.commands.items():
        lines += ["", f"## {name}", ""]
        if isinstance(command, click.Group):
            lines += [_help_of(command)]
            for verb, each in command.commands.items():
                lines += ["", *_command(f"{name} {verb}", each)]
        else:
            lines += _command(name, command)
    return "\n".join([*lines, ""])


EXIT_CODES = {
    0: "done",
    1: "a failure that has no code of its own; the reader of a pipe has left",
    2: "wrong usage or bad input, a name that is taken, a store that was not made; nothing written",
    3: "there is no such job or run",
    4: "not in the present state: the run has ended, the job is not paused",
    5: "refused by admission or a cap; try later",
    6: "the store failed, after repeated attempts",
    7: "the role, its limit, its tenant or read-only mode forbids it; nothing was changed",
    130: "interrupted",
}


def _help_of(command: click.Command) -> str:
    return "\n".join(line.strip() for line in (command.help or "").strip().splitlines())


def _command(path: str, command: click.Command) -> list[str]:
    """Return one command: how it is called, what it does, its options and examples."""
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    names = [param.metavar or (param.name or "").upper() for param in arguments]
    lines = [f"**`{' '.join((path, *names))}`**", "", _help_of(command), ""]
    options = [param for param in command.params if isinstance(param, click.Option)]
    everywhere = ("--store", "--json")
    shown = [one for one in options if one.opts[0] not in everywhere and not one.hidden]
    if shown:
        lines += ["| option | |", "|---|---|"]
        lines += [
            f"| {_option(option)} | {option.help or ''}{_default(option)} |" for option in shown
        ]
        lines.append("")
    return [*lines, "```", *(f"dynsched {example}" for example in command.examples), "```"]  # type: ignore[attr-defined]


def _option(option: click.Option) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {_value(option)}"
    return f"`{names}{value}`"


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "\\|".join(option.type.choices)
    return option.type.name.upper()


def _default(option: click.Option) -> str:
    if not option.show_default or option.is_flag:
        return ""
    return f" Default {option.default}." if option.default is not None else ""


FILTER_FORMS = """\
# Filters

Generated from `src/dynsched/domain/vocabulary.py` by `make docs`. One line says which rows to show,
the same in the command line, the consoles and a URL:

```
dynsched run list 'state:dead -tenant:acme err:"no disk" ended:>-1d'
```

| written | means |
|---|---|
| `name:value` | the qualifier has this value |
| `name:a,b` | any of them |
| `-name:a,b` | none of them; on a command line a filter that begins so comes behind `--` |
| `word`, `"two words"` | the text lies somewhere in an id, a name or an error, whatever its case |
| `name:"a, b"` | quotes hold blanks and commas; inside, `\\"` is a quote and `\\\\` a backslash |
| `name:>3`, `>=`, `<`, `<=` | compares numbers, durations (`30s`, `1h30m`) and times |
| `name:>-1h`, `<+10m`, `<now` | so long before or after the moment of the search |
| `name:2026-11-29` | on that day, in UTC; `2026-11-29T10:00Z` is within that minute |
| `@name` | a shipped filter |
| a whole run id | that run, whatever else would be left out |

All terms must hold. A mistake is an error that shows its place, never an empty list.

A search goes straight to its rows where their keys answer (the status line calls the other
qualifiers `row by row`), newest first. Runs of a job come by their scheduled instant. Without a
time, a job or an id, runs that ended are looked for in the last hour, except the dead where no
other ended runs are asked for; a note says so. `--cursor` goes on behind a page: pages never
overlap, and lose no run that does not move. Discarded runs are shown by `is:discarded` and by id.
`group:` means dead runs, unless a state is named.
"""


def filters_page() -> str:
    """Return docs/filters.md."""
    lines = [FILTER_FORMS]
    pages = {
        "Runs": RUNS,
        "Jobs": JOBS,
        "The audit": AUDIT,
        "Tenants": TENANTS,
        "Workers": WORKERS,
    }
    for title, vocabulary in pages.items():
        lines += [f"## {title}", "", f"A word alone is looked for in {vocabulary.bare}.", ""]
        lines += ["| qualifier | value | finds |", "|---|---|---|"]
        for one in vocabulary.qualifiers:
            head = f"`{one.name}.PATH:`" if one.path else f"`{one.name}:`"
            values = ", ".join(f"`{word}`" for word in one.choices) or one.kind.value
            lines.append(f"| {head} | {values} | {one.hint} |")
        for one in vocabulary.qualifiers:
            told = {word: hint for word, hint in one.choices.items() if hint}
            lines += ["", *(f"- `{one.name}:{word}`: {hint}." for word, hint in told.items())]
        if vocabulary.named:
            lines += ["", "| shipped | stands for | finds runs |", "|---|---|---|"]
            lines += [
                f"| `@{name}` | `{text}` | {vocabulary.hints[name]} |"
                for name, text in vocabulary.named.items()
            ]
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


PAGES = {
    "lifecycle.md": lifecycle_page,
    "settings.md": settings_page,
    "cli.md": cli_page,
    "filters.md": filters_page,
}


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
