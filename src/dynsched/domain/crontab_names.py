"""Names for jobs that come from a crontab, whose lines have none.

A name is drawn from the program and what it works on, never from options or their values: those
may be secrets, and names are shown everywhere.
"""

from __future__ import annotations

import re
from hashlib import blake2b

_NAME_LENGTH_MAX = 48
"""Leaves room for a suffix within the 64 characters of a job name."""

_TRIVIAL = frozenset(
    (":", "[", "[[", "cd", "command", "echo", "exit", "export", "false", "set", "sleep", "test")
) | {"true", "umask"}
"""Programs that a line begins or ends with, but is not about."""
_WRAPPERS = frozenset(("chronic", "env", "exec", "ionice", "nice", "nohup", "sudo", "then", "time"))

_SEPARATORS = re.compile(r"&&|\|\||[;{}()\n]")
_REDIRECTION = re.compile(r"[0-9]?[<>]+&?\s*\S*")
_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,30}")
_PATH = re.compile(r"[A-Za-z0-9_.~/-]*/[A-Za-z0-9_.-]+/?")


def suggest_name(command: str) -> str:
    """Return a job name for a shell command; the same command always gets the same name.

    >>> suggest_name("cd / && run-parts --report /opt/jobs/hourly")
    'run-parts-hourly'
    >>> suggest_name("API_KEY=x /opt/bin/sync --token y >/dev/null 2>&1")
    'sync'
    """
    parts = [
        _REDIRECTION.sub(" ", part).partition("|")[0].split() for part in _SEPARATORS.split(command)
    ]
    commands = [words for words in map(_unwrapped, parts) if words]
    telling = [words for words in commands if _base(words[0]) not in _TRIVIAL]
    words = telling[-1] if telling else commands[0] if commands else ["job"]
    raw = "-".join(filter(None, (_base(words[0]), _object_of(words[1:]))))
    name = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]+", "-", raw))
    return name[:_NAME_LENGTH_MAX].strip("-._") or "job"


def make_unique(name: str, line: str, taken: set[str]) -> str:
    """Return the name, or one that is not taken, and take it.

    The first bearer keeps the plain name; another gets a suffix hashed from its line, so that
    moving lines about does not rename jobs; an exact double gets a number.

    >>> taken = set()
    >>> [make_unique("backup", line, taken) for line in ("a", "b", "b")]
    ['backup', 'backup-cb5332', 'backup-cb5332-2']
    """
    found = name
    if found in taken:
        found = f"{name}-{blake2b(line.encode(), digest_size=3).hexdigest()}"
    stem, number = found, 1
    while found in taken:
        number += 1
        found = f"{stem}-{number}"
    taken.add(found)
    return found


def _unwrapped(words: list[str]) -> list[str]:
    """Drop assignments and wrappers (with their options) before the program."""
    index = 0
    while index < len(words) and (
        "=" in words[index]
        or _base(words[index]) in _WRAPPERS
        or (index > 0 and (words[index].startswith("-") or words[index].isdigit()))
    ):
        index += 1
    return words[index:]


def _object_of(arguments: list[str]) -> str:
    """Return the subcommand, or else the last part of the first path; empty if there is neither."""
    if arguments and _PLAIN_WORD.fullmatch(arguments[0]):
        return arguments[0]
    return next((_base(word) for word in arguments if _PATH.fullmatch(word)), "")


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]
