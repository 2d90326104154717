"""For each rule the smallest edits that take it out of the code, and the tests that must then fail.

`make mutants` applies each to a copy of the sources and runs its tests there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A snippet of a file under `src/dynsched`, there exactly once, and what takes its place."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule taken out.

    Attributes:
        rule: its short name.
        edits: applied together, each to the original text.
        tests: tests of this folder, each of which must fail.
    """

    rule: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def cut(rule: str, path: str, old: str, new: str, *tests: str) -> Mutation:
    """Return a mutation of one edit."""
    return Mutation(rule, (Edit(path, old, new),), tests)
